"""The terms of jobs as cells of a table, the members of an array folded into one row."""

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from tenfold.files.traces.terms import PRODUCTION
from tenfold.files.traces.trace import JobTrace
from tenfold.model.job import Job
from tenfold.model.terms import Terms
from tenfold.model.units import SECOND
from tenfold.model.where import Where

Value = str | int | float | None

NO_TERMS, NOWHERE = Terms(), Where()


def folded(trace: JobTrace) -> Iterator[tuple[Job, str, int | None]]:
    """Yield the job, the name and the size of each row; a job that is no array has no size.

    Members that do not stand together, or differ, become rows of their own.
    """
    jobs, at = trace.jobs, 0
    while at < len(jobs):
        job = jobs[at]
        size = _members_at(trace, at)
        name = job.terms.array if size is not None and job.terms is not None else job.id
        yield job, name, size
        at += size or 1


def term_cells(job: Job, size: int | None) -> tuple[Value, ...]:
    """Return what a job asks of time and company, in the order of the columns."""
    terms, where = job.terms or NO_TERMS, job.shape.where or NOWHERE
    avoids = where.avoids
    if terms.kind == "experiment":
        avoids = tuple(tag for tag in avoids if tag != PRODUCTION)
    return (
        None if terms.kind == "batch" else terms.kind,
        None if terms.preemptible else "no",
        None if terms.checkpoint_every_ms is None else terms.checkpoint_every_ms / SECOND,
        terms.least_gpus or None,
        terms.most_gpus or None,
        _joined(terms.after),
        size,
        terms.array_most or None,
        "yes" if terms.off_peak else None,
        where.within or None,
        where.how if where.within else None,
        _joined(where.needs),
        _joined(avoids),
        None if terms.busy_ms is None else terms.busy_ms / SECOND,
    )


def _members_at(trace: JobTrace, at: int) -> int | None:
    """Return how many members of an array stand here, one like the other, from the first on."""
    jobs, first = trace.jobs, trace.jobs[at]
    array = first.terms.array if first.terms is not None else ""
    if not array or first.id != f"{array}[0]":
        return None
    status, start_ms = trace.statuses.get(first.id), trace.starts_ms.get(first.id)
    size = 1
    while at + size < len(jobs):
        job = jobs[at + size]
        is_next = job.id == f"{array}[{size}]" and trace.statuses.get(job.id) == status
        if trace.starts_ms.get(job.id) != start_ms:
            break
        if not is_next or replace(job, id=first.id, seq=first.seq) != first:
            break
        size += 1
    return size


def _joined(names: Sequence[str]) -> str | None:
    return ";".join(names) or None
