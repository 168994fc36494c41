"""Measure utilization on this machine: GPUs by the driver, CPU time by the process table.

One pass over all processes covers every attempt, and a record is read once: with a thousand
attempts a sample takes a fraction of a second, every 15 s, outside the loop.
"""

import os
from collections.abc import Mapping, Sequence

from msgspec import Struct

from tenfold.live.gpu_use import Reader
from tenfold.live.local.attempt.folder import ExecutorDir
from tenfold.live.usage import AttemptUsage, UsageSample
from tenfold.model.ids import JobId
from tenfold.model.job.usage import GpuUse, JobUse
from tenfold.model.units import SECOND, Millis

Key = tuple[str, int]
_TICKS = os.sysconf("SC_CLK_TCK")


class _Known(Struct, frozen=True):
    """What is known from the record of an attempt."""

    supervisor: int
    gpus: tuple[int, ...]


class _Process(Struct, frozen=True):
    parent: int
    own: int
    """Its own clock ticks."""
    reaped: int
    """Clock ticks of reaped children."""


class LocalProbe:
    """Measures the attempts of one state directory; used by one thread."""

    def __init__(self, home: str, gpus: Reader | None = None) -> None:
        """Without `gpus`, devices are virtual and CPU time is used instead."""
        self._home = ExecutorDir(home)
        self._read_gpus = gpus
        self._known: dict[Key, _Known] = {}
        self._ticks: dict[Key, tuple[Millis, int]] = {}
        """Time of the last sample of an attempt, and its clock ticks then."""

    def measure(self, now_ms: Millis) -> UsageSample:
        """Return the utilization of every running attempt since the last sample."""
        self._known = self._running()
        gpus = [] if self._read_gpus is None else self._read_gpus()
        devices = {one.number: one for one in gpus}
        ticks = ticks_below({one.supervisor: key for key, one in self._known.items()}, processes())
        before, self._ticks = self._ticks, {key: (now_ms, used) for key, used in ticks.items()}
        found: list[AttemptUsage] = []
        for key, known in self._known.items():
            if known.gpus and self._read_gpus is not None:
                use = _gpu_use(known.gpus, devices, now_ms)
            else:
                use = _cpu_use(before.get(key), ticks.get(key), now_ms)
            if use is not None:
                found.append(AttemptUsage(JobId(key[0]), key[1], use))
        return UsageSample(tuple(found), tuple(gpus))

    def _running(self) -> dict[Key, _Known]:
        found: dict[Key, _Known] = {}
        for folder in self._home.unsettled():
            key = (folder.job, folder.number)
            known = self._known.get(key)
            if known is None:
                record = folder.record()
                launch, supervisor = record.get("launch"), record.get("supervisor")
                if launch is None or supervisor is None or "started" not in record:
                    continue
                gpus = [gpu for member in launch["members"] for gpu in member["gpus"]]
                known = _Known(supervisor, tuple(gpus))
            found[key] = known
        return found


def processes() -> dict[int, _Process]:
    """Return every process with its parent and CPU time."""
    found: dict[int, _Process] = {}
    for name in os.listdir("/proc"):
        if not name.isdecimal():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                # The name is in parentheses and may contain parentheses and spaces.
                words = file.read().rpartition(b")")[2].split()
        except OSError:
            continue
        own, reaped = int(words[11]) + int(words[12]), int(words[13]) + int(words[14])
        found[int(name)] = _Process(int(words[1]), own, reaped)
    return found


def ticks_below(roots: Mapping[int, Key], table: Mapping[int, _Process]) -> dict[Key, int]:
    """Return the CPU time of all descendants of each root, including reaped ones.

    A root's own time is not counted, only that of its reaped children: it is a supervisor, and
    those are members and their leftovers.
    """
    found = {key: table[pid].reaped for pid, key in roots.items() if pid in table}
    owner: dict[int, Key | None] = {0: None, 1: None}
    owner.update({pid: key for pid, key in roots.items() if pid in table})
    for pid, process in table.items():
        path: list[int] = []
        at = pid
        while at not in owner and at in table:
            path.append(at)
            at = table[at].parent
        key = owner.get(at)
        for one in path:
            owner[one] = key
        if key is not None and pid not in roots:
            found[key] += process.own + process.reaped
    return found


def _gpu_use(
    numbers: Sequence[int], devices: Mapping[int, GpuUse], now_ms: Millis
) -> JobUse | None:
    """Return the utilization of some devices; None if one does not respond."""
    if any(number not in devices for number in numbers):
        return None
    held = [devices[number] for number in dict.fromkeys(numbers)]
    return JobUse(
        at_ms=now_ms,
        measure="gpu",
        use_milli=sum(one.use_milli for one in held) // len(held),
        use_milli_most=max(one.use_milli for one in held),
        memory_used_bytes=sum(one.memory_used_bytes for one in held),
    )


def _cpu_use(before: tuple[Millis, int] | None, ticks: int | None, now_ms: Millis) -> JobUse | None:
    """Return the CPU time since the last sample; None for the first, or if no process is left."""
    if before is None or ticks is None or now_ms <= before[0]:
        return None
    spent_ms = max(0, ticks - before[1]) * SECOND // _TICKS
    milli = spent_ms * 1_000 // (now_ms - before[0])
    return JobUse(at_ms=now_ms, measure="cpu", use_milli=milli, use_milli_most=milli)
