"""CPU time of a process and of everything that it started, ended processes included."""

import os
from collections.abc import Generator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path

from tenfold.live.local.processes import descendants

ACCOUNTS = Path("/sys/fs/cgroup/cpuacct")
_TICK_MS = 1_000 / os.sysconf("SC_CLK_TCK")
_numbers = count(1)


class CpuMeter:
    """Counts by control group where one can be made, and else by the process table.

    The table loses processes whose parent ignores their end, and those that left their parent.
    """

    def __init__(self, pid: int, group: Path | None) -> None:
        self._pid = pid
        self._group = group

    def ms(self) -> float:
        """Return the CPU time so far, in ms."""
        if self._group is not None:
            return int((self._group / "cpuacct.usage").read_text()) / 1_000_000
        return sum(_own_ms(one) for one in (self._pid, *descendants(self._pid)))


@contextmanager
def metered(pid: int) -> Generator[CpuMeter, None, None]:
    """Count a process and what it starts from now on."""
    group: Path | None = ACCOUNTS / f"tenfold-bench-{os.getpid()}-{next(_numbers)}"
    try:
        group.mkdir()
        (group / "cgroup.procs").write_text(str(pid))
    except OSError:
        group = None
    try:
        yield CpuMeter(pid, group)
    finally:
        if group is not None:
            _drop(group)


def _drop(group: Path) -> None:
    """Move out what is left, and remove the group."""
    for pid in (group / "cgroup.procs").read_text().split():
        with suppress(OSError):
            (ACCOUNTS / "cgroup.procs").write_text(pid)
    with suppress(OSError):
        group.rmdir()


def _own_ms(pid: int) -> float:
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        # Ended meanwhile, and counted by who waited for it.
        return 0.0
    return sum(int(field) for field in fields[11:15]) * _TICK_MS
