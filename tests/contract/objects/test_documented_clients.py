"""The blocks of the page on serving objects, with the programs that are installed; and the example.

Blocks run in the order of the page, against a real server instead of the address that they name.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.rigs.objects import KEYS, ObjectServer, object_server

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "how-to" / "serve-objects.md"
EXAMPLE = ROOT / "examples" / "objects" / "train_from_s3.py"
ADDRESS = "http://127.0.0.1:9000"
BLOCK = re.compile(r"```(bash|python)\n(.*?)```", re.DOTALL)
CLIENTS = ("boto3", "aws", "rclone", "obstore", "s3fs")
HANG_S = 540


def blocks() -> dict[str, str]:
    """Return the block of each client: the first that names its program or imports it."""
    text = PAGE.read_text().partition("## Use it")[2]
    found: dict[str, str] = {}
    for kind, body in BLOCK.findall(text):
        for client in CLIENTS:
            begins = f"import {client}\n" if kind == "python" else f"{client} "
            if body.startswith(begins):
                found.setdefault(client, body)
    return found


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectServer]:
    with object_server(tmp_path_factory.mktemp("objects")) as running:
        yield running


@pytest.fixture
def s3(server: ObjectServer) -> Any:
    client = server.s3()
    client.create_bucket(Bucket="data")
    client.put_object(Bucket="data", Key="train/first.tar", Body=b"first")
    return client


def environment() -> dict[str, str]:
    keys = {"AWS_ACCESS_KEY_ID": KEYS[0].id, "AWS_SECRET_ACCESS_KEY": KEYS[0].secret}
    return {**os.environ, **keys, "AWS_DEFAULT_REGION": "us-east-1"}


def run(words: list[str], folder: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        words,
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )


def is_installed(client: str) -> bool:
    if client not in ("aws", "rclone"):
        return find_spec(client) is not None
    program = shutil.which(client)
    # A launcher of a version manager may have nothing to launch.
    return program is not None and run([program, "--version"], Path.cwd()).returncode == 0


def test_the_page_has_a_block_for_every_client():
    assert sorted(blocks()) == sorted(CLIENTS)


@pytest.mark.parametrize("client", CLIENTS)
def test_a_block_of_the_page_does_what_it_says(
    server: ObjectServer, s3: Any, tmp_path: Path, client: str
):
    if not is_installed(client):
        pytest.skip(f"{client} is not installed")
    (tmp_path / "shard-0001.tar").write_bytes(b"shard")
    (tmp_path / "shards").mkdir()
    (tmp_path / "shards" / "shard-0002.tar").write_bytes(b"shard")
    body = blocks()[client].replace(ADDRESS, server.url)
    is_shell = client in ("aws", "rclone")
    words = ["bash", "-euc", body] if is_shell else [sys.executable, "-c", body]
    done = run(words, tmp_path)
    assert done.returncode == 0, done.stderr
    found = s3.list_objects_v2(Bucket="data", Prefix="train/")["Contents"]
    assert len(found) > 1 or "first.tar" in done.stdout


def train(server: ObjectServer, folder: Path, *options: str) -> str:
    words = [sys.executable, str(EXAMPLE), "--endpoint", server.url, "--bucket", "data", *options]
    done = run(words, folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")
def test_the_example_streams_and_goes_on_at_its_last_whole_checkpoint(
    server: ObjectServer, s3: Any, tmp_path: Path
):
    for one in s3.list_objects_v2(Bucket="data").get("Contents", []):
        s3.delete_object(Bucket="data", Key=one["Key"])
    for shard in range(4):
        rows = [{"x": [float(n), float(shard)], "y": 1.0 + n / 8} for n in range(8)]
        body = "\n".join(json.dumps(row) for row in rows).encode()
        s3.put_object(Bucket="data", Key=f"train/{shard}.jsonl", Body=body)
    first = train(server, tmp_path, "--steps", "10", "--workers", "2")
    assert [line.partition(":")[0] for line in first.splitlines()] == ["step 5", "step 10"]
    # A writer that died before its manifest: its files are there, and nobody looks at them.
    s3.put_object(Bucket="data", Key="checkpoints/files/000000015-dead/model.pt", Body=b"half")
    second = train(server, tmp_path, "--steps", "15").splitlines()
    assert second[0] == "continues at step 10"
    assert second[1].startswith("step 15: ")
    assert second[1].endswith("saved")


@pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")
def test_of_two_writers_of_a_step_one_commits(server: ObjectServer, s3: Any):
    import runpy  # noqa: PLC0415

    checkpoints = runpy.run_path(str(EXAMPLE))["Checkpoints"](s3, "data", "race")
    assert checkpoints.save(7, {"a": b"ours"})
    assert not checkpoints.save(7, {"a": b"theirs"})
    assert checkpoints.steps() == [7]
    assert checkpoints.load(7) == {"a": b"ours"}
    [files] = [
        one["Key"]
        for one in s3.list_objects_v2(Bucket="data", Prefix="race/files/")["Contents"]
        if s3.get_object(Bucket="data", Key=one["Key"])["Body"].read() == b"ours"
    ]
    s3.put_object(Bucket="data", Key=files, Body=b"flipped")
    with pytest.raises(OSError, match="not what was saved"):
        checkpoints.load(7)
