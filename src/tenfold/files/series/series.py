"""Read series of values: CSV with `id,t,value`, or one series per row as in the M4 competition.

A few missing values are interpolated, and a note says how many; a longer gap is an error.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from math import isfinite
from pathlib import Path
from statistics import median_low

from tenfold.files.traces.csv_table import csv_rows
from tenfold.model.errors import InputError

COLUMNS = ("id", "t", "value")
Row = tuple[int, list[str]]
Timed = tuple[float, float | None, int]
"""Time, value or None if it is missing, and line."""
MISSING = ("", "na", "nan", "null", "none")
UNEVEN = 0.2
"""Share by which a step may differ from the usual one: months have 28 to 31 days."""
FILLED_MOST = 0.05
"""Share of values that may be missing: more would be made up, not recorded."""


def read_series(path: Path, notes: list[str] | None = None) -> dict[str, list[float]]:
    """Return the values of each series, in order of time; raise with the first bad line."""
    rows = csv_rows(path)
    first = next(rows, None)
    if first is None:
        raise _bad(path, None, "the file is empty", "start with the line `id,t,value`")
    line, header = first
    names = [name.strip().lower() for name in header]
    missing = [name for name in COLUMNS if name not in names]
    filled = [] if notes is None else notes
    if not missing:
        found = _timed(path, rows, {name: names.index(name) for name in COLUMNS}, filled)
        return _not_empty(path, {name: values for name, (_, values) in found.items()})
    if len(names) < 3 or len(missing) == 1:
        problem = f"the header has no column `{missing[0]}`"
        raise _bad(path, line, problem, "start with `id,t,value`, or give one series per row")
    return _wide(path, [first, *rows], filled)


def read_timed_series(
    path: Path, notes: list[str] | None = None
) -> dict[str, tuple[float, list[float]]]:
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
    found = _timed(path, rows, at, [] if notes is None else notes)
    for name, (step, _) in found.items():
        if step <= 0:
            message = f"series `{name}` has a single value"
            raise _bad(path, None, message, "give at least two values")
    return found


def _timed(
    path: Path, rows: Iterator[Row], at: Mapping[str, int], notes: list[str]
) -> dict[str, tuple[float, list[float]]]:
    """Return the usual step and the values of each series, evenly spaced; 0 for a single value."""
    read: dict[str, list[Timed]] = {}
    for line, cells in rows:
        if len(cells) <= max(at.values()):
            raise _bad(path, line, "the row has too few cells", "give `id`, `t` and `value`")
        name = cells[at["id"]].strip()
        text = cells[at["value"]]
        value = None if _is_missing(text) else _number(path, line, text, "value")
        read.setdefault(name, []).append((_time(path, line, cells[at["t"]]), value, line))
    found: dict[str, tuple[float, list[float]]] = {}
    for name, values in read.items():
        ordered = sorted(values, key=lambda one: (one[0], one[2]))
        step, even = _even(path, name, ordered)
        found[name] = step, _filled(path, name, even, notes)
    return found


def _wide(path: Path, rows: Sequence[Row], notes: list[str]) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for line, cells in rows:
        if line == rows[0][0] and not _is_number(cells[1].strip()):
            continue
        name = cells[0].strip()
        if name in found:
            message = f"series `{name}` is given twice"
            hint = "give each `id` once, or start with the line `id,t,value` for one row per value"
            raise _bad(path, line, message, hint)
        values = [
            (None if _is_missing(text) else _number(path, line, text, name), line)
            for text in cells[1:]
        ]
        found[name] = _filled(path, name, values, notes)
    return _not_empty(path, found)


def _not_empty(path: Path, found: dict[str, list[float]]) -> dict[str, list[float]]:
    if not found:
        raise _bad(path, None, "the file has no values", "give one row per value")
    return found


def _even(
    path: Path, name: str, values: Sequence[Timed]
) -> tuple[float, list[tuple[float | None, int]]]:
    """Return the usual step, and the values with a missing one for each step left out."""
    steps = [after[0] - before[0] for before, after in pairwise(values)]
    usual = median_low(steps) if steps else 0.0
    even = [(values[0][1], values[0][2])]
    for step, (_, value, line) in zip(steps, values[1:], strict=True):
        if step <= 0:
            message = f"series `{name}` has two rows at the same time"
            raise _bad(path, line, message, "give one row per series and time", "t")
        times = round(step / usual) if usual else 0
        left_out = times - 1
        if abs(step - times * usual) > UNEVEN * usual or left_out > FILLED_MOST * len(values):
            message = (
                f"series `{name}` is not evenly spaced: a gap of {step:g} where others are "
                f"{usual:g}"
            )
            raise _bad(path, line, message, "fill the gap, or forecast the part after it", "t")
        even += [(None, line)] * left_out
        even.append((value, line))
    return usual, even


def _filled(
    path: Path, name: str, values: Sequence[tuple[float | None, int]], notes: list[str]
) -> list[float]:
    """Return the values from the first to the last one known, with gaps between them filled."""
    known = [at for at, (value, _) in enumerate(values) if value is not None]
    if not known:
        line = values[0][1] if values else None
        raise _bad(path, line, f"series `{name}` has no values", "give its values, or remove it")
    first, last = known[0], known[-1]
    missing = last - first + 1 - len(known)
    if missing > FILLED_MOST * len(known):
        line = next(line for value, line in values[first:] if value is None)
        message = f"series `{name}` lacks {missing:,} of {last - first + 1:,} values"
        hint = f"fill them in: at most {FILLED_MOST:.0%} of values are interpolated"
        raise _bad(path, line, message, hint, "value")
    if missing:
        notes.append(f"series `{name}`: interpolated {missing:,} missing of {last - first + 1:,}")
    found: list[float] = []
    for before, after in pairwise(known):
        low, high = values[before][0] or 0.0, values[after][0] or 0.0
        each = (high - low) / (after - before)
        found += [low + each * place for place in range(after - before)]
    return [*found, values[last][0] or 0.0]


def _is_missing(text: str) -> bool:
    return text.strip().lower() in MISSING


def _time(path: Path, line: int, text: str) -> float:
    if _is_number(text):
        return float(text)
    try:
        time = datetime.fromisoformat(text.strip())
    except ValueError:
        message = f"`t` must be a number or an ISO 8601 time, got `{text[:40]}`"
        raise _bad(path, line, message, "write it as 3600 or 2026-08-22T10:00:00+00:00", "t") from (
            None
        )
    # Not the zone of this machine, in which some hours may be missing.
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()


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
