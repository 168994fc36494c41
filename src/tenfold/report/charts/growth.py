"""Charts of growth: how full each layer is against the factor, and how far each one reaches."""

from collections.abc import Sequence

from msgspec import Struct

from tenfold.report.charts.axes import Axis, percent, plain
from tenfold.report.charts.bars import Bar, Limit, stacked_bars
from tenfold.report.charts.points import Point, Rule, Series, line_chart
from tenfold.report.charts.svg import ACCENT, FAINT, INK, Card

LINES_MOST = 5
FULL = 1.0
DRAWN_MOST = 1.5
"""Beyond one and a half times its limit a layer is as broken as it can be."""
BARS_MOST = 12
BREAKS, STANDS = "breaks there", "stands all that was asked for"
RISES = 1.001
"""A layer that rises by less over all factors stands still, and has nothing to show in a curve."""


class LayerCurve(Struct, frozen=True, kw_only=True):
    """The share of its limit that a layer uses, at some factors."""

    name: str
    points: tuple[Point, ...]


class LayerHeadroom(Struct, frozen=True, kw_only=True):
    """How far one layer stands; None where it stands all that is drawn."""

    name: str
    k: float | None
    first: bool = False


def _times(value: float) -> str:
    return f"{plain(value)}x"


def _factors(axis: str) -> Axis:
    return Axis(title=f"factor of {axis}", log=True, label=_times)


def strain_chart(curves: Sequence[LayerCurve], axis: str, breaks: Sequence[Rule]) -> str:
    """Return how much of its limit each layer uses; the fullest ones, and where rows break."""
    rising = [one for one in curves if one.points and _rises(one)]
    fullest = sorted(rising or curves, key=lambda one: -one.points[-1][1] if one.points else 0.0)
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
    used = Axis(title="share of the limit in use", from_zero=True, most=DRAWN_MOST, label=percent)
    card = Card(title="How full each layer is", subtitle=f"cut at {DRAWN_MOST:.0%} of its limit")
    return line_chart(card, series, _factors(axis), used, breaks)


def _rises(curve: LayerCurve) -> bool:
    return curve.points[-1][1] > curve.points[0][1] * RISES


def wait_chart(points: Sequence[Point], limit_s: float, axis: str) -> str:
    """Return the wait of one in ten against the factor, from strain and its limit."""
    hours = limit_s / 3_600
    waits = tuple((k, utilisation * hours) for k, utilisation in points)
    at_limit = tuple((k, hours) for k, _ in points)
    series = [
        Series(name="wait, P90", points=waits),
        Series(name="limit", points=at_limit, dashed=True, dots=False, colour=INK),
    ]
    y = Axis(title="hours", from_zero=True, label=plain)
    return line_chart(Card(title="How long jobs wait"), series, _factors(axis), y)


def efficiency_chart(points: Sequence[Point], least: float, axis: str) -> str:
    """Return the efficiency of a step against the factor, from strain and its limit."""
    kept = tuple((k, min(1.0, least / utilisation)) for k, utilisation in points if utilisation > 0)
    at_limit = tuple((k, least) for k, _ in points)
    series = [
        Series(name="step efficiency", points=kept),
        Series(name="least allowed", points=at_limit, dashed=True, dots=False, colour=INK),
    ]
    y = Axis(title="share of ideal", from_zero=True, most=1.0, label=percent)
    return line_chart(Card(title="What a step keeps"), series, _factors(axis), y)


def headroom_chart(headrooms: Sequence[LayerHeadroom], most: float) -> str:
    """Return how far each layer stands, up to the largest factor asked for."""
    bars = [_bar(one, most) for one in headrooms[:BARS_MOST]]
    x = Axis(title="factor that the layer stands", from_zero=True, label=_times)
    limit = Limit(at=most, label=f"asked for: {most:g}x")
    left_out = len(headrooms) - BARS_MOST
    description = f"{left_out} more stand longer than these" if left_out > 0 else ""
    card = Card(title="Headroom of each layer", subtitle=description)
    return stacked_bars(card, bars, x, limit, {BREAKS: ACCENT, STANDS: FAINT})


def _bar(one: LayerHeadroom, most: float) -> Bar:
    if one.k is None or one.k > most:
        return Bar(label=one.name, parts={STANDS: most}, total=f">{most:g}x", bold=one.first)
    return Bar(label=one.name, parts={BREAKS: one.k}, total=f"{one.k:.2f}x", bold=one.first)
