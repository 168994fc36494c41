"""One script of S3 operations, and what each step answered: to compare two servers.

Only what a client relies on is kept: statuses, error codes, sizes, tags, names and bytes.
"""

import hashlib
from collections.abc import Callable
from typing import Any

from botocore.exceptions import ClientError

MIB = 1 << 20
DATA = bytes(range(256)) * 40_000
KEYS = ("a", "b/1", "b/2", "c d/\u00fc", "e+f", "g%2Fh", "z")


def outcomes(s3: Any, bucket: str) -> dict[str, object]:
    """Run the script with a client and return what each step answered."""
    found: dict[str, object] = {}

    def step(name: str, call: Callable[[], object]) -> Any:
        try:
            answer = call()
        except ClientError as error:
            told: Any = error.response
            status = told["ResponseMetadata"]["HTTPStatusCode"]
            # HEAD has no body, so its code is the status.
            found[name] = (status, told["Error"]["Code"])
            return None
        found[name] = answer
        return answer

    step("bucket", lambda: _status(s3.create_bucket(Bucket=bucket)))
    for group in (_objects, _conditions, _listings, _multipart, _versions, _refusals):
        group(s3, bucket, step)
    return found


_Step = Callable[[str, Callable[[], object]], Any]


def _status(answer: Any) -> int:
    return answer["ResponseMetadata"]["HTTPStatusCode"]


def _put(s3: Any, where: dict[str, str]) -> str:
    return s3.put_object(**where, Body=DATA, Metadata={"k": "v"})["ETag"]


def _read(answer: Any) -> tuple[int, str, object, object]:
    data = answer["Body"].read()
    digest = hashlib.sha256(data).hexdigest()
    return _status(answer), digest, answer.get("ContentRange"), answer["Metadata"]


def _objects(s3: Any, bucket: str, step: _Step) -> None:
    for key in KEYS:
        where = {"Bucket": bucket, "Key": key}
        step(f"put {key}", lambda w=where: _put(s3, w))
        step(f"get {key}", lambda w=where: _read(s3.get_object(**w)))
    first = {"Bucket": bucket, "Key": "a"}
    for text in ("bytes=0-9", "bytes=-7", "bytes=100-", "bytes=99999999-"):
        step(f"get {text}", lambda t=text: _read(s3.get_object(**first, Range=t)))
    step("head", lambda: s3.head_object(**first)["ContentLength"])
    source = {"Bucket": bucket, "Key": "c d/\u00fc"}
    step("copy", lambda: _status(s3.copy_object(Bucket=bucket, Key="copy", CopySource=source)))
    step("get copy", lambda: _read(s3.get_object(Bucket=bucket, Key="copy")))
    tags = {"TagSet": [{"Key": "t", "Value": "1"}]}
    step("tag", lambda: _status(s3.put_object_tagging(**first, Tagging=tags)))
    step("tags", lambda: s3.get_object_tagging(**first)["TagSet"])


def _conditions(s3: Any, bucket: str, step: _Step) -> None:
    where = {"Bucket": bucket, "Key": "manifest"}
    put, get = s3.put_object, s3.get_object
    step("create", lambda: _status(put(**where, Body=b"1", IfNoneMatch="*")))
    step("create again", lambda: _status(put(**where, Body=b"2", IfNoneMatch="*")))
    etag = s3.head_object(**where)["ETag"]
    step("replace", lambda: _status(put(**where, Body=b"3", IfMatch=etag)))
    step("replace stale", lambda: _status(put(**where, Body=b"4", IfMatch=etag)))
    step("get if match", lambda: _status(get(**where, IfMatch=etag)))
    step(
        "get if changed", lambda: _status(get(**where, IfNoneMatch=s3.head_object(**where)["ETag"]))
    )


def _listings(s3: Any, bucket: str, step: _Step) -> None:
    def names(**query: Any) -> tuple[object, object, object]:
        page = s3.list_objects_v2(Bucket=bucket, **query)
        keys = [one["Key"] for one in page.get("Contents", [])]
        prefixes = [one["Prefix"] for one in page.get("CommonPrefixes", [])]
        return keys, prefixes, page["IsTruncated"]

    step("list", names)
    step("list folders", lambda: names(Delimiter="/"))
    step("list prefix", lambda: names(Prefix="b/"))
    step("list after", lambda: names(StartAfter="b/1"))
    step("list two", lambda: names(MaxKeys=2))
    step("list none", lambda: names(MaxKeys=0))


def _multipart(s3: Any, bucket: str, step: _Step) -> None:
    where = {"Bucket": bucket, "Key": "big"}
    started = s3.create_multipart_upload(**where)["UploadId"]
    parts = [DATA[: 5 * MIB], DATA[5 * MIB :]]
    done = [
        {
            "PartNumber": number,
            "ETag": s3.upload_part(**where, UploadId=started, PartNumber=number, Body=data)["ETag"],
        }
        for number, data in enumerate(parts, 1)
    ]
    listed = s3.list_parts(**where, UploadId=started)["Parts"]
    step("parts", lambda: [(one["PartNumber"], one["Size"], one["ETag"]) for one in listed])
    wrong = {"Parts": [{**done[0], "ETag": '"0"'}]}
    complete = s3.complete_multipart_upload
    step("wrong part", lambda: complete(**where, UploadId=started, MultipartUpload=wrong))
    right = {"Parts": done}
    step("complete", lambda: complete(**where, UploadId=started, MultipartUpload=right)["ETag"])
    step("get big", lambda: _read(s3.get_object(**where)))
    step("abort none", lambda: s3.abort_multipart_upload(**where, UploadId="none"))


def _versions(s3: Any, bucket: str, step: _Step) -> None:
    where = {"Bucket": bucket, "Key": "versioned"}
    state = {"Status": "Enabled"}
    step(
        "versioning",
        lambda: _status(s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration=state)),
    )
    first = s3.put_object(**where, Body=b"1")["VersionId"]
    s3.put_object(**where, Body=b"2")
    step("marker", lambda: s3.delete_object(**where)["DeleteMarker"])
    step("get hidden", lambda: _read(s3.get_object(**where)))
    step("get first", lambda: _read(s3.get_object(**where, VersionId=first)))
    step("delete first", lambda: _status(s3.delete_object(**where, VersionId=first)))
    listed = s3.list_object_versions(Bucket=bucket, Prefix="versioned")
    step("versions", lambda: [one["IsLatest"] for one in listed["Versions"]])
    step("markers", lambda: [one["IsLatest"] for one in listed["DeleteMarkers"]])


def _refusals(s3: Any, bucket: str, step: _Step) -> None:
    step("get missing", lambda: s3.get_object(Bucket=bucket, Key="none"))
    step("head missing", lambda: s3.head_object(Bucket=bucket, Key="none"))
    step("no bucket", lambda: s3.get_object(Bucket=f"{bucket}-none", Key="none"))
    step("bad name", lambda: s3.create_bucket(Bucket="Bad_Name"))
    step("delete missing", lambda: _status(s3.delete_object(Bucket=bucket, Key="none")))
    wrong = {"Bucket": bucket, "Key": "a", "Body": b"x", "ContentMD5": "AAAAAAAAAAAAAAAAAAAAAA=="}
    step("bad digest", lambda: s3.put_object(**wrong))
    step("no tags", lambda: s3.get_bucket_tagging(Bucket=bucket))
    step("no lifecycle", lambda: s3.get_bucket_lifecycle_configuration(Bucket=bucket))
    step("no cors", lambda: s3.get_bucket_cors(Bucket=bucket))
    # The last step: some servers delete the bucket with all that it holds.
    step("not empty", lambda: _status(s3.delete_bucket(Bucket=bucket)))
