"""Outages of a larger fleet: every multiple of a fleet has all outages of a smaller one.

An outage takes down some nodes at a moment and brings them back at another. Each has a level, the
multiple of the fleet from which it happens: outages of today's fleet lie between 0 and 1, those of
the nodes that make it twice as large between 1 and 2. So what is down never falls as the fleet
grows, and two sizes differ by what was added and not by chance. Which nodes are down does not
matter here, only how many: a fault goes to a node that is up, so weak nodes change who fails and
not how many do.
"""

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tenfold.model.facts.failure_law import FailureLaw
from tenfold.model.fault import Fault
from tenfold.model.units import DAY, HOUR, SECOND, Millis
from tenfold.physics.arrays import Floats, Ints
from tenfold.physics.operations.faults import burst_mean, burst_sizes, repair_sigma


class Outages(NamedTuple):
    """Start, end, nodes down and level of each outage, as arrays."""

    starts_ms: Ints
    ends_ms: Ints
    nodes: Ints
    levels: Floats

    def up_to(self, level: float) -> "Outages":
        """Return the outages of a fleet of so many times today's size."""
        return self._chosen(self.levels <= level)

    def lasting_after(self, moment_ms: Millis) -> "Outages":
        """Return the outages that end after a moment."""
        return self._chosen(self.ends_ms > moment_ms)

    def _chosen(self, kept: NDArray[np.bool_]) -> "Outages":
        return Outages(
            self.starts_ms[kept], self.ends_ms[kept], self.nodes[kept], self.levels[kept]
        )


def joined(parts: Sequence[Outages]) -> Outages:
    """Return several sets of outages as one."""
    return Outages(
        np.concatenate([one.starts_ms for one in parts]),
        np.concatenate([one.ends_ms for one in parts]),
        np.concatenate([one.nodes for one in parts]),
        np.concatenate([one.levels for one in parts]),
    )


def generator_of(*names: object) -> np.random.Generator:
    """Return a random generator of its own for each list of names."""
    text = "\x1f".join(("outages", *map(str, names)))
    return np.random.Generator(
        np.random.PCG64(int.from_bytes(blake2b(text.encode(), digest_size=16).digest()))
    )


def outages_of(faults: Sequence[Fault], *, by_node: bool, draw: np.random.Generator) -> Outages:
    """Return the faults of today's fleet as outages with levels up to 1.

    A smaller fleet has fewer bursts of the same sizes; of a recorded trace it has fewer nodes.
    """
    keys = [fault.node_id if by_node else fault.at_ms for fault in faults]
    order = {key: place for place, key in enumerate(dict.fromkeys(keys))}
    levels = 1.0 - draw.random(len(order))
    return Outages(
        np.array([fault.at_ms for fault in faults], np.int64),
        np.array([fault.until_ms for fault in faults], np.int64),
        np.ones(len(faults), np.int64),
        levels[[order[key] for key in keys]] if keys else np.zeros(0),
    )


def drawn_outages(
    law: FailureLaw,
    nodes_by_site: Mapping[str, int],
    horizon_ms: Millis,
    copy: int,
    draw: np.random.Generator,
) -> Outages:
    """Return the outages of the nodes that make a fleet `copy + 1` times as large.

    Bursts, causes and repairs are those of the failure law, drawn all at once.
    """
    parts = [
        _site_outages(law, nodes, nodes * (copy + 1), horizon_ms, draw)
        for nodes in nodes_by_site.values()
        if nodes
    ]
    whole = joined(parts)
    return whole._replace(levels=copy + whole.levels)


def _site_outages(
    law: FailureLaw, nodes: int, nodes_then: int, horizon_ms: Millis, draw: np.random.Generator
) -> Outages:
    largest = min(law.burst_nodes_max, nodes_then)
    mean_size = burst_mean(law.arrival_cv, largest)
    rate = law.faults_per_1000_node_days / 1_000 * nodes / DAY / mean_size
    many = int(draw.poisson(rate * horizon_ms))
    starts = np.sort(draw.random(many) * horizon_ms).astype(np.int64)
    shares = np.cumsum(burst_sizes(mean_size, largest))
    sizes = np.searchsorted(shares[:-1], draw.random(many), "right") + 1
    sigma = repair_sigma(law.repair_h_median, law.repair_h_mean)
    repair_ms = law.repair_h_median * HOUR * np.exp(sigma * draw.standard_normal(many))
    restarted = draw.random(many) < law.transient_share
    away_ms = np.where(restarted, law.away_s * SECOND, repair_ms)
    ends = starts + np.maximum(1, np.rint(away_ms)).astype(np.int64)
    return Outages(starts, ends, sizes.astype(np.int64), 1.0 - draw.random(many))


def shifted_outages(trace: Outages, span_ms: int, copy: int, draw: np.random.Generator) -> Outages:
    """Return a recorded trace as that of further nodes: begun elsewhere in it, and gone round.

    Bursts and repairs stay as recorded, but do not fall on the moments of the first nodes'.
    """
    shift = int(draw.integers(0, max(1, span_ms)))
    lasting = np.minimum(trace.ends_ms, span_ms) - trace.starts_ms
    starts = (trace.starts_ms + shift) % max(1, span_ms)
    ends = starts + lasting
    over = ends > span_ms
    levels = copy + trace.levels
    whole = Outages(starts, np.minimum(ends, span_ms), trace.nodes, levels)
    round_again = Outages(
        np.zeros(int(over.sum()), np.int64), ends[over] - span_ms, trace.nodes[over], levels[over]
    )
    return joined([whole, round_again])
