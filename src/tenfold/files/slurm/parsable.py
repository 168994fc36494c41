"""Rows of `sacct --parsable2`, whose free texts may hold bars and line breaks of their own.

Slurm quotes nothing: a job named `a|b` has one cell too many, and a job whose name has a line break
is on two lines. A row is complete once it has a cell for each column; cells beyond that belong to
the free text that lets the times and the state be read.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path

from tenfold.files.traces.csv_table import read_plain_bytes
from tenfold.files.traces.errors import TraceErrors
from tenfold.files.traces.named_rows import NamedRow, check_needed, is_time
from tenfold.model.errors import InputError

_FREE_TEXTS = (
    "JobName",
    "Comment",
    "AdminComment",
    "SystemComment",
    "SubmitLine",
    "WorkDir",
    "Extra",
    "Reason",
    "Constraints",
    "Container",
)
_TIMES = ("Submit", "Eligible", "Start", "End")
_STATE = re.compile(r"[A-Z][A-Z_]*\+?(?: by .+)?|")
LINES_MOST = 200
"""Lines of one row: a name has at most 1,024 characters, a comment is rarely longer."""


def parsable_rows(path: Path, needed: Sequence[str], errors: TraceErrors) -> Iterator[NamedRow]:
    """Yield the rows of a saved listing."""
    content = read_plain_bytes(path)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(
            "not-utf-8",
            f"`{path}` is not UTF-8 text",
            f"save it as UTF-8, or convert it: iconv -t utf-8 {path}",
            file=str(path),
            line=content.count(b"\n", 0, error.start) + 1,
        ) from None
    yield from parsable_text(text, needed, errors, path)


def parsable_text(
    text: str, needed: Sequence[str], errors: TraceErrors, path: Path | None = None
) -> Iterator[NamedRow]:
    """Yield the rows of a listing."""
    lines = _Lines(text)
    header: list[str] = []
    for first in lines:
        number = lines.number
        if not first.strip():
            continue
        if not header:
            header = [cell.strip() for cell in first.split("|")]
            if path is not None:
                check_needed(path, header, needed, number)
            continue
        cells = _row(first, lines, header)
        if cells == header:
            continue
        if len(cells) > len(header) and any(cells[len(header) :]):
            message = f"the row has {len(cells)} cells, but there are {len(header)} columns"
            errors.add("too-many-cells", message, "fix or remove the row", number)
            continue
        yield NamedRow(number, dict(zip(header, cells, strict=False)), errors)


class _Lines:
    """Lines of a text with their numbers; those that were looked at can be given back."""

    def __init__(self, text: str) -> None:
        # Not `splitlines`, which also divides at characters that a name may hold.
        self._rest: Iterator[str] = (line.removesuffix("\r") for line in text.split("\n"))
        self.number = 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = next(self._rest)
        self.number += 1
        return line

    def give_back(self, lines: Sequence[str]) -> None:
        """Return lines so that they come again."""
        self._rest = chain(lines, self._rest)
        self.number -= len(lines)


def _row(first: str, lines: _Lines, header: Sequence[str]) -> list[str]:
    """Return the cells of the row that begins with a line."""
    taken = [first]
    bars, width = first.count("|"), len(header) - 1
    if bars == width:
        return [cell.strip() for cell in first.split("|")]
    while bars < width and len(taken) < LINES_MOST and (line := next(lines, None)) is not None:
        taken.append(line)
        bars += line.count("|")
    found = _fitted("\n".join(taken).split("|"), header)
    if found is None:
        # It is not one row: the lines after the first are rows of their own.
        lines.give_back(taken[1:])
        return [cell.strip() for cell in first.split("|")]
    return found


def _fitted(cells: list[str], header: Sequence[str]) -> list[str] | None:
    """Return one cell for each column; None if no free text explains the others."""
    over = len(cells) - len(header)
    if over < 0:
        return None
    if not any(cells[len(header) :]) and _is_readable(cells, header):
        return cells[: len(header)]
    for name in _FREE_TEXTS:
        if name not in header:
            continue
        place = header.index(name)
        joined = "|".join(cells[place : place + over + 1])
        fitted = [*cells[:place], joined, *cells[place + over + 1 :]]
        if _is_readable(fitted, header):
            return fitted
    return None


def _is_readable(cells: Sequence[str], header: Sequence[str]) -> bool:
    row: Iterable[tuple[str, str]] = zip(header, cells, strict=False)
    return all(
        is_time(cell) if name in _TIMES else name != "State" or _STATE.fullmatch(cell) is not None
        for name, cell in row
    )
