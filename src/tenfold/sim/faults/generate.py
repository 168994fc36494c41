"""Sample the faults of a fleet: bursts in domains, weak nodes, long repairs.

Each site has its own random stream, so other sites change nothing. Bursts arrive as a Poisson
process; each takes down one node by frailty and further nodes within the smallest domain that
has enough up. A burst has one cause and one repair. A node that is down cannot fail: the fault
goes to another node, so that the fleet has the rate of the law.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from heapq import merge

import numpy as np

from tenfold.model.facts.failure_law import FailureLaw
from tenfold.model.fault import Fault
from tenfold.model.fleet.node import Node
from tenfold.model.job.job import Job
from tenfold.model.units import DAY, HOUR, SECOND, Millis
from tenfold.physics.arrays import Floats
from tenfold.physics.operations.faults import burst_mean, burst_sizes, repair_sigma

__all__ = ["Fault", "fault_horizon_ms", "generate_faults"]

_SLACK_MS = 30 * DAY
_START_MS = Millis(0)
_ATTEMPTS_MAX = 64
_BLOCK = 256


def generate_faults(
    nodes: Sequence[Node],
    law: FailureLaw,
    horizon_ms: Millis,
    seed: int,
    lasting_after_ms: Millis = _START_MS,
) -> Iterator[Fault]:
    """Yield the faults of a fleet in order of time, lazily; all nodes are up at time 0.

    Faults that end before `lasting_after_ms` are left out, so that a long time before it is cheap.
    """
    sites: dict[str, list[Node]] = {}
    for node in nodes:
        sites.setdefault(node.site, []).append(node)
    if law.faults_per_1000_node_days <= 0:
        return iter(())
    streams = [
        _SiteFaults(members, law, _generator(seed, law.name, site)).draw(
            horizon_ms, lasting_after_ms
        )
        for site, members in sites.items()
    ]
    return merge(*streams, key=lambda fault: (fault.at_ms, fault.node_id))


def fault_horizon_ms(jobs: Sequence[Job], gpus: int, released_ms: int = 0) -> Millis:
    """Return a time by which any sane policy has finished the jobs: no faults are drawn after."""
    work = sum((job.duration_ms or 0) * max(1, job.shape.gpus) for job in jobs)
    last = max(released_ms, max((job.submitted_ms for job in jobs), default=0))
    return Millis(last + 4 * work // max(1, gpus) + _SLACK_MS)


def _generator(seed: int, *names: str) -> np.random.Generator:
    text = "\x1f".join((str(seed), "faults", *names))
    return np.random.Generator(
        np.random.PCG64(int.from_bytes(blake2b(text.encode(), digest_size=16).digest()))
    )


class _SiteFaults:
    """The faults of one site, drawn in blocks: moments, sizes, repairs and causes."""

    def __init__(
        self, nodes: Sequence[Node], law: FailureLaw, generator: np.random.Generator
    ) -> None:
        self.nodes = nodes
        self.law = law
        self.generator = generator
        shape = law.frailty_shape
        equal = np.ones(len(nodes))
        self.frailty = equal if shape is None else generator.gamma(shape, 1.0 / shape, len(nodes))
        self.cumulative: list[float] = np.cumsum(self.frailty).tolist()
        largest = min(law.burst_nodes_max, len(nodes))
        self.mean_size = burst_mean(law.arrival_cv, largest)
        self.sizes = np.cumsum(burst_sizes(self.mean_size, largest))
        self.sigma = repair_sigma(law.repair_h_median, law.repair_h_mean)
        self.causes = [cause for cause, part in law.causes.items() if part > 0]
        parts = np.array([law.causes[cause] for cause in self.causes])
        self.cause_cumulative: list[float] = []
        if self.causes:
            self.cause_cumulative = (np.cumsum(parts) / parts.sum()).tolist()
        self.up_at = [0] * len(nodes)
        self.domains = _domains(nodes)

    def draw(self, horizon_ms: Millis, lasting_after_ms: Millis) -> Iterator[Fault]:
        rate = self.law.faults_per_1000_node_days / 1_000 * len(self.nodes) / DAY
        generator, now = self.generator, 0.0
        while True:
            gaps = generator.exponential(self.mean_size / rate, _BLOCK)
            sizes = np.searchsorted(self.sizes[:-1], generator.random(_BLOCK), "right") + 1
            zs = generator.standard_normal(_BLOCK)
            causes = generator.random(_BLOCK)
            moments = np.cumsum(np.concatenate([[now], gaps]))[1:]
            now = float(moments[-1])
            for place in np.flatnonzero(moments + self._longest_ms(zs) >= lasting_after_ms):
                at = float(moments[place])
                if at >= horizon_ms:
                    return
                yield from self._burst(
                    int(at), int(sizes[place]), float(zs[place]), float(causes[place])
                )
            if now >= horizon_ms:
                return

    def _longest_ms(self, zs: Floats) -> Floats:
        """Return how long bursts last at most, whatever their cause."""
        repair_ms = self.law.repair_h_median * HOUR * np.exp(self.sigma * zs)
        return np.maximum(self.law.away_s * SECOND, repair_ms) + 2

    def _burst(self, at_ms: int, size: int, z: float, u: float) -> list[Fault]:
        cause = self._cause(u)
        until_ms = at_ms + max(1, round(self._downtime_ms(cause, z)))
        first = self._pick_first(at_ms)
        if first is None:
            return []
        hit = [first, *self._pick_others(first, size - 1, at_ms)]
        for place in hit:
            self.up_at[place] = until_ms
        faults = [
            Fault(Millis(at_ms), self.nodes[place].id, Millis(until_ms), cause) for place in hit
        ]
        return sorted(faults, key=lambda fault: fault.node_id)

    def _cause(self, u: float) -> str:
        if not self.causes:
            return ""
        return self.causes[min(bisect_left(self.cause_cumulative, u), len(self.causes) - 1)]

    def _downtime_ms(self, cause: str, z: float) -> float:
        if cause in self.law.transient_causes:
            return self.law.away_s * SECOND
        return self.law.repair_h_median * HOUR * float(np.exp(self.sigma * z))

    def _pick_first(self, at_ms: int) -> int | None:
        """Return a node that is up, weak ones first; None where hardly any is."""
        for _ in range(_ATTEMPTS_MAX):
            mark = self.generator.random() * self.cumulative[-1]
            place = min(bisect_right(self.cumulative, mark), len(self.nodes) - 1)
            if self.up_at[place] <= at_ms:
                return place
        return None

    def _pick_others(self, first: int, wanted: int, at_ms: int) -> list[int]:
        if wanted < 1:
            return []
        up: list[int] = []
        for domain in (*self.domains[first], range(len(self.nodes))):
            up = [place for place in domain if place != first and self.up_at[place] <= at_ms]
            if len(up) >= wanted:
                break
        places = np.array(up, int)
        # Taking the earliest of exponential clocks draws without replacement by weight.
        clocks = self.generator.exponential(1.0, len(up)) / np.maximum(self.frailty[places], 1e-12)
        order = np.argsort(clocks, kind="stable")[:wanted]
        return [int(place) for place in places[order]]


def _domains(nodes: Sequence[Node]) -> list[tuple[list[int], ...]]:
    """Return for each node the members of its domains, smallest first."""
    members: dict[str, list[int]] = {}
    named: list[tuple[str, ...]] = []
    for place, node in enumerate(nodes):
        names = node.domains or tuple(name for name in (node.rack, node.leaf) if name)
        named.append(tuple(names))
        for name in names:
            members.setdefault(name, []).append(place)
    return [
        tuple(sorted((members[name] for name in names), key=len)) if names else ()
        for names in named
    ]
