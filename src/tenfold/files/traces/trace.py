"""A trace: jobs in the order they were submitted, whatever file they came from.

Readers of public formats describe each job as a `TraceRow` in human units; here rows
become jobs, with the first submission at time 0 and one `Shape` for each distinct request.
"""

from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import NamedTuple

from msgspec.structs import replace

from tenfold.model.errors import InputError
from tenfold.model.ids import JobId, TeamId
from tenfold.model.job.job import Job, Shape, shape_of
from tenfold.model.units import SECOND, Millis

_STATUS_WORDS = {
    "pass": "completed",
    "succeeded": "completed",
    "success": "completed",
    "terminated": "completed",
    "complete": "completed",
    "fail": "failed",
    "node_fail": "failed",
    "out_of_memory": "failed",
    "boot_fail": "failed",
    "killed": "cancelled",
    "canceled": "cancelled",
    "deadline": "timeout",
}

NO_STARTS: Mapping[JobId, Millis] = {}


class JobTrace(NamedTuple):
    """Jobs by time of submission, with notes for the user.

    `statuses` says how jobs ended where the source tells: `completed`, `failed`,
    `cancelled`, `timeout`, or the source's own word in lower case. `starts_ms` says when
    jobs first started, where it tells; what happened is what a replay is measured against.
    """

    jobs: list[Job]
    notes: list[str]
    statuses: dict[JobId, str]
    starts_ms: Mapping[JobId, Millis] = NO_STARTS


class TraceRow(NamedTuple):
    """One job of a public trace, in the units people use."""

    job_id: str
    submit_s: float
    duration_s: float
    gpus: float
    gpus_per_node: int | None = None
    accelerators: tuple[str, ...] = ()
    cpus: float = 0.0
    memory_gib: float = 0.0
    team: str = ""
    user: str = ""
    qos: str = ""
    status: str = ""
    limit_s: float | None = None
    priority: int = 0
    start_s: float | None = None


def trace_of(rows: Sequence[TraceRow], notes: list[str], file: str) -> JobTrace:
    """Return the trace of these rows; a trace without a job is refused."""
    if not rows:
        raise InputError(
            "no-jobs",
            f"`{file}` has no jobs that ran" + (f" ({'; '.join(notes)})" if notes else ""),
            "check that it is the right file, and complete",
            file=file,
        )
    rows = _number_duplicates(rows, notes)
    origin_s = min(row.submit_s for row in rows)
    shapes: dict[tuple[object, ...], Shape] = {}
    in_order = sorted(rows, key=attrgetter("submit_s"))
    jobs = [_job(row, seq, origin_s, shapes) for seq, row in enumerate(in_order)]
    statuses = {JobId(row.job_id): status_word(row.status) for row in rows if row.status}
    starts = {
        JobId(row.job_id): _millis(row.start_s - origin_s)
        for row in rows
        if row.start_s is not None
    }
    return JobTrace(jobs, notes, statuses, valid_starts(jobs, starts, notes))


def status_word(text: str) -> str:
    """Return our word for how a job ended, or the source's own in lower case."""
    plain = text.strip().lower()
    return _STATUS_WORDS.get(plain, plain)


def valid_starts(
    jobs: Sequence[Job], starts_ms: dict[JobId, Millis], notes: list[str]
) -> dict[JobId, Millis]:
    """Return the starts that lie at or after their submission; the others are not known."""
    if not starts_ms:
        return {}
    early = [job.id for job in jobs if job.id in starts_ms and starts_ms[job.id] < job.submitted_ms]
    for job_id in early:
        del starts_ms[job_id]
    if early:
        jobs_start = "1 job starts" if len(early) == 1 else f"{len(early):,} jobs start"
        notes.append(f"{jobs_start} before submission; these start times are ignored")
    return starts_ms


def with_outlived_limits(trace: JobTrace) -> JobTrace:
    """Return a trace in which no recorded run is longer than its time limit, unless it timed out.

    A job that the record says ended otherwise outlived its limit: an operator raised it, or it was
    not enforced. A job without a recorded end is a plan, and its limit stays.
    """
    statuses = trace.statuses
    outlived = [
        place
        for place, job in enumerate(trace.jobs)
        if job.limit_ms is not None
        and job.duration_ms is not None
        and job.duration_ms > job.limit_ms
        and statuses.get(job.id, "timeout") != "timeout"
    ]
    if not outlived:
        return trace
    jobs = list(trace.jobs)
    for place in outlived:
        jobs[place] = replace(jobs[place], limit_ms=jobs[place].duration_ms)
    ran = "1 job ran" if len(outlived) == 1 else f"{len(outlived):,} jobs ran"
    note = f"{ran} past the time limit and did not time out; that long is taken as the limit"
    return trace._replace(jobs=jobs, notes=[*trace.notes, note])


def even_split(gpus: float, nodes: float) -> int | None:
    """Return the GPUs on each of several nodes; None for one node or an uneven split."""
    if nodes <= 1 or gpus < nodes or gpus % nodes or nodes % 1:
        return None
    return int(gpus // nodes)


def note_skipped(count: int, why: str, notes: list[str]) -> None:
    """Note how many jobs are not in the trace, where there are any."""
    if count:
        jobs = "1 job is" if count == 1 else f"{count:,} jobs are"
        notes.append(f"{jobs} skipped: {why}")


def _number_duplicates(rows: Sequence[TraceRow], notes: list[str]) -> Sequence[TraceRow]:
    """Rename repeated jobs, such as requeued ones."""
    seen: dict[str, int] = {}
    numbered: list[TraceRow] = []
    for row in rows:
        again = seen[row.job_id] = seen.get(row.job_id, 0) + 1
        numbered.append(row if again == 1 else row._replace(job_id=f"{row.job_id}#{again}"))
    repeated = len(rows) - len(seen)
    if repeated:
        notes.append(
            f"{repeated:,} rows repeat a job id, as requeued jobs do; renamed, for example `7#2`"
        )
    return numbered


def _job(row: TraceRow, seq: int, origin_s: float, shapes: dict[tuple[object, ...], Shape]) -> Job:
    key = (row.gpus, row.gpus_per_node, row.accelerators, row.cpus, row.memory_gib)
    shape = shapes.get(key)
    if shape is None:
        shape = shapes[key] = shape_of(
            row.gpus,
            gpus_per_node=row.gpus_per_node,
            accelerators=row.accelerators,
            cpus=row.cpus,
            memory_gib=row.memory_gib,
        )
    return Job(
        id=JobId(row.job_id),
        shape=shape,
        submitted_ms=_millis(row.submit_s - origin_s),
        seq=seq,
        team=TeamId(row.team),
        user=row.user,
        qos=row.qos,
        priority=row.priority,
        limit_ms=None if row.limit_s is None else _millis(row.limit_s),
        duration_ms=_millis(row.duration_s),
    )


def _millis(seconds: float) -> Millis:
    return Millis(round(seconds * SECOND))
