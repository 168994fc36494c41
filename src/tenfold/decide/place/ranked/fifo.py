"""One line for all: jobs start in the order of a fixed key, and run to their end.

The head of the line blocks those behind it, as in the published runs of FIFO and SJF: a
small job never starves a large one. Policies that let jobs pass live in `ranked` and `slurm`.
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
    """Start jobs strictly in order; nobody passes a job that waits for room."""

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
        """Whether the head found no room and none has been freed since."""
        self._holdable: Shape | None = None
        """The shape of the last head that found no room, which an empty fleet would have."""
        self._resizes = False
        """Whether a resize is under way, whose room only the view knows."""

    @property
    def index(self) -> Capacity | None:
        """Free room as it is kept; a resize gives back what only the view knows."""
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
                # Few runs refuse anybody, and to say why takes much to load.
                from tenfold.decide.place.misfit import never_fits  # noqa: PLC0415

                heappop(jobs)
                actions.append(RefuseJob(job.id, never_fits(self._capacity, shape)))
                continue
            heappop(jobs)
            held[job.id] = (slots, shape)
            actions.append(StartJob(job.id, slots))
        return Decision(actions)

    def _apply_events(self, news: Sequence[Event]) -> bool:
        """Bring the caches up to date; False where only a rebuild can."""
        held, jobs = self._held, self._queue
        for event in news:
            # Asking for the type itself: a record that is not of a class takes `isinstance` long.
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
