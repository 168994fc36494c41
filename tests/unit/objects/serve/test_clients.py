"""Clients against a real server: what they store is what they read."""

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.rigs.objects import ObjectServer, object_server

SIZES = (0, 1, 4096, 130_000, 5 << 20)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectServer]:
    with object_server(tmp_path_factory.mktemp("objects"), "--processes", "2") as running:
        yield running


@pytest.fixture
def bucket(server: ObjectServer, request: pytest.FixtureRequest) -> str:
    digest = hashlib.sha256(request.node.nodeid.encode()).hexdigest()[:12]
    name = f"test-{digest}"
    server.s3().create_bucket(Bucket=name)
    return name


def code_of(error: pytest.ExceptionInfo[ClientError]) -> tuple[int, str]:
    answer: Any = error.value.response
    return answer["ResponseMetadata"]["HTTPStatusCode"], answer["Error"]["Code"]


@pytest.mark.parametrize("size", SIZES)
def test_an_object_reads_back_as_it_was_written(server: ObjectServer, bucket: str, size: int):
    s3 = server.s3()
    data = os.urandom(size)
    put = s3.put_object(Bucket=bucket, Key="a/b ü%2F", Body=data, Metadata={"step": "7"})
    assert put["ETag"] == f'"{hashlib.md5(data).hexdigest()}"'
    got = s3.get_object(Bucket=bucket, Key="a/b ü%2F")
    assert got["Body"].read() == data
    assert got["Metadata"] == {"step": "7"}
    assert s3.head_object(Bucket=bucket, Key="a/b ü%2F")["ContentLength"] == size


def test_teams_do_not_see_or_reach_buckets_of_others(server: ObjectServer, bucket: str):
    server.s3().put_object(Bucket=bucket, Key="secret", Body=b"x")
    other = server.s3("SPEECHKEY")
    assert bucket not in [one["Name"] for one in other.list_buckets()["Buckets"]]
    for attempt in (
        lambda: other.get_object(Bucket=bucket, Key="secret"),
        lambda: other.list_objects_v2(Bucket=bucket),
        lambda: other.put_object(Bucket=bucket, Key="secret", Body=b"y"),
        lambda: other.delete_object(Bucket=bucket, Key="secret"),
        lambda: other.delete_bucket(Bucket=bucket),
    ):
        with pytest.raises(ClientError) as error:
            attempt()
        assert code_of(error) == (403, "AccessDenied")
    with pytest.raises(ClientError) as error:
        other.create_bucket(Bucket=bucket)
    assert code_of(error) == (409, "BucketAlreadyExists")


def test_a_read_only_key_changes_nothing_and_a_revoked_key_is_unknown(
    server: ObjectServer, bucket: str
):
    reader = server.s3("READERKEY")
    assert reader.list_objects_v2(Bucket=bucket)["KeyCount"] == 0
    with pytest.raises(ClientError) as error:
        reader.put_object(Bucket=bucket, Key="k", Body=b"x")
    assert code_of(error) == (403, "AccessDenied")
    with pytest.raises(ClientError) as error:
        server.s3("OLDKEY").list_buckets()
    assert code_of(error) == (403, "InvalidAccessKeyId")


def test_a_team_stores_no_more_than_its_quota(server: ObjectServer):
    s3 = server.s3("SMALLKEY")
    s3.create_bucket(Bucket="small-team")
    s3.put_object(Bucket="small-team", Key="a", Body=bytes(6_000))
    with pytest.raises(ClientError) as error:
        s3.put_object(Bucket="small-team", Key="b", Body=bytes(6_000))
    assert code_of(error) == (403, "QuotaExceeded")
    # Parts of an upload that is not complete count as well.
    upload = s3.create_multipart_upload(Bucket="small-team", Key="m")["UploadId"]
    where = {"Bucket": "small-team", "Key": "m", "UploadId": upload, "PartNumber": 1}
    s3.upload_part(**where, Body=bytes(3_000))
    s3.upload_part(**where, Body=bytes(4_000))
    with pytest.raises(ClientError) as error:
        s3.upload_part(**{**where, "PartNumber": 2}, Body=bytes(1))
    assert code_of(error) == (403, "QuotaExceeded")
    s3.abort_multipart_upload(Bucket="small-team", Key="m", UploadId=upload)
    # What replaces an object counts instead of it.
    s3.put_object(Bucket="small-team", Key="a", Body=bytes(9_000))
    with pytest.raises(ClientError) as error:
        s3.create_bucket(Bucket="small-team-2")
    assert code_of(error) == (400, "TooManyBuckets")


@pytest.mark.parametrize(
    ("asked", "status", "expected"),
    [
        ("bytes=0-0", 206, b"0"),
        ("bytes=3-5", 206, b"345"),
        ("bytes=7-", 206, b"789"),
        ("bytes=-2", 206, b"89"),
        ("bytes=5-99", 206, b"56789"),
        ("bytes=-99", 206, b"0123456789"),
        ("bytes=5-3", 200, b"0123456789"),
        ("lines=1-2", 200, b"0123456789"),
    ],
)
def test_a_range_is_the_bytes_that_were_asked_for(
    server: ObjectServer, bucket: str, asked: str, status: int, expected: bytes
):
    s3 = server.s3()
    s3.put_object(Bucket=bucket, Key="k", Body=b"0123456789", ChecksumAlgorithm="CRC32C")
    got = s3.get_object(Bucket=bucket, Key="k", Range=asked)
    assert got["ResponseMetadata"]["HTTPStatusCode"] == status
    assert got["Body"].read() == expected
    # The checksum of the whole would fail the client on a part.
    assert ("ChecksumCRC32C" in got) == (status == 200)


def test_a_range_beyond_the_object_is_refused(server: ObjectServer, bucket: str):
    s3 = server.s3()
    s3.put_object(Bucket=bucket, Key="k", Body=b"0123456789")
    with pytest.raises(ClientError) as error:
        s3.get_object(Bucket=bucket, Key="k", Range="bytes=10-")
    assert code_of(error) == (416, "InvalidRange")


def test_of_racing_conditional_writes_one_wins(server: ObjectServer, bucket: str):
    s3 = server.s3()
    s3.put_object(Bucket=bucket, Key="manifest", Body=b"1", IfNoneMatch="*")
    with pytest.raises(ClientError) as error:
        s3.put_object(Bucket=bucket, Key="manifest", Body=b"2", IfNoneMatch="*")
    assert code_of(error) == (412, "PreconditionFailed")
    etag = s3.head_object(Bucket=bucket, Key="manifest")["ETag"]
    s3.put_object(Bucket=bucket, Key="manifest", Body=b"3", IfMatch=etag)
    with pytest.raises(ClientError) as error:
        s3.put_object(Bucket=bucket, Key="manifest", Body=b"4", IfMatch=etag)
    assert code_of(error) == (412, "PreconditionFailed")
    assert s3.get_object(Bucket=bucket, Key="manifest")["Body"].read() == b"3"


def test_metrics_count_the_requests_of_all_processes(server: ObjectServer):
    import urllib.request  # noqa: PLC0415

    with urllib.request.urlopen(f"{server.admin}/metrics", timeout=10) as answer:
        text = answer.read().decode()
    assert "# TYPE tenfold_objects_requests_total counter" in text
    with urllib.request.urlopen(f"{server.admin}/health", timeout=10) as answer:
        assert answer.read() == b"ok\n"


def test_what_was_acknowledged_is_there_after_a_restart(tmp_path: Path):
    with object_server(tmp_path) as first:
        s3 = first.s3()
        s3.create_bucket(Bucket="kept")
        s3.put_object(Bucket="kept", Key="k", Body=b"data")
    with object_server(tmp_path) as second:
        assert second.s3().get_object(Bucket="kept", Key="k")["Body"].read() == b"data"
