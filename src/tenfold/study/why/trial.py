"""Test a change: which jobs the decider then starts, at once or after preemptions.

A change is never assumed to help: a fresh decider runs on the changed fork. A change that does
not concern a single job is tested once for all jobs.
"""

from msgspec import Struct

from tenfold.decide.place.explain.settled import Settled
from tenfold.decide.place.governed import GovernedPlacer
from tenfold.fleet.fleet import Fleet
from tenfold.model.actions import RefuseJob, ResizeJob, StartJob, StopJob
from tenfold.model.decision import Decision
from tenfold.model.events import ActionOrdered, JobRefused, JobResized, JobStopped
from tenfold.model.ids import JobId
from tenfold.model.policy.governance import GovernanceRules
from tenfold.model.units import Millis
from tenfold.study.why.changes import (
    Change,
    CombinedChange,
    NoChange,
    RequestChange,
    Slots,
    apply_change,
)

CYCLES = 2
"""Capacity freed in one cycle is usable in the next."""


class Started(Struct, frozen=True, kw_only=True):
    """A job that starts, and the jobs preempted for it."""

    slots: Slots
    stopped: tuple[JobId, ...] = ()
    """Jobs that the decider stopped."""
    also: tuple[JobId, ...] = ()
    """Other jobs that start by then."""


class Trial:
    """One fork, decided cycle by cycle on demand."""

    def __init__(
        self, fork: Fleet, govern: GovernanceRules, now_ms: Millis, first: Decision | None = None
    ) -> None:
        self._fork: Fleet | None = fork
        """None when there is nothing left to decide."""
        self._govern = govern
        self._now_ms = now_ms
        self._next = first
        self._starts: list[dict[JobId, Slots]] = []
        """Jobs that start, by cycle."""
        self._stopped: list[tuple[JobId, ...]] = [()]
        """Jobs stopped before each cycle."""

    def started(self, job_id: JobId) -> Started | None:
        """Return where a job starts, if at all."""
        for number in range(CYCLES):
            if number == len(self._starts):
                if self._fork is None:
                    return None
                self._decide(self._fork)
            slots = self._starts[number].get(job_id)
            if slots is not None:
                also = (each for starts in self._starts[: number + 1] for each in starts)
                return Started(
                    slots=slots,
                    stopped=self._stopped[number],
                    also=tuple(each for each in also if each != job_id),
                )
        return None

    def _decide(self, fork: Fleet) -> None:
        decision = self._next or GovernedPlacer(self._govern).decide(fork, self._now_ms, None)
        self._next = None
        actions = decision.actions
        self._starts.append({one.job_id: one.slots for one in actions if isinstance(one, StartJob)})
        frees_capacity = any(isinstance(action, StopJob | ResizeJob) for action in actions)
        if frees_capacity and len(self._starts) < CYCLES:
            stopped = _carry_out(fork, decision, self._now_ms)
            self._stopped.append((*self._stopped[-1], *stopped))
        else:
            self._fork = None


class Trials:
    """Trials at one time, each run once."""

    def __init__(self, fleet: Fleet, settled: Settled) -> None:
        self.fleet = fleet
        self.settled = settled
        self._known: dict[Change, Trial] = {}

    def started(self, job_id: JobId, change: Change) -> Started | None:
        """Return where a job starts with a change, if the decider then starts it."""
        if _is_job_specific(change):
            return self._trial(job_id, change).started(job_id)
        trial = self._known.get(change)
        if trial is None:
            trial = self._known[change] = self._trial(job_id, change)
        return trial.started(job_id)

    def _trial(self, job_id: JobId, change: Change) -> Trial:
        settled = self.settled
        if isinstance(change, NoChange):
            fork, first = self.fleet.fork(), settled.decision
            return Trial(fork, settled.govern, settled.now_ms, first)
        fork, govern = apply_change(self.fleet, settled.govern, job_id, change, settled.now_ms)
        return Trial(fork, govern, settled.now_ms)


def _is_job_specific(change: Change) -> bool:
    """Return whether a change concerns the request of one job."""
    steps = change.steps if isinstance(change, CombinedChange) else (change,)
    return any(isinstance(step, RequestChange) for step in steps)


def _carry_out(fork: Fleet, decision: Decision, now_ms: Millis) -> list[JobId]:
    """Apply stops, resizes and rejections as events, and return the stopped jobs."""
    stopped: list[JobId] = []
    for action in decision.actions:
        fork.apply(ActionOrdered(now_ms, action))
        if isinstance(action, StopJob):
            stopped.append(action.job_id)
            fork.apply(JobStopped(now_ms, action.job_id, action.cause, Millis(0)))
        elif isinstance(action, RefuseJob):
            fork.apply(JobRefused(now_ms, action.job_id, action.reasons))
        elif isinstance(action, ResizeJob):
            fork.apply(JobResized(now_ms, action.job_id))
    return stopped
