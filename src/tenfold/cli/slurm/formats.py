"""The letters of `squeue -o "%i %j %T"`, with their widths: `%.18i` is 18 wide, to the right.

Those of `sinfo -o` have the same form, with letters of their own.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Generic, TypeVar

from msgspec import UNSET, Struct

from tenfold.cli.job.columns import SHORT, node_list, nodes_of
from tenfold.model.api.jobs import Job
from tenfold.model.errors import InputError
from tenfold.model.job.job import JobState

CODES: dict[JobState, str] = {
    "pending": "PD",
    "starting": "CF",
    "running": "R",
    "stopping": "CG",
    "succeeded": "CD",
    "failed": "F",
    "cancelled": "CA",
}
REASON_CODES = {"timeout": "TO", "out-of-memory": "OOM", "allocation-failed": "OOM"}
"""Slurm's codes for failed jobs, by their reason."""
WORDS = {
    "PD": "PENDING",
    "CF": "CONFIGURING",
    "R": "RUNNING",
    "CG": "COMPLETING",
    "CD": "COMPLETED",
    "F": "FAILED",
    "CA": "CANCELLED",
    "TO": "TIMEOUT",
    "OOM": "OUT_OF_MEMORY",
}
LONG = "%.18i %.9P %.8j %.8u %.8T %.10M %.9l %.6D %R"
"""What `squeue -l` prints in Slurm."""
LIMIT = "l"
"""The letter of the time limit, which a listing does not have."""
_FIELD = re.compile(r"%(\.?)(\d*)([A-Za-z])")
Shown = TypeVar("Shown")
"""What a line is about: a job, or nodes."""


class Line(Struct, frozen=True):
    """A job, and what its line needs besides."""

    job: Job
    pool: str
    """The pool of its nodes; `-` if it has none."""
    limit_s: float | None = None


class Field(Struct, Generic[Shown], frozen=True):
    """One letter of a format."""

    heading: str
    text: Callable[[Shown], str]


def checked_format(text: str, fields: Mapping[str, Field[Shown]], other: str) -> str:
    """Return a format; raise for a letter that is not known, and name the `other` command."""
    letters = [match[3] for match in _FIELD.finditer(text)]
    unknown = [letter for letter in letters if letter not in fields]
    if unknown or not letters:
        what = f"unknown field `%{unknown[0]}`" if unknown else f"`{text}` has no field such as %i"
        known = ", ".join(f"%{letter} {one.heading}" for letter, one in fields.items())
        hint = f"known fields: {known}; `{other}` has other columns"
        raise InputError("unknown-column", what, hint, field="--format")
    return text


def letters_of(text: str) -> set[str]:
    """Return the letters of a format."""
    return {match[3] for match in _FIELD.finditer(text)}


def heading(text: str, fields: Mapping[str, Field[Shown]]) -> str:
    """Return the headings of a format."""
    return _FIELD.sub(lambda match: _cell(match, fields[match[3]].heading), text).rstrip()


def formatted(text: str, shown: Shown, fields: Mapping[str, Field[Shown]]) -> str:
    """Return the line of a job, or of nodes, in a format."""
    return _FIELD.sub(lambda match: _cell(match, fields[match[3]].text(shown)), text).rstrip()


def state_code(job: Job) -> str:
    """Return Slurm's code for the state of a job."""
    return REASON_CODES.get(job.reason.code, "F") if job.state == "failed" else CODES[job.state]


def held_nodes(job: Job) -> Sequence[str]:
    """Return the nodes of a job; none while it is pending."""
    return nodes_of(job) if job.state != "pending" else ()


def nodes_or_reason(job: Job) -> str:
    """Return the nodes of a job, or in brackets why it has none."""
    nodes = held_nodes(job)
    return node_list(nodes) if nodes else f"({_reason(job)})"


def elapsed_clock(job: Job) -> str:
    """Return how long a job has run, as Slurm writes it."""
    return clock(0.0 if job.elapsed_s is UNSET or job.state == "pending" else job.elapsed_s)


def clock(seconds: float) -> str:
    """Return a time as Slurm writes it: `5:07`, `1:02:03`, `2-03:04:05`."""
    minutes, second = divmod(int(seconds), 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    if days:
        return f"{days}-{hour:02d}:{minute:02d}:{second:02d}"
    return f"{hour}:{minute:02d}:{second:02d}" if hour else f"{minute}:{second:02d}"


def node_count(job: Job) -> str:
    """Return how many nodes a job has; `-` if it has none."""
    return str(len(held_nodes(job)) or "-")


def _cell(match: re.Match[str], text: str) -> str:
    """Return a text at its width; names of jobs are never cut, since other commands take them."""
    width = int(match[2] or 0)
    if match[3] != "i" and width:
        text = text[:width]
    return text.rjust(width) if match[1] else text.ljust(width)


def _reason(job: Job) -> str:
    return SHORT.get(job.reason.code, job.reason.code).replace(" ", "-")


def _submitted(line: Line) -> str:
    moment = line.job.submitted_at
    return moment[:19] if isinstance(moment, str) else "N/A"


def _started(line: Line) -> str:
    job = line.job
    attempt = job.attempts[-1] if job.attempts and job.state != "pending" else None
    return (attempt.started_at or "N/A")[:19] if attempt is not None else "N/A"


FIELDS: Mapping[str, Field[Line]] = {
    "i": Field("JOBID", lambda line: line.job.id),
    "j": Field("NAME", lambda line: line.job.name),
    "u": Field("USER", lambda line: line.job.user or ""),
    "a": Field("ACCOUNT", lambda line: line.job.team),
    "P": Field("PARTITION", lambda line: line.pool),
    "T": Field("STATE", lambda line: WORDS[state_code(line.job)]),
    "t": Field("ST", lambda line: state_code(line.job)),
    "M": Field("TIME", lambda line: elapsed_clock(line.job)),
    LIMIT: Field(
        "TIME_LIMIT", lambda line: "UNLIMITED" if line.limit_s is None else clock(line.limit_s)
    ),
    "D": Field("NODES", lambda line: node_count(line.job)),
    "R": Field("NODELIST(REASON)", lambda line: nodes_or_reason(line.job)),
    "N": Field("NODELIST", lambda line: node_list(held_nodes(line.job))),
    "r": Field("REASON", lambda line: _reason(line.job)),
    "V": Field("SUBMIT_TIME", _submitted),
    "S": Field("START_TIME", _started),
}
