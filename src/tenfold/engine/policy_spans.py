"""Which policy decided each cycle of a record: it may change when the controller restarts.

The cycles of each span are replayed with a new decider under its policy. A cycle that was cut
off by a crash was closed by the next controller, but its orders belong to the one before.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence

from msgspec import Struct

from tenfold.engine.decision_log import Cycle
from tenfold.engine.loop import Decider
from tenfold.model.policy.policy import Policy


class PolicySpan(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Cycles decided under one policy, from one start of the loop to the next."""

    first_cycle: int
    """Counted from 1 within its record."""
    first_event: int
    """The first event that could be written in it, by its number in the fleet's history."""
    policy: Policy


class PolicyTimeline:
    """Gives the decider of each cycle of a record; each span has a new one."""

    def __init__(self, spans: Sequence[PolicySpan], make: Callable[[Policy], Decider]) -> None:
        assert spans, "a record has at least one policy"
        self._spans = spans
        self._cycles = [each.first_cycle for each in spans]
        self._events = [each.first_event for each in spans]
        self._make = make
        self._place = -1
        self._decider: Decider | None = None

    def decider(self, number: int, cycle: Cycle, version: int) -> tuple[Decider, bool]:
        """Return the decider of cycle `number`, and whether it is new.

        `version` counts the events that it sees: the first of its orders is the next one.
        """
        if cycle.is_cut:
            place = max(0, bisect_right(self._events, version + 1) - 1)
        else:
            place = max(0, bisect_right(self._cycles, number) - 1)
        fresh = self._decider is None or place != self._place
        if fresh:
            self._place, self._decider = place, self._make(self._spans[place].policy)
        assert self._decider is not None, "it was made"
        return self._decider, fresh
