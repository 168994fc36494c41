"""What deciders have in common that hide some jobs from another decider."""

from collections.abc import Mapping
from typing import Any

from tenfold.decide.place.indexed import IndexedDecider
from tenfold.fleet.capacity import Capacity
from tenfold.fleet.view import FleetView
from tenfold.model.ids import JobId
from tenfold.model.job.job import Job


class Gate:
    """Hides jobs from an inner decider."""

    def __init__(self, inner: IndexedDecider) -> None:
        self._inner = inner
        self._hidden: dict[JobId, Job] = {}
        self._version = -1
        self._events_hidden = 0
        """Number of events hidden from the inner decider, less those added for it."""

    @property
    def name(self) -> str:
        """Its name in the decision log: the policy that decides."""
        return self._inner.name

    @property
    def index(self) -> Capacity | None:
        """The policy's index: hidden jobs hold no capacity."""
        return self._inner.index


class ViewWithout:
    """A view without the hidden jobs and without their submission events."""

    def __init__(self, view: FleetView, hidden_jobs: Mapping[JobId, Job], hidden: int) -> None:
        self._view = view
        self.version = view.version - hidden
        self.pending = {name: job for name, job in view.pending.items() if name not in hidden_jobs}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._view, name)
