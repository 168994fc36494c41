"""A column of a trace: values, gaps, and cells that are no value at all."""

from collections.abc import Sequence
from math import isfinite
from typing import Generic, NamedTuple, TypeVar, cast

NUMBER_MAX = 1e12
UNKNOWN = frozenset(("", "nan", "NaN", "null", "NULL", "None", "NA", "N/A", "<NA>"))
"""Cells that say no more than an empty one."""

V = TypeVar("V")


class Cells(NamedTuple, Generic[V]):
    """A column: None where nothing is known; `bad` has the text of cells that are no value."""

    values: Sequence[V | None]
    gaps: bool
    bad: dict[int, str]


def known_texts(texts: Sequence[str]) -> Cells[str] | None:
    """Return a column of text; None where nothing in it is known."""
    if UNKNOWN.isdisjoint(texts):
        return Cells(texts, False, {})
    if UNKNOWN.issuperset(texts):
        return None
    return Cells([None if one in UNKNOWN else one for one in texts], True, {})


def parsed(texts: Cells[str]) -> Cells[float]:
    """Return the numbers that a column of text writes."""
    if not texts.gaps:
        try:
            return checked(list(map(float, cast(Sequence[str], texts.values))))
        except ValueError:
            pass
    values: list[float | None] = []
    bad: dict[int, str] = {}
    for row, text in enumerate(texts.values):
        try:
            number = None if text is None else float(text)
        except ValueError:
            number = None
            bad[row] = text or ""
        if number is not None and not abs(number) <= NUMBER_MAX:
            number = None
            bad[row] = text or ""
        values.append(number)
    return Cells(values, None in values, bad)


def checked(values: list[float]) -> Cells[float]:
    """Take numbers as they are; what is not a number counts as not known."""
    if not values or (
        isfinite(sum(values)) and -NUMBER_MAX <= min(values) <= max(values) <= NUMBER_MAX
    ):
        return Cells(cast(list[float | None], values), False, {})
    kept = [one if abs(one) <= NUMBER_MAX else None for one in values]
    bad = {row: str(one) for row, one in enumerate(values) if abs(one) > NUMBER_MAX}
    return Cells(kept, None in kept, bad)


def thousandths(cells: Cells[float]) -> Cells[int]:
    """Return a column of numbers in whole thousandths."""
    if not cells.gaps:
        known = cast(Sequence[float], cells.values)
        return Cells([round(one * 1_000) for one in known], False, cells.bad)
    values = [None if one is None else round(one * 1_000) for one in cells.values]
    return Cells(values, True, cells.bad)
