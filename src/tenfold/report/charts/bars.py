"""Charts of lengths: stacked bars with a limit, as SVG without scripts."""

from collections.abc import Mapping, Sequence
from math import isfinite

from msgspec import Struct
from msgspec.structs import replace

from tenfold.report.charts.axes import LARGEST, Axis, range_of
from tenfold.report.charts.plot import PlotArea, ticks_below
from tenfold.report.charts.rack_map import COLOURS
from tenfold.report.charts.svg import (
    AXIS,
    CARD,
    FAINT,
    GRID,
    INK,
    LABEL,
    PAD,
    WARN,
    Card,
    TextStyle,
    box,
    head_height,
    ink_on,
    legend,
    legend_height,
    line,
    picture,
    shortened,
    text,
    width_of,
)

BAR, BAR_GAP, FOOT, FOOT_TITLE = 26, 12, 36, 16
LABELS_SHARE = 0.3


class Bar(Struct, frozen=True, kw_only=True):
    """One bar and its parts, from the left. `total` is written after it."""

    label: str
    parts: Mapping[str, float]
    total: str = ""
    bold: bool = False


class Limit(Struct, frozen=True, kw_only=True):
    """A line that bars should stay below."""

    at: float
    label: str


def stacked_bars(
    card: Card,
    bars: Sequence[Bar],
    x: Axis,
    limit: Limit | None = None,
    colours: Mapping[str, str] | None = None,
) -> str:
    """Return bars of parts one below the other; the height of the card follows from them."""
    fills = _fills(bars, colours or {})
    names = list(fills.items())
    tall = head_height(card) + (legend_height(names, card.width - 2 * PAD) if names[1:] else 0)
    top = tall + (30 if limit else 12)
    bottom = top + max(1, len(bars)) * (BAR + BAR_GAP)
    card = replace(card, height=round(bottom + FOOT + (FOOT_TITLE if x.title else 0)))
    field = _bars_field(card, bars, x, (top, bottom), limit)
    parts = legend(names, (PAD, head_height(card) + 12), card.width - 2 * PAD) if names[1:] else []
    for tick in field.across.ticks:
        parts.append(line((field.x(tick), top), (field.x(tick), bottom), GRID))
    for row, bar in enumerate(bars):
        parts += _bar(bar, top + row * (BAR + BAR_GAP) + BAR_GAP / 2, field, x, fills)
        # Where there is a limit a word at the end of a bar could stand on it.
        end = field.right if limit else field.x(_whole(bar))
        look = TextStyle(11, INK, True) if bar.bold else LABEL
        middle = top + row * (BAR + BAR_GAP) + (BAR + BAR_GAP) / 2 + 4
        parts.append(text(end + 6, middle, bar.total, look))
    parts.append(line((field.left, top), (field.left, bottom), FAINT))
    parts += ticks_below(field, x)
    parts.append(text((field.left + field.right) / 2, field.bottom + 36, x.title, AXIS, "middle"))
    if limit is not None and isfinite(limit.at):
        parts += _limit(limit, field)
    return picture(card, "; ".join(_description(bar, x) for bar in bars) or "No values.", parts)


def _description(bar: Bar, x: Axis) -> str:
    shown = {name: part for name, part in bar.parts.items() if _length(part) > 0}
    return f"{bar.label}: " + ", ".join(f"{name} {x.label(shown[name])}" for name in shown)


def _fills(bars: Sequence[Bar], colours: Mapping[str, str]) -> dict[str, str]:
    """Return a colour for every part that is there at all, in order of appearance."""
    names = dict.fromkeys(
        name for bar in bars for name, part in bar.parts.items() if _length(part) > 0
    )
    return {
        name: colours.get(name, COLOURS[place % len(COLOURS)]) for place, name in enumerate(names)
    }


def _length(value: float) -> float:
    return min(value, LARGEST) if isfinite(value) and value > 0 else 0.0


def _whole(bar: Bar) -> float:
    return sum(_length(part) for part in bar.parts.values())


def _bars_field(
    card: Card, bars: Sequence[Bar], x: Axis, span: tuple[float, float], limit: Limit | None
) -> PlotArea:
    values = [_whole(bar) for bar in bars] + ([limit.at] if limit else [])
    across = range_of(replace(x, log=False, from_zero=True), values)
    labels = max((width_of(bar.label, AXIS) for bar in bars), default=0.0)
    totals = max((width_of(bar.total, AXIS) for bar in bars), default=0.0)
    return PlotArea(
        left=PAD + min(labels, card.width * LABELS_SHARE) + 8,
        right=card.width - PAD - totals - 14,
        top=span[0],
        bottom=span[1],
        across=across,
        up=across,
    )


def _bar(bar: Bar, y: float, field: PlotArea, x: Axis, fills: Mapping[str, str]) -> list[str]:
    look = TextStyle(11, INK, True) if bar.bold else LABEL
    name = shortened(bar.label, field.left - PAD - 8, AXIS)
    parts = [text(field.left - 8, y + BAR / 2 + 4, name, look, "end")]
    start, whole = 0.0, _whole(bar)
    for part, value in bar.parts.items():
        size = _length(value)
        if size == 0:
            continue
        left, right = field.x(start), field.x(start + size)
        description = x.label(value)
        parts.append(box((left, y), (right - left, BAR), fills[part], f"{part}: {description}"))
        inside = TextStyle(11, ink_on(fills[part]), True)
        if size < whole and right - left > width_of(description, inside) + 4:
            parts.append(text((left + right) / 2, y + BAR / 2 + 4, description, inside, "middle"))
        if start:
            parts.append(line((left, y), (left, y + BAR), CARD))
        start += size
    return parts


def _limit(limit: Limit, field: PlotArea) -> list[str]:
    place = field.x(limit.at)
    half = width_of(limit.label, AXIS) / 2
    middle = min(max(place, field.left + half), field.right - half)
    return [
        line((place, field.top - 6), (place, field.bottom), WARN, "4 3"),
        text(middle, field.top - 11, limit.label, TextStyle(11, WARN, True), "middle"),
    ]
