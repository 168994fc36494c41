"""A real object server in processes of its own, and clients for it."""

import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from tenfold.objects.s3.auth.identity import AccessKey, Team
from tenfold.objects.serve.keys import KeyFile

KEYS = (
    AccessKey(id="VISIONKEY", secret="vision/secret", team="vision"),
    AccessKey(id="SPEECHKEY", secret="speech+secret", team="speech"),
    AccessKey(id="READERKEY", secret="reader", team="vision", is_read_only=True),
    AccessKey(id="SMALLKEY", secret="small", team="small"),
    AccessKey(id="OLDKEY", secret="old", team="vision", is_revoked=True),
)
TEAMS = (
    Team(name="vision", display_name="Vision"),
    Team(name="speech", email="speech@example.org"),
    Team(name="small", quota_bytes=10_000, quota_objects=3, buckets_max=1),
)


def write_keys(folder: Path) -> Path:
    """Write the access keys of the tests."""
    path = folder / "access-keys.json"
    path.touch(0o600)
    path.write_bytes(msgspec.json.encode(KeyFile(KEYS, TEAMS)))
    return path


class ObjectServer:
    """A running server."""

    def __init__(self, process: "subprocess.Popen[str]", lines: list[str]) -> None:
        self.process = process
        self.url = lines[0].removeprefix("objects: ")
        self.admin = lines[1].removeprefix("admin: ") if len(lines) > 1 else ""

    @property
    def address(self) -> tuple[str, int]:
        """Return host and port."""
        host, _, port = self.url.rpartition("/")[2].rpartition(":")
        return host, int(port)

    def s3(self, key: str = "VISIONKEY", **config: Any) -> Any:
        """Return a boto3 client."""
        secret = next(one.secret for one in KEYS if one.id == key)
        return s3_client(self.url, key, secret, **config)


def s3_client(url: str, key: str, secret: str, **config: Any) -> Any:
    """Return a boto3 client."""
    import boto3  # noqa: PLC0415
    from botocore.config import Config  # noqa: PLC0415

    config.setdefault("retries", {"max_attempts": 1})
    config.setdefault("s3", {"addressing_style": "path"})
    # Its stubs name every operation; the tests call them by name alone.
    client: Any = boto3.client  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return client(
        "s3",
        endpoint_url=url,
        aws_access_key_id=key,
        aws_secret_access_key=secret,
        region_name="us-east-1",
        config=Config(**config),
    )


@contextmanager
def object_server(folder: Path, *options: str) -> Generator[ObjectServer]:
    """Run a server on a free port; it is stopped at the end."""
    write_keys(folder)
    command = [sys.executable, "-m", "tenfold", "objects", "serve", "--dir", str(folder)]
    process = subprocess.Popen(
        [*command, "--port", "0", "--admin-port", "0", *options],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    assert process.stdout is not None
    try:
        lines = [process.stdout.readline().strip() for _ in range(2)]
        assert lines[0].startswith("objects: "), "the server did not start"
        yield ObjectServer(process, lines)
    finally:
        process.terminate()
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()
