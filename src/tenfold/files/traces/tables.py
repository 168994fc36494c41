"""A job table as whole columns, whichever file it comes from.

A trace has 100,000 rows, so cells are converted a column at a time and looked at one by
one only where that fails; the line of a row is sought only when something is wrong.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

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
