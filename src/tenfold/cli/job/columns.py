"""The columns of `tenfold job list`, by name: `--format` selects them."""

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

from msgspec import UNSET, Struct

from tenfold.model.api.jobs import Attempt, Job
from tenfold.model.errors import InputError
from tenfold.model.fleet.hostlist import fold

NODES_MOST = 48
"""Characters of a node list in a table; a longer list is counted."""

NEAR_S = 600.0
"""Forecasts that are nearer are shown to the minute."""
SHORT = {"array-full": "array limit"}
"""Codes that a listing shows in other words."""
_DIGITS = re.compile(r"([0-9]+)")
_FORMER = {"sentence": "message"}
"""Names that scripts may still use."""


class Column(Struct, frozen=True):
    """One column: its heading, `>` first if it is aligned to the right, and its text."""

    heading: str
    text: Callable[[Job, str], str]
    """Takes a job and the time of the listing in ISO 8601."""


def columns_of(text: str) -> list[Column]:
    """Return the columns that `--format` names, in order."""
    names = [name.strip().lower() for name in text.split(",") if name.strip()]
    names = [_FORMER.get(name, name) for name in names]
    unknown = [name for name in names if name not in COLUMNS]
    if unknown or not names:
        raise InputError(
            "unknown-column",
            f"`{unknown[0]}` is not a column"
            if unknown
            else "`--format` needs at least one column",
            f"columns: {', '.join(COLUMNS)}",
            field="--format",
        )
    return [COLUMNS[name] for name in names]


def default_columns(jobs: Sequence[Job]) -> list[Column]:
    """Return the columns of a listing: attempts and forecasts only where there are any."""
    names = ["job", "team", "state", "gpus", "age", "elapsed"]
    if any(job.attempt_count > 1 for job in jobs):
        names.append("attempts")
    names += ["nodes", "reason"]
    if any(job.eta is not None for job in jobs):
        names.append("eta")
    found = [COLUMNS[name] for name in names]
    found[names.index("nodes")] = Column("nodes", lambda job, _: short_nodes(nodes_of(job)))
    return found


def nodes_of(job: Job) -> tuple[str, ...]:
    """Return the nodes that a job holds, or held last if it has ended."""
    attempt = _current(job)
    return () if attempt is None else attempt.nodes


def node_list(names: Sequence[str]) -> str:
    """Return node names as a host list, such as `hx-b[09-16]`."""
    return fold(sorted(names, key=_natural))


def short_nodes(names: Sequence[str]) -> str:
    """Return a host list; if it is too long for a table, the first node and a count."""
    text = node_list(names)
    if len(text) <= NODES_MOST:
        return text
    return f"{min(names, key=_natural)} and {len(names) - 1:,} more"


def short_duration(seconds: float) -> str:
    """Return a duration without spaces: `12s`, `35m`, `2h05m`, `3d04h`."""
    whole = max(0, int(seconds))
    if whole < 60:
        return f"{whole}s"
    minutes = whole // 60
    if minutes < 60:
        return f"{minutes}m{whole % 60:02d}s" if minutes < 10 else f"{minutes}m"
    hours = minutes // 60
    return f"{hours}h{minutes % 60:02d}m" if hours < 24 else f"{hours // 24}d{hours % 24:02d}h"


def seconds_between(start: str, end: str) -> float:
    """Return the seconds from one ISO 8601 time to another."""
    return (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()


def minute_of(moment: str) -> str:
    """Return a UTC time to the minute."""
    return f"{moment[:10]} {moment[11:16]} UTC"


def rounded_up(moment: str, now: str | None = None) -> str:
    """Return a time rounded up: to a minute within the next ten, otherwise to five.

    A forecast is no more precise. These are the steps in which `job why` counts the minutes.
    """
    try:
        at = datetime.fromisoformat(moment)
        is_near = bool(now) and seconds_between(now or "", moment) <= NEAR_S
    except (TypeError, ValueError):
        return moment
    step = 1 if is_near else 5
    late = timedelta(minutes=at.minute % step, seconds=at.second, microseconds=at.microsecond)
    at = at if not late else at - late + timedelta(minutes=step)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def clock_time(at_ms: int) -> str:
    """Return a time in UTC, to the minute."""
    return minute_of(iso_time(at_ms))


def iso_time(at_ms: int) -> str:
    """Return a time as ISO 8601."""
    return datetime.fromtimestamp(at_ms / 1_000, UTC).isoformat()


def second_of(moment: str | None) -> str:
    """Return a UTC time to the second; JSON keeps the full value."""
    return f"{moment[:10]} {moment[11:19]} UTC" if moment else ""


def short_reason(job: Job) -> str:
    """Return the reason for a job's state in a few words; "" if it only repeats the state."""
    if job.state == "running" and not job.idle_since:
        return "" if job.service is UNSET else f"service {job.service}"
    if job.reason.code != job.state:
        return SHORT.get(job.reason.code, job.reason.code)
    if job.idle_since:
        return f"idle since {second_of(job.idle_since)}"
    return job.reason.sentence if job.is_over and job.state != "succeeded" else ""


def _current(job: Job) -> Attempt | None:
    """Return the attempt that runs, or the last one of a job that has ended."""
    return job.attempts[-1] if job.attempts and job.state != "pending" else None


def _natural(name: str) -> list[tuple[int, str]]:
    """Return a sort key in which n2 is before n10."""
    parts = _DIGITS.split(name)
    return [(int(part), "") if place % 2 else (-1, part) for place, part in enumerate(parts)]


def _gpus(job: Job, _: str) -> str:
    return "" if job.gpus is UNSET else f"{job.gpus:g}"


def _gpu_hours(job: Job, _: str) -> str:
    return "" if job.gpu_hours is UNSET else f"{job.gpu_hours:,.2f}"


def _age(job: Job, at: str) -> str:
    if not job.submitted_at or not at:
        return ""
    try:
        return short_duration(seconds_between(job.submitted_at, at))
    except (TypeError, ValueError):
        # Not times: the answer comes from another program.
        return ""


def _elapsed(job: Job, _: str) -> str:
    if job.elapsed_s is UNSET or job.state == "pending":
        return ""
    return short_duration(job.elapsed_s)


def _exit_code(job: Job, _: str) -> str:
    return "" if job.exit_code is None else str(job.exit_code)


def _started(job: Job, _: str) -> str:
    attempt = _current(job)
    return "" if attempt is None else second_of(attempt.started_at)


def _ended(job: Job, _: str) -> str:
    attempt = _current(job)
    return "" if attempt is None else second_of(attempt.ended_at)


def expected_start(job: Job, at: str) -> str:
    """Return the expected start of a pending job."""
    if job.eta is not None:
        return minute_of(rounded_up(job.eta.p50_at, at))
    return "unknown" if job.state == "pending" else ""


COLUMNS: dict[str, Column] = {
    "job": Column("job", lambda job, _: job.id),
    "name": Column("name", lambda job, _: job.name),
    "team": Column("team", lambda job, _: job.team),
    "user": Column("user", lambda job, _: job.user or ""),
    "state": Column("state", lambda job, _: job.state),
    "gpus": Column(">GPUs", _gpus),
    "age": Column(">age", _age),
    "elapsed": Column(">elapsed", _elapsed),
    "gpu_hours": Column(">GPU-hours", _gpu_hours),
    "attempts": Column(">attempts", lambda job, _: str(job.attempt_count)),
    "nodes": Column("nodes", lambda job, _: node_list(nodes_of(job))),
    "node_count": Column(">node count", lambda job, _: str(len(nodes_of(job)) or "")),
    "reason": Column("reason", lambda job, _: short_reason(job)),
    "message": Column("message", lambda job, _: job.reason.sentence),
    "submitted": Column("submitted", lambda job, _: second_of(job.submitted_at or None)),
    "started": Column("started", _started),
    "ended": Column("ended", _ended),
    "exit_code": Column(">exit code", _exit_code),
    "eta": Column(
        "expected start",
        expected_start,
    ),
}
