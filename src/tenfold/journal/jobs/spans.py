"""Jobs of a journal with those that wait or run: demand is more than what has ended."""

from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

from tenfold.journal.jobs.trace import JOURNAL
from tenfold.journal.read import event_pages
from tenfold.journal.store import last_seq, open_store
from tenfold.model.capacity.history import UNKNOWN_LEFT, JobSpan
from tenfold.model.events import (
    Event,
    JobCancelled,
    JobChanged,
    JobEnded,
    JobRefused,
    JobReleased,
    JobStarted,
    JobStopped,
    JobSubmitted,
)
from tenfold.model.ids import JobId
from tenfold.model.job.job import Job
from tenfold.model.units import Millis


def journal_spans(path: Path) -> tuple[list[JobSpan], Millis]:
    """Return all jobs of a journal, and the time of its last event."""
    file = path / JOURNAL if path.is_dir() else path
    with closing(open_store(file, upgrades=False)) as store:
        with store.reading() as connection:
            last = last_seq(connection)
        pages = event_pages(store, 0, last)
        return spans_of(event for page in pages for _, event in page)


class _Seen:
    """What events have said about one job."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.wanted_ms = job.submitted_ms
        self.runs: list[tuple[Millis, Millis]] = []
        self.began: Millis | None = None
        self.is_over = False

    def stop(self, at_ms: Millis) -> None:
        """Note the end of a run."""
        if self.began is not None:
            self.runs.append((self.began, at_ms))
            self.began = None


def spans_of(events: Iterable[Event]) -> tuple[list[JobSpan], Millis]:
    """Return what each job wanted and got, and the time of the last event."""
    jobs: dict[JobId, _Seen] = {}
    end_ms = Millis(0)
    for event in events:
        end_ms = Millis(max(end_ms, event.at_ms))
        if isinstance(event, JobSubmitted):
            jobs[event.job.id] = _Seen(event.job)
        elif isinstance(event, JobChanged):
            jobs[event.job.id].job = event.job
        elif isinstance(event, JobReleased | JobStarted | JobStopped | JobEnded):
            seen = jobs.get(event.job_id)
            if seen is not None:
                _note(seen, event)
        elif isinstance(event, JobCancelled | JobRefused):
            seen = jobs.get(event.job_id)
            if seen is not None:
                seen.is_over = True
    return [_span(seen, end_ms) for seen in jobs.values()], end_ms


def _note(seen: _Seen, event: JobReleased | JobStarted | JobStopped | JobEnded) -> None:
    if isinstance(event, JobReleased):
        seen.wanted_ms = event.at_ms
    elif isinstance(event, JobStarted):
        seen.began = event.at_ms
    else:
        seen.stop(event.at_ms)
        seen.is_over = isinstance(event, JobEnded)


def _span(seen: _Seen, end_ms: Millis) -> JobSpan:
    seen.stop(end_ms)
    return JobSpan(
        job=seen.job,
        wanted_ms=seen.wanted_ms,
        runs=tuple(seen.runs),
        left=0 if seen.is_over else UNKNOWN_LEFT,
    )
