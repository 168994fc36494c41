"""How long an all-reduce takes when its traffic crosses one shared link.

What counts is not how many ranks there are but how many edges of the ring or tree cross the
cut in one direction. Ranks in two blocks cross it once; ranks that alternate between its two
sides cross it with every other edge, and the same bytes take so many times as long.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

from tenfold.physics.contention import Flow, max_min
from tenfold.physics.growth.usage import straight_line

_LINK = 0


class Cut(NamedTuple):
    """A shared link as collectives see it."""

    alpha_s: float
    """Time of one turn of the ring beside moving bytes."""
    link_bytes_per_s: float


def crossings_in_blocks(ranks: float) -> float:
    """Return how often a ring crosses the cut each way where each side holds one block."""
    return 1.0 if ranks > 1.0 else 0.0


def crossings_alternating(ranks: float) -> float:
    """Return how often a ring crosses the cut each way where ranks take sides in turn."""
    return ranks / 2.0 if ranks > 1.0 else 0.0


def edge_bytes_per_s(
    crossings: float, link_bytes_per_s: float, own_bytes_per_s: float = math.inf
) -> float:
    """Return what each crossing edge gets of the link, and no more than its own rate."""
    if crossings <= 0.0:
        return own_bytes_per_s
    [rate] = max_min(
        [Flow(own_bytes_per_s, (_LINK,), (crossings,))], {_LINK: max(link_bytes_per_s, 0.0)}
    )
    return rate


def ring_s(
    size_bytes: float,
    ranks: float,
    crossings: float,
    link_bytes_per_s: float,
    alpha_s: float = 0.0,
) -> float:
    """Return the time of a ring all-reduce: 2(n - 1) turns, each of one n-th of the bytes.

    A turn lasts as long as its slowest edge, which is one that crosses.
    """
    if ranks <= 1.0:
        return 0.0
    rate = edge_bytes_per_s(crossings, link_bytes_per_s)
    return 2.0 * (ranks - 1.0) * (alpha_s + size_bytes / ranks / rate)


def tree_s(
    size_bytes: float,
    ranks: float,
    crossings: float,
    link_bytes_per_s: float,
    alpha_s: float = 0.0,
) -> float:
    """Return the time of a tree all-reduce: all bytes up, then all of them down."""
    if ranks <= 1.0:
        return 0.0
    rate = edge_bytes_per_s(crossings, link_bytes_per_s)
    return 2.0 * (math.ceil(math.log2(ranks)) * alpha_s + size_bytes / rate)


def fit_cut(timed: Sequence[tuple[float, float]], ranks: float, crossings: float) -> Cut:
    """Return the cut behind ring all-reduces of one group: pairs of bytes and seconds.

    Bytes of one size alone do not part the turn's own time from the link's.
    """
    assert timed, "a cut is fitted to timed crossings"
    assert min(ranks - 1.0, crossings) > 0.0, "one rank alone crosses nothing"
    base_s, s_per_byte = straight_line(timed)
    turns = 2.0 * (ranks - 1.0)
    rate = math.inf if s_per_byte <= 0.0 else turns * crossings / ranks / s_per_byte
    return Cut(base_s / turns, rate)


def step_efficiency(compute_s: float, all_reduce_s: float) -> float:
    """Return the share of a step that computes where nothing of the all-reduce is hidden."""
    return compute_s / (compute_s + all_reduce_s)
