"""The index of free capacity that every placing decider keeps between decisions.

The index is a cache: it must equal one rebuilt from the view. Deciders that wrap another one
expose its index, so tests can check it through any number of wrappers.
"""

from collections.abc import Sequence
from typing import Protocol

from tenfold.fleet.capacity import Capacity
from tenfold.fleet.view import FleetView
from tenfold.model.decision import Decision
from tenfold.model.events import Event
from tenfold.model.units import Millis


class IndexedDecider(Protocol):
    """A decider that keeps an index of free capacity between decisions."""

    @property
    def name(self) -> str:
        """Its name in the decision log."""
        ...

    @property
    def index(self) -> Capacity | None:
        """Free capacity after its last orders; None where it is rebuilt before use."""
        ...

    def decide(self, view: FleetView, now_ms: Millis, news: Sequence[Event] | None) -> Decision:
        """Return what to do at `now_ms`."""
        ...
