"""Charts of a growth analysis: utilisation of each layer by factor, and its headroom."""

from collections.abc import Sequence

from msgspec import Struct

from tenfold.report.charts.axes import Axis, percent, plain
from tenfold.report.charts.bars import Bar, Limit, stacked_bars
from tenfold.report.charts.points import Point, Rule, Series, line_chart
from tenfold.report.charts.svg import ACCENT, FAINT, INK, Card

LINES_MOST = 5
FULL = 1.0
DRAWN_MOST = 1.5
"""Charts are cut at one and a half times the limit."""
BARS_MOST = 12
BREAKS, HOLDS = "breaks at", "OK at every requested factor"
RISES = 1.001
"""A layer that rises by less over all factors is constant and not worth a curve."""


class LayerCurve(Struct, frozen=True, kw_only=True):
    """Utilisation of a layer at some factors."""

    name: str
    points: tuple[Point, ...]


class LayerHeadroom(Struct, frozen=True, kw_only=True):
    """The factor at which one layer breaks; None if it holds at all factors drawn."""

    name: str
    k: float | None
    first: bool = False


def _times(value: float) -> str:
    return f"{plain(value)}x"


def _factors(axis: str) -> Axis:
    return Axis(title=f"growth factor ({axis})", log=True, label=_times)


def strain_chart(curves: Sequence[LayerCurve], axis: str, breaks: Sequence[Rule]) -> str:
    """Return the chart of the fullest layers, and where they break."""
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
    used = Axis(title="utilisation", from_zero=True, most=DRAWN_MOST, label=percent)
    card = Card(title="Utilisation by layer", subtitle=f"capped at {DRAWN_MOST:.0%}")
    return line_chart(card, series, _factors(axis), used, breaks)


def _rises(curve: LayerCurve) -> bool:
    return curve.points[-1][1] > curve.points[0][1] * RISES


def wait_chart(points: Sequence[Point], limit_s: float, axis: str) -> str:
    """Return the chart of the P90 wait by factor, from utilisation and limit."""
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
    """Return the chart of scaling efficiency by factor, from utilisation and limit."""
    kept = tuple((k, min(1.0, least / utilisation)) for k, utilisation in points if utilisation > 0)
    at_limit = tuple((k, least) for k, _ in points)
    series = [
        Series(name="scaling efficiency", points=kept),
        Series(name="minimum", points=at_limit, dashed=True, dots=False, colour=INK),
    ]
    y = Axis(title="share of ideal", from_zero=True, most=1.0, label=percent)
    return line_chart(Card(title="Scaling efficiency"), series, _factors(axis), y)


def headroom_chart(headrooms: Sequence[LayerHeadroom], most: float) -> str:
    """Return the chart of breaking factors, up to the largest factor requested."""
    bars = [_bar(one, most) for one in headrooms[:BARS_MOST]]
    x = Axis(title="OK up to", from_zero=True, label=_times)
    limit = Limit(at=most, label=f"requested: {most:g}x")
    left_out = len(headrooms) - BARS_MOST
    description = f"{left_out} layers with more headroom are not shown" if left_out > 0 else ""
    card = Card(title="Headroom by layer", subtitle=description)
    return stacked_bars(card, bars, x, limit, {BREAKS: ACCENT, HOLDS: FAINT})


def _bar(one: LayerHeadroom, most: float) -> Bar:
    if one.k is None or one.k > most:
        return Bar(label=one.name, parts={HOLDS: most}, total=f">{most:g}x", bold=one.first)
    return Bar(label=one.name, parts={BREAKS: one.k}, total=f"{one.k:.2f}x", bold=one.first)
