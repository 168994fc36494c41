"""Tentative changes to an index of free capacity, recorded so that they can be undone.

To ask whether a job would fit once others have ended, a search releases them on the index
itself, because copying the index costs more than the answer. Changes that may be undone go
through a `Scratch`; permanent changes go to the index directly at no extra cost.

Changes are sums (free GPUs of a node, reasons to hide it), so undoing them newest first restores
the index, and a single change may also be undone out of order.
"""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Generic, TypeVar

from tenfold.fleet.capacity import Capacity, Slots
from tenfold.model.job.job import Shape

Change = tuple[Callable[..., object], tuple[object, ...]]
"""How to undo one change: what to call, and with what."""

Index_co = TypeVar("Index_co", bound=Capacity, covariant=True)


class Scratch(Generic[Index_co]):
    """The changes to one index that may still be undone, oldest first."""

    def __init__(self, capacity: Index_co) -> None:
        self.capacity = capacity
        self._log: list[Change | None] = []
        """None where a change was undone out of order."""

    def checkpoint(self) -> int:
        """Return a mark to roll back to; 0 if nothing is tentative."""
        return len(self._log)

    def rollback(self, to: int = 0) -> None:
        """Undo every change since a checkpoint, newest first."""
        log = self._log
        while len(log) > to:
            change = log.pop()
            if change is not None:
                undo, given = change
                undo(*given)

    def commit(self, to: int = 0) -> None:
        """Make every change since a checkpoint permanent."""
        del self._log[to:]

    def undo(self, number: int) -> None:
        """Undo one change by its number."""
        change = self._log[number]
        assert change is not None, "a change can be undone only once"
        self._log[number] = None
        undo, given = change
        undo(*given)

    @contextmanager
    def trial(self) -> Generator[None]:
        """Undo at the end whatever is changed within."""
        mark = self.checkpoint()
        try:
            yield
        finally:
            self.rollback(mark)

    def allocate(self, slots: Slots, shape: Shape) -> int:
        """Allocate these exact slots, and return the number of the change."""
        self.capacity.take(slots, shape)
        return self.record(self.capacity.give, slots, shape)

    def release(self, slots: Slots, shape: Shape) -> int:
        """Release slots, and return the number of the change."""
        self.capacity.give(slots, shape)
        return self.record(self.capacity.take, slots, shape)

    def claim(self, shape: Shape) -> Slots | None:
        """Claim the best slots for a whole gang, or return None."""
        return self.claimed(self.capacity.claim(shape), shape)

    def claimed(self, slots: Slots | None, shape: Shape) -> Slots | None:
        """Record that slots, if any, have just been claimed."""
        if slots is not None:
            self.pipeline(slots, shape)
        return slots

    def pipeline(self, slots: Slots, shape: Shape) -> int:
        """Record that slots have just been claimed for a start that cannot be ordered yet."""
        return self.record(self.capacity.give, slots, shape)

    def record(self, undo: Callable[..., object], *given: object) -> int:
        """Record how to undo a change that was made, and return its number."""
        self._log.append((undo, given))
        return len(self._log) - 1
