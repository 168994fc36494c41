"""GPU-hours by class, accelerator and team: what ran, and what was requested.

A full fleet runs what it has room for, so its usage says nothing about demand. Each job is counted
twice: when it ran, and from when it could have started. The second is what an unlimited fleet would
have run. A job that waits or runs at the end of the history, and one that was cancelled before it
started, is counted with the median run time of its team.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Literal

import numpy as np
from msgspec import Struct

from tenfold.compose.inputs import is_journal_path, job_trace
from tenfold.model.capacity.history import UNKNOWN_LEFT, JobSpan
from tenfold.model.errors import InputError
from tenfold.model.job.job import WHOLE, Job
from tenfold.model.units import DAY, HOUR, Millis
from tenfold.physics.arrays import Floats

By = Literal["class", "accelerator", "team", "all"]
Period = Literal["hour", "day", "week", "month"]
PERIOD_MS: Mapping[Period, int] = {
    "hour": HOUR,
    "day": DAY,
    "week": 7 * DAY,
    "month": round(365.25 / 12 * DAY),
}
ANY = "any"
SMALL_GPUS = 1.0
"""A job of at most so many GPUs without a profile counts as development; an assumption."""


class DemandHistory(Struct, frozen=True, kw_only=True):
    """Usage and demand by group and period."""

    by: By
    period: Period
    periods: int
    groups: tuple["GroupHistory", ...]
    jobs: int
    unfinished: int
    """Jobs counted with an assumed run time."""
    notes: tuple[str, ...]


class GroupHistory(Struct, frozen=True, kw_only=True):
    """One group: GPU-hours used and requested in each period."""

    name: str
    used_gpu_hours: tuple[float, ...]
    demand_gpu_hours: tuple[float, ...]
    demand_gpus: tuple[float, ...]
    """Mean GPUs in demand: the series to forecast."""


def read_spans(path: Path) -> tuple[list[JobSpan], Millis, list[str]]:
    """Return the jobs of a journal or a trace, the end of the history, and notes."""
    if is_journal_path(path):
        from tenfold.journal.jobs.spans import journal_spans  # noqa: PLC0415

        spans, end_ms = journal_spans(path)
        return spans, end_ms, []
    trace = job_trace(path)
    spans = [_span(job, trace.starts_ms.get(job.id)) for job in trace.jobs]
    ends = [span.runs[-1][1] for span in spans if span.runs]
    last = max([*ends, *(span.wanted_ms for span in spans)], default=Millis(0))
    notes = list(trace.notes)
    if not trace.starts_ms:
        notes.append("the trace has no start times: usage is counted from submission, as demand is")
    return spans, Millis(last), notes


def _span(job: Job, started_ms: Millis | None) -> JobSpan:
    start = job.submitted_ms if started_ms is None else started_ms
    if job.duration_ms is None:
        return JobSpan(job=job, wanted_ms=job.submitted_ms, runs=(), left=UNKNOWN_LEFT)
    run = (start, Millis(start + job.duration_ms))
    return JobSpan(job=job, wanted_ms=job.submitted_ms, runs=(run,), left=0)


def demand_history(
    spans: Sequence[JobSpan],
    end_ms: Millis,
    by: By = "accelerator",
    period: Period = "day",
    notes: Sequence[str] = (),
) -> DemandHistory:
    """Return usage and demand by group; only whole periods count."""
    spans = [span for span in spans if gpus_of(span.job) > 0]
    if not spans:
        raise InputError(
            "no-jobs", "the history has no jobs with GPUs", "use a history of GPU jobs"
        )
    begin = min(span.wanted_ms for span in spans)
    count = (end_ms - begin) // PERIOD_MS[period]
    if count < 1:
        raise InputError(
            "history-too-short",
            f"the history is shorter than one {period}",
            "use a shorter `--period`, or a longer history",
            field="--period",
        )
    edges = begin + PERIOD_MS[period] * np.arange(count + 1, dtype=np.float64)
    assumed = assumed_ms(spans)
    names = sorted(dict.fromkeys(group_of(span.job, by) for span in spans))
    unfinished = sum(span.left == UNKNOWN_LEFT or not span.runs for span in spans)
    return DemandHistory(
        by=by,
        period=period,
        periods=int(count),
        groups=tuple(
            _group(name, [one for one in spans if group_of(one.job, by) == name], edges, assumed)
            for name in names
        ),
        jobs=len(spans),
        unfinished=unfinished,
        notes=tuple(notes),
    )


def gpus_of(job: Job) -> float:
    """Return the GPUs of a job; a fraction of one counts as such."""
    return job.shape.gpus + job.shape.milli / WHOLE


def group_of(job: Job, by: By) -> str:
    """Return the group of a job."""
    if by == "team":
        return str(job.team) or ANY
    if by == "accelerator":
        return "/".join(job.shape.accelerators) or ANY
    if by == "class":
        small = gpus_of(job) <= SMALL_GPUS
        return job.profile or ("development" if small else "training")
    return "all"


def assumed_ms(spans: Sequence[JobSpan]) -> dict[str, float]:
    """Return the median run time of each team, and of all jobs under the empty name."""
    ran: dict[str, list[int]] = {"": []}
    for span in spans:
        if span.runs and span.left == 0:
            total = sum(end - start for start, end in span.runs)
            ran.setdefault(str(span.job.team), []).append(total)
            ran[""].append(total)
    return {team: float(median(times)) for team, times in ran.items() if times}


def wanted_ms(span: JobSpan, assumed: Mapping[str, float]) -> float:
    """Return how long a job would have run in all."""
    ran = float(sum(end - start for start, end in span.runs))
    if span.left == 0 and span.runs:
        return ran
    usual = assumed.get(str(span.job.team), assumed.get("", 0.0))
    return max(ran, usual)


def _group(
    name: str, spans: Sequence[JobSpan], edges: Floats, assumed: Mapping[str, float]
) -> GroupHistory:
    runs = [(start, end, gpus_of(span.job)) for span in spans for start, end in span.runs]
    wants = [
        (span.wanted_ms, span.wanted_ms + wanted_ms(span, assumed), gpus_of(span.job))
        for span in spans
    ]
    used, demand = gpu_hours(runs, edges), gpu_hours(wants, edges)
    hours = np.diff(edges) / HOUR
    return GroupHistory(
        name=name,
        used_gpu_hours=tuple(used.tolist()),
        demand_gpu_hours=tuple(demand.tolist()),
        demand_gpus=tuple((demand / hours).tolist()),
    )


def gpu_hours(spans: Sequence[tuple[float, float, float]], edges: Floats) -> Floats:
    """Return the GPU-hours between edges of spans from, to and GPUs."""
    if not spans:
        return np.zeros(len(edges) - 1)
    start, end, gpus = np.array(spans, dtype=np.float64).T
    length = end - start
    until = [float(gpus @ np.clip(edge - start, 0.0, length)) for edge in edges]
    return np.diff(np.array(until)) / HOUR
