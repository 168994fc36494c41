"""Multipart, checksums, versions, lock, copies and tags, with boto3 and obstore."""

import hashlib
import json
import os
import urllib.error
import urllib.request
from base64 import b64encode
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from zlib import crc32

import obstore
import pytest
from botocore.exceptions import ClientError

from tests.rigs.objects import KEYS, ObjectServer, object_server

MIB = 1 << 20


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectServer]:
    with object_server(tmp_path_factory.mktemp("objects"), "--acls") as running:
        yield running


@pytest.fixture
def bucket(server: ObjectServer, request: pytest.FixtureRequest) -> str:
    name = f"test-{hashlib.sha256(request.node.nodeid.encode()).hexdigest()[:12]}"
    server.s3().create_bucket(Bucket=name)
    return name


def refused(call: Any, **arguments: Any) -> tuple[int, str]:
    with pytest.raises(ClientError) as error:
        call(**arguments)
    answer: Any = error.value.response
    return answer["ResponseMetadata"]["HTTPStatusCode"], answer["Error"]["Code"]


def upload(s3: Any, where: dict[str, str], parts: list[bytes], **options: Any) -> Any:
    started = s3.create_multipart_upload(**where, **options)
    done: list[dict[str, Any]] = []
    for number, data in enumerate(parts, 1):
        part = s3.upload_part(**where, UploadId=started["UploadId"], PartNumber=number, Body=data)
        checksums = {name: part[name] for name in part if name.startswith("Checksum")}
        done.append({"PartNumber": number, "ETag": part["ETag"], **checksums})
    return s3.complete_multipart_upload(
        **where, UploadId=started["UploadId"], MultipartUpload={"Parts": done}
    )


def test_a_multipart_object_is_its_parts_in_order(server: ObjectServer, bucket: str):
    s3 = server.s3()
    where = {"Bucket": bucket, "Key": "big"}
    parts = [os.urandom(5 * MIB), os.urandom(5 * MIB), b"end"]
    done = upload(s3, where, parts)
    assert done["ETag"].endswith('-3"')
    got = s3.get_object(**where, PartNumber=2)
    assert got["PartsCount"] == 3
    assert got["Body"].read() == parts[1]
    whole = b"".join(parts)
    assert s3.get_object(**where)["Body"].read() == whole
    # A range over the seam of two parts.
    span = s3.get_object(**where, Range=f"bytes={5 * MIB - 3}-{10 * MIB + 1}")
    assert span["Body"].read() == whole[5 * MIB - 3 : 10 * MIB + 2]


@pytest.mark.parametrize("kind", ["FULL_OBJECT", "COMPOSITE"])
def test_a_multipart_object_has_the_checksum_that_was_asked_for(
    server: ObjectServer, bucket: str, kind: str
):
    s3 = server.s3()
    where = {"Bucket": bucket, "Key": "big"}
    parts = [os.urandom(5 * MIB), b"end"]
    upload(s3, where, parts, ChecksumAlgorithm="CRC32", ChecksumType=kind)
    shown = s3.head_object(**where, ChecksumMode="ENABLED")
    if kind == "FULL_OBJECT":
        expected = crc32(b"".join(parts)).to_bytes(4, "big")
        assert shown["ChecksumCRC32"] == b64encode(expected).decode()
    else:
        assert shown["ChecksumCRC32"].endswith("-2")
    attributes = s3.get_object_attributes(
        **where, ObjectAttributes=["Checksum", "ObjectParts", "ObjectSize"]
    )
    assert attributes["ObjectSize"] == 5 * MIB + 3
    assert attributes["ObjectParts"]["TotalPartsCount"] == 2
    assert attributes["Checksum"]["ChecksumType"] == kind


def test_parts_that_are_wrong_complete_nothing(server: ObjectServer, bucket: str):
    s3 = server.s3()
    where = {"Bucket": bucket, "Key": "k"}
    started = s3.create_multipart_upload(**where)["UploadId"]
    first = s3.upload_part(**where, UploadId=started, PartNumber=1, Body=b"small")["ETag"]
    second = s3.upload_part(**where, UploadId=started, PartNumber=2, Body=b"b")["ETag"]

    def complete(*parts: tuple[int, str]) -> tuple[int, str]:
        listed = [{"PartNumber": number, "ETag": etag} for number, etag in parts]
        return refused(
            s3.complete_multipart_upload,
            **where,
            UploadId=started,
            MultipartUpload={"Parts": listed},
        )

    assert complete((1, first), (2, second)) == (400, "EntityTooSmall")
    assert complete((2, second), (1, first)) == (400, "InvalidPartOrder")
    assert complete((1, second)) == (400, "InvalidPart")
    assert complete((3, first)) == (400, "InvalidPart")
    s3.abort_multipart_upload(**where, UploadId=started)
    assert complete((1, first)) == (404, "NoSuchUpload")


def test_a_completion_that_is_repeated_is_answered_again(server: ObjectServer, bucket: str):
    s3 = server.s3()
    where = {"Bucket": bucket, "Key": "k"}
    started = s3.create_multipart_upload(**where)["UploadId"]
    etag = s3.upload_part(**where, UploadId=started, PartNumber=1, Body=b"x")["ETag"]
    parts = {"Parts": [{"PartNumber": 1, "ETag": etag}]}
    first = s3.complete_multipart_upload(**where, UploadId=started, MultipartUpload=parts)
    again = s3.complete_multipart_upload(**where, UploadId=started, MultipartUpload=parts)
    assert first["ETag"] == again["ETag"]


@pytest.mark.parametrize("algorithm", ["CRC32", "CRC32C", "CRC64NVME", "SHA1", "SHA256"])
def test_a_checksum_is_kept_and_a_wrong_one_refused(
    server: ObjectServer, bucket: str, algorithm: str
):
    s3 = server.s3()
    s3.put_object(Bucket=bucket, Key="k", Body=b"data", ChecksumAlgorithm=algorithm)
    shown = s3.head_object(Bucket=bucket, Key="k", ChecksumMode="ENABLED")
    name = f"Checksum{algorithm}"
    wrong = b64encode(bytes(len(shown[name]) * 3 // 4 - shown[name].count("="))).decode()
    answer = refused(s3.put_object, Bucket=bucket, Key="k", Body=b"other", **{name: wrong})
    assert answer == (400, "BadDigest")
    assert s3.get_object(Bucket=bucket, Key="k")["Body"].read() == b"data"


def test_versions_are_kept_listed_and_deleted_one_by_one(server: ObjectServer, bucket: str):
    s3 = server.s3()
    s3.put_object(Bucket=bucket, Key="k", Body=b"before")
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    first = s3.put_object(Bucket=bucket, Key="k", Body=b"one")["VersionId"]
    s3.put_object(Bucket=bucket, Key="k", Body=b"two")
    marker = s3.delete_object(Bucket=bucket, Key="k")
    assert marker["DeleteMarker"]
    assert refused(s3.get_object, Bucket=bucket, Key="k") == (404, "NoSuchKey")
    listed = s3.list_object_versions(Bucket=bucket)
    assert len(listed["Versions"]) == 3
    assert listed["DeleteMarkers"][0]["IsLatest"]
    assert s3.get_object(Bucket=bucket, Key="k", VersionId="null")["Body"].read() == b"before"
    s3.delete_object(Bucket=bucket, Key="k", VersionId=marker["VersionId"])
    assert s3.get_object(Bucket=bucket, Key="k")["Body"].read() == b"two"
    assert s3.get_object(Bucket=bucket, Key="k", VersionId=first)["Body"].read() == b"one"
    pages = s3.get_paginator("list_object_versions").paginate(
        Bucket=bucket, PaginationConfig={"PageSize": 1}
    )
    assert [v["VersionId"] for page in pages for v in page.get("Versions", [])] == [
        v["VersionId"] for v in listed["Versions"]
    ]


def test_a_locked_checkpoint_cannot_be_deleted(server: ObjectServer):
    s3 = server.s3()
    s3.create_bucket(Bucket="locked", ObjectLockEnabledForBucket=True)
    until = datetime(2099, 1, 1, tzinfo=UTC)
    where = {"Bucket": "locked", "Key": "step-1"}
    kept = s3.put_object(
        **where, Body=b"x", ObjectLockMode="COMPLIANCE", ObjectLockRetainUntilDate=until
    )["VersionId"]
    denied = (403, "AccessDenied")
    assert refused(s3.delete_object, **where, VersionId=kept) == denied
    bypassed = refused(s3.delete_object, **where, VersionId=kept, BypassGovernanceRetention=True)
    assert bypassed == denied
    shorter = {"Mode": "GOVERNANCE", "RetainUntilDate": until}
    assert refused(s3.put_object_retention, **where, Retention=shorter) == denied
    # A marker may hide it; the version stays.
    s3.delete_object(**where)
    assert s3.get_object(**where, VersionId=kept)["Body"].read() == b"x"


def test_a_copy_keeps_or_replaces_metadata(server: ObjectServer, bucket: str):
    s3 = server.s3()
    data = os.urandom(3 * MIB)
    s3.put_object(Bucket=bucket, Key="a b/ü", Body=data, Metadata={"x": "1"}, Tagging="t=1")
    source = {"Bucket": bucket, "Key": "a b/ü"}
    s3.copy_object(Bucket=bucket, Key="copy", CopySource=source)
    copy = s3.get_object(Bucket=bucket, Key="copy")
    assert (copy["Body"].read(), copy["Metadata"], copy["TagCount"]) == (data, {"x": "1"}, 1)
    s3.copy_object(
        Bucket=bucket, Key="copy", CopySource=source, MetadataDirective="REPLACE", Metadata={}
    )
    assert s3.head_object(Bucket=bucket, Key="copy")["Metadata"] == {}
    itself = refused(s3.copy_object, Bucket=bucket, Key="a b/ü", CopySource=source)
    assert itself == (400, "InvalidRequest")


def test_tags_are_replaced_and_removed(server: ObjectServer, bucket: str):
    s3 = server.s3()
    where = {"Bucket": bucket, "Key": "k"}
    s3.put_object(**where, Body=b"x", Tagging="stage=raw")
    s3.put_object_tagging(**where, Tagging={"TagSet": [{"Key": "stage", "Value": "hot"}]})
    assert s3.get_object_tagging(**where)["TagSet"] == [{"Key": "stage", "Value": "hot"}]
    s3.delete_object_tagging(**where)
    assert s3.get_object_tagging(**where)["TagSet"] == []


@pytest.mark.parametrize("config", [{"signature_version": "s3v4"}, {}], ids=["v4", "default"])
def test_a_presigned_url_works_without_keys_and_not_when_changed(
    server: ObjectServer, bucket: str, config: dict[str, str]
):
    s3 = server.s3(**config)
    s3.put_object(Bucket=bucket, Key="k", Body=b"data")
    params = {"Bucket": bucket, "Key": "k", "ResponseContentType": "text/x; charset=a b"}
    url = s3.generate_presigned_url("get_object", Params=params)
    with urllib.request.urlopen(url, timeout=30) as answer:
        assert answer.read() == b"data"
        assert answer.headers["Content-Type"] == params["ResponseContentType"]
    for changed in (url.replace("/k?", "/l?"), url.replace("text", "test")):
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(changed, timeout=30)


def test_a_url_signed_by_version_2_ends_and_signs_what_it_writes(server: ObjectServer, bucket: str):
    s3 = server.s3()
    params = {"Bucket": bucket, "Key": "a b/\u00fc", "ContentType": "text/plain"}
    url = s3.generate_presigned_url("put_object", Params=params)
    for kind, status in (("text/html", 403), ("text/plain", 200)):
        request = urllib.request.Request(
            url, data=b"new", method="PUT", headers={"Content-Type": kind}
        )
        if status == 200:
            assert urllib.request.urlopen(request, timeout=30).status == status
        else:
            with pytest.raises(urllib.error.HTTPError, match=str(status)):
                urllib.request.urlopen(request, timeout=30)
    assert s3.get_object(Bucket=bucket, Key="a b/\u00fc")["Body"].read() == b"new"
    place = {"Bucket": bucket, "Key": "k"}
    past = s3.generate_presigned_url("get_object", Params=place, ExpiresIn=-5)
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(past, timeout=30)


def test_an_object_can_be_made_public_where_lists_are_on(server: ObjectServer, bucket: str):
    s3 = server.s3()
    s3.put_object(Bucket=bucket, Key="open", Body=b"hello", ACL="public-read")
    s3.put_object(Bucket=bucket, Key="closed", Body=b"hello")
    with urllib.request.urlopen(f"{server.url}/{bucket}/open", timeout=30) as answer:
        assert answer.read() == b"hello"
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(f"{server.url}/{bucket}/closed", timeout=30)


def test_what_is_not_there_is_not_implemented(server: ObjectServer, bucket: str):
    s3 = server.s3()
    policy = json.dumps({"Version": "2012-10-17", "Statement": []})
    answer = refused(s3.put_bucket_policy, Bucket=bucket, Policy=policy)
    assert answer == (501, "NotImplemented")
    encrypted = refused(
        s3.put_object, Bucket=bucket, Key="k", Body=b"x", ServerSideEncryption="AES256"
    )
    assert encrypted == (501, "NotImplemented")


def test_obstore_writes_reads_lists_and_copies(server: ObjectServer, bucket: str):
    key = KEYS[0]
    store = obstore.store.S3Store(
        bucket,
        endpoint=server.url,
        region="us-east-1",
        access_key_id=key.id,
        secret_access_key=key.secret,
        client_options={"allow_http": True},
    )
    data = os.urandom(12 * MIB)
    obstore.put(store, "a/big", data, chunk_size=5 * MIB)
    obstore.put(store, "a/small", b"x", mode="create")
    with pytest.raises(obstore.exceptions.AlreadyExistsError):
        obstore.put(store, "a/small", b"y", mode="create")
    assert bytes(obstore.get(store, "a/big").bytes()) == data
    assert bytes(obstore.get_range(store, "a/big", start=7, length=9)) == data[7:16]
    obstore.copy(store, "a/small", "b/small")
    names = [one["path"] for page in obstore.list(store) for one in page]
    assert sorted(names) == ["a/big", "a/small", "b/small"]
    obstore.delete(store, ["a/big", "a/small", "b/small"])
    assert [one for page in obstore.list(store) for one in page] == []


def test_a_bucket_with_an_unfinished_upload_can_be_deleted(server: ObjectServer, bucket: str):
    s3 = server.s3()
    where = {"Bucket": bucket, "Key": "k"}
    started = s3.create_multipart_upload(**where)["UploadId"]
    s3.upload_part(**where, UploadId=started, PartNumber=1, Body=b"x")
    s3.delete_bucket(Bucket=bucket)
    s3.create_bucket(Bucket=bucket)
    gone = refused(s3.upload_part, **where, UploadId=started, PartNumber=1, Body=b"x")
    assert gone == (404, "NoSuchUpload")


def test_configurations_that_do_not_exist_are_read_as_absent(server: ObjectServer, bucket: str):
    s3 = server.s3()
    for read in (
        s3.get_bucket_accelerate_configuration,
        s3.get_bucket_notification_configuration,
        s3.list_bucket_analytics_configurations,
        s3.list_bucket_intelligent_tiering_configurations,
        s3.list_bucket_inventory_configurations,
        s3.list_bucket_metrics_configurations,
    ):
        answer = read(Bucket=bucket)
        assert set(answer) <= {"ResponseMetadata", "IsTruncated"}, answer
        assert not answer.get("IsTruncated")
    absent = (404, "ReplicationConfigurationNotFoundError")
    assert refused(s3.get_bucket_replication, Bucket=bucket) == absent
    assert refused(s3.get_bucket_policy_status, Bucket=bucket) == (404, "NoSuchBucketPolicy")
    missing = refused(s3.get_bucket_inventory_configuration, Bucket=bucket, Id="i")
    assert missing == (404, "NoSuchConfiguration")
