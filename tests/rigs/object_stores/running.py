"""What every object store here offers, and how one is started and stopped."""

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import pytest

READY_S = 60.0
STOP_S = 30.0


class ObjectStore(msgspec.Struct, frozen=True):
    """A running store: where it listens, and a key that may do everything."""

    endpoint: str
    access_key: str
    secret_key: str

    def make_bucket(self, name: str) -> None:
        """Create a bucket."""
        boto3 = pytest.importorskip("boto3")
        client = boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            aws_access_key_id=self.access_key,
            aws_secret_access_key=self.secret_key,
            region_name="us-east-1",
        )
        client.create_bucket(Bucket=name)

    def options(self) -> dict[str, str]:
        """Return the options of a backend in a tier file."""
        return {
            "endpoint": self.endpoint,
            "access_key_id": self.access_key,
            "secret_access_key": self.secret_key,
            "region": "us-east-1",
        }


class Processes:
    """Programs that were started in a folder, each with its log; stopped last first."""

    def __init__(self, folder: Path, variables: Mapping[str, str]) -> None:
        self.folder = folder
        self.variables = {**os.environ, **variables}
        self._started: list[subprocess.Popen[bytes]] = []

    def start(self, *command: str) -> subprocess.Popen[bytes]:
        """Start a program that keeps running."""
        log = self.folder / f"{Path(command[0]).name}-{len(self._started)}.out"
        with log.open("wb") as out:
            process = subprocess.Popen(
                command,
                cwd=self.folder,
                env=self.variables,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._started.append(process)
        return process

    def run(self, *command: str) -> str:
        """Run a program to its end and return what it printed."""
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=self.variables,
            capture_output=True,
            text=True,
            timeout=READY_S,
            check=False,
        )
        assert done.returncode == 0, f"{' '.join(command)}: {done.stderr or done.stdout}"
        return done.stdout

    def stop(self) -> None:
        """Stop what still runs."""
        while self._started:
            process = self._started.pop()
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(1.0)
            except subprocess.TimeoutExpired:
                # They hold nothing that a test reads afterwards, and are slow to end by themselves.
                process.kill()
                process.wait(STOP_S)


def require(programs: Sequence[str], hint: str) -> None:
    """Skip the test where a program is missing; fail instead where engines are required."""
    missing = [name for name in programs if shutil.which(name) is None and not Path(name).exists()]
    if not missing:
        return
    reason = f"no {' and no '.join(missing)} here: {hint}"
    if os.environ.get("TENFOLD_REQUIRE_ENGINES") == "1":
        pytest.fail(f"TENFOLD_REQUIRE_ENGINES=1, but {reason}")
    pytest.skip(reason)


def free_ports(count: int) -> list[int]:
    """Return ports that nothing listens on."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()


def wait_for_port(port: int, process: subprocess.Popen[bytes]) -> None:
    """Return when something listens on the port."""
    until = time.monotonic() + READY_S
    while time.monotonic() < until:
        assert process.poll() is None, f"it ended with {process.returncode}"
        with socket.socket() as one:
            if one.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.02)
    raise AssertionError(f"nothing listens on {port}")
