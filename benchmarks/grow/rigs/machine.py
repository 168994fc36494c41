"""What a rig needs of a Linux machine: namespaces with a slow link, and groups with a limit.

Everything made here is taken away again, by name, whatever happens in between.
"""

import itertools
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from time import monotonic
from typing import NamedTuple

GROUPS = Path("/sys/fs/cgroup")
PERIOD_US = 100_000
SHARES = 65_536
"""Against 1,024 of any other process."""
STOP_TIMEOUT_S = 20.0
PROGRAMS = Path(__file__).parent / "programs"
_numbers = itertools.count()


class Link(NamedTuple):
    """Two network namespaces and the addresses they have on the link between them."""

    near: str
    far: str
    near_address: str
    far_address: str


def lacks_root() -> str:
    """Return why this user may not make namespaces and groups; empty where it may."""
    return "" if os.geteuid() == 0 else "needs root"


def lacks_commands(*commands: str) -> str:
    """Return which command is missing; empty where none is."""
    missing = [name for name in commands if program(name) is None]
    return f"no {', '.join(missing)} here" if missing else ""


def lacks_group(*controllers: str) -> str:
    """Return which cgroup v1 controller is missing; empty where none is."""
    missing = [name for name in controllers if not (GROUPS / name / "cgroup.procs").exists()]
    return f"no cgroup v1 `{', '.join(missing)}` here" if missing else ""


def lacks_link() -> str:
    """Return why namespaces cannot be joined by a slow link; empty where they can."""
    return lacks_root() or lacks_commands("ip", "tc")


def scratch() -> Path:
    """Return the folder under which rigs keep their files."""
    return Path(os.environ.get("TENFOLD_RIGS") or tempfile.gettempdir())


def program(name: str) -> str | None:
    """Return the path of a command, also of those that only root has."""
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")


@contextmanager
def slow_link(mbit: float, *, both_ways: bool = False) -> Iterator[Link]:
    """Join two namespaces by a link whose near end, or both ends, send at so many Mbit/s."""
    tag = f"tf{os.getpid() % 100_000}x{next(_numbers)}"
    link = Link(f"{tag}a", f"{tag}b", "10.199.0.1", "10.199.0.2")
    with ExitStack() as stack:
        for name in (link.near, link.far):
            _run("ip", "netns", "add", name)
            stack.callback(_run, "ip", "netns", "del", name)
        _run(
            *("ip", "link", "add", "v0", "netns", link.near, "type", "veth"),
            *("peer", "name", "v0", "netns", link.far),
        )
        for name, address in ((link.near, link.near_address), (link.far, link.far_address)):
            _run("ip", "-n", name, "addr", "add", f"{address}/24", "dev", "v0")
            _run("ip", "-n", name, "link", "set", "v0", "up")
            _run("ip", "-n", name, "link", "set", "lo", "up")
        for name in (link.near, link.far) if both_ways else (link.near,):
            _run(
                *("tc", "-n", name, "qdisc", "add", "dev", "v0", "root", "tbf"),
                *("rate", f"{mbit:g}mbit", "burst", "64kb", "latency", "20ms"),
            )
        yield link


class Group:
    """A control group, in each of some controllers, with the processes put in it."""

    def __init__(self, name: str, controllers: Sequence[str]) -> None:
        self._paths = {one: GROUPS / one / name for one in controllers}

    def make(self) -> None:
        for path in self._paths.values():
            path.mkdir()

    def drop(self) -> None:
        for path in self._paths.values():
            for pid in (path / "cgroup.procs").read_text().split():
                with suppress(OSError):
                    (path.parent / "cgroup.procs").write_text(pid)
            path.rmdir()

    def procs(self, controller: str) -> Path:
        """Return the file into which a process writes itself to join the group."""
        return self._paths[controller] / "cgroup.procs"

    def take(self, pid: int) -> None:
        """Move a process, all its threads with it, into the group."""
        for path in self._paths.values():
            (path / "cgroup.procs").write_text(str(pid))

    def release(self, pid: int) -> None:
        """Move a process back out; its children stay."""
        for path in self._paths.values():
            (path.parent / "cgroup.procs").write_text(str(pid))

    def set_cores(self, cores: float) -> None:
        """Let the group have so much of one core; 0 is as much as there is."""
        folder = self._paths["cpu"]
        (folder / "cpu.cfs_period_us").write_text(str(PERIOD_US))
        quota = round(cores * PERIOD_US) if cores else -1
        (folder / "cpu.cfs_quota_us").write_text(str(quota))
        # What else runs here must not keep the group from its limit.
        (folder / "cpu.shares").write_text(str(SHARES))

    def set_read_bytes_per_s(self, device: str, bytes_per_s: int) -> None:
        path = self._paths["blkio"] / "blkio.throttle.read_bps_device"
        path.write_text(f"{device} {bytes_per_s}")

    def used_s(self) -> float:
        """Return the processor time that the group has used so far."""
        return int((self._paths["cpuacct"] / "cpuacct.usage").read_text()) / 1e9

    def throttled(self) -> int:
        """Return in how many periods the group had to stop at its limit so far."""
        words = (self._paths["cpu"] / "cpu.stat").read_text().split()
        return int(words[words.index("nr_throttled") + 1])


@contextmanager
def group(*controllers: str) -> Iterator[Group]:
    """Make a control group and remove it at the end; what still runs in it moves out."""
    made = Group(f"tenfold-rig-{os.getpid()}-{next(_numbers)}", controllers)
    made.make()
    try:
        yield made
    finally:
        made.drop()


def inside(namespace: str, *command: str) -> list[str]:
    """Return a command that runs in a network namespace."""
    return [program("ip") or "ip", "netns", "exec", namespace, *command]


def python(name: str, *words: object) -> list[str]:
    """Return the command of one of the rigs' own programs."""
    return [sys.executable, str(PROGRAMS / name), *map(str, words)]


@contextmanager
def child(command: Sequence[str], **options: object) -> Iterator[subprocess.Popen[bytes]]:
    """Start a process and end it by its own pid."""
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, **options)  # type: ignore[call-overload]
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(STOP_TIMEOUT_S)


def answer(command: Sequence[str], timeout_s: float = 120.0) -> str:
    """Run a command to its end and return what it printed."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{command[-1]} ended with {done.returncode}: {done.stderr[-800:]}")
    return done.stdout


def pause(process: subprocess.Popen[bytes], seconds: float) -> None:
    """Wait while a process runs; that it ends in the meantime is an error."""
    deadline = monotonic() + seconds
    while (left := deadline - monotonic()) > 0:
        try:
            process.wait(left)
        except subprocess.TimeoutExpired:
            return
        raise RuntimeError(f"{process.args} ended by itself with {process.returncode}")


def _run(*command: str) -> None:
    path = program(command[0])
    assert path is not None, "checked by lacks_link"
    answer([path, *command[1:]])
