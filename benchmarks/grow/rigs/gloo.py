"""All-reduce by gloo over a slow link: ranks take turns on its two sides, so every edge crosses.

Two ranks are timed with several sizes, which parts the time of a turn from that of the bytes.
A step computes for a fixed time and then waits for the all-reduce; it is broken when it
computes for less than a share of the step.
"""

import importlib.util
import os
import statistics
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benchmarks.grow.rigs import machine
from benchmarks.grow.rigs.harness import Attained, Rig, Settings
from benchmarks.grow.rigs.shared_rates import step_efficiency
from tenfold.model.growth.measured import UsagePoint

PORT = 29_500
TIMEOUT_S = 180.0
SETTINGS: Settings = {
    "law": "ring",
    "mbit": 200,
    "size_bytes": 4_000_000,
    "sizes": [250_000, 1_000_000, 4_000_000],
    "compute_s": 0.5,
    "repeats": 4,
    "full": 8,
    "grid": [2, 4, 6, 8],
    "loads": [2],
    "share_least": 0.45,
}


class Ring:
    """Ranks on both sides of a link."""

    def __init__(self, settings: Settings, link: machine.Link) -> None:
        self._settings = settings
        self._link = link
        self._runs = 0

    def measure(self, loads: Sequence[float]) -> list[UsagePoint]:
        points: list[UsagePoint] = []
        for load in loads:
            for size, took in self._reduce(int(load), self._settings["sizes"]).items():
                points += [self._point(load, size, one_s) for one_s in took]
        return points

    def attain(self, load: float) -> Attained:
        size: int = self._settings["size_bytes"]
        took_s = statistics.median(self._reduce(int(load), [size])[size])
        return Attained(step_efficiency(self._settings["compute_s"], took_s), "link")

    def _reduce(self, ranks: int, sizes: Sequence[int]) -> dict[int, list[float]]:
        """Return the seconds of each repeat by size."""
        self._runs += 1
        with ExitStack() as stack:
            processes = [
                stack.enter_context(self._rank(rank, ranks, sizes)) for rank in range(ranks)
            ]
            said, _ = processes[0].communicate(timeout=TIMEOUT_S)
            for process in processes:
                process.wait(TIMEOUT_S)
        rows = [line.split() for line in said.decode().splitlines()]
        return {int(row[0]): [float(word) for word in row[1:]] for row in rows}

    @contextmanager
    def _rank(
        self, rank: int, ranks: int, sizes: Sequence[int]
    ) -> Iterator[subprocess.Popen[bytes]]:
        link = self._link
        command = machine.python("reduce_rank.py", self._settings["repeats"], *sizes)
        environment = {
            **os.environ,
            "MASTER_ADDR": link.near_address,
            "MASTER_PORT": str(PORT + self._runs),
            "RANK": str(rank),
            "WORLD_SIZE": str(ranks),
            "GLOO_SOCKET_IFNAME": "v0",
            "OMP_NUM_THREADS": "1",
            "TORCH_CPP_LOG_LEVEL": "ERROR",
        }
        with machine.child(
            machine.inside(link.far if rank % 2 else link.near, *command),
            stdout=subprocess.PIPE if rank == 0 else subprocess.DEVNULL,
            env=environment,
        ) as process:
            yield process

    def _point(self, load: float, size: int, took_s: float) -> UsagePoint:
        return UsagePoint(
            layer="fabric",
            resource="all-reduce",
            queue=str(size),
            factor=load / (self._settings["full"] / 4),
            usage=took_s,
            unit="s",
        )


@contextmanager
def stage(settings: Settings, folder: Path) -> Iterator[Ring]:
    """Set up the two sides of the link."""
    with machine.slow_link(settings["mbit"], both_ways=True) as link:
        yield Ring(settings, link)


def why_not() -> str:
    if importlib.util.find_spec("torch") is None:
        return "no torch here"
    return machine.lacks_link()


RIG = Rig("gloo all-reduce", SETTINGS, why_not, stage)
