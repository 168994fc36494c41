"""Charts of points: lines, scatters and shares of a distribution, as SVG without scripts."""

from collections.abc import Mapping, Sequence
from math import isfinite, sqrt

from msgspec import Struct
from msgspec.structs import replace

from tenfold.report.charts.axes import Axis, kept, percent
from tenfold.report.charts.plot import PlotArea, field_of, frame
from tenfold.report.charts.rack_map import COLOURS
from tenfold.report.charts.svg import (
    ACCENT,
    CARD,
    FAINT,
    LABEL,
    Card,
    TextStyle,
    dot,
    line,
    path,
    picture,
    text,
    width_of,
)

WORD_ROW = 15
DOT, DOT_MIN, DOT_MAX = 3.5, 5.0, 16.0
Point = tuple[float, float]
Box = tuple[float, float, float, float]


class Series(Struct, frozen=True, kw_only=True):
    """A line through points. `hints` stand beside its points for a resting pointer."""

    name: str
    points: tuple[Point, ...]
    colour: str = ""
    dashed: bool = False
    dots: bool = True
    hints: tuple[str, ...] = ()


class Rule(Struct, frozen=True, kw_only=True):
    """A vertical line at a value, with a word for it."""

    at: float
    label: str
    colour: str = ACCENT


class Dot(Struct, frozen=True, kw_only=True):
    """A point of a scatter; the area of its mark grows with `size`."""

    x: float
    y: float
    size: float = 1.0
    label: str = ""
    hint: str = ""
    chosen: bool = False


def line_chart(
    card: Card, series: Sequence[Series], x: Axis, y: Axis, rules: Sequence[Rule] = ()
) -> str:
    """Return a chart of lines, with marked places along the horizontal axis."""
    shown = [
        (one, one.colour or COLOURS[place % len(COLOURS)], _kept(one.points, x, y))
        for place, one in enumerate(series)
    ]
    names = [(one.name, colour) for one, colour, _ in shown]
    marks = [rule for rule in rules if kept(rule.at, log=x.log)]
    every = [point for *_, points in shown for point in points]
    field = field_of(card, x, y, every, names)
    rows = _rows(marks, field)
    field = replace(field, top=field.top + WORD_ROW * (max(rows, default=-1) + 1))
    parts = frame(card, field, x, y, names) + _rules(marks, rows, field)
    for one, colour, points in shown:
        places = [field.at(point) for point in points]
        if len(places) > 1:
            parts.append(path(places, colour, "5 4" if one.dashed else ""))
        # Without a mark a line of one point could not be seen.
        if one.dots or len(places) == 1:
            hints = one.hints or tuple(f"{x.label(a)}: {y.label(b)}" for a, b in points)
            parts += [
                dot(place, DOT, colour, hint) for place, hint in zip(places, hints, strict=False)
            ]
    description = "; ".join(_description(one.name, points, x, y) for one, _, points in shown)
    marked = "; ".join(f"{rule.label} at {x.label(rule.at)}" for rule in marks)
    return picture(
        card, ". ".join(part for part in (description, marked) if part) or "No values.", parts
    )


def _kept(points: Sequence[Point], x: Axis, y: Axis) -> list[Point]:
    return [(a, b) for a, b in points if kept(a, log=x.log) and kept(b, log=y.log)]


def _description(name: str, points: Sequence[Point], x: Axis, y: Axis) -> str:
    if not points:
        return f"{name}: no values"
    (a, b), (c, d) = points[0], points[-1]
    return f"{name}: {y.label(b)} at {x.label(a)} to {y.label(d)} at {x.label(c)}"


def _rows(rules: Sequence[Rule], field: PlotArea) -> list[int]:
    """Return for each word above the field the lowest row where it covers no other."""
    ends: list[list[tuple[float, float]]] = []
    rows: list[int] = []
    for rule in rules:
        middle, half = _word(rule, field)
        own = (middle - half - 6, middle + half + 6)
        free = (
            row
            for row, taken in enumerate(ends)
            if all(own[1] <= start or own[0] >= end for start, end in taken)
        )
        row = next(free, len(ends))
        if row == len(ends):
            ends.append([])
        ends[row].append(own)
        rows.append(row)
    return rows


def _word(rule: Rule, field: PlotArea) -> tuple[float, float]:
    """Return the middle of a rule's word, kept inside of the field, and half its width."""
    half = width_of(rule.label, TextStyle(11, rule.colour, True)) / 2
    return max(field.left + half, min(field.x(rule.at), field.right - half)), half


def _rules(rules: Sequence[Rule], rows: Sequence[int], field: PlotArea) -> list[str]:
    parts: list[str] = []
    for rule, row in zip(rules, rows, strict=True):
        place, y = field.x(rule.at), field.top - 6 - WORD_ROW * row
        parts.append(line((place, y + 4), (place, field.bottom), rule.colour, "3 3"))
        look = TextStyle(11, rule.colour, True)
        parts.append(text(_word(rule, field)[0], y, rule.label, look, "middle"))
    return parts


def scatter_chart(card: Card, dots: Sequence[Dot], x: Axis, y: Axis) -> str:
    """Return a chart of dots, the chosen one in colour, with labels where there is room."""
    good = [one for one in dots if kept(one.x, log=x.log) and kept(one.y, log=y.log)]
    field = field_of(card, x, y, [(one.x, one.y) for one in good], [])
    parts = frame(card, field, x, y, [])
    largest = max((one.size for one in good if isfinite(one.size)), default=1.0)
    # Large dots first, or they would hide the small ones.
    order = sorted(good, key=lambda one: (one.chosen, -one.size))
    taken: list[Box] = []
    labels: list[str] = []
    for one in order:
        radius, (left, top) = _radius(one.size, largest), field.at((one.x, one.y))
        colour = ACCENT if one.chosen else FAINT
        hint = one.hint or f"{one.label} {x.label(one.x)}: {y.label(one.y)}".strip()
        parts.append(dot((left, top), radius, colour, hint, 1 if one.chosen else 0.7))
        taken.append((left - radius, top - radius, left + radius, top + radius))
    for one in reversed(order):
        labels += _label(one, field, _radius(one.size, largest), taken)
    description = "; ".join(f"{one.label}: {x.label(one.x)}, {y.label(one.y)}" for one in good)
    return picture(card, description or "No values.", [*parts, *labels])


def _radius(size: float, largest: float) -> float:
    share = sqrt(max(0.0, min(1.0, size / largest))) if isfinite(size) and largest > 0 else 0.0
    return DOT_MIN + (DOT_MAX - DOT_MIN) * share


def _label(one: Dot, field: PlotArea, radius: float, taken: list[Box]) -> list[str]:
    """Put a dot's label on the first side where it covers nothing, else leave it out."""
    x, y = field.at((one.x, one.y))
    look = TextStyle(11, ACCENT, True) if one.chosen else LABEL
    wide = width_of(one.label, look)
    sides = (
        (x + radius + 4, y + 4),
        (x - radius - 4 - wide, y + 4),
        (x - wide / 2, y - radius - 5),
        (x - wide / 2, y + radius + 14),
    )
    for left, base in sides if one.label else ():
        box = (left, base - 10, left + wide, base + 2)
        inside = box[0] >= field.left and box[2] <= field.right + 12 and box[3] <= field.bottom
        if inside and not any(_meet(box, other) for other in taken):
            taken.append(box)
            # A rim in the colour of the card keeps the word readable on grid lines.
            word = text(left, base, one.label, look)
            rim = f"<text stroke='{CARD}' stroke-width='3' paint-order='stroke' "
            return [word.replace("<text ", rim, 1)]
    return []


def _meet(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def cdf_chart(card: Card, values: Mapping[str, Sequence[float]], x: Axis) -> str:
    """Return the share of jobs with at most each value, one line per name."""
    y = Axis(title="share of jobs", from_zero=True, most=1.0, label=percent)
    series = [
        Series(name=name, points=tuple(_steps(many, x)), dots=False)
        for name, many in values.items()
    ]
    return line_chart(card, series, x, y)


def _steps(values: Sequence[float], x: Axis, most: int = 400) -> list[Point]:
    """Return the steps of a distribution, thinned: a picture cannot show a million of them."""
    good = sorted(value for value in values if kept(value, log=x.log))
    count = len(good)
    stride = max(1, count // most)
    picks = [*range(0, count - 1, stride), count - 1] if count else []
    return [(good[pick], (pick + 1) / count) for pick in picks]
