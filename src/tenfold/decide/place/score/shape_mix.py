"""The mix of shapes: how often each occurs, which placement scores look ahead to.

In the loop it is the mix of recently finished jobs, read at fixed counts of them, so a decider
rebuilt from the view has the same mix. Where nothing ever finishes, arrivals are counted
instead, and the mix is read again when they have grown by a quarter.
"""

from collections.abc import Iterable
from itertools import islice

from tenfold.fleet.fleet import HISTORY, FleetView
from tenfold.model.job.job import Shape

WINDOW = 3_072
STEP_MOST = 1_024
GROWTH = 1.25

assert WINDOW + STEP_MOST <= HISTORY, "the history must cover the window of an epoch until its end"


def epoch_of(ended: int) -> int:
    """Return the count of finished jobs at which the current mix was read."""
    step = min(STEP_MOST, 1 << max(0, ended.bit_length() - 3))
    return ended - ended % step


class ShapeMix:
    """Counts by shape, and when they were last read."""

    def __init__(self) -> None:
        self.mix: dict[str, tuple[Shape, int]] = {}
        """The current mix, by key of the shape."""
        self.taken = 0
        """How often the mix was read: caches from an older one are stale."""
        self._ended = self._epoch = -1
        self._arrived: dict[str, tuple[Shape, int]] = {}
        self._arrivals = 0
        self._due = 1

    def from_history(self, view: FleetView) -> bool:
        """Read the mix of the last epoch; return whether it changed."""
        if view.ended == self._ended:
            return False
        self._ended = view.ended
        epoch = epoch_of(view.ended)
        if epoch == self._epoch:
            return False
        self._epoch = epoch
        first = view.ended - len(view.history)
        until = epoch - first
        window = islice(view.history, max(0, until - WINDOW), until)
        self._take(_counted(ended.job.shape for ended in window))
        return True

    def from_arrival(self, shape: Shape) -> bool:
        """Count one arrival; return whether the mix was read again."""
        _, count = self._arrived.get(shape.key, (shape, 0))
        self._arrived[shape.key] = (shape, count + 1)
        self._arrivals += 1
        if self._arrivals < self._due:
            return False
        self._due = int(self._arrivals * GROWTH) + 1
        self._take(self._arrived.copy())
        return True

    def from_all(self, shapes: Iterable[Shape]) -> None:
        """Use a mix that is known beforehand."""
        self._take(_counted(shapes))

    def _take(self, mix: dict[str, tuple[Shape, int]]) -> None:
        self.mix = mix
        self.taken += 1


def _counted(shapes: Iterable[Shape]) -> dict[str, tuple[Shape, int]]:
    counts: dict[str, int] = {}
    first: dict[str, Shape] = {}
    for shape in shapes:
        key = shape.key
        if key in counts:
            counts[key] += 1
        else:
            counts[key], first[key] = 1, shape
    return {key: (first[key], count) for key, count in counts.items()}
