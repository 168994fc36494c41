"""Write a trace as a job table, CSV or Parquet by suffix, atomically."""

import csv
import gzip
import io
from collections.abc import Iterator
from pathlib import Path

from msgspec.structs import replace

from tenfold.files.core.parquet import arrow_for
from tenfold.files.core.write import open_new_file
from tenfold.files.traces.columns import JOB_COLUMNS, TERM_COLUMNS, Column, OutputRow, Value
from tenfold.files.traces.tables import SUFFIXES
from tenfold.files.traces.trace import JobTrace
from tenfold.model.errors import InputError
from tenfold.model.job.job import Job

Cells = dict[Column, list[Value]]
_STORED = {"text": "string", "whole": "int64", "thousandths": "float64", "number": "float64"}


def write_jobs(path: Path, trace: JobTrace, *, force: bool = False) -> None:
    """Write the jobs of a trace in the documented schema, unknown values left empty."""
    if not path.name.lower().endswith(SUFFIXES):
        raise InputError(
            "unknown-suffix",
            f"unsupported file type `{path}`",
            f"use a file name that ends in {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}",
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


def _columns(trace: JobTrace) -> Cells:
    columns = tuple(JOB_COLUMNS.values())
    rows = [_output_row(job, job.id, None, trace) for job in trace.jobs]
    if any(job.terms is not None or job.shape.where is not None for job in trace.jobs):
        columns = (*columns, *TERM_COLUMNS.values())
        rows = list(_rows_with_arrays(trace))
    cells = {column: [column.cell(row) for row in rows] for column in columns}
    return {
        column: values
        for column, values in cells.items()
        if column.always or column.is_known(values)
    }


def _rows_with_arrays(trace: JobTrace) -> Iterator[OutputRow]:
    """Yield a row for each job, the members of an array folded into one.

    Members that do not stand together, or differ, become rows of their own.
    """
    jobs, at = trace.jobs, 0
    while at < len(jobs):
        job = jobs[at]
        size = _members_at(trace, at)
        name = job.terms.array if size is not None and job.terms is not None else job.id
        yield _output_row(job, name, size, trace)
        at += size or 1


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


def _output_row(job: Job, name: str, size: int | None, trace: JobTrace) -> OutputRow:
    return OutputRow(name, job, size, trace.statuses.get(job.id), trace.starts_ms.get(job.id))


def _csv(columns: Cells) -> bytes:
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(column.name for column in columns)
    writer.writerows(
        zip(*([_cell(one) for one in column] for column in columns.values()), strict=True)
    )
    return stream.getvalue().encode()


def _cell(value: Value) -> str:
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return "" if value is None else str(value)


def _parquet(columns: Cells, path: Path) -> bytes:
    arrow, parquet = arrow_for(path)
    table = arrow.table(
        {
            column.name: arrow.array(values, type=_STORED[column.kind])
            for column, values in columns.items()
        }
    )
    stream = io.BytesIO()
    parquet.write_table(table, stream, compression="zstd")
    return stream.getvalue()


def _write(path: Path, content: bytes, *, force: bool) -> None:
    with open_new_file(path, force=force) as stream:
        stream.write(content)
