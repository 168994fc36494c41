"""A file tier under many streams: threads that read one file past the cache, each at a pace.

The device is held to a rate, as a bare disk of today has no limit that Python threads would
reach. A greedy stream alone tells what it gives.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from benchmarks.grow.rigs import machine
from benchmarks.grow.rigs.harness import Attained, Rig, Settings
from tenfold.model.growth.measured import UsagePoint

FILE_BYTES = 256 << 20
PROBES = 2
TIER = "tier read"
SETTINGS: Settings = {
    "law": "usage",
    "read_bytes_per_s": 52_000_000,
    "block_bytes": 65_536,
    "blocks_per_s": 6,
    "full": 256,
    "loads": [16, 32, 64],
    "share_least": 0.95,
    "seconds": 10.0,
}


class Tier:
    """A file on a device that is held to a rate."""

    def __init__(self, settings: Settings, file: Path, readers: machine.Group) -> None:
        self._settings = settings
        self._file = file
        self._group = readers

    def measure(self, loads: Sequence[float]) -> list[UsagePoint]:
        probes = [self._read(1, 0.0) for _ in range(PROBES)]
        return [
            UsagePoint(
                layer="storage",
                resource=TIER,
                factor=load / (self._settings["full"] / 4),
                usage=self._read(load, self._settings["blocks_per_s"]),
                limit=probes[place % PROBES],
                unit="bytes/s",
            )
            for place, load in enumerate(loads)
        ]

    def attain(self, load: float) -> Attained:
        asked = load * self._settings["blocks_per_s"] * self._settings["block_bytes"]
        return Attained(self._read(load, self._settings["blocks_per_s"]) / asked, TIER)

    def _read(self, streams: float, pace: float) -> float:
        """Return the bytes a second that so many streams get together."""
        own = self._settings
        words = (self._file, own["block_bytes"], int(streams), pace, own["seconds"])
        command = machine.python("read_streams.py", *words, self._group.procs("blkio"))
        return float(machine.answer(command)) * own["block_bytes"]


@contextmanager
def stage(settings: Settings, folder: Path) -> Iterator[Tier]:
    """Write the file and hold its device to the rate for those who read it."""
    file = folder / "tier.bin"
    with file.open("wb") as out:
        for _ in range(FILE_BYTES >> 20):
            out.write(os.urandom(1 << 20))
        os.fsync(out.fileno())
    try:
        with machine.group("blkio") as readers:
            readers.set_read_bytes_per_s(device_of(folder), settings["read_bytes_per_s"])
            yield Tier(settings, file, readers)
    finally:
        file.unlink()


def device_of(path: Path) -> str:
    """Return the device that holds a path, as control groups name it."""
    number = path.stat().st_dev
    return f"{os.major(number)}:{os.minor(number)}"


def why_not() -> str:
    lacking = machine.lacks_root() or machine.lacks_group("blkio")
    if lacking:
        return lacking
    try:
        with machine.group("blkio") as readers:
            readers.set_read_bytes_per_s(device_of(machine.scratch()), 1 << 30)
    except OSError as error:
        return f"the device of {machine.scratch()} cannot be held to a rate: {error.strerror}"
    return ""


RIG = Rig("file tier", SETTINGS, why_not, stage)
