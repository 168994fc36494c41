"""Read the Microsoft Philly trace: `cluster_job_log`, a JSON list of jobs.

A job may have been tried several times. Its duration is the sum of all its attempts, since
that is how long it held its GPUs; its GPUs are those of its largest attempt. Where the
GPUs were was the scheduler's choice, not part of the request, so it is not kept.
"""

from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import Struct

from tenfold.files.core.read_errors import json_problem
from tenfold.files.traces.csv_table import read_plain_bytes
from tenfold.files.traces.errors import TraceErrors
from tenfold.files.traces.named_rows import seconds_of, timestamp_text
from tenfold.files.traces.trace import JobTrace, TraceRow, note_skipped, trace_of
from tenfold.model.errors import InputError

T = TypeVar("T")


class _Place(Struct):
    """The GPUs of an attempt on one node."""

    gpus: list[str] = []


class _Attempt(Struct):
    """One try at running a job; a time that was not logged is None."""

    start_time: str | None = None
    end_time: str | None = None
    detail: list[_Place] = []


class _Entry(Struct):
    """One job of the log."""

    jobid: str
    submitted_time: str | None = None
    status: str = ""
    vc: str = ""
    user: str | None = None
    attempts: list[_Attempt] = []


def read_philly(path: Path) -> JobTrace:
    """Return the jobs of a `cluster_job_log` that ran and ended."""
    errors = TraceErrors(str(path))
    rows: list[TraceRow] = []
    never_ran = unended = 0
    for number, entry in enumerate(_entries(path), start=1):
        submit_s = _moment(entry.submitted_time, number, "submitted_time", errors)
        durations = [_duration(attempt, number, errors) for attempt in entry.attempts]
        known = [one for one in durations if one is not None]
        gpus = max((_gpus(attempt) for attempt in entry.attempts), default=0)
        if submit_s is None or not gpus or not entry.attempts:
            never_ran += 1
        elif not known or durations[-1] is None:
            unended += 1
        else:
            rows.append(
                TraceRow(
                    job_id=entry.jobid,
                    submit_s=submit_s,
                    duration_s=sum(known),
                    gpus=gpus,
                    team=entry.vc,
                    user=entry.user or "",
                    status=entry.status,
                    start_s=_first_start(entry),
                )
            )
    errors.raise_if_any()
    notes: list[str] = []
    note_skipped(never_ran, "no attempt with GPUs is recorded", notes)
    note_skipped(unended, "the end of the last attempt is not recorded", notes)
    if rows:
        notes.append(f"time 0 is {timestamp_text(min(row.submit_s for row in rows))}")
    return trace_of(rows, notes, str(path))


def _entries(path: Path) -> list[_Entry]:
    try:
        return msgspec.json.decode(read_plain_bytes(path), type=list[_Entry])
    except msgspec.ValidationError:
        raise InputError(
            "not-a-job-log",
            f"`{path}` is not a job history: not a list of jobs as in the Philly trace",
            "pass a CSV or Parquet job table, a public trace or saved `sacct` output; for Philly, "
            "its file `cluster_job_log`",
            file=str(path),
        ) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(
            "not-json",
            f"`{path}` is not valid JSON: {json_problem(error)}",
            "pass the unpacked file `cluster_job_log` of the trace",
            file=str(path),
        ) from None


def _duration(attempt: _Attempt, number: int, errors: TraceErrors) -> float | None:
    start_s = _moment(attempt.start_time, number, "start_time", errors)
    end_s = _moment(attempt.end_time, number, "end_time", errors)
    return None if start_s is None or end_s is None else max(0.0, end_s - start_s)


def _first_start(entry: _Entry) -> float | None:
    """Return when the first attempt began: what came before it was the wait."""
    text = entry.attempts[0].start_time
    return None if text is None else seconds_of(" ".join(text.split()[:2]))


def _moment(text: str | None, number: int, field: str, errors: TraceErrors) -> float | None:
    if text is None or text in ("", "None"):
        return None
    # The log carries the zone as a word behind some times, which differences do not need.
    found = seconds_of(" ".join(text.split()[:2]))
    if found is None:
        message = f"`{field}` of job number {number} holds `{text[:40]}`, which is not a time"
        errors.add("wrong-value", message, "fix or remove the entry", None, field)
    return found


def _gpus(attempt: _Attempt) -> int:
    return sum(len(place.gpus) for place in attempt.detail)
