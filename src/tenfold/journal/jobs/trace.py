"""The jobs of a journal as a trace: what ran, when it came, and for how long."""

from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

from msgspec.structs import replace

from tenfold.files.traces.trace import JobTrace
from tenfold.journal.read import event_pages
from tenfold.journal.store import last_seq, open_store
from tenfold.model.errors import InputError
from tenfold.model.events import (
    Event,
    JobChanged,
    JobEnded,
    JobReleased,
    JobStarted,
    JobStopped,
    JobSubmitted,
)
from tenfold.model.ids import JobId
from tenfold.model.job.job import Job
from tenfold.model.units import Millis

JOURNAL = "journal.db"


def journal_trace(path: Path) -> JobTrace:
    """Return the jobs of a journal that ended, by time of submission from 0 on.

    A job that was held counts from when it was eligible.
    """
    file = path / JOURNAL if path.is_dir() else path
    with closing(open_store(file, upgrades=False)) as store:
        with store.reading() as connection:
            last = last_seq(connection)
        pages = event_pages(store, 0, last)
        return _trace((event for page in pages for _, event in page), path)


def _trace(events: Iterable[Event], path: Path) -> JobTrace:
    jobs: dict[JobId, Job] = {}
    first: dict[JobId, Millis] = {}
    began: dict[JobId, Millis] = {}
    ran: dict[JobId, int] = {}
    statuses: dict[JobId, str] = {}
    for event in events:
        match event:
            case JobSubmitted() | JobChanged():
                jobs[event.job.id] = event.job
            case JobReleased():
                if event.job_id in jobs and event.job_id not in first:
                    came = replace(jobs[event.job_id], submitted_ms=event.at_ms)
                    jobs[event.job_id] = came
            case JobStarted():
                first.setdefault(event.job_id, event.at_ms)
                began[event.job_id] = event.at_ms
            case JobStopped() | JobEnded():
                since = began.pop(event.job_id, event.at_ms)
                ran[event.job_id] = ran.get(event.job_id, 0) + event.at_ms - since
                if isinstance(event, JobEnded):
                    statuses[event.job_id] = event.status
            case _:
                pass
    over = [jobs[job_id] for job_id in statuses if job_id in jobs and job_id in first]
    if not over:
        raise InputError(
            "no-jobs", f"no job of `{path}` has ended", "wait until some have", file=str(path)
        )
    zero = min(job.submitted_ms for job in over)
    found = [
        replace(job, submitted_ms=Millis(job.submitted_ms - zero), duration_ms=Millis(ran[job.id]))
        for job in over
    ]
    found.sort(key=lambda job: (job.submitted_ms, job.seq))
    left = len(jobs) - len(over)
    notes = [f"{left:,} jobs of the journal have not ended or never started: left out"]
    return JobTrace(
        found,
        notes if left else [],
        {job.id: statuses[job.id] for job in over},
        {job.id: Millis(first[job.id] - zero) for job in over},
    )
