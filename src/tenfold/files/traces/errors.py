"""Errors in a trace: all bad rows are counted and the first twenty shown."""

from collections.abc import Sequence
from pathlib import Path

from tenfold.model.errors import InputError, InvalidFile
from tenfold.model.fleet.finding import Finding

SHOWN_MAX = 20


class TraceErrors:
    """Errors in the rows of one file."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.count = 0
        self._findings: list[Finding] = []

    def add(self, code: str, message: str, hint: str, line: int | None, field: str = "") -> None:
        """Count a bad row, and keep the first twenty."""
        self.count += 1
        if len(self._findings) < SHOWN_MAX:
            path = (field,) if field else ()
            found = Finding(
                code=code, message=message, hint=hint, file=self.file, line=line, path=path
            )
            self._findings.append(found)

    def raise_if_any(self) -> None:
        """Raise if any row was bad."""
        if not self._findings:
            return
        more = self.count - len(self._findings)
        if more:
            self._findings.append(
                Finding(
                    code="more-bad-rows",
                    message=f"{more:,} more bad rows, {self.count:,} in total",
                    hint="fix the rows above first: they often share one cause",
                    file=self.file,
                )
            )
        raise InvalidFile(self.file, self._findings)


def check_header(names: Sequence[str], path: Path, line: int | None) -> None:
    """Reject a table with a duplicate column name."""
    twice = [name for position, name in enumerate(names) if name in names[:position]]
    if twice:
        raise InputError(
            "csv-header",
            f"the header has the column `{twice[0]}` twice",
            "give each column a unique name",
            file=str(path),
            line=line,
            field=twice[0],
        )


def unreadable(path: Path, reason: str) -> InputError:
    """Return the error for a file that is damaged."""
    why = reason.splitlines()[0] if reason else "it is truncated"
    return InputError(
        "unreadable-table",
        f"`{path}` cannot be read as a table: {why}",
        "check that the file is complete",
        file=str(path),
    )
