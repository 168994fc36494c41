"""A real Ray for tests: a head in a network of its own that knows only loopback.

Ray listens on every interface it finds, so it is started where there is only one. It stays a
child in the foreground, in a session of its own, and that session is ended whatever happens.
"""

import importlib.util
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep

import pytest
from msgspec import Struct

from tests.patience import HANG_S

PORT = 6399
START_TIMEOUT_S = HANG_S
STOP_TIMEOUT_S = 5.0
ADDRESS = f"127.0.0.1:{PORT}"


class RunningRay(Struct, frozen=True, kw_only=True):
    """A Ray that answers. Commands must run inside of its network."""

    within: tuple[str, ...]
    environment: dict[str, str]

    def run(self, command: Sequence[str], timeout_s: float) -> subprocess.CompletedProcess[str]:
        """Run a command that can reach this cluster."""
        return subprocess.run(
            [*self.within, *command],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )


def require_ray() -> None:
    """Skip the test where Ray cannot run; fail instead where engines are required."""
    reason = ""
    if importlib.util.find_spec("ray") is None:
        reason = "no ray here: pip install 'ray[default]'"
    elif shutil.which("ip") is None:
        reason = "no ip here: apt-get install iproute2"
    elif os.geteuid() != 0:
        reason = "a network of its own needs root"
    if reason and os.environ.get("TENFOLD_REQUIRE_ENGINES") == "1":
        pytest.fail(f"TENFOLD_REQUIRE_ENGINES=1, but {reason}")
    if reason:
        pytest.skip(reason)


@contextmanager
def running_ray() -> Iterator[RunningRay]:
    """Start a head with two processors, wait until it answers, and end it by its session."""
    require_ray()
    name = f"tenfold-{os.getpid()}"
    within = ("ip", "netns", "exec", name)
    # Its sockets lie in this folder, and names of sockets must be short.
    folder = Path(tempfile.mkdtemp(prefix="ray-"))
    environment = os.environ | {
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": secrets.token_hex(32),
        "RAY_USAGE_STATS_ENABLED": "0",
    }
    cluster = RunningRay(within=within, environment=environment)
    subprocess.run(["ip", "netns", "add", name], check=True)
    try:
        subprocess.run([*within, "ip", "link", "set", "lo", "up"], check=True)
        with (folder / "head.log").open("w") as log:
            head = subprocess.Popen(
                [*within, *_start(folder)],
                env=environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        try:
            _wait(cluster, head, folder / "head.log")
            yield cluster
        finally:
            _end(head)
    finally:
        subprocess.run(["ip", "netns", "delete", name], check=False)
        shutil.rmtree(folder, ignore_errors=True)


def _start(folder: Path) -> list[str]:
    ray = str(Path(sys.executable).parent / "ray")
    options = ["--num-cpus=2", "--include-dashboard=false", "--disable-usage-stats"]
    ports = ["--min-worker-port=30000", "--max-worker-port=30999", f"--port={PORT}"]
    where = ["--node-ip-address=127.0.0.1", f"--temp-dir={folder}"]
    return [ray, "start", "--head", "--block", *options, *ports, *where]


def _wait(cluster: RunningRay, head: subprocess.Popen[bytes], log: Path) -> None:
    until = monotonic() + START_TIMEOUT_S
    while monotonic() < until and head.poll() is None:
        if "Ray runtime started" in log.read_text():
            return
        sleep(0.2)
    pytest.fail(f"Ray did not start within {START_TIMEOUT_S:.0f} s:\n{log.read_text()[-2000:]}")


def _end(head: subprocess.Popen[bytes]) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(head.pid, number)
            head.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            continue
        except ProcessLookupError:
            return
