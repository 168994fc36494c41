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

# Ray looks at the processes of the whole machine for a head with its port, whatever their network:
# each test process has a port of its own, below those of workers.
PORT = 10_000 + os.getpid() % 15_000
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


class RayNodes:
    """A head, `one`, and two other nodes, each of which can be ended and started again."""

    url = "http://127.0.0.1:8265"
    names = ("one", "two", "three")

    def __init__(self, network: str, folder: Path) -> None:
        self.network, self._folder = network, folder
        self.environment = os.environ | {
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN": secrets.token_hex(32),
            "RAY_USAGE_STATS_ENABLED": "0",
            # A node that finds no head ends after this time.
            "RAY_gcs_rpc_server_reconnect_timeout_s": "5",
        }
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._starts = 0

    def start(self, name: str) -> None:
        """Start a node, and wait until it is up; nothing happens if it is."""
        if name in self._running:
            return
        self._starts += 1
        first = 30_000 + 1_000 * (self._starts % 20)
        ports = [f"--min-worker-port={first}", f"--max-worker-port={first + 999}"]
        within = ["ip", "netns", "exec", self.network]
        what = ["--num-cpus=8", "--num-gpus=8", "--object-store-memory=80000000"]
        where = [f"--node-name={name}", "--node-ip-address=127.0.0.1", "--disable-usage-stats"]
        if name == "one":
            dashboard = ["--dashboard-host=127.0.0.1", "--dashboard-port=8265"]
            where += ["--head", f"--port={PORT}", f"--temp-dir={self._folder}", *dashboard]
        else:
            where.append(f"--address={ADDRESS}")
        log = self._folder / f"start-{self._starts}.log"
        ray = str(Path(sys.executable).parent / "ray")
        with log.open("w") as output:
            process = subprocess.Popen(
                [*within, ray, "start", "--block", *where, *ports, *what],
                env=self.environment,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        self._running[name] = process
        until_s = monotonic() + START_TIMEOUT_S
        while "Ray runtime started" not in log.read_text():
            assert monotonic() < until_s, log.read_text()[-2000:]
            assert process.poll() is None, log.read_text()[-2000:]
            sleep(0.2)

    def end(self, name: str) -> None:
        """Kill every process of a node, as if its power failed."""
        process = self._running.pop(name, None)
        if process is not None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(STOP_TIMEOUT_S)


@contextmanager
def ray_nodes() -> Iterator[RayNodes]:
    """Start a Ray of three nodes, and end it."""
    require_ray()
    network = f"tenfold-{os.getpid()}"
    folder = Path(tempfile.mkdtemp(prefix="ray-"))
    cluster = RayNodes(network, folder)
    subprocess.run(["ip", "netns", "add", network], check=True)
    try:
        up = ["ip", "netns", "exec", network, "ip", "link", "set", "lo", "up"]
        subprocess.run(up, check=True)
        for name in cluster.names:
            cluster.start(name)
        yield cluster
    finally:
        for name in reversed(cluster.names):
            cluster.end(name)
        subprocess.run(["ip", "netns", "delete", network], check=False)
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
