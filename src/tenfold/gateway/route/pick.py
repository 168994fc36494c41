"""Which replica answers a request, and which revision: pure functions.

The load of a replica is its outstanding tokens over its weight. Two candidates are drawn and the
less loaded one is taken ("power of two choices"): nearly as even as the least loaded of all, and
without the herd that forms when many requests see the same minimum.
"""

from collections.abc import Sequence
from typing import Protocol

NEAR = 0.25
"""A replica is near the least loaded one up to this part of its load, or the tokens saved."""


class Candidate(Protocol):
    """A replica that may get a request."""

    @property
    def tokens(self) -> int:
        """Outstanding tokens."""
        ...

    @property
    def weight(self) -> float:
        """Speed relative to the others."""
        ...


def pick(
    candidates: Sequence[Candidate],
    chance: float,
    preferred: int | None = None,
    saved_tokens: int = 0,
) -> int:
    """Return the position of the replica that answers; there is at least one.

    `chance` is uniform in [0, 1). `preferred` is the replica of the same session or prefix: it is
    taken if it is near the least loaded one, that is if the wait it may cost is less than the
    prompt tokens that it saves.
    """
    count = len(candidates)
    if count == 1:
        return 0
    if preferred is not None:
        least = min(one.tokens / one.weight for one in candidates)
        wanted = candidates[preferred]
        if wanted.tokens / wanted.weight <= least + max(saved_tokens, NEAR * least):
            return preferred
    drawn = chance * count
    first = int(drawn)
    second = int((drawn - first) * (count - 1))
    second += second >= first
    one, other = candidates[first], candidates[second]
    return first if one.tokens * other.weight <= other.tokens * one.weight else second


def pick_revision(weights: Sequence[float], chance: float) -> int | None:
    """Return the position of the revision that gets a request; None if all weights are 0."""
    left = chance * sum(weights)
    last = None
    for position, weight in enumerate(weights):
        if weight <= 0:
            continue
        last = position
        if left < weight:
            return position
        left -= weight
    return last
