"""What clients get of objects whose bytes on disk are not what was written."""

from pathlib import Path

import pytest
from botocore.exceptions import ClientError, HTTPClientError
from botocore.response import StreamingBody

from objects_builders import flip_bit, noise
from tests.rigs.objects import object_server

MIB = 1 << 20
ERASURE = """\
[tiers.hot]
erasure = "2+1"
""" + "".join(f'[[tiers.hot.backends]]\nname = "d{n}"\ndirectory = "d{n}"\n' for n in range(3))


def damaged(path: Path, offset: int) -> None:
    """Flip a bit in the only shard of a directory."""
    (file,) = path.glob("shards/*/*")
    flip_bit(file, offset)


def read(body: StreamingBody) -> bytes:
    return body.read()


def test_flipped_bits_reach_no_client_of_an_erasure_coded_tier(tmp_path: Path):
    (tmp_path / "tiers.toml").write_text(ERASURE)
    data = noise(9 * MIB)
    with object_server(tmp_path) as server:
        s3 = server.s3()
        s3.create_bucket(Bucket="bucket")
        s3.put_object(Bucket="bucket", Key="k", Body=data)
        for offset in (100, 3 * MIB):
            damaged(tmp_path / "d0", offset)
            for _ in range(2):
                assert read(s3.get_object(Bucket="bucket", Key="k")["Body"]) == data
                part = s3.get_object(Bucket="bucket", Key="k", Range="bytes=50-5000")
                assert read(part["Body"]) == data[50:5001]
        damaged(tmp_path / "d1", 200)
        with pytest.raises(ClientError) as refused:
            s3.get_object(Bucket="bucket", Key="k")
        assert refused.value.response["Error"]["Code"] == "ServiceUnavailable"


def test_without_redundancy_damaged_bytes_are_refused_and_never_sent(tmp_path: Path):
    data = noise(9 * MIB)
    with object_server(tmp_path) as server:
        s3 = server.s3()
        s3.create_bucket(Bucket="bucket")
        s3.put_object(Bucket="bucket", Key="k", Body=data)
        damaged(tmp_path / "blobs", 6 * MIB)
        with pytest.raises(HTTPClientError):
            read(s3.get_object(Bucket="bucket", Key="k")["Body"])
        good = s3.get_object(Bucket="bucket", Key="k", Range=f"bytes=0-{MIB}")
        assert read(good["Body"]) == data[: MIB + 1]
        with pytest.raises(ClientError) as refused:
            s3.get_object(Bucket="bucket", Key="k", Range=f"bytes={6 * MIB + 1}-")
        assert refused.value.response["Error"]["Code"] == "ServiceUnavailable"
