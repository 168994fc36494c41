"""The columns of a job table, each with how it is read and written.

The column names of the Alibaba pod lists are accepted too, so that such a list can be
replayed as is.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Literal, NamedTuple, cast, get_type_hints

from tenfold.files.traces.cells import Cells
from tenfold.files.traces.tables import Table
from tenfold.model.errors import InputError
from tenfold.model.fleet.constraints import PlacementConstraints
from tenfold.model.job.job import WHOLE, Job
from tenfold.model.job.terms import Terms
from tenfold.model.units import SECOND, Millis

TRACE_NAMES = ("trace", "workload")
"""Columns that separate several traces in one file; not read, but used in a hint."""
PRODUCTION = "production"
"""Tag of nodes that experiments avoid."""
NO_TERMS, NO_PLACEMENT = Terms(), PlacementConstraints()
Value = str | int | float | None
Kind = Literal["text", "whole", "thousandths", "number"]


class OutputRow(NamedTuple):
    """A row of a table: a job or a whole array, and what the trace knows of it."""

    name: str
    job: Job
    size: int | None
    """Members of the array; None where the job is none."""
    status: str | None
    start_ms: Millis | None

    @property
    def terms(self) -> Terms:
        """When the job may run, and what may be done to it."""
        return self.job.terms or NO_TERMS

    @property
    def where(self) -> PlacementConstraints:
        """Where it may run."""
        return self.job.shape.where or NO_PLACEMENT


class Column(NamedTuple):
    """One column: its name in the file, what its cells are, and what is written into them."""

    name: str
    kind: Kind
    """Numbers are read as they stand, the others but texts in thousandths: seconds as ms."""
    cell: Callable[[OutputRow], Value]
    also: tuple[tuple[str, int], ...] = ()
    """Other names of it, and what their numbers are divided by."""
    always: bool = False
    """Whether it is written where nothing is known."""
    zero_counts: bool = False
    """Whether a zero says something; a zero of the others is as good as empty."""

    def read(self, table: Table) -> Cells[str] | Cells[int] | Cells[float] | None:
        """Return the cells of a table, or None where it has no such column."""
        if self.kind == "text":
            names = (self.name, *(name for name, _ in self.also))
            return next((found for name in names if (found := table.texts(name))), None)
        if self.kind != "number":
            return table.milli(self.name)
        divided = (_divided(table.numbers(name), by) for name, by in self.also)
        return table.numbers(self.name) or next((one for one in divided if one), None)

    def is_known(self, values: Sequence[Value]) -> bool:
        """Return whether any of its cells says something."""
        return any(value is not None if self.zero_counts else value for value in values)


def _seconds(millis: int | None) -> float | None:
    return None if millis is None else millis / SECOND


def _joined(names: Sequence[str]) -> str | None:
    return ";".join(names) or None


def _avoids(row: OutputRow) -> str | None:
    experiment = row.terms.kind == "experiment"
    return _joined([tag for tag in row.where.avoids if not experiment or tag != PRODUCTION])


Cell = Callable[[OutputRow], Value]


def _required(name: str, kind: Kind, cell: Cell, *also: tuple[str, int]) -> Column:
    return Column(name, kind, cell, also, always=True)


def _optional(name: str, kind: Kind, cell: Cell) -> Column:
    return Column(name, kind, cell)


def _text(name: str, cell: Cell) -> Column:
    return Column(name, "text", cell, zero_counts=True)


def _count(name: str, cell: Cell) -> Column:
    return Column(name, "whole", cell, zero_counts=True)


def _time(name: str, millis: Callable[[OutputRow], int | None]) -> Column:
    def cell(row: OutputRow) -> float | None:
        return _seconds(millis(row))

    return Column(name, "thousandths", cell, zero_counts=True)


Texts = Cells[str] | None
Wholes = Cells[int] | None
"""Thousandths: seconds in ms, GPUs in thousandths of one."""
Numbers = Cells[float] | None


class TermColumns(NamedTuple):
    """Columns that say when a job may run, where, and what may be done to it."""

    kind: Annotated[
        Texts, _text("kind", lambda row: None if row.terms.kind == "batch" else row.terms.kind)
    ]
    preemptible: Annotated[
        Texts, _text("preemptible", lambda row: None if row.terms.preemptible else "no")
    ]
    checkpoint_every_ms: Annotated[
        Wholes, _time("checkpoint_every_s", lambda row: row.terms.checkpoint_every_ms)
    ]
    least_milli: Annotated[Wholes, _count("least_gpus", lambda row: row.terms.least_gpus or None)]
    most_milli: Annotated[Wholes, _count("most_gpus", lambda row: row.terms.most_gpus or None)]
    after: Annotated[Texts, _text("after", lambda row: _joined(row.terms.after))]
    array_milli: Annotated[Wholes, _count("array", lambda row: row.size)]
    array_most_milli: Annotated[
        Wholes, _count("array_most", lambda row: row.terms.array_most or None)
    ]
    off_peak: Annotated[Texts, _text("off_peak", lambda row: "yes" if row.terms.off_peak else None)]
    within: Annotated[Texts, _text("within", lambda row: row.where.within or None)]
    how: Annotated[Texts, _text("how", lambda row: row.where.how if row.where.within else None)]
    needs: Annotated[Texts, _text("needs", lambda row: _joined(row.where.needs))]
    avoids: Annotated[Texts, _text("avoids", _avoids)]
    busy_ms: Annotated[Wholes, _time("busy_s", lambda row: row.terms.busy_ms)]

    def numbers(self) -> dict[str, Cells[int]]:
        """Return the columns of numbers that are there, by name."""
        cells = {
            column.name: cast(Wholes, getattr(self, field))
            for field, column in TERM_COLUMNS.items()
            if column.kind != "text"
        }
        return {name: found for name, found in cells.items() if found is not None}


class JobColumns(NamedTuple):
    """A job table by column; None where a column is absent. Times are in ms."""

    ids: Annotated[
        Texts, _required("job_id", "text", lambda row: row.name, ("pod", 1), ("name", 1))
    ]
    team: Annotated[Texts, _required("team", "text", lambda row: row.job.team or None)]
    user: Annotated[Texts, _required("user", "text", lambda row: row.job.user or None)]
    submit_ms: Annotated[
        Wholes, _required("submit_s", "thousandths", lambda row: _seconds(row.job.submitted_ms))
    ]
    duration_ms: Annotated[
        Wholes, _required("duration_s", "thousandths", lambda row: _seconds(row.job.duration_ms))
    ]
    gpus_milli: Annotated[
        Cells[int],
        _required(
            "gpus",
            "thousandths",
            lambda row: row.job.shape.gpus + row.job.shape.milli / WHOLE,
            ("num_gpu", 1),
            ("gpu_milli", 1_000),
        ),
    ]
    gpus_per_node_milli: Annotated[
        Wholes, _required("gpus_per_node", "whole", lambda row: row.job.shape.gpus_per_node)
    ]
    gpu_type: Annotated[
        Texts,
        _required(
            "gpu_type",
            "text",
            lambda row: "|".join(row.job.shape.accelerators) or None,
            ("gpu_spec", 1),
        ),
    ]
    status: Annotated[Texts, _required("status", "text", lambda row: row.status)]
    qos: Annotated[Texts, _required("qos", "text", lambda row: row.job.qos or None)]
    cpus: Annotated[
        Numbers,
        _required(
            "cpus",
            "number",
            lambda row: row.job.shape.cpus_milli / 1_000 or None,
            ("cpu_milli", 1_000),
        ),
    ]
    memory_gib: Annotated[
        Numbers,
        _required(
            "mem_gib",
            "number",
            lambda row: row.job.shape.memory_mib / 1_024 or None,
            ("memory_mib", 1_024),
        ),
    ]
    limit_ms: Annotated[
        Wholes, _required("limit_s", "thousandths", lambda row: _seconds(row.job.limit_ms))
    ]
    priority_milli: Annotated[Wholes, _optional("priority", "whole", lambda row: row.job.priority)]
    deadline_ms: Annotated[
        Wholes, _optional("deadline_s", "thousandths", lambda row: _seconds(row.job.deadline_ms))
    ]
    profile: Annotated[Texts, _optional("profile", "text", lambda row: row.job.profile or None)]
    start_ms: Annotated[Wholes, _time("start_s", lambda row: row.start_ms)]
    terms: TermColumns | None


def _declared(columns: type) -> Mapping[str, Column]:
    """Return the columns by the field that holds their cells."""
    hints = get_type_hints(columns, include_extras=True)
    said = {field: getattr(hint, "__metadata__", ()) for field, hint in hints.items()}
    return {field: one[0] for field, one in said.items() if one}


JOB_COLUMNS = _declared(JobColumns)
TERM_COLUMNS = _declared(TermColumns)
COLUMNS = tuple(column.name for column in JOB_COLUMNS.values() if column.always)
KNOWN_COLUMNS = tuple(
    name
    for column in (*JOB_COLUMNS.values(), *TERM_COLUMNS.values())
    for name in (column.name, *(other for other, _ in column.also))
)


def job_columns(table: Table, *, fill: bool) -> JobColumns:
    """Return the columns of a table, or raise if one is missing."""
    gpus = _gpus(table)
    if gpus is None:
        raise _missing(table, "gpus", "add the column `gpus`")
    unread = ("gpus_milli", *(("submit_ms", "duration_ms", "start_ms") if fill else ()))
    read = {
        field: None if field in unread else column.read(table)
        for field, column in JOB_COLUMNS.items()
    }
    if table.rows and not fill:
        hint = "add the column; `tenfold sim run --fill` places jobs in file order without it"
        for field in ("submit_ms", "duration_ms"):
            if read[field] is None:
                raise _missing(table, JOB_COLUMNS[field].name, hint)
    cells = {**read, "gpus_milli": gpus, "terms": _term_columns(table)}
    return JobColumns(**cells)  # pyright: ignore[reportArgumentType]


def _term_columns(table: Table) -> TermColumns | None:
    """Return the terms of a table, or None where it has none, as most tables do."""
    if not any(column.name in table.names for column in TERM_COLUMNS.values()):
        return None
    read = {field: column.read(table) for field, column in TERM_COLUMNS.items()}
    return TermColumns(**read)  # pyright: ignore[reportArgumentType]


def column_notes(table: Table) -> list[str]:
    """Return a note on unknown columns."""
    unknown = [f"`{name}`" for name in table.names if name not in KNOWN_COLUMNS]
    if not unknown:
        return []
    verb = "the column {} is" if len(unknown) == 1 else "the columns {} are"
    return [f"{verb.format(', '.join(unknown))} unknown and ignored"]


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
            "no-jobs", f"`{table.file}` has no jobs", "add one row per job", file=table.file
        )
    return InputError(
        "missing-column",
        f"the column `{column}` {state}",
        hint,
        file=table.file,
        line=None if table.lines() is None else 1,
        field=column,
    )


def trace_name_column(table: Table) -> str:
    """Return the column that separates traces, if the file has one."""
    return next((name for name in TRACE_NAMES if name in table.names), "")


def complete_values(cells: Cells[int] | None) -> Sequence[int]:
    """Return the values of a column in which every cell is known."""
    assert cells is not None, "a column that was requested is there"
    return cast(Sequence[int], cells.values)
