"""One queue: jobs start in strict order of a fixed key and run to completion.

The head of the queue blocks all others, as in the published runs of FIFO and SJF: small jobs
never starve a large one. Policies that let jobs overtake are in `ranked` and `slurm`.
"""

from collections.abc import Callable, Sequence
from heapq import heapify, heappop, heappush

from tenfold.fleet.capacity import Capacity, Slots
from tenfold.fleet.fleet import FleetView
from tenfold.model.actions import Action, RefuseJob, ResizeJob, StartJob
from tenfold.model.decision import NOTHING, Decision
from tenfold.model.events import (
    ActionOrdered,
    Event,
    JobEnded,
    JobStarted,
    JobSubmitted,
)
from tenfold.model.ids import JobId
from tenfold.model.job.job import Job, Shape
from tenfold.model.units import Millis

Key = Callable[[Job], int]
"""Smaller goes first; ties go by arrival."""

Place = tuple[int, int, int, Job]


class StrictOrderPlacer:
    """Start jobs in strict order; no job overtakes one that does not fit."""

    def __init__(
        self,
        name: str,
        key: Key,
        *,
        capacity_of: Callable[[FleetView], Capacity] = Capacity.of,
    ) -> None:
        self.name = name
        self._key = key
        self._capacity_of = capacity_of
        self._version = -1
        self._capacity = Capacity()
        self._held: dict[JobId, tuple[Slots, Shape]] = {}
        self._queue: list[Place] = []
        self._blocked = False
        """Whether the head did not fit and nothing has been released since."""
        self._holdable: Shape | None = None
        """The shape of the last head that did not fit but would fit on an empty fleet."""
        self._resizes = False
        """Whether a resize is in progress, whose slots only the view has."""

    @property
    def index(self) -> Capacity | None:
        """The index of free capacity; None during a resize, whose slots only the view has."""
        return None if self._resizes else self._capacity

    def decide(self, view: FleetView, now_ms: Millis, news: Sequence[Event] | None) -> Decision:
        """Return the starts that are possible now, in order."""
        version = view.version
        if (
            news is None
            or self._resizes
            or self._version + len(news) != version
            or not self._apply_events(news)
        ):
            self._rebuild(view)
        self._version = version
        self._capacity.refresh(view)
        jobs = self._queue
        if self._blocked or not jobs:
            return NOTHING
        actions: list[Action] = []
        pending, claim, held = view.pending, self._capacity.claim, self._held
        while jobs:
            job = jobs[0][3]
            if job.id not in pending:
                heappop(jobs)
                continue
            shape = job.shape
            slots = claim(shape)
            if slots is None:
                if shape is self._holdable or self._capacity.could_hold(shape):
                    self._holdable = shape
                    self._blocked = True
                    break
                # Refusals are rare, and the module that explains them is slow to import.
                from tenfold.decide.place.misfit import never_fits  # noqa: PLC0415

                heappop(jobs)
                actions.append(RefuseJob(job.id, never_fits(self._capacity, shape)))
                continue
            heappop(jobs)
            held[job.id] = (slots, shape)
            actions.append(StartJob(job.id, slots))
        return Decision(actions)

    def _apply_events(self, news: Sequence[Event]) -> bool:
        """Apply events to the caches; False if they must be rebuilt."""
        held, jobs = self._held, self._queue
        for event in news:
            # Compare types directly: `isinstance` is slow for records of other classes.
            if type(event) is JobStarted:
                continue
            if type(event) is ActionOrdered:
                action = event.action
                is_unknown = type(action) is StartJob and action.job_id not in held
                if is_unknown or type(action) is ResizeJob:
                    return False
            elif type(event) is JobSubmitted:
                job = event.job
                place = (self._key(job), job.submitted_ms, job.seq, job)
                if self._blocked and jobs and place < jobs[0]:
                    self._blocked = False
                heappush(jobs, place)
            elif type(event) is JobEnded:
                slots, shape = held.pop(event.job_id)
                self._capacity.give(slots, shape)
                self._blocked = False
            else:
                return False
        return True

    def _rebuild(self, view: FleetView) -> None:
        self._capacity = self._capacity_of(view)
        self._holdable = None
        self._held = {
            job_id: (held.slots, held.job.shape)
            for kept in (view.orders, view.running)
            for job_id, held in kept.items()
        }
        self._queue = [
            (self._key(job), job.submitted_ms, job.seq, job) for job in view.pending.values()
        ]
        heapify(self._queue)
        self._blocked = False
        self._resizes = any(run.becoming is not None for run in view.running.values())
