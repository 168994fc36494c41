"""Over TLS, clients send bodies in chunks with a trailer, and files are encrypted on their way."""

import hashlib
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config

from tests.rigs.objects import KEYS, object_server

MIB = 1 << 20


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, Path]:
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    words = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    words += ["-subj", "/CN=127.0.0.1"]
    where = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", cert]
    subprocess.run([*words, *where], check=True, capture_output=True)
    return cert, key


def test_objects_pass_through_tls_unchanged(tmp_path: Path, certificate: tuple[Path, Path]):
    cert, key = certificate
    with object_server(tmp_path, "--tls-cert", str(cert), "--tls-key", str(key)) as server:
        assert server.url.startswith("https://")
        make: Any = boto3.client
        s3 = make(
            "s3",
            endpoint_url=server.url,
            aws_access_key_id=KEYS[0].id,
            aws_secret_access_key=KEYS[0].secret,
            region_name="us-east-1",
            verify=str(cert),
            config=Config(retries={"max_attempts": 1}),
        )
        s3.create_bucket(Bucket="tls")
        for size in (0, 100, 200_000, 5 * MIB + 3):
            data = os.urandom(size)
            put = s3.put_object(Bucket="tls", Key="k", Body=data)
            assert put["ETag"] == f'"{hashlib.md5(data).hexdigest()}"'
            got = s3.get_object(Bucket="tls", Key="k", ChecksumMode="ENABLED")
            assert got["Body"].read() == data
            assert "ChecksumCRC32" in got
            assert "ContentEncoding" not in got
