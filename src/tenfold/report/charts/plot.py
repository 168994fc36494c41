"""The plot area of a chart: margins, grid, ticks, and conversion of values to coordinates."""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from tenfold.report.charts.axes import Axis, Range, range_of, thinned
from tenfold.report.charts.svg import (
    AXIS,
    FAINT,
    GRID,
    PAD,
    TICK,
    Card,
    head_height,
    legend,
    legend_height,
    line,
    text,
    width_of,
)

BOTTOM, TICK_GAP, LABELS_SHARE = 50, 10, 0.3
Names = Sequence[tuple[str, str]]


class PlotArea(Struct, frozen=True, kw_only=True):
    """The position of a plot in its card, and its two ranges."""

    left: float
    right: float
    top: float
    bottom: float
    across: Range
    up: Range

    def x(self, value: float) -> float:
        """Return the x coordinate of a value in the card."""
        return self.left + self.across.share(value) * (self.right - self.left)

    def y(self, value: float) -> float:
        """Return the y coordinate of a value in the card."""
        return self.bottom - self.up.share(value) * (self.bottom - self.top)

    def at(self, point: tuple[float, float]) -> tuple[float, float]:
        """Return the place of a point."""
        return self.x(point[0]), self.y(point[1])


def field_of(
    card: Card, x: Axis, y: Axis, points: Iterable[tuple[float, float]], names: Names
) -> PlotArea:
    """Return the field that holds these points, below title and legend."""
    both = list(points)
    across, up = range_of(x, (one[0] for one in both)), range_of(y, (one[1] for one in both))
    labels = max((width_of(y.label(tick)) for tick in up.ticks), default=0.0)
    above = legend_height(names, card.width - 2 * PAD) if len(names) > 1 else 0.0
    return PlotArea(
        left=PAD + min(labels, card.width * LABELS_SHARE) + 8,
        right=card.width - PAD - 8,
        top=head_height(card) + above + 30,
        bottom=card.height - BOTTOM,
        across=across,
        up=up,
    )


def frame(card: Card, field: PlotArea, x: Axis, y: Axis, names: Names) -> list[str]:
    """Return grid, ticks, axis titles and legend."""
    room = card.width - 2 * PAD
    above = legend_height(names, room) if len(names) > 1 else 0.0
    parts = [text(PAD, head_height(card) + above + 18, y.title, AXIS)]
    if len(names) > 1:
        parts += legend(names, (PAD, head_height(card) + 12), room)
    for tick in field.up.ticks:
        place = field.y(tick)
        parts.append(line((field.left, place), (field.right, place), GRID))
        parts.append(text(field.left - 8, place + 4, y.label(tick), TICK, "end"))
    parts.append(line((field.left, field.bottom), (field.right, field.bottom), FAINT))
    middle = (field.left + field.right) / 2
    return [
        *parts,
        *ticks_below(field, x),
        text(middle, field.bottom + 36, x.title, AXIS, "middle"),
    ]


def ticks_below(field: PlotArea, x: Axis) -> list[str]:
    """Return the ticks of the horizontal axis that have room for their labels."""
    places = {field.x(tick): tick for tick in sorted(field.across.ticks)}
    wide = [(place, width_of(x.label(tick))) for place, tick in places.items()]
    parts: list[str] = []
    for place in thinned(wide, TICK_GAP):
        parts.append(line((place, field.bottom), (place, field.bottom + 4), FAINT))
        parts.append(text(place, field.bottom + 18, x.label(places[place]), TICK, "middle"))
    return parts
