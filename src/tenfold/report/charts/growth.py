"""Charts of a growth analysis: utilisation of each layer by factor, and its headroom."""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from tenfold.report.charts.axes import Axis, percent, plain, range_of
from tenfold.report.charts.plot import PlotArea, ticks_below
from tenfold.report.charts.points import Point, Rule, Series, line_chart
from tenfold.report.charts.svg import (
    ACCENT,
    AXIS,
    FAINT,
    GRID,
    INK,
    LABEL,
    MUTED,
    PAD,
    WARN,
    Card,
    TextStyle,
    box,
    dot,
    head_height,
    legend,
    legend_height,
    line,
    picture,
    shortened,
    text,
    width_of,
)
from tenfold.report.figures import count

LINES_MOST = 5
FULL = 1.0
DRAWN_MOST = 1.5
"""Charts are cut at one and a half times the limit."""
ROWS_MOST = 14
LEAST_DRAWN = 2
"""Fewer points than this are no chart."""
BREAKS, ASSUMED, HOLDS = "breaks", "breaks, by assumed values", "OK at every requested factor"
OVER = "over today"
PALE = "#bfdbfe"
WIDE, ROW, BELOW = 1_030, 28, 52
LABELS_SHARE = 0.3
LOWEST, BEYOND = 0.1, 1.6
"""Where the axis of factors begins at the earliest, and how far it goes past those requested."""
RISES = 1.001
"""A layer that rises by less over all factors is constant and not worth a curve."""


class LayerCurve(Struct, frozen=True, kw_only=True):
    """Utilisation of a layer at some factors."""

    name: str
    points: tuple[Point, ...]


class LayerHeadroom(Struct, frozen=True, kw_only=True):
    """The factor at which one layer breaks, with its range; None beyond all factors drawn."""

    name: str
    k: float | None
    low: float | None = None
    high: float | None = None
    first: bool = False
    assumed: bool = False
    """Whether it rests on assumed values and is not ranked."""
    over: bool = False
    """Whether it is over its limit whatever the factor."""


def _times(value: float) -> str:
    return f"{plain(value)}x"


def _factors(axis: str) -> Axis:
    return Axis(title=f"growth factor ({axis})", log=True, label=_times)


def strain_chart(curves: Sequence[LayerCurve], axis: str, breaks: Sequence[Rule]) -> str:
    """Return the chart of the fullest layers, and where they break; empty without a curve."""
    curves = [one for one in curves if len(one.points) >= LEAST_DRAWN]
    if not curves:
        return ""
    rising = [one for one in curves if _rises(one)]
    fullest = sorted(rising or curves, key=lambda one: -one.points[-1][1])
    series = [
        Series(
            name=one.name,
            points=tuple((k, min(utilisation, DRAWN_MOST)) for k, utilisation in one.points),
            dots=False,
        )
        for one in fullest[:LINES_MOST]
    ]
    ends = [k for one in curves for k, _ in one.points]
    if ends:
        at_limit = ((min(ends), FULL), (max(ends), FULL))
        limit = Series(name="limit", points=at_limit, dashed=True, dots=False, colour=INK)
        series.append(limit)
    used = Axis(title="utilisation", from_zero=True, most=DRAWN_MOST, label=percent)
    card = Card(title="Utilisation by layer", subtitle=f"capped at {DRAWN_MOST:.0%}")
    return line_chart(card, series, _factors(axis), used, breaks)


def _rises(curve: LayerCurve) -> bool:
    return curve.points[-1][1] > curve.points[0][1] * RISES


def wait_chart(points: Sequence[Point], limit_s: float, axis: str) -> str:
    """Return the chart of the P90 wait by factor; empty for a single point."""
    if len(points) < LEAST_DRAWN:
        return ""
    hours = limit_s / 3_600
    waits = tuple((k, utilisation * hours) for k, utilisation in points)
    at_limit = tuple((k, hours) for k, _ in points)
    series = [
        Series(name="wait, P90", points=waits),
        Series(name="limit", points=at_limit, dashed=True, dots=False, colour=INK),
    ]
    y = Axis(title="hours", from_zero=True, label=plain)
    return line_chart(Card(title="Queue wait"), series, _factors(axis), y)


def efficiency_chart(points: Sequence[Point], least: float, axis: str) -> str:
    """Return the chart of scaling efficiency by factor; empty for a single point."""
    kept = tuple((k, min(1.0, least / utilisation)) for k, utilisation in points if utilisation > 0)
    if len(kept) < LEAST_DRAWN:
        return ""
    at_limit = tuple((k, least) for k, _ in points)
    series = [
        Series(name="scaling efficiency", points=kept),
        Series(name="minimum", points=at_limit, dashed=True, dots=False, colour=INK),
    ]
    y = Axis(title="share of ideal", from_zero=True, most=1.0, label=percent)
    return line_chart(Card(title="Scaling efficiency"), series, _factors(axis), y)


def headroom_chart(headrooms: Sequence[LayerHeadroom], most: float, axis: str) -> str:
    """Return the chart of breaking factors with their ranges; empty for fewer than two layers."""
    rows = headrooms[:ROWS_MOST]
    if len(rows) < LEAST_DRAWN:
        return ""
    left_out = len(headrooms) - len(rows)
    verb = "is" if left_out == 1 else "are"
    more = f"; {count(left_out, 'layer')} with more headroom {verb} not shown" if left_out else ""
    card = Card(
        title="Headroom of each layer, before any fix",
        subtitle=f"dot: breaks here; bar: range of the estimate; requested: {most:g}x{more}",
        width=WIDE,
    )
    names = [(BREAKS, ACCENT), (HOLDS, FAINT)]
    if any(one.assumed for one in rows):
        names.insert(1, (ASSUMED, MUTED))
    top = head_height(card) + legend_height(names, card.width - 2 * PAD) + 34
    bottom = top + len(rows) * ROW
    card = replace(card, height=round(bottom + BELOW))
    field = _headroom_field(rows, most, card, (top, bottom))
    parts = legend(names, (PAD, head_height(card) + 12), card.width - 2 * PAD)
    parts += [line((field.x(at), top), (field.x(at), bottom), GRID) for at in field.across.ticks]
    for at, label, colour in ((1.0, "today", INK), (most, f"{most:g}x", WARN)):
        parts.append(line((field.x(at), top - 6), (field.x(at), bottom), colour, "4 3"))
        parts.append(text(field.x(at), top - 11, label, TextStyle(11, colour, True), "middle"))
    for place, one in enumerate(rows):
        parts += _headroom_row(one, most, field, top + (place + 0.5) * ROW)
    axis_x = _factors(axis)
    parts += ticks_below(field, axis_x)
    middle = (field.left + field.right) / 2
    parts.append(text(middle, bottom + 36, axis_x.title, AXIS, "middle"))
    said = "; ".join(f"{one.name}: {_headroom_words(one, most)}" for one in rows)
    return picture(card, said, parts)


def _headroom_field(
    rows: Sequence[LayerHeadroom], most: float, card: Card, span: tuple[float, float]
) -> PlotArea:
    ends = [end for one in rows if _drawn(one, most) for end in (one.k, one.low, one.high) if end]
    shown = [min(max(end, LOWEST), most * BEYOND) for end in ends]
    across = range_of(_factors(""), [1.0, most * BEYOND, *shown])
    labels = max(width_of(one.name, AXIS) for one in rows)
    words = max(width_of(_headroom_words(one, most), AXIS) for one in rows)
    left = PAD + min(labels, card.width * LABELS_SHARE) + 8
    right = card.width - PAD - words - 14
    return PlotArea(left=left, right=right, top=span[0], bottom=span[1], across=across, up=across)


def _headroom_row(one: LayerHeadroom, most: float, field: PlotArea, y: float) -> list[str]:
    look = TextStyle(11, INK, True) if one.first else LABEL
    words = _headroom_words(one, most)
    colour = MUTED if one.assumed else ACCENT
    parts = [
        text(field.left - 8, y + 4, shortened(one.name, field.left - PAD - 8, AXIS), look, "end"),
        text(field.right + 8, y + 4, words, look),
    ]
    if not _drawn(one, most) or one.k is None:
        start = field.x(most)
        parts.append(box((start, y - 3), (field.right - start, 6), FAINT, words))
        return parts
    low = field.x(one.k if one.low is None else one.low)
    high = field.right if one.high is None else field.x(one.high)
    if not one.over and (one.low is not None or one.high is not None):
        parts.append(box((low, y - 4), (high - low, 8), PALE, words))
    parts.append(dot((field.x(one.k), y), 6 if one.first else 5, colour, words))
    return parts


def _drawn(one: LayerHeadroom, most: float) -> bool:
    return one.k is not None and one.k <= most * BEYOND


def _headroom_words(one: LayerHeadroom, most: float) -> str:
    if one.k is None or not _drawn(one, most):
        return f">{most:g}x"
    if one.over:
        return OVER
    if one.low is None and one.high is None:
        return f"{_short(one.k)}x"
    low = _short(one.k if one.low is None else one.low)
    return (
        f"{_short(one.k)}x ({low}x+)"
        if one.high is None
        else (f"{_short(one.k)}x ({low}-{_short(one.high)}x)")
    )


def _short(factor: float) -> str:
    return f"{factor:.2f}" if factor < 10 else f"{factor:,.0f}"
