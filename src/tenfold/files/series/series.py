"""Read series of values: CSV with `id,t,value`, or one series per row as in the M4 competition."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from math import isfinite
from pathlib import Path
from statistics import median_low

from tenfold.files.traces.csv_table import csv_rows
from tenfold.model.errors import InputError

COLUMNS = ("id", "t", "value")
Row = tuple[int, list[str]]
UNEVEN = 0.2
"""Share by which a step may differ from the usual one: months have 28 to 31 days."""


def read_series(path: Path) -> dict[str, list[float]]:
    """Return the values of each series, in order of time; raise with the first bad line."""
    rows = csv_rows(path)
    first = next(rows, None)
    if first is None:
        raise _bad(path, None, "the file is empty", "start with the line `id,t,value`")
    line, header = first
    names = [name.strip().lower() for name in header]
    if all(name in names for name in COLUMNS):
        return _long(path, rows, {name: names.index(name) for name in COLUMNS})
    if len(names) < 3:
        missing = next(one for one in COLUMNS if one not in names)
        problem = f"the header has no column `{missing}`"
        raise _bad(path, line, problem, "start with `id,t,value`, or give one series per row")
    return _wide(path, [first, *rows])


def read_timed_series(path: Path) -> dict[str, tuple[float, list[float]]]:
    """Return the step in seconds and the values of each series; only of `id,t,value`."""
    rows = csv_rows(path)
    none: Row = (1, [])
    line, header = next(rows, none)
    names = [name.strip().lower() for name in header]
    missing = next((one for one in COLUMNS if one not in names), None)
    if missing is not None:
        message = f"the header has no column `{missing}`"
        raise _bad(path, line, message, "start with the line `id,t,value`")
    at = {name: names.index(name) for name in COLUMNS}
    found: dict[str, tuple[float, list[float]]] = {}
    for name, values in _timed(path, rows, at).items():
        steps = [after[0] - before[0] for before, after in pairwise(values)]
        if not steps:
            message = f"series `{name}` has a single value"
            raise _bad(path, values[0][2], message, "give at least two values")
        found[name] = (median_low(steps), [one[1] for one in values])
    return found


def _long(path: Path, rows: Iterator[Row], at: Mapping[str, int]) -> dict[str, list[float]]:
    found = _timed(path, rows, at)
    return _not_empty(path, {name: [one[1] for one in values] for name, values in found.items()})


def _timed(
    path: Path, rows: Iterator[Row], at: Mapping[str, int]
) -> dict[str, list[tuple[float, float, int]]]:
    """Return time, value and line of each row by series, evenly spaced."""
    found: dict[str, list[tuple[float, float, int]]] = {}
    for line, cells in rows:
        if len(cells) <= max(at.values()):
            raise _bad(path, line, "the row has too few cells", "give `id`, `t` and `value`")
        name = cells[at["id"]].strip()
        value = _number(path, line, cells[at["value"]], "value")
        found.setdefault(name, []).append((_time(path, line, cells[at["t"]]), value, line))
    for name, values in found.items():
        _check_even(path, name, values)
    return found


def _wide(path: Path, rows: Sequence[Row]) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for line, cells in rows:
        values = [cell.strip() for cell in cells[1:]]
        while values and values[-1] in ("", "NA"):
            values.pop()
        if line == rows[0][0] and not _is_number(values[0] if values else ""):
            continue
        name = cells[0].strip()
        if name in found:
            raise _bad(path, line, f"series `{name}` is given twice", "give each `id` once")
        found[name] = [_number(path, line, value, name) for value in values]
    return _not_empty(path, found)


def _not_empty(path: Path, found: dict[str, list[float]]) -> dict[str, list[float]]:
    if not found:
        raise _bad(path, None, "the file has no values", "give one row per value")
    return found


def _check_even(path: Path, name: str, values: Sequence[tuple[float, float, int]]) -> None:
    steps = [after[0] - before[0] for before, after in pairwise(values)]
    usual = median_low(steps) if steps else 0.0
    for step, (_, _, line) in zip(steps, values[1:], strict=True):
        if step <= 0:
            message = f"`t` of series `{name}` does not increase"
            raise _bad(path, line, message, "sort the rows by time, one row per time", "t")
        if abs(step - usual) > UNEVEN * usual:
            message = (
                f"series `{name}` is not evenly spaced: a gap of {step:g} where others are "
                f"{usual:g}"
            )
            raise _bad(path, line, message, "fill the gap, or forecast the part after it", "t")


def _time(path: Path, line: int, text: str) -> float:
    if _is_number(text):
        return float(text)
    try:
        return datetime.fromisoformat(text.strip()).timestamp()
    except ValueError:
        message = f"`t` must be a number or an ISO 8601 time, got `{text[:40]}`"
        raise _bad(path, line, message, "write it as 3600 or 2026-08-22T10:00:00+00:00", "t") from (
            None
        )


def _number(path: Path, line: int, text: str, field: str) -> float:
    if not _is_number(text):
        message = f"`{field}` must be a number, got `{text[:40]}`"
        raise _bad(path, line, message, "write plain numbers, such as 128 or 0.5", field)
    return float(text)


def _is_number(text: str) -> bool:
    try:
        return isfinite(float(text))
    except ValueError:
        return False


def _bad(path: Path, line: int | None, message: str, hint: str, field: str = "") -> InputError:
    return InputError("wrong-value", message, hint, file=str(path), line=line, field=field)
