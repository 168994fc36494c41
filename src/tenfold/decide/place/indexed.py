"""What every placing decider offers beside its decisions: the index of free room that it keeps.

An index that is kept is a cache, and what a cache holds must be what would be built anew. Those
who wrap a decider pass the index on, so that this can be checked through any number of them.
"""

from collections.abc import Sequence
from typing import Protocol

from tenfold.fleet.capacity import Capacity
from tenfold.fleet.view import FleetView
from tenfold.model.decision import Decision
from tenfold.model.events import Event
from tenfold.model.units import Millis


class IndexedDecider(Protocol):
    """A decider that keeps an index of free room from one decision to the next."""

    @property
    def name(self) -> str:
        """What the decision log calls it."""
        ...

    @property
    def index(self) -> Capacity | None:
        """Free room once its last orders are facts; None where it is built anew before use."""
        ...

    def decide(self, view: FleetView, now_ms: Millis, news: Sequence[Event] | None) -> Decision:
        """Return what should be done at `now_ms`."""
        ...
