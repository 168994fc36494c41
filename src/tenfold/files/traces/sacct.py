"""Read Slurm accounting: `sacct --parsable2`, with the header.

For example `sacct --allusers --allocations --parsable2 --starttime 2026-01-01
--format=JobID,User,Account,QOS,State,Submit,Start,End,ElapsedRaw,TimelimitRaw,ReqTRES,
AllocTRES,NNodes,Priority`. Steps are skipped. A running job counts with the time it has
run so far; a job that never started is skipped.
"""

import re
from pathlib import Path

from tenfold.files.slurm.parsable import parsable_rows
from tenfold.files.slurm.times import slurm_seconds
from tenfold.files.traces.errors import TraceErrors
from tenfold.files.traces.named_rows import NamedRow, timestamp_text
from tenfold.files.traces.trace import JobTrace, TraceRow, even_split, note_skipped, trace_of

COLUMNS = ("JobID", "Submit")
_SIZE = re.compile(r"(\d+(?:\.\d+)?)([KMGTP]?)")
_GIB = {"K": 1 / 1024**2, "": 1 / 1024, "M": 1 / 1024, "G": 1.0, "T": 1024.0, "P": 1024.0**2}


def read_sacct(path: Path) -> JobTrace:
    """Return the jobs of an accounting listing that have begun."""
    errors = TraceErrors(str(path))
    rows: list[TraceRow] = []
    never_started = running = 0
    for row in parsable_rows(path, COLUMNS, errors):
        job_id = row.text("JobID")
        if not job_id or "." in job_id:
            continue
        made = _row(row, job_id)
        if made is None:
            never_started += not row.is_bad
            continue
        rows.append(made)
        running += made.status.lower() == "running"
    errors.raise_if_any()
    notes: list[str] = []
    note_skipped(never_started, "they never started", notes)
    if running:
        notes.append(f"{running:,} jobs are still running; they count with their run time so far")
    if rows:
        notes.append(f"time 0 is {timestamp_text(min(row.submit_s for row in rows))}")
    return trace_of(rows, notes, str(path))


def _row(row: NamedRow, job_id: str) -> TraceRow | None:
    submit_s, duration_s = row.time_s("Submit"), _duration(row)
    requested = _resources(row, "ReqTRES")
    allocated = _resources(row, "AllocTRES")
    tres = requested if _gpus(requested) or not _gpus(allocated) else allocated
    tres = tres or allocated
    limit_s = _limit(row)
    priority = row.number("Priority") or 0.0
    nodes = row.number("NNodes") or tres.get("node") or 1.0
    gpus, cpus = _gpus(tres), tres.get("cpu") or row.number("ReqCPUS") or 0.0
    if gpus % 1:
        row.fault("wrong-value", "ReqTRES", f"`{gpus:g}` is not a whole number of GPUs")
    if row.is_bad or submit_s is None or duration_s is None or not (gpus or cpus):
        return None
    return TraceRow(
        job_id=job_id,
        submit_s=submit_s,
        duration_s=duration_s,
        gpus=gpus,
        gpus_per_node=even_split(gpus, nodes),
        accelerators=tuple(
            name.partition(":")[2] for name in tres if name.startswith("gres/gpu:") and tres[name]
        ),
        cpus=cpus,
        memory_gib=tres.get("mem", 0.0),
        team=row.text("Account"),
        user=row.text("User"),
        qos=row.text("QOS"),
        # The state of a cancelled job names who did it: `CANCELLED by 1000`.
        status=row.text("State").partition(" ")[0],
        limit_s=limit_s,
        priority=int(priority),
        start_s=row.time_s("Start"),
    )


def _duration(row: NamedRow) -> float | None:
    """Return how long a job has run; None where it never began."""
    start_s, end_s = row.time_s("Start"), row.time_s("End")
    if row.text("State").upper().startswith("PENDING"):
        return None
    if row.has("Start") and start_s is None:
        return None
    stated_s = row.number("ElapsedRaw")
    if stated_s is None and row.text("Elapsed"):
        stated_s = _time(row, "Elapsed", bare_s=1.0)
    if stated_s is None and start_s is not None and end_s is not None:
        stated_s = max(0.0, end_s - start_s)
    return stated_s


def _limit(row: NamedRow) -> float | None:
    raw, stated = row.text("TimelimitRaw"), row.text("Timelimit")
    if not raw and not stated:
        return None
    return _time(row, "TimelimitRaw" if raw else "Timelimit", bare_s=60.0)


def _time(row: NamedRow, name: str, *, bare_s: float) -> float | None:
    try:
        return slurm_seconds(row.text(name), bare_s=bare_s)
    except ValueError as error:
        row.fault("wrong-value", name, f"`{name}`: {error}")
        return None


def _resources(row: NamedRow, name: str) -> dict[str, float]:
    """Return the amounts of a text such as `cpu=8,mem=64G,gres/gpu=2`, memory in GiB."""
    found: dict[str, float] = {}
    for part in row.text(name).split(","):
        kind, _, amount = part.partition("=")
        kind = kind.strip().lower()
        if kind not in ("cpu", "mem", "node") and not kind.startswith("gres/gpu"):
            continue
        match = _SIZE.match(amount)
        if match is None:
            row.fault("wrong-value", name, f"`{name}` holds `{part[:40]}`, which is not an amount")
            continue
        found[kind] = float(match[1]) * (_GIB[match[2]] if kind == "mem" else 1.0)
    return found


def _gpus(tres: dict[str, float]) -> float:
    """Return the GPUs of all types; the plain count holds the typed ones already."""
    typed = sum(count for kind, count in tres.items() if kind.startswith("gres/gpu:"))
    return tres.get("gres/gpu") or typed
