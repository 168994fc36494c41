"""Quarantine: a job whose handling fails is held, and the loop goes on.

A failure of the disk, the database or the spawner concerns every job: it ends the loop, which
starts again from the journal. Any other exception while one job is handled would come back after
each restart, so the job is stopped and held. The traceback goes to the log.
"""

import errno
import logging
from collections.abc import Callable, Mapping, Sequence

from tenfold.engine.loop import Decider
from tenfold.fleet.fleet import Fleet
from tenfold.fleet.view import FleetView
from tenfold.live.attempts.attempts import Attempts
from tenfold.model.decision import Decision
from tenfold.model.errors import TenfoldError
from tenfold.model.events import (
    Event,
    JobCancelled,
    JobEnded,
    JobHeld,
    JobRefused,
    JobStopped,
    job_of,
)
from tenfold.model.ids import JobId
from tenfold.model.job.job import Job
from tenfold.model.reason import Reason, Text
from tenfold.model.units import Millis

QUARANTINED = "quarantined"
SAID_MAX = 200
"""Characters of an exception's message that are recorded; the log has all of it."""
_OF_ONE_PATH = (errno.ENAMETOOLONG, errno.ELOOP, errno.EINVAL, errno.EILSEQ)
"""Errors of the name of a file. Others may concern the whole disk."""
_LOG = logging.getLogger("tenfold.live")


def is_job_fault(error: Exception) -> bool:
    """Tell whether an exception is about the job at hand, not about the machine."""
    if isinstance(error, OSError):
        return error.errno in _OF_ONE_PATH
    return not isinstance(error, TenfoldError | MemoryError)


def reason_of(error: Exception) -> Reason:
    """Return why a job is held."""
    said = str(error)[:SAID_MAX]
    return Reason(QUARANTINED, {"error": type(error).__name__, "said": Text(said)})


class Quarantine:
    """Handles one job at a time, and holds a job whose handling fails."""

    def __init__(self, attempts: Attempts, view: FleetView) -> None:
        self._attempts, self._view = attempts, view
        self._due: dict[JobId, Reason] = {}
        """Pending jobs to hold, found outside of their own handling."""

    def handle(
        self,
        job_id: JobId,
        now_ms: Millis,
        work: Callable[[], Sequence[Event]],
        *,
        is_over: bool,
        made: Sequence[Event] = (),
    ) -> Sequence[Event]:
        """Return the events of `work`; if it fails, those that hold the job.

        `is_over` tells that no process of the job is left. `made` are events that the fleet has not
        seen yet.
        """
        try:
            return work()
        except Exception as error:
            if not is_job_fault(error):
                raise
            _LOG.exception("job `%s` is held: the loop failed on it", job_id)
            reason = reason_of(error)
        if any(isinstance(one, _LEFT) and job_of(one) == job_id for one in made):
            return ()
        try:
            return self._attempts.quarantine(job_id, reason, now_ms, is_over=is_over)
        except Exception as error:
            if not is_job_fault(error):
                raise
            # Its processes could not be stopped: it stays as it is, and is held when it ends.
            _LOG.exception("job `%s` could not be stopped", job_id)
            return ()

    def hold(self, job_id: JobId, error: Exception) -> None:
        """Hold a pending job that a policy fails on, with the next events."""
        _LOG.error("job `%s` is held: the policy failed on it", job_id, exc_info=error)
        self._due[job_id] = reason_of(error)

    def due(self, now_ms: Millis) -> list[Event]:
        """Return the events that hold the jobs found so far."""
        due, self._due = self._due, {}
        pending = self._view.pending
        return [JobHeld(now_ms, job, reason) for job, reason in due.items() if job in pending]


_LEFT = (JobEnded, JobStopped, JobRefused, JobCancelled, JobHeld)
"""Events after which a job has no attempt."""


class GuardedDecider:
    """A decider that finds the pending job it fails on, and continues without it."""

    def __init__(
        self, decider_of: Callable[[], Decider], hold: Callable[[JobId, Exception], None]
    ) -> None:
        self._decider_of, self._hold = decider_of, hold
        self._inner = decider_of()

    @property
    def name(self) -> str:
        """Its name in the decision log."""
        return self._inner.name

    def decide(self, view: FleetView, now_ms: Millis, news: Sequence[Event] | None) -> Decision:
        """Return what to do; nothing, once, if it fails on a job, which is then held."""
        try:
            return self._inner.decide(view, now_ms, news)
        except Exception as error:
            if not is_job_fault(error) or not isinstance(view, Fleet):
                raise
            culprit = _culprit(view, self._decider_of, now_ms)
            if culprit is None:
                raise
            self._hold(culprit, error)
            self._inner = self._decider_of()
            return Decision((), now_ms)


def _culprit(fleet: Fleet, decider_of: Callable[[], Decider], now_ms: Millis) -> JobId | None:
    """Return a pending job without which a decider gets further; None if it fails without any."""

    def fails(jobs: Mapping[JobId, Job]) -> bool:
        fork = fleet.fork()
        fork.pending = dict(jobs)
        try:
            decider_of().decide(fork, now_ms, None)
        except Exception:
            return True
        return False

    if fails({}):
        return None
    jobs = list(fleet.pending.items())
    while len(jobs) > 1:
        middle = len(jobs) // 2
        halves = (jobs[:middle], jobs[middle:])
        found = next((half for half in halves if fails(dict(half))), None)
        if found is None:
            # It takes jobs of both halves: without the newest there is one less.
            return jobs[-1][0]
        jobs = found
    return jobs[0][0] if jobs else None
