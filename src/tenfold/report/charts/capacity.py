"""Charts of a capacity plan: capacity against demand, and the cost of more or less."""

from collections.abc import Sequence

from msgspec import Struct

from tenfold.report.charts.axes import Axis, plain, thousands, usd
from tenfold.report.charts.points import Rule, Series, line_chart
from tenfold.report.charts.svg import ACCENT, INK, MUTED, WARN, Card

LEAST_DRAWN = 2


class CapacityMonth(Struct, frozen=True, kw_only=True):
    """Demand and capacity in one month, in GPUs."""

    day: str
    demand: float
    low: float
    high: float
    own: float
    with_reserved: float
    """Own and reserved GPUs together."""


def capacity_chart(months: Sequence[CapacityMonth]) -> str:
    """Return demand with its range against own and reserved GPUs; empty for a single month."""
    if len(months) < LEAST_DRAWN:
        return ""
    ahead = range(len(months))

    def series(name: str, values: Sequence[float], colour: str, *, dashed: bool = False) -> Series:
        points = tuple((float(at), value) for at, value in zip(ahead, values, strict=True))
        return Series(name=name, points=points, colour=colour, dashed=dashed, dots=False)

    lines = [
        series("demand, mean", [one.demand for one in months], INK),
        series("P10", [one.low for one in months], MUTED, dashed=True),
        series("P90", [one.high for one in months], MUTED, dashed=True),
        series("own GPUs", [one.own for one in months], ACCENT),
    ]
    if any(one.with_reserved > one.own for one in months):
        reserved = [one.with_reserved for one in months]
        lines.append(series("own and reserved", reserved, WARN))
    card = Card(title="Demand and capacity", subtitle=f"GPUs, by month from {months[0].day}")
    across = Axis(title="months from the start", label=plain)
    return line_chart(card, lines, across, Axis(title="GPUs", from_zero=True, label=thousands))


def cost_chart(costs: Sequence[tuple[float, float, float]]) -> str:
    """Return the cost of multiples of the purchases: capacity, delays, and both together."""
    if len(costs) < LEAST_DRAWN:
        return ""
    parts = (
        ("bought, reserved and rented", ACCENT, [(at, paid) for at, paid, _ in costs]),
        ("delays", WARN, [(at, late) for at, _, late in costs]),
        ("total", INK, [(at, paid + late) for at, paid, late in costs]),
    )
    lines = [
        Series(name=name, points=tuple(points), colour=colour) for name, colour, points in parts
    ]
    card = Card(title="Buying less or more than planned", subtitle="expected cost")
    across = Axis(title="multiple of the planned purchases", label=plain)
    rules = [Rule(at=1.0, label="plan")]
    return line_chart(card, lines, across, Axis(title="$", from_zero=True, label=usd), rules)
