"""Write a trace as a job table, CSV or Parquet by suffix: whole, or not at all."""

import csv
import gzip
import io
from pathlib import Path

from tenfold.files.parquet import arrow_for
from tenfold.files.traces.columns import COLUMNS, OPTIONAL
from tenfold.files.traces.tables import SUFFIXES
from tenfold.files.traces.term_cells import Value, folded, term_cells
from tenfold.files.traces.term_columns import TERMS
from tenfold.files.traces.trace import JobTrace
from tenfold.files.write import open_new_file
from tenfold.model.errors import InputError
from tenfold.model.job import WHOLE, Job
from tenfold.model.units import SECOND

_TERM_TEXTS = ("kind", "preemptible", "after", "off_peak", "within", "how", "needs", "avoids")
_TEXTS = ("job_id", "team", "user", "gpu_type", "status", "qos", "profile", *_TERM_TEXTS)
_WHOLE_NUMBERS = ("gpus_per_node", "priority", "least_gpus", "most_gpus", "array", "array_most")
_ZERO_COUNTS = (*TERMS, "start_s")
"""Columns in which a zero says something; a zero of the others is as good as empty."""


def write_jobs(path: Path, trace: JobTrace, *, force: bool = False) -> None:
    """Write the jobs of a trace in the documented schema, unknown values left empty."""
    if not path.name.lower().endswith(SUFFIXES):
        raise InputError(
            "unknown-suffix",
            f"`{path}` does not say how the jobs shall be written",
            f"name a file that ends in {', '.join(SUFFIXES)}",
            file=str(path),
        )
    columns = _columns(trace)
    if path.name.lower().endswith(".parquet"):
        content = _parquet(columns, path)
    else:
        content = _csv(columns)
        if path.name.lower().endswith(".gz"):
            content = gzip.compress(content, mtime=0)
    _write(path, content, force=force)


def _columns(trace: JobTrace) -> dict[str, list[Value]]:
    named = (*COLUMNS, *OPTIONAL)
    rows = [_row(job, trace) for job in trace.jobs]
    if any(job.terms is not None or job.shape.where is not None for job in trace.jobs):
        named = (*named, *TERMS)
        rows = [
            (name, *_row(job, trace)[1:], *term_cells(job, size))
            for job, name, size in folded(trace)
        ]
    columns: dict[str, list[Value]] = {
        name: [row[at] for row in rows] for at, name in enumerate(named)
    }
    return {
        name: values
        for name, values in columns.items()
        if name in COLUMNS
        or any(value is not None if name in _ZERO_COUNTS else value for value in values)
    }


def _row(job: Job, trace: JobTrace) -> tuple[Value, ...]:
    shape = job.shape
    return (
        job.id,
        job.team or None,
        job.user or None,
        _seconds(job.submitted_ms),
        _seconds(job.duration_ms),
        shape.gpus + shape.milli / WHOLE,
        shape.gpus_per_node,
        "|".join(shape.accelerators) or None,
        trace.statuses.get(job.id),
        job.qos or None,
        shape.cpus_milli / 1_000 or None,
        shape.memory_mib / 1_024 or None,
        _seconds(job.limit_ms),
        job.priority,
        _seconds(job.deadline_ms),
        job.profile or None,
        _seconds(trace.starts_ms.get(job.id)),
    )


def _seconds(millis: int | None) -> float | None:
    return None if millis is None else millis / SECOND


def _csv(columns: dict[str, list[Value]]) -> bytes:
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(
        zip(*([_cell(one) for one in column] for column in columns.values()), strict=True)
    )
    return stream.getvalue().encode()


def _cell(value: Value) -> str:
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return "" if value is None else str(value)


def _parquet(columns: dict[str, list[Value]], path: Path) -> bytes:
    arrow, parquet = arrow_for(path)
    kinds = {
        **dict.fromkeys(_TEXTS, arrow.string()),
        **dict.fromkeys(_WHOLE_NUMBERS, arrow.int64()),
    }
    table = arrow.table(
        {
            name: arrow.array(values, type=kinds.get(name, arrow.float64()))
            for name, values in columns.items()
        }
    )
    stream = io.BytesIO()
    parquet.write_table(table, stream, compression="zstd")
    return stream.getvalue()


def _write(path: Path, content: bytes, *, force: bool) -> None:
    with open_new_file(path, force=force) as stream:
        stream.write(content)
