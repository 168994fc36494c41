"""Outages of a part of a fleet, and how many nodes they keep down at once.

Each outage has a level between 0 and 1, and a part of a fleet has the outages up to its share. So
what is down never falls as the part grows. What fails together stays together: a burst of a law is
in a part or not, and so are nodes of a trace that failed at the same moment.
"""

from collections import Counter
from collections.abc import Sequence
from hashlib import blake2b
from itertools import pairwise
from math import factorial, sqrt
from typing import NamedTuple

import numpy as np

from tenfold.model.fault import Fault
from tenfold.model.units import MINUTE, Millis
from tenfold.physics.arrays import Floats, Ints

TOGETHER_MS = MINUTE
"""Faults of a trace that start within this time may be one event."""
BY_CHANCE = 1e-3
"""Two nodes failed together if chance alone would rarely have had them fail so often at once."""
_GOLDEN = (sqrt(5.0) - 1.0) / 2.0


class Outages(NamedTuple):
    """Start, end and level of each outage of a node, as arrays."""

    starts_ms: Ints
    ends_ms: Ints
    levels: Floats


def generator_of(*names: object) -> np.random.Generator:
    """Return a random generator of its own for each list of names."""
    text = "\x1f".join(("outages", *map(str, names)))
    return np.random.Generator(
        np.random.PCG64(int.from_bytes(blake2b(text.encode(), digest_size=16).digest()))
    )


def burst_outages(faults: Sequence[Fault], draw: np.random.Generator) -> Outages:
    """Return drawn faults with a level by burst: a part has fewer bursts, of the same sizes."""
    order = {at_ms: place for place, at_ms in enumerate(dict.fromkeys(f.at_ms for f in faults))}
    levels = 1.0 - draw.random(len(order))
    return _outages(faults, levels, [order[fault.at_ms] for fault in faults])


def node_outages(faults: Sequence[Fault], offset: float) -> Outages:
    """Return recorded faults with a level by node: fewer nodes are a sample of those recorded.

    Nodes that failed together are taken together. A part has its share of nodes that are down for
    long and of those that are not; `offset`, from 0 to 1, says which.
    """
    groups, place_of = _ranked(faults)
    return _outages(faults, _levels(groups, offset), [place_of[f.node_id] for f in faults])


def other_node_outages(
    faults: Sequence[Fault], nodes: int, span_ms: int, draw: np.random.Generator
) -> Outages:
    """Return recorded faults as of other nodes of the same kind: drawn again from all `nodes`.

    A node that is drawn twice fails at other moments the second time.
    """
    groups, place_of = _ranked(faults)
    # Nodes that never failed may be drawn as well; each is a group of its own.
    whole = max(groups, nodes - (len(place_of) - groups))
    often = draw.multinomial(whole, np.full(whole, 1 / whole))[:groups]
    first = np.concatenate([[0], np.cumsum(often)])
    levels = _levels(int(first[-1]), float(draw.random()))
    shifts = draw.integers(0, max(1, span_ms), int(first[-1]))
    one = _outages(faults, np.zeros(groups), [place_of[f.node_id] for f in faults])
    places = np.array([place_of[fault.node_id] for fault in faults], np.int64)
    made = list[Outages]()
    for copy in range(int(often.max(initial=0))):
        kept = often[places] > copy
        drawn = first[places[kept]] + copy
        starts, ends = one.starts_ms[kept], np.minimum(one.ends_ms[kept], span_ms)
        shift = shifts[drawn] if copy else 0
        lasting, starts = ends - starts, (starts + shift) % max(1, span_ms)
        ends = starts + lasting
        over = ends > span_ms
        # What lasts beyond the end of the trace goes on at its start.
        made.append(Outages(starts, np.minimum(ends, span_ms), levels[drawn]))
        made.append(
            Outages(np.zeros(int(over.sum()), np.int64), ends[over] - span_ms, levels[drawn][over])
        )
    return Outages(*(np.concatenate(each) for each in zip(*made, strict=True))) if made else one


def _ranked(faults: Sequence[Fault]) -> tuple[int, dict[str, int]]:
    """Return how many groups of nodes there are and the rank of each node's, longest down first."""
    group_of = _groups(faults)
    down_ms: dict[str, int] = {}
    for fault in faults:
        group = group_of[fault.node_id]
        down_ms[group] = down_ms.get(group, 0) + fault.until_ms - fault.at_ms
    ranked = sorted(down_ms, key=lambda group: (-down_ms[group], group))
    place_of = {group: place for place, group in enumerate(ranked)}
    return len(ranked), {node: place_of[group] for node, group in group_of.items()}


def _levels(many: int, offset: float) -> Floats:
    """Return levels that are spread evenly in every run of neighbours."""
    return 1.0 - (offset + _GOLDEN * np.arange(many, dtype=np.float64)) % np.float64(1.0)


def _outages(faults: Sequence[Fault], levels: Floats, places: Sequence[int]) -> Outages:
    return Outages(
        np.array([fault.at_ms for fault in faults], np.int64),
        np.array([fault.until_ms for fault in faults], np.int64),
        levels[np.array(places, np.int64)],
    )


def _groups(faults: Sequence[Fault]) -> dict[str, str]:
    """Return the group of each node: those that fail together; faults are in order of time."""
    often = Counter(str(fault.node_id) for fault in faults)
    parent = {node: node for node in often}

    def root(node: str) -> str:
        while parent[node] != node:
            parent[node] = parent[parent[node]]
            node = parent[node]
        return node

    at_once = Counter(
        (str(one.node_id), str(other.node_id))
        for one, other in pairwise(faults)
        if other.at_ms - one.at_ms < TOGETHER_MS
    )
    span = max((fault.until_ms for fault in faults), default=0)
    for (one, other), times in at_once.items():
        expected = often[one] * often[other] * 2 * TOGETHER_MS / max(1, span)
        # The first term of a Poisson tail bounds it well if it is small.
        if expected**times / factorial(min(times, 20)) < BY_CHANCE:
            parent[root(other)] = root(one)
    return {node: root(node) for node in parent}


class DownSample:
    """How long how many nodes of a part of the fleet were down, by draw and part of a window."""

    def __init__(
        self, draws: Sequence[Outages], from_ms: Millis, to_ms: Millis, parts: int = 1
    ) -> None:
        span = to_ms - from_ms
        edges = np.arange(parts + 1, dtype=np.int64) * span // parts
        moments, signs, levels = list[Ints](), list[Ints](), list[Floats]()
        for place, draw in enumerate(draws):
            ends = [(each - from_ms).clip(0, span) for each in (draw.starts_ms, draw.ends_ms)]
            # Draws follow each other on one line, each ending with nothing down.
            moments += [each + place * span for each in (*ends, edges)]
            one = np.ones(len(draw.levels), np.int64)
            signs += [one, -one, np.zeros(len(edges), np.int64)]
            levels += [draw.levels, draw.levels, np.zeros(len(edges))]
        line = np.concatenate(moments)
        order = np.argsort(line, kind="stable")
        line = line[order]
        self._shape = len(draws), parts
        self._signs, self._levels = np.concatenate(signs)[order], np.concatenate(levels)[order]
        spans = np.diff(line)
        self._lasting = np.flatnonzero(spans)
        self._spans = spans[self._lasting] / span
        begun = line[:-1][self._lasting]
        part = np.searchsorted(edges, begun % span, "right") - 1
        self._row_of = begun // span * parts + part

    def shares(self, level: float) -> Floats:
        """Return the shares of a draw's time with 0, 1, 2 ... nodes down, by draw and by part."""
        down = np.cumsum(np.where(self._levels <= level, self._signs, 0))[:-1][self._lasting]
        wide = int(down.max(initial=0)) + 1
        rows = self._shape[0] * self._shape[1]
        cells = np.zeros(rows * wide)
        np.add.at(cells, self._row_of * wide + down, self._spans)
        return cells.reshape(*self._shape, wide)
