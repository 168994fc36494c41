"""A job table as whole columns, whichever file it comes from.

A trace has 100,000 rows, so cells are converted a column at a time and looked at one by
one only where that fails; the line of a row is sought only when something is wrong.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, TypeVar

from tenfold.files.traces.cells import Cells
from tenfold.model.errors import InputError

SUFFIXES = (".csv", ".csv.gz", ".parquet")


class Table(Protocol):
    """Rows of a file by column. A column that is absent or empty throughout is None."""

    file: str
    names: tuple[str, ...]
    rows: int

    def texts(self, name: str) -> Cells[str] | None:
        """Return a column as text."""
        ...

    def numbers(self, name: str) -> Cells[float] | None:
        """Return a column as finite numbers."""
        ...

    def milli(self, name: str) -> Cells[int] | None:
        """Return a column of numbers in whole thousandths: seconds become milliseconds."""
        ...

    def lines(self) -> list[int] | None:
        """Return the line of each row; None where the format has no lines."""
        ...


def read_table(path: Path, wanted: Sequence[str]) -> Table:
    """Read the wanted columns of a file by its suffix."""
    name = path.name.lower()
    if not name.endswith(SUFFIXES):
        raise InputError(
            "unknown-suffix",
            f"unsupported file type `{path}`",
            f"use a file that ends in {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}",
            file=str(path),
        )
    # Each reader loads what the other has no need of.
    if name.endswith(".parquet"):
        from tenfold.files.traces.parquet_table import ParquetTable  # noqa: PLC0415

        return ParquetTable(path, wanted)
    from tenfold.files.traces.csv_table import CsvTable  # noqa: PLC0415

    return CsvTable(path)


V = TypeVar("V")
NAMES_SHOWN = 12


class SelectedRows:
    """Some rows of a table, as a table."""

    def __init__(self, table: Table, rows: Sequence[int]) -> None:
        self.file, self.names, self.rows = table.file, table.names, len(rows)
        self._table, self._rows = table, rows

    def texts(self, name: str) -> Cells[str] | None:
        """Return a column as text."""
        return self._of(self._table.texts(name))

    def numbers(self, name: str) -> Cells[float] | None:
        """Return a column as finite numbers."""
        return self._of(self._table.numbers(name))

    def milli(self, name: str) -> Cells[int] | None:
        """Return a column of numbers in whole thousandths."""
        return self._of(self._table.milli(name))

    def lines(self) -> list[int] | None:
        """Return the line of each row."""
        lines = self._table.lines()
        return None if lines is None else [lines[row] for row in self._rows]

    def _of(self, cells: Cells[V] | None) -> Cells[V] | None:
        if cells is None:
            return None
        values = [cells.values[row] for row in self._rows]
        bad = {at: cells.bad[row] for at, row in enumerate(self._rows) if row in cells.bad}
        if not bad and all(one is None for one in values):
            return None
        return Cells(values, None in values, bad)


def rows_of_trace(table: Table, column: str, trace: str) -> Table:
    """Return the rows of one of the traces in a table; `column` names the trace of each row."""
    cells = table.texts(column) if column else None
    names = [] if cells is None else [name or "" for name in cells.values]
    rows = [row for row, name in enumerate(names) if name == trace]
    if not rows:
        known = sorted(set(names) - {""})
        shown = ", ".join(known[:NAMES_SHOWN]) + (", ..." if len(known) > NAMES_SHOWN else "")
        raise InputError(
            "no-such-trace",
            f"`{table.file}` has no trace `{trace}`",
            f"use one of {shown}" if known else "leave out `--trace`: the file has one trace",
            file=table.file,
            field="--trace",
        )
    return SelectedRows(table, rows)
