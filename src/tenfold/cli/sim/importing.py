"""`tenfold sim import`: convert a public trace, or Slurm or Kubernetes records, to a table."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from msgspec import Struct

from tenfold.cli.arguments import Force, Json
from tenfold.cli.output import print_json, print_note, show
from tenfold.files.traces.detect import TraceFormat, read_trace
from tenfold.files.traces.trace import JobTrace
from tenfold.files.traces.write import write_jobs
from tenfold.report.figures import count

DAY_MS = 86_400_000


class TraceSummary(Struct, frozen=True, kw_only=True):
    """What an imported trace holds."""

    jobs: int
    teams: int
    shapes: int
    gpu_hours: float
    days: float
    out: str
    notes: tuple[str, ...]


def import_trace_command(
    trace_format: Annotated[TraceFormat, Parameter(help="Trace format; `auto` detects it")],
    *files: Annotated[Path, Parameter(help="Trace file; two files for alibaba-2020")],
    out: Annotated[Path, Parameter(help="Job table to write: .csv, .csv.gz or .parquet")],
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Convert a public trace, or Slurm or Kubernetes records, to a job table.

    Skipped jobs and assumptions are printed to standard error.
    """
    summary = import_trace(files, trace_format, out, force=force)
    if as_json:
        print_json(summary)
        return
    for note in summary.notes:
        print_note(note)
    teams = f" from {count(summary.teams, 'team')}" if summary.teams else ""
    show(
        f"{count(summary.jobs, 'job')}{teams} over {summary.days:,.1f} days, "
        f"{summary.gpu_hours:,.0f} GPU-hours, {count(summary.shapes, 'distinct job shape')}, "
        f"written to {summary.out}"
    )


def import_trace(
    files: tuple[Path, ...], trace_format: TraceFormat, out: Path, *, force: bool = False
) -> TraceSummary:
    """Read a trace, write it as a job table and return its summary."""
    trace = read_trace(files, trace_format)
    write_jobs(out, trace, force=force)
    return _summary(trace, str(out))


def _summary(trace: JobTrace, out: str) -> TraceSummary:
    gpu_ms = sum(
        (job.shape.gpus + job.shape.milli / 1_000) * (job.duration_ms or 0) for job in trace.jobs
    )
    span_ms = trace.jobs[-1].submitted_ms - trace.jobs[0].submitted_ms
    return TraceSummary(
        jobs=len(trace.jobs),
        teams=len({job.team for job in trace.jobs if job.team}),
        shapes=len({job.shape.key for job in trace.jobs}),
        gpu_hours=round(gpu_ms / 3_600_000, 3),
        days=round(span_ms / DAY_MS, 3),
        out=out,
        notes=tuple(trace.notes),
    )
