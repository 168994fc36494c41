"""Room of those who are being stopped, counted as free during one walk, and who leans on it.

Whoever does is kept until the stops are facts: the room stays his, and nobody else is asked
to go for him meanwhile.
"""

from collections.abc import Sequence

from tenfold.decide.place.coming import Coming
from tenfold.decide.place.govern.asks import Amounts
from tenfold.decide.place.govern.books import Books, Promised
from tenfold.decide.place.govern.holdings import Holding
from tenfold.decide.place.govern.lines import Class
from tenfold.decide.place.govern.tree import Team
from tenfold.fleet.capacity import Slots
from tenfold.fleet.topology import Room
from tenfold.model.job import Job, Shape

Reserved = tuple[Class, Job, Slots, Amounts, Promised | None]
"""Who is to start once it is free: room, what it takes from quotas, and the promise of it."""


class Lent:
    """What those who leave still hold, at one moment."""

    def __init__(self, books: Books) -> None:
        self._books = books
        self._coming: Coming | None = None
        self._lent: list[Holding] = []
        self._reserved: list[Reserved] = []

    def lend(self, holding: Holding) -> None:
        """Count what a leaving job holds as free, until the walk is over."""
        if self._coming is None:
            self._coming = Coming(self._books.capacity, ())
        self._coming.lend(holding)
        self._lent.append(holding)
        self._books.count(holding.team, holding.amounts, -1)

    def reserve(self, reserved: Reserved) -> None:
        """Keep room that was claimed until it is really free."""
        cls, _, _, amounts, _ = reserved
        self._books.count(cls.team, amounts, 1)
        self._reserved.append(reserved)

    def settle(self) -> list[Reserved]:
        """Stop counting what is not free yet, and return those who have to wait for it."""
        books = self._books
        for cls, job, slots, amounts, _ in self._reserved:
            books.capacity.give(slots, job.shape)
            books.count(cls.team, amounts, -1)
        if self._coming is not None:
            self._coming.take_back()
            for holding in self._lent:
                books.count(holding.team, holding.amounts, 1)
        return self._reserved

    def is_needed_by(self, team: Team, slots: Slots, job: Job, amounts: Amounts) -> bool:
        """Return whether a start needs room or quota that is still being given up."""
        if self._coming is None:
            return False
        capacity = self._books.capacity
        if job.shape.milli or (
            capacity.limits_power
            and any(capacity.share_power(slots, each.slots) for each in self._lent)
        ):
            # Counts of free GPUs do not tell: it is tried with everybody still there.
            if not self._fits_beside(slots, job.shape):
                self._coming.needed_by(slots, job.shape)
                return True
        elif self._coming.needed_by(slots, job.shape):
            return True
        return self._books.tree.is_beyond(team, amounts)

    def _fits_beside(self, slots: Slots, shape: Shape) -> bool:
        """Return whether slots, just claimed, are free even while nobody has left yet."""
        capacity = self._books.capacity
        yet = [(slots, shape), *((each[2], each[1].shape) for each in self._reserved)]
        for held, whose in yet:
            capacity.give(held, whose)
        for holding in self._lent:
            capacity.take(holding.slots, holding.job.shape)
        fits = capacity.has_kept(slots, shape)
        for holding in self._lent:
            capacity.give(holding.slots, holding.job.shape)
        for held, whose in yet:
            capacity.take(held, whose)
        return fits


def offer_rest(books: Books, before: Sequence[Room], after: Sequence[Room]) -> None:
    """Let others try for what stops leave beyond what they were for."""
    more = [
        now[0]
        for was, now in zip(before, after, strict=True)
        if any(mine > theirs for mine, theirs in zip(now, was, strict=True))
    ]
    if more:
        books.lines.offer(max(more))
        for cls in books.wanting:
            books.lines.rouse(cls)
