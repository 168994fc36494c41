"""A real server on tiers, boto3 clients, and the commands of an operator at the same time."""

import itertools
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any

from objects_builders import noise
from rigs.objects import ObjectServer, object_server

BUCKET = "training"
PART = 5 << 20


def write_tiers(folder: Path, hot: int, warm: int) -> None:
    """Write a tier file with backends on directories."""
    lines = ["[tiers.hot]", "replicas = 2"]
    for number in range(hot):
        lines += ["[[tiers.hot.backends]]", f'name = "h{number}"', f'directory = "disks/h{number}"']
    lines += ["[tiers.warm]", 'erasure = "2+1"']
    for number in range(warm):
        lines += [
            "[[tiers.warm.backends]]",
            f'name = "w{number}"',
            f'directory = "disks/w{number}"',
        ]
    (folder / "tiers.toml").write_text("\n".join(lines) + "\n")


def run(folder: Path, *words: str) -> str:
    """Run a command of an operator to its end."""
    done = subprocess.run(
        [sys.executable, "-m", "tenfold", "objects", *words, "--dir", str(folder)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


class Clients:
    """Threads that read and write through boto3 until they are stopped."""

    def __init__(self, server: ObjectServer, contents: dict[str, bytes]) -> None:
        self.contents = contents
        self.failures: list[str] = []
        self.done: Counter[str] = Counter()
        self._server = server
        self._stopped = threading.Event()
        self._threads = [
            threading.Thread(target=self._read, args=(0,)),
            threading.Thread(target=self._read, args=(3,)),
            threading.Thread(target=self._write),
        ]

    def __enter__(self) -> "Clients":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        for thread in self._threads:
            thread.join()

    def _client(self) -> Any:
        # One attempt: a request that fails once has failed.
        return self._server.s3(retries={"total_max_attempts": 1})

    def _read(self, first: int) -> None:
        s3, keys = self._client(), sorted(self.contents)
        for number in itertools.count(first):
            if self._stopped.is_set():
                return
            key = keys[number % len(keys)]
            try:
                found = s3.get_object(Bucket=BUCKET, Key=key)["Body"].read()
                if found != self.contents[key]:
                    self.failures.append(f"{key} has other bytes")
            except Exception as error:
                self.failures.append(f"read {key}: {error!r}")
            self.done["reads"] += 1

    def _write(self) -> None:
        s3 = self._client()
        for number in itertools.count():
            if self._stopped.wait(0.05):
                return
            try:
                s3.put_object(Bucket=BUCKET, Key=f"new/{number}", Body=noise(30_000, number))
            except Exception as error:
                self.failures.append(f"write {number}: {error!r}")
            self.done["writes"] += 1


def fill(s3: Any) -> dict[str, bytes]:
    """Store objects of several sizes; one in parts."""
    s3.create_bucket(Bucket=BUCKET)
    contents = {f"k{size}": noise(size, size) for size in (0, 1, 4096, 300_000, 3_000_000)}
    for key, data in contents.items():
        s3.put_object(Bucket=BUCKET, Key=key, Body=data, Metadata={"step": "7"})
    contents["parts"] = noise(PART + 70_000, 9)
    upload = s3.create_multipart_upload(Bucket=BUCKET, Key="parts")["UploadId"]
    parts: list[dict[str, Any]] = []
    for number, start in enumerate(range(0, len(contents["parts"]), PART), 1):
        made = s3.upload_part(
            Bucket=BUCKET,
            Key="parts",
            UploadId=upload,
            PartNumber=number,
            Body=contents["parts"][start : start + PART],
        )
        parts.append({"PartNumber": number, "ETag": made["ETag"]})
    s3.complete_multipart_upload(
        Bucket=BUCKET, Key="parts", UploadId=upload, MultipartUpload={"Parts": parts}
    )
    return contents


def write_versions(s3: Any) -> list[str]:
    """Write a key twice in a versioned bucket, delete it, and return the versions."""
    s3.create_bucket(Bucket="versioned")
    enabled = {"Status": "Enabled"}
    s3.put_bucket_versioning(Bucket="versioned", VersioningConfiguration=enabled)
    versions = [
        s3.put_object(Bucket="versioned", Key="step", Body=body)["VersionId"]
        for body in (b"one", b"two")
    ]
    s3.delete_object(Bucket="versioned", Key="step")
    return versions


def check_versions(s3: Any, versions: list[str]) -> None:
    """Check that both versions are there, below the marker of the delete."""
    for version, body in zip(versions, (b"one", b"two"), strict=True):
        found = s3.get_object(Bucket="versioned", Key="step", VersionId=version)
        assert found["Body"].read() == body
    listed = s3.list_object_versions(Bucket="versioned")
    assert [one["VersionId"] for one in listed["Versions"]] == versions[::-1]
    assert [one["IsLatest"] for one in listed["DeleteMarkers"]] == [True]
    assert "Contents" not in s3.list_objects_v2(Bucket="versioned")


def test_no_request_fails_while_backends_and_tiers_change(tmp_path: Path):
    write_tiers(tmp_path, hot=2, warm=3)
    with object_server(tmp_path, "--processes", "2") as server:
        contents = fill(server.s3())
        with Clients(server, contents) as clients:
            write_tiers(tmp_path, hot=3, warm=3)
            run(tmp_path, "expand", "hot")
            run(tmp_path, "replace", "h0", "h2")
            run(tmp_path, "drain", "hot", "--to", "warm")
        assert clients.failures == []
        assert clients.done["reads"] > 10
        assert clients.done["writes"] > 2
        write_tiers(tmp_path, hot=3, warm=4)
        run(tmp_path, "expand", "warm")
        assert '"lost": []' in run(tmp_path, "scrub", "--json")
        s3 = server.s3()
        for key, data in contents.items():
            assert s3.get_object(Bucket=BUCKET, Key=key)["Body"].read() == data


def test_without_its_database_a_server_has_every_object_again(tmp_path: Path):
    write_tiers(tmp_path, hot=2, warm=3)
    with object_server(tmp_path) as server:
        s3 = server.s3()
        contents = fill(s3)
        s3.put_object(Bucket=BUCKET, Key="k1", Body=b"second")
        contents["k1"] = b"second"
        versions = write_versions(s3)
    run(tmp_path, "drain", "hot", "--to", "warm")
    for path in tmp_path.glob("catalog.db*"):
        path.unlink()
    run(tmp_path, "rebuild", "--catalog")
    with object_server(tmp_path) as server:
        s3 = server.s3()
        for key, data in contents.items():
            found = s3.get_object(Bucket=BUCKET, Key=key)
            assert found["Body"].read() == data
            if key not in ("k1", "parts"):
                assert found["Metadata"] == {"step": "7"}
        check_versions(s3, versions)
        listed = s3.list_objects_v2(Bucket=BUCKET)["Contents"]
        assert sorted(one["Key"] for one in listed) == sorted(contents)
