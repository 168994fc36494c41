"""Read the tables of a plan or driver file, and report every error with its line."""

from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import TypeVar, cast

from msgspec import Struct
from msgspec.structs import replace

from tenfold.files.core.document import Document, read_document
from tenfold.files.core.rows import read_row, read_rows
from tenfold.model.errors import InvalidFile
from tenfold.model.fleet.finding import Finding
from tenfold.model.fleet.finding import Path as Place

R = TypeVar("R", bound=Struct)


class FileTables:
    """The tables of one file, and the errors found in them."""

    def __init__(self, path: Path, known: Sequence[str], kind: str) -> None:
        self._path = path
        self._document: Document = read_document(path)
        self.findings: list[Finding] = [
            Finding(
                code="unknown-key",
                message=f"unknown key `{key}`",
                hint=f"a {kind} has only the tables {', '.join(f'`{one}`' for one in known)}",
                path=(key,),
            )
            for key in self._document.values
            if key not in known
        ]

    def one(self, name: str, kind: type[R]) -> R | None:
        """Return a single table; None if it is not there."""
        values = _with_text_dates(self._document.values.get(name))
        if values is None:
            return None
        return read_row(kind, values, (name,), self.findings)

    def many(self, name: str, kind: type[R]) -> dict[int, R]:
        """Return the tables of a list by position."""
        values = _with_text_dates(self._document.values.get(name))
        return {} if values is None else read_rows(kind, values, (name,), self.findings)

    def wrong(self, path: Place, message: str, hint: str, code: str = "wrong-value") -> None:
        """Add an error."""
        self.findings.append(Finding(code=code, message=message, hint=hint, path=path))

    def check_day(self, path: Place, day: str) -> None:
        """Add an error if a day is stated that is none."""
        if day and parsed_day(day) is None:
            hint = "write it as 2027-03-01"
            self.wrong(path, f"`{path[-1]}` must be a day, got `{day[:40]}`", hint)

    def check_names(self, table: str, names: dict[int, str]) -> None:
        """Add an error for each name that is given twice."""
        seen: dict[str, int] = {}
        for at, name in names.items():
            if name in seen:
                message = f"two `{table}` entries are named `{name}`"
                self.wrong((table, at), message, "give each its own name", "duplicate-name")
            seen[name] = at

    def finish(self) -> None:
        """Raise if there is an error."""
        if not self.findings:
            return
        located = [
            replace(one, file=self._document.file, line=self._document.line_of(one.path))
            for one in self.findings
        ]
        located.sort(key=lambda found: (found.line or 0, found.code))
        raise InvalidFile(str(self._path), located)


def parsed_day(day: str) -> date | None:
    """Return a day such as 2027-03-01; None if it is none."""
    try:
        return date.fromisoformat(day)
    except ValueError:
        return None


def _with_text_dates(value: object) -> object:
    """Return values with dates as text: the core has no calendar."""
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, dict):
        table = cast(dict[str, object], value)
        return {key: _with_text_dates(item) for key, item in table.items()}
    if isinstance(value, list):
        return [_with_text_dates(item) for item in cast(list[object], value)]
    return value
