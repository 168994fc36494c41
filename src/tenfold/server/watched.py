"""The loop's journal and executor, with meters around them. They change nothing else."""

import logging
from collections.abc import Callable, Sequence
from time import perf_counter

from tenfold.clock.wall import now_ms
from tenfold.compose.control_plane import Restored
from tenfold.compose.live_journal import LiveJournal
from tenfold.engine.loop import Decider, Witness
from tenfold.fleet.fleet import Fleet
from tenfold.live.executor import (
    LOG_TAIL_BYTES,
    AttemptEnded,
    AttemptLost,
    AttemptState,
    Executor,
    Launch,
    MemberLog,
    Sighting,
)
from tenfold.model.decision import Decision
from tenfold.model.events import Event, JobCancelled, JobEnded, JobStarted, JobStopped
from tenfold.model.ids import JobId
from tenfold.model.units import SECOND, Millis
from tenfold.server.metrics import Meters
from tenfold.server.traces import Traces

FAILURES = ("node-lost", "crashed", "start-failed")
"""Why a job was stopped, where that was nobody's wish."""
_LOG = logging.getLogger("tenfold.server")


class WatchedJournal:
    """A journal whose commits are timed, and a witness that counts cycles."""

    def __init__(self, journal: LiveJournal, meters: Meters, traces: Traces) -> None:
        self._journal = journal
        self._meters = meters
        self._traces = traces
        self._begun_ms: int | None = None
        """When the first fact of this cycle came."""
        self._failed: dict[JobId, Millis] = {}
        """Jobs that a failure stopped, and when."""
        meters.starts.inc()

    def restore(self) -> Restored:
        """Return what the journal says is so now; jobs that failed before are known again."""
        restored = self._journal.restore()
        for warning in self._journal.warnings:
            _LOG.warning(warning.message)
        for job_id, past in restored.fleet.past.items():
            if past.cause in FAILURES and job_id in restored.fleet.pending:
                self._failed[job_id] = past.stopped_ms
        return restored

    def append(self, events: Sequence[Event]) -> None:
        """Return once the disk has these."""
        begun = perf_counter()
        if self._begun_ms is None:
            self._begun_ms = now_ms()
        self._journal.append(events)
        self._meters.commits.observe(perf_counter() - begun)
        self._meters.events.inc(len(events))
        for event in events:
            self._note(event)

    def witnesses(self) -> list[Witness]:
        """Return the witnesses of the journal, and this one."""
        return [*self._journal.witnesses(), self]

    def cycle(self, fleet: Fleet, now_ms: Millis, decider: Decider, decision: Decision) -> None:
        """Count a decision, and span it."""
        self._meters.cycles.inc()
        actions, waits = len(decision.actions), len(fleet.pending)
        self._traces.cycle(self._begun_ms, decider.name, actions, waits)
        self._begun_ms = None

    def close(self) -> None:
        """Let go of the journal."""
        self._journal.close()

    def _note(self, event: Event) -> None:
        if isinstance(event, JobStopped):
            if event.cause in FAILURES:
                self._failed[event.job_id] = event.at_ms
        elif isinstance(event, JobStarted | JobEnded | JobCancelled):
            failed_ms = self._failed.pop(event.job_id, None)
            if failed_ms is not None and isinstance(event, JobStarted):
                self._meters.recovered.observe((event.at_ms - failed_ms) / SECOND)


class WatchedExecutor:
    """An executor that notes how long it took to hear of a failure."""

    def __init__(self, executor: Executor, meters: Meters, now_ms: Callable[[], int]) -> None:
        self._executor = executor
        self._meters = meters
        self._now_ms = now_ms

    def fileno(self) -> int:
        """Return a descriptor that is readable while `sightings` has something to do."""
        return self._executor.fileno()

    def start(self, launch: Launch) -> None:
        """Order a start."""
        self._executor.start(launch)

    def stop(self, job_id: JobId, attempt: int, grace_ms: Millis) -> None:
        """Give notice to every member."""
        self._executor.stop(job_id, attempt, grace_ms)

    def sightings(self) -> list[Sighting]:
        """Return what was seen since the last call, in order, without waiting."""
        seen = self._executor.sightings()
        for one in seen:
            if _is_failure(one):
                passed_ms = max(0, self._now_ms() - one.at_ms)
                self._meters.detected.observe(passed_ms / SECOND)
        return seen

    def attempts(self) -> list[AttemptState]:
        """Return every attempt that is not settled."""
        return self._executor.attempts()

    def settle(self, attempts: Sequence[tuple[JobId, int]]) -> None:
        """Leave these out of `attempts` from now on."""
        self._executor.settle(attempts)

    def logs(
        self, job_id: JobId, attempt: int, member: int, bytes_most: int = LOG_TAIL_BYTES
    ) -> MemberLog:
        """Return the end of what a member wrote."""
        return self._executor.logs(job_id, attempt, member, bytes_most)

    def close(self) -> None:
        """Let go of the executor. What runs goes on."""
        self._executor.close()


def _is_failure(seen: Sighting) -> bool:
    if isinstance(seen, AttemptLost):
        return True
    return isinstance(seen, AttemptEnded) and seen.how != "stopped" and seen.exit_code != 0
