"""Rows of a public table by the names in its header, with the values they hold.

A cell that cannot be read is counted as an error of its line and treated as empty, so that one
pass finds all errors of a file.
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from tenfold.files.traces.cells import NUMBER_MAX, UNKNOWN
from tenfold.files.traces.csv_table import csv_rows
from tenfold.files.traces.errors import TraceErrors
from tenfold.model.errors import InputError

_NO_TIME = ("unknown", "none", "0000-00-00 00:00:00")


class NamedRow:
    """One row of a table; what is missing or empty is None."""

    def __init__(self, line: int, cells: dict[str, str], errors: TraceErrors) -> None:
        self.line = line
        self._cells = cells
        self._errors = errors
        self.is_bad = False

    def text(self, name: str) -> str:
        """Return a cell as text, empty where it says nothing."""
        cell = self._cells.get(name, "").strip()
        return "" if cell in UNKNOWN else cell

    def has(self, name: str) -> bool:
        """Return whether the table has such a column at all."""
        return name in self._cells

    def number(self, name: str) -> float | None:
        """Return a cell as a number of zero or more."""
        cell = self.text(name)
        if not cell:
            return None
        try:
            value = float(cell)
        except ValueError:
            value = NUMBER_MAX * 2
        if 0 <= value <= NUMBER_MAX:
            return value
        self.fault(
            "not-a-number", name, f"`{name}` holds `{cell[:40]}`, which is not a valid amount"
        )
        return None

    def time_s(self, name: str) -> float | None:
        """Return a moment in seconds since 1970; a clock without a zone counts as UTC."""
        cell = self.text(name)
        if not cell or cell.lower() in _NO_TIME:
            return None
        found = seconds_of(cell)
        if found is None:
            self.fault("wrong-value", name, f"`{name}` holds `{cell[:40]}`, which is not a time")
        return found

    def fault(self, code: str, field: str, message: str) -> None:
        """Count this row as one that cannot be used."""
        if not self.is_bad:
            self._errors.add(code, message, "fix or remove the row", self.line, field)
        self.is_bad = True


def named_rows(
    path: Path,
    needed: Sequence[str],
    errors: TraceErrors,
    *,
    names: Sequence[str] = (),
) -> Iterator[NamedRow]:
    """Yield the rows of a table; `names` are the columns of a file without a header."""
    header = list(names)
    for line, cells in csv_rows(path):
        if not header or cells[: len(header)] == list(names):
            header = header or [cell.strip() for cell in cells]
            check_needed(path, header, needed, line)
            continue
        if len(cells) > len(header) and any(cells[len(header) :]):
            message = f"the row has {len(cells)} cells, but there are {len(header)} columns"
            errors.add("too-many-cells", message, "quote cells that contain a comma", line)
            continue
        yield NamedRow(line, dict(zip(header, cells, strict=False)), errors)


def seconds_of(text: str) -> float | None:
    """Return seconds since 1970 for a date with a time, or for such seconds themselves."""
    if text.replace(".", "", 1).isdigit() and text.isascii():
        return float(text) if len(text) < 16 else None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def is_time(cell: str) -> bool:
    """Return whether a cell can be read as a moment, or as none."""
    text = cell.strip()
    return text in UNKNOWN or text.lower() in _NO_TIME or seconds_of(text) is not None


def timestamp_text(seconds: float) -> str:
    """Return a moment as a note says it."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")


def check_needed(path: Path, header: Sequence[str], needed: Sequence[str], line: int) -> None:
    """Raise if a header lacks a column."""
    for name in needed:
        if name not in header:
            raise InputError(
                "missing-column",
                f"the header has no column `{name}`",
                f"required columns: {', '.join(needed)}",
                file=str(path),
                line=line,
                field=name,
            )
