"""Readers of one tier behind a slow link: each asks for blocks at a fixed pace.

A single greedy reader tells what the link carries. Its limit cannot be seen at a quarter of
the readers. The processor of the server is no probe's business: a greedy reader costs it less a
block than paced ones, so its usage is taken under paced readers, and its limit is the quota.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benchmarks.grow.rigs import machine
from benchmarks.grow.rigs.harness import Attained, Rig, Settings
from tenfold.model.growth.measured import UsagePoint

PORT = 9_000
PROBES = 3
LINK, CPU = "link", "server cpu"
SETTINGS: Settings = {
    "law": "usage",
    "mbit": 80,
    "block_bytes": 65_536,
    "blocks_per_s": 8,
    "checksums": 0,
    "cores": 0,
    "full": 40,
    "loads": [3, 6, 10],
    "share_least": 0.95,
    "seconds": 6.0,
}


class Readers:
    """The server in its namespace, and readers in the other."""

    def __init__(self, settings: Settings, link: machine.Link, served_by: machine.Group) -> None:
        self._settings = settings
        self._link = link
        self._group = served_by
        self._probed: list[float] = []

    def measure(self, loads: Sequence[float]) -> list[UsagePoint]:
        cores: float = self._settings["cores"]
        self._group.set_cores(0)
        self._probed = [self._read(1, 0.0) for _ in range(PROBES)]
        self._group.set_cores(cores)
        points: list[UsagePoint] = []
        for place, load in enumerate(loads):
            used_s = self._group.used_s()
            rate = self._read(load, self._settings["blocks_per_s"])
            used = (self._group.used_s() - used_s) / self._settings["seconds"]
            probe = self._probed[place % PROBES]
            points.append(self._point(load, LINK, rate, probe, "bytes/s"))
            if cores:
                points.append(self._point(load, CPU, used, cores, "core"))
        return points

    def attain(self, load: float) -> Attained:
        throttled = self._group.throttled()
        rate = self._read(load, self._settings["blocks_per_s"])
        throttled = self._group.throttled() - throttled
        asked = load * self._settings["blocks_per_s"] * self._settings["block_bytes"]
        first = ""
        if self._probed and rate >= 0.95 * min(self._probed):
            first = LINK
        elif throttled:
            first = CPU
        return Attained(rate / asked, first)

    def _read(self, readers: float, pace: float) -> float:
        """Return the bytes a second that so many readers get together."""
        own = self._settings
        words = (self._link.near_address, PORT, own["block_bytes"], int(readers), pace)
        command = machine.python("read_blocks.py", *words, own["seconds"])
        said = machine.answer(machine.inside(self._link.far, *command))
        return float(said) * own["block_bytes"]

    def _point(
        self, load: float, resource: str, usage: float, limit: float, unit: str
    ) -> UsagePoint:
        return UsagePoint(
            layer="storage",
            resource=resource,
            factor=load / (self._settings["full"] / 4),
            usage=usage,
            limit=limit,
            unit=unit,
        )


@contextmanager
def stage(settings: Settings, folder: Path) -> Iterator[Readers]:
    """Set up two namespaces with the server in one of them."""
    with ExitStack() as stack:
        link = stack.enter_context(machine.slow_link(settings["mbit"]))
        served_by = stack.enter_context(machine.group("cpu", "cpuacct"))
        words = (link.near_address, PORT, settings["block_bytes"], settings["checksums"])
        command = machine.python("serve_blocks.py", *words)
        server = stack.enter_context(machine.child(machine.inside(link.near, *command)))
        machine.pause(server, 1.0)
        served_by.take(server.pid)
        yield Readers(settings, link, served_by)


def why_not() -> str:
    return machine.lacks_link() or machine.lacks_group("cpu", "cpuacct")


RIG = Rig("readers of one tier", SETTINGS, why_not, stage)
