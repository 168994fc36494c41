"""Tentative changes to an index of free room: each is recorded, so that it can be undone.

A search asks whether a job would fit once others have left by letting them leave on the index
itself, because a copy of the index costs more than the answer. Changes that may be undone go
through a `Scratch`; changes that stand go to the index directly and cost nothing more.

Changes are sums (GPUs free on a node, reasons to hide it), so undoing them newest first leaves
the index as it was, and one of them may also be undone out of order.
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
        """Return a mark to roll back to; 0 where nothing is tentative."""
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
        """Let every change since a checkpoint stand."""
        del self._log[to:]

    def undo(self, number: int) -> None:
        """Undo one change, by the number that it was recorded under."""
        change = self._log[number]
        assert change is not None, "a change is undone once"
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
        """Take these very slots, and return the number of the change."""
        self.capacity.take(slots, shape)
        return self.record(self.capacity.give, slots, shape)

    def release(self, slots: Slots, shape: Shape) -> int:
        """Give slots back, and return the number of the change."""
        self.capacity.give(slots, shape)
        return self.record(self.capacity.take, slots, shape)

    def claim(self, shape: Shape) -> Slots | None:
        """Take the best room for a whole gang, or return None and take nothing."""
        return self.claimed(self.capacity.claim(shape), shape)

    def claimed(self, slots: Slots | None, shape: Shape) -> Slots | None:
        """Record that slots, if any were found, have just been taken."""
        if slots is not None:
            self.pipeline(slots, shape)
        return slots

    def pipeline(self, slots: Slots, shape: Shape) -> int:
        """Record that slots have just been taken for a start that cannot be ordered yet."""
        return self.record(self.capacity.give, slots, shape)

    def record(self, undo: Callable[..., object], *given: object) -> int:
        """Record how to undo a change that was made, and return its number."""
        self._log.append((undo, given))
        return len(self._log) - 1
