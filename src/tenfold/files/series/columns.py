"""Columns of numbers without gaps, with the line of the first bad cell."""

from pathlib import Path

from tenfold.files.traces.tables import Table
from tenfold.model.errors import InputError


def number_column(table: Table, path: Path, name: str, hint: str) -> list[float]:
    """Return a column in which every cell is a number; raise with the first that is not."""
    cells = table.numbers(name)
    if cells is None:
        raise bad_row(table, path, 0, (name, f"`{name}` must be a number", hint))
    if not cells.gaps and not cells.bad:
        return [value for value in cells.values if value is not None]
    values: list[float] = []
    for row, value in enumerate(cells.values):
        if value is None:
            got = f", got `{cells.bad[row][:40]}`" if row in cells.bad else ""
            raise bad_row(table, path, row, (name, f"`{name}` must be a number{got}", hint))
        values.append(value)
    return values


def check_columns(table: Table, path: Path, names: tuple[str, ...], hint: str) -> None:
    """Raise if a column is missing, or the table has no rows."""
    missing = [name for name in names if name not in table.names]
    if missing or not table.rows:
        raise InputError(
            "csv-header",
            f"`{path}` has no column `{missing[0]}`" if missing else f"`{path}` has no rows",
            hint,
            file=str(path),
            line=1 if table.lines() is not None else None,
            field=missing[0] if missing else "",
        )


def bad_row(table: Table, path: Path, row: int, what: tuple[str, str, str]) -> InputError:
    """Return the error for a row: `what` is its field, message and hint."""
    field, message, hint = what
    lines = table.lines()
    where = f"row {row + 1}: " if lines is None else ""
    return InputError(
        "wrong-value",
        f"{where}{message}",
        hint,
        file=str(path),
        line=None if lines is None else lines[row],
        field=field,
    )
