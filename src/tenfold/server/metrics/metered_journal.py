"""The loop's journal, with metrics and traces of its writes and cycles."""

import logging
from collections.abc import Sequence
from time import perf_counter

from tenfold.clock.wall import now_ms
from tenfold.compose.control_plane import Restored
from tenfold.compose.live_journal import LiveJournal
from tenfold.engine.loop import Decider, Witness
from tenfold.fleet.fleet import Fleet
from tenfold.journal.read import open_submissions
from tenfold.model.decision import Decision
from tenfold.model.events import Event
from tenfold.model.units import Millis
from tenfold.server.metrics.job_traces import JobTraces
from tenfold.server.metrics.jobs import JobMeters
from tenfold.server.metrics.metrics import Meters
from tenfold.server.metrics.traces import Traces

SLOW_S = 2.0
"""A write that takes longer is logged."""
_LOG = logging.getLogger("tenfold.server")


class MeteredJournal:
    """A journal whose commits are timed, and a witness that counts cycles."""

    def __init__(self, journal: LiveJournal, meters: Meters, traces: Traces) -> None:
        self._journal = journal
        self._meters = meters
        self._traces = traces
        self._cycle_started_ms: int | None = None
        """When the first event of this cycle came."""
        self._jobs: JobMeters | None = None
        self._stages = JobTraces(traces) if traces.is_on else None
        meters.starts.inc()

    @property
    def epoch(self) -> int:
        """The epoch of this writer."""
        return self._journal.epoch

    def restore(self) -> Restored:
        """Return the current state from the journal."""
        restored = self._journal.restore()
        for warning in self._journal.warnings:
            _LOG.warning(warning.message)
        self._jobs = JobMeters(self._meters, restored.fleet)
        if self._stages is not None:
            self._stages.take_over(open_submissions(self._journal.store))
        return restored

    def append(self, events: Sequence[Event]) -> None:
        """Return once these are on disk."""
        start = perf_counter()
        if self._cycle_started_ms is None:
            self._cycle_started_ms = now_ms()
        self._journal.append(events)
        took_s = perf_counter() - start
        self._meters.commits.observe(took_s)
        if took_s > SLOW_S:
            _LOG.warning("a write to the journal took %.1f s", took_s)
        self._meters.events.inc(len(events))
        if self._jobs is not None:
            self._jobs.note(events, now_ms())
        if self._stages is not None:
            ended_ms = now_ms()
            for event in events:
                self._stages.note(event, self._cycle_started_ms, ended_ms)

    def witnesses(self) -> list[Witness]:
        """Return the witnesses of the journal, and this one."""
        return [*self._journal.witnesses(), self]

    def cycle(self, fleet: Fleet, now_ms: Millis, decider: Decider, decision: Decision) -> None:
        """Count a decision, and export its span."""
        self._meters.cycles.inc()
        actions, waits = len(decision.actions), len(fleet.pending)
        self._traces.cycle(self._cycle_started_ms, decider.name, actions, waits)
        self._cycle_started_ms = None

    def close(self) -> None:
        """Close the journal."""
        self._journal.close()
