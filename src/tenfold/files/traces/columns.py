"""The columns of a job table: what each is called, and what else it may be called.

The documented names come first; those of the Alibaba pod lists are understood too, so
that such a list can be replayed as it is.
"""

from collections.abc import Sequence
from typing import NamedTuple, cast

from tenfold.files.traces.cells import Cells
from tenfold.files.traces.tables import Table
from tenfold.files.traces.term_columns import TERMS, TermColumns, term_columns
from tenfold.model.errors import InputError
from tenfold.model.job import WHOLE

COLUMNS = (
    "job_id",
    "team",
    "user",
    "submit_s",
    "duration_s",
    "gpus",
    "gpus_per_node",
    "gpu_type",
    "status",
    "qos",
    "cpus",
    "mem_gib",
    "limit_s",
)
OPTIONAL = ("priority", "deadline_s", "profile", "start_s")
POD_COLUMNS = ("pod", "name", "num_gpu", "gpu_milli", "gpu_spec", "cpu_milli", "memory_mib")
UNDERSTOOD = (*COLUMNS, *OPTIONAL, *TERMS, *POD_COLUMNS)
TRACE_NAMES = ("trace", "workload")
"""Columns that tell several traces in one file apart; not read, but worth a hint."""


class JobColumns(NamedTuple):
    """A job table by column; None where a column is absent. Times are in ms."""

    ids: Cells[str] | None
    submit_ms: Cells[int] | None
    duration_ms: Cells[int] | None
    gpus_milli: Cells[int]
    gpus_per_node_milli: Cells[int] | None
    gpu_type: Cells[str] | None
    cpus: Cells[float] | None
    memory_gib: Cells[float] | None
    team: Cells[str] | None
    user: Cells[str] | None
    qos: Cells[str] | None
    status: Cells[str] | None
    limit_ms: Cells[int] | None
    priority_milli: Cells[int] | None
    deadline_ms: Cells[int] | None
    profile: Cells[str] | None
    start_ms: Cells[int] | None
    terms: TermColumns | None


def job_columns(table: Table, *, fill: bool) -> JobColumns:
    """Return the columns of a table, or say which one is missing."""
    gpus = _gpus(table)
    if gpus is None:
        raise _missing(table, "gpus", "a job table needs the column `gpus`")
    submit = None if fill else table.milli("submit_s")
    duration = None if fill else table.milli("duration_s")
    if table.rows and not fill:
        hint = "add it, or fill the fleet in file order with `--fill`"
        if submit is None:
            raise _missing(table, "submit_s", hint)
        if duration is None:
            raise _missing(table, "duration_s", hint)
    return JobColumns(
        ids=table.texts("job_id") or table.texts("pod") or table.texts("name"),
        submit_ms=submit,
        duration_ms=duration,
        gpus_milli=gpus,
        gpus_per_node_milli=table.milli("gpus_per_node"),
        gpu_type=table.texts("gpu_type") or table.texts("gpu_spec"),
        cpus=table.numbers("cpus") or _divided(table.numbers("cpu_milli"), 1_000),
        memory_gib=table.numbers("mem_gib") or _divided(table.numbers("memory_mib"), 1_024),
        team=table.texts("team"),
        user=table.texts("user"),
        qos=table.texts("qos"),
        status=table.texts("status"),
        limit_ms=table.milli("limit_s"),
        priority_milli=table.milli("priority"),
        deadline_ms=table.milli("deadline_s"),
        profile=table.texts("profile"),
        start_ms=None if fill else table.milli("start_s"),
        terms=term_columns(table),
    )


def column_notes(table: Table) -> list[str]:
    """Say which columns mean nothing here."""
    unknown = [f"`{name}`" for name in table.names if name not in UNDERSTOOD]
    if not unknown:
        return []
    verb = "the column {} is" if len(unknown) == 1 else "the columns {} are"
    return [f"{verb.format(', '.join(unknown))} not understood and ignored"]


def _gpus(table: Table) -> Cells[int] | None:
    gpus = table.milli("gpus")
    counts = table.milli("num_gpu")
    if gpus is not None or counts is None:
        return gpus
    shares = table.milli("gpu_milli")
    if shares is None:
        return counts
    values = [
        share // WHOLE if count == WHOLE and share and share < WHOLE * WHOLE else count
        for count, share in zip(counts.values, shares.values, strict=True)
    ]
    return Cells(values, counts.gaps, {**shares.bad, **counts.bad})


def _divided(cells: Cells[float] | None, by: int) -> Cells[float] | None:
    if cells is None:
        return None
    values = [None if one is None else one / by for one in cells.values]
    return Cells(values, cells.gaps, cells.bad)


def _missing(table: Table, column: str, hint: str) -> InputError:
    state = "is empty" if column in table.names and table.rows else "is missing"
    if not table.rows:
        return InputError(
            "no-jobs", f"`{table.file}` holds no job", "give it a row a job", file=table.file
        )
    return InputError(
        "missing-column",
        f"the column `{column}` of `{table.file}` {state}",
        hint,
        file=table.file,
        line=None if table.lines() is None else 1,
        field=column,
    )


def several_traces(table: Table) -> str:
    """Return the column that tells traces apart, where the file has one."""
    return next((name for name in TRACE_NAMES if name in table.names), "")


def as_known(cells: Cells[int] | None) -> Sequence[int]:
    """Return the values of a column in which every cell is known."""
    assert cells is not None, "a column that was asked for is there"
    return cast(Sequence[int], cells.values)
