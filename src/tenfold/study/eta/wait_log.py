"""Track waits during a run, and learn how reliable its own forecasts are.

Each tracked wait gets a P50 and a P90 when it begins, from the waits of similar jobs.
`QuantileLevels` chooses the levels: they move with every forecast that is checked.

Nothing here uses the future, and a run without a wait log pays nothing. A wait begins when a
cycle is over and the job is still pending: a job that preempts others starts within the cycle of
its submission and never waits. A start counts when it is ordered.
"""

from collections import deque
from heapq import heapify, heappop, heappush
from math import log2

from msgspec import Struct

from tenfold.engine.loop import Decider
from tenfold.fleet.fleet import NEVER_RAN, Fleet, FleetView
from tenfold.model.actions import RefuseJob, StartJob
from tenfold.model.decision import Decision
from tenfold.model.ids import JobId
from tenfold.model.job.job import WHOLE, Job
from tenfold.model.units import HOUR, MINUTE, Millis
from tenfold.study.eta.levels import QuantileLevels
from tenfold.study.eta.past_waits import SHORTEST_MS, PastWaits, SimilarWaits, WaitFeatures
from tenfold.study.eta.queued_work import QueuedWork

COLD_START = (-1.0, 2.0)
"""Without data: half the queued work, and four times it."""
MAX_LOG2_MS = log2(100 * 365 * 24 * HOUR)
MAX_TRACKED = 10_000
"""Waits tracked at the same time; further ones are skipped."""
SLACK = 1_000

WaitKey = tuple[bool, int]
"""A wait: whether the job had run before, and its number among waits of that kind."""
UNTRACKED: WaitKey = (False, -1)


class Outcome(Struct, frozen=True, kw_only=True):
    """The forecast made when a wait began, and when it ended."""

    job_id: JobId
    first: bool
    """The job had never run before."""
    began_ms: Millis
    p50_ms: int
    p90_ms: int
    started_ms: Millis


class _TrackedWait(Struct, frozen=True):
    job: Job
    first: bool
    began_ms: Millis
    features: WaitFeatures
    bounds: tuple[int, int]


class WaitLog:
    """Observes a run as a witness. `every` thins out the waits that are tracked.

    First waits and waits after a preemption are two kinds, each with its own memory: otherwise the
    frequent kind would crowd out the rare one.
    """

    def __init__(self, *, every: int = 1, outcomes: int = 1_000) -> None:
        self.outcomes: deque[Outcome] = deque(maxlen=outcomes)
        """Recent waits that ended in a start."""
        self._every = every
        self._state_counts = 0
        self._waits = {again: PastWaits() for again in (False, True)}
        self._levels = {again: QuantileLevels() for again in (False, True)}
        self._queued_work = QueuedWork()
        self._team_priorities: dict[tuple[str, int], int] = {}
        self._waiting: dict[JobId, WaitKey] | None = None
        """Pending jobs with the key of their wait; None before the first cycle."""
        self._tracked: dict[WaitKey, _TrackedWait] = {}
        self._due: list[tuple[int, WaitKey, int]] = []
        """Future bounds: (ms, key of the wait, 0 for P50 and 1 for P90)."""

    @property
    def known(self) -> int:
        """Waits that forecasts are based on."""
        return sum(waits.known for waits in self._waits.values())

    def cycle(self, fleet: Fleet, now_ms: Millis, decider: Decider, decision: Decision) -> None:
        """Record starts, expired bounds and new waits."""
        self._expire_bounds(now_ms)
        pending = fleet.pending
        requeued: dict[JobId, None] = {}
        for action in decision.actions:
            if isinstance(action, StartJob):
                if action.job_id in pending:
                    requeued[action.job_id] = None
                else:
                    self._end_wait(action.job_id, now_ms, started=True)
            elif isinstance(action, RefuseJob):
                self._end_wait(action.job_id, now_ms, started=False)
        if decision.wake_at_ms == now_ms:
            return
        if self._waiting is None:
            # The waits of these jobs began before this log.
            self._waiting = dict.fromkeys(pending, UNTRACKED)
            return
        for job in self._new_waits(fleet, requeued):
            self._begin(fleet, job, now_ms)
        if len(self._waiting) != len(pending):
            self._reconcile(fleet, now_ms)

    def forecast(self, view: FleetView, job: Job, now_ms: Millis) -> tuple[int, int]:
        """Return P50 and P90 of the start time of a pending job."""
        key = (self._waiting or {}).get(job.id, UNTRACKED)
        tracked = self._tracked.get(key)
        if tracked is not None:
            return self._bounds(tracked.features, tracked.began_ms, now_ms, again=key[0])
        past = view.past.get(job.id)
        began_ms = min(past.stopped_ms if past else job.submitted_ms, now_ms)
        features = self._features(view, job, now_ms)
        return self._bounds(features, began_ms, now_ms, again=past is not None)

    def _bounds(
        self, features: WaitFeatures, began_ms: int, now_ms: int, *, again: bool
    ) -> tuple[int, int]:
        similar = self._alike(features, now_ms, again=again)
        waited_ms = now_ms - began_ms
        if similar is None:
            logs = [max(features.drain, log2(max(1, waited_ms))) + step for step in COLD_START]
        else:
            halvings = self._levels[again].halvings(similar)
            logs = [similar.curve.wait(bits, waited_ms) for bits in halvings]
        p50, p90 = (began_ms + round(2 ** min(log, MAX_LOG2_MS)) for log in logs)
        p50 = max(p50, now_ms)
        return p50, max(p50, p90)

    def _alike(self, features: WaitFeatures, now_ms: int, *, again: bool) -> SimilarWaits | None:
        """Return similar waits of the same kind, or of the other kind if too few are known."""
        same, other = self._waits[again], self._waits[not again]
        return same.similar(features, now_ms) or other.similar(features, now_ms)

    def _features(self, view: FleetView, job: Job, now_ms: Millis) -> WaitFeatures:
        shape = job.shape
        past = view.past.get(job.id, NEVER_RAN)
        team_priority = self._team_priorities.setdefault(
            (job.team, job.priority), len(self._team_priorities)
        )
        return WaitFeatures(
            gpus=log2(max(shape.gpus, shape.milli / WHOLE, 1 / 8)),
            ran=log2(1 + past.ran_ms / MINUTE),
            pending=log2(max(1, len(view.pending))),
            drain=log2(max(SHORTEST_MS, self._queued_work.drain_ms(view, now_ms))),
            team_priority=team_priority,
        )

    def _new_waits(self, fleet: Fleet, requeued: dict[JobId, None]) -> list[Job]:
        """Return jobs that began to wait: the last pending ones, which are kept in order."""
        waiting = self._waiting or {}
        new: list[Job] = []
        for job in reversed(fleet.pending.values()):
            if job.id not in waiting:
                new.append(job)
            elif job.id not in requeued:
                break
        return new[::-1]

    def _begin(self, view: FleetView, job: Job, now_ms: Millis) -> None:
        assert self._waiting is not None
        self._state_counts += 1
        if self._state_counts % self._every or len(self._tracked) >= MAX_TRACKED:
            self._waiting[job.id] = UNTRACKED
            return
        again = job.id in view.past
        features = self._features(view, job, now_ms)
        bounds = self._bounds(features, now_ms, now_ms, again=again)
        key = self._waiting[job.id] = again, self._waits[again].begin(features, now_ms, bounds)
        self._tracked[key] = _TrackedWait(job, not again, now_ms, features, bounds)
        for place, bound in enumerate(bounds):
            heappush(self._due, (bound, key, place))
        if len(self._due) > 4 * len(self._tracked) + SLACK:
            # Bounds of jobs that started long before them would pile up.
            self._due = [due for due in self._due if due[1] in self._tracked]
            heapify(self._due)

    def _end_wait(self, job_id: JobId, now_ms: Millis, *, started: bool) -> None:
        key = (self._waiting or {}).pop(job_id, UNTRACKED)
        tracked = self._tracked.pop(key, None)
        if tracked is None:
            return
        again, number = key
        self._waits[again].end(number, now_ms, started=started)
        if not started or now_ms == tracked.began_ms:
            return
        for place, bound in enumerate(tracked.bounds):
            if now_ms <= bound:
                self._levels[again].learn(place, late=False)
        p50_ms, p90_ms = tracked.bounds
        self.outcomes.append(
            Outcome(
                job_id=job_id,
                first=tracked.first,
                began_ms=tracked.began_ms,
                p50_ms=p50_ms,
                p90_ms=p90_ms,
                started_ms=now_ms,
            )
        )

    def _expire_bounds(self, now_ms: Millis) -> None:
        """Count jobs that still wait after their bound as late."""
        due = self._due
        while due and due[0][0] < now_ms:
            _, key, place = heappop(due)
            if key in self._tracked:
                self._levels[key[0]].learn(place, late=True)

    def _reconcile(self, view: FleetView, now_ms: Millis) -> None:
        """Drop cancelled jobs, and add pending jobs that were missed."""
        assert self._waiting is not None
        for job_id in [job_id for job_id in self._waiting if job_id not in view.pending]:
            self._end_wait(job_id, now_ms, started=False)
        for job_id in view.pending:
            self._waiting.setdefault(job_id, UNTRACKED)
