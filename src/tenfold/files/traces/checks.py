"""Find the bad rows of a job table.

Valid tables never get here: whole columns are checked at once, and only a table that fails is
checked row by row, to report each bad row with its line.
"""

from collections.abc import Iterator, Sequence
from typing import NoReturn

from tenfold.files.traces.cells import Cells
from tenfold.files.traces.columns import JobColumns, trace_name_column
from tenfold.files.traces.errors import TraceErrors
from tenfold.files.traces.tables import Table
from tenfold.files.traces.term_checks import Problem, TermChecks, elastic_request_problem
from tenfold.model.job.job import WHOLE


def refuse(table: Table, columns: JobColumns, ids: Sequence[str], *, fill: bool) -> NoReturn:
    """Raise with every bad row."""
    errors = TraceErrors(table.file)
    lines = table.lines()
    seen: dict[str, int] = {}
    terms = None if columns.terms is None else TermChecks(columns.terms, ids)
    for row in range(table.rows):
        problems = [*_row_problems(columns, row, fill=fill)]
        if terms is not None:
            problems.extend(_term_problems(columns, terms, row))
        if not fill:
            problems.extend(_duplicate_problem(table, ids[row], row, seen, lines))
        if problems:
            field, code, _, hint = problems[0]
            said = "; ".join(message for _, _, message, _ in problems)
            if lines is None:
                said = f"row {row + 1}: {said}"
            errors.add(code, said, hint, None if lines is None else lines[row], field)
    errors.raise_if_any()
    raise AssertionError("a table was refused, but all of its rows are valid")


def shape_problem(gpus_milli: int, per_node_milli: int | None) -> tuple[str, str] | None:
    """Return the column and the problem if a request for GPUs is invalid."""
    if gpus_milli < 0:
        return "gpus", f"`gpus` must not be negative, got {_shown(gpus_milli)}"
    if gpus_milli > WHOLE and gpus_milli % WHOLE:
        many = f"`gpus` is {_shown(gpus_milli)}: use a fraction below 1 or a whole number"
        return "gpus", many
    if per_node_milli is None or gpus_milli <= WHOLE:
        return None
    if per_node_milli < WHOLE or per_node_milli % WHOLE:
        return (
            "gpus_per_node",
            f"`gpus_per_node` must be a whole number, got {_shown(per_node_milli)}",
        )
    if gpus_milli > per_node_milli and gpus_milli % per_node_milli:
        per_node = _shown(per_node_milli)
        many = f"`gpus` is {_shown(gpus_milli)}, not a multiple of `gpus_per_node` ({per_node})"
        return "gpus_per_node", many
    return None


def terms_are_valid(columns: JobColumns, ids: Sequence[str]) -> bool:
    """Return whether the terms of every row are valid."""
    if columns.terms is None:
        return True
    terms = TermChecks(columns.terms, ids)
    rows = range(len(ids))
    return not any(any(True for _ in _term_problems(columns, terms, row)) for row in rows)


def _term_problems(columns: JobColumns, terms: TermChecks, row: int) -> Iterator[Problem]:
    gpus, per_node = columns.gpus_milli.values[row], columns.gpus_per_node_milli
    cpus, memory = columns.cpus, columns.memory_gib
    if gpus is None:
        return
    yield from terms.problems(row, gpus, per_node.values[row] if per_node else None)
    found = elastic_request_problem(
        terms.is_elastic(row),
        cpus.values[row] if cpus else None,
        memory.values[row] if memory else None,
    )
    if found:
        yield found


def _row_problems(columns: JobColumns, row: int, *, fill: bool) -> Iterator[Problem]:
    gpus = columns.gpus_milli.values[row]
    if row not in columns.gpus_milli.bad:
        if gpus is None:
            yield "gpus", "wrong-value", "`gpus` is empty", "write 0 for a job without GPUs"
        else:
            per_node = columns.gpus_per_node_milli
            found = shape_problem(gpus, per_node.values[row] if per_node else None)
            if found:
                yield found[0], "wrong-value", found[1], "write `0.5` for half a GPU, `2` for two"
    for name, cells in _numbers(columns).items():
        if row in cells.bad:
            shown = f"`{name}` holds `{cells.bad[row][:40]}`, which is not a valid number"
            yield (
                name,
                "not-a-number",
                shown,
                "write a plain number; the unit is in the column name",
            )
    for name, cells in _amounts(columns).items():
        value = cells.values[row]
        if value is not None and value < 0:
            shown = _shown(value) if name.endswith("_s") else f"{value:g}"
            text = f"`{name}` must not be negative, got {shown}"
            yield name, "wrong-value", text, "fix or remove the row"
        required = name in ("submit_s", "duration_s") and not fill
        if value is None and required and row not in cells.bad:
            yield name, "wrong-value", f"`{name}` is empty", "remove jobs that never ran"


def _duplicate_problem(
    table: Table, job: str, row: int, seen: dict[str, int], lines: list[int] | None
) -> Iterator[Problem]:
    first = seen.setdefault(job, row)
    if first == row:
        return
    where = f"in row {first + 1}" if lines is None else f"on line {lines[first]}"
    trace_column = trace_name_column(table)
    hint = "give each job a unique id"
    if trace_column:
        hint = (
            f"keep only the rows of one trace: see the column `{trace_column}` (`--trace` of "
            "`tenfold assess trace`)"
        )
    yield "job_id", "duplicate-name", f"duplicate job `{job}`, also {where}", hint


def _numbers(columns: JobColumns) -> dict[str, Cells[int] | Cells[float]]:
    found = {
        "gpus": columns.gpus_milli,
        "gpus_per_node": columns.gpus_per_node_milli,
        "priority": columns.priority_milli,
    }
    named = {name: cells for name, cells in found.items() if cells is not None}
    return {**named, **_amounts(columns)}


def _amounts(columns: JobColumns) -> dict[str, Cells[int] | Cells[float]]:
    found = {
        "submit_s": columns.submit_ms,
        "duration_s": columns.duration_ms,
        "limit_s": columns.limit_ms,
        "deadline_s": columns.deadline_ms,
        "start_s": columns.start_ms,
        "cpus": columns.cpus,
        "mem_gib": columns.memory_gib,
    }
    return {name: cells for name, cells in found.items() if cells is not None}


def _shown(milli: float) -> str:
    return f"{milli / 1_000:.15g}"
