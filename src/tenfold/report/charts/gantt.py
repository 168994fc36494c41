"""Runs on nodes over time, rack by rack: a lane for every GPU, as SVG without scripts."""

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from tenfold.report.charts.axes import Axis, range_of
from tenfold.report.charts.plot import PlotArea, ticks_below
from tenfold.report.charts.rack_map import COLOURS
from tenfold.report.charts.svg import (
    AXIS,
    FAINT,
    GRID,
    LABEL,
    PAD,
    Card,
    box,
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

GROUPS_MAX = 7
TALL, LANE_MIN, LANE_MAX = 620.0, 0.75, 6.0
NODE_GAP, RACK_GAP, FOOT = 1.0, 7.0, 50
LABELS_MAX = 130.0
NO_GROUP, OTHERS = "(none)", "others"


class GanttRow(Struct, frozen=True):
    """A node: its rack, its name, and how many lanes it has."""

    rack: str
    node: str
    lanes: int


class GanttBar(Struct, frozen=True):
    """Neighbouring lanes of a node that are held from one time to another."""

    node: str
    lane: int
    lanes: int
    start: float
    end: float
    group: str
    hint: str


def gantt(card: Card, rows: Sequence[GanttRow], bars: Sequence[GanttBar], x: Axis) -> str:
    """Return bars in the lanes of their nodes; the height of the card follows from the nodes."""
    fills = _fills(bars)
    names = [(group or NO_GROUP, fill) for group, fill in fills.items() if fill != FAINT]
    names += [(OTHERS, FAINT)] if FAINT in fills.values() else []
    above = legend_height(names, card.width - 2 * PAD) + 10
    top = head_height(card) + above + 6
    lane = max(LANE_MIN, min(LANE_MAX, TALL / max(1, sum(row.lanes for row in rows))))
    places, bottom = _places(rows, top, lane)
    card = replace(card, height=round(bottom + FOOT))
    labels = min(LABELS_MAX, max((width_of(row.rack, LABEL) for row in rows), default=0.0))
    across = range_of(x, [0.0, *(bar.end for bar in bars)])
    field = PlotArea(
        left=PAD + labels + 8,
        right=card.width - PAD - 8,
        top=top,
        bottom=bottom,
        across=across,
        up=across,
    )
    parts = legend(names, (PAD, head_height(card) + 12), card.width - 2 * PAD)
    parts += [line((field.x(tick), top), (field.x(tick), bottom), GRID) for tick in across.ticks]
    parts += _racks(rows, places, field, lane)
    for bar in bars:
        start, end = field.x(bar.start), field.x(bar.end)
        at = (start, places[bar.node] + bar.lane * lane)
        size = (max(0.4, end - start), max(0.4, bar.lanes * lane - 0.2))
        parts.append(box(at, size, fills[bar.group], bar.hint))
    parts += ticks_below(field, x)
    parts.append(text((field.left + field.right) / 2, bottom + 36, x.title, AXIS, "middle"))
    racks = len(dict.fromkeys(row.rack for row in rows))
    description = (
        f"{count(len(bars), 'run')} on {count(len(rows), 'node')} in {count(racks, 'rack')}"
    )
    return picture(card, description if bars else "No runs.", parts)


def _places(rows: Sequence[GanttRow], top: float, lane: float) -> tuple[dict[str, float], float]:
    """Return where each node begins, and where the last one ends."""
    places: dict[str, float] = {}
    y, rack = top, rows[0].rack if rows else ""
    for row in rows:
        if row.rack != rack:
            y, rack = y + RACK_GAP, row.rack
        places[row.node] = y
        y += row.lanes * lane + NODE_GAP
    return places, y


def _racks(
    rows: Sequence[GanttRow], places: Mapping[str, float], field: PlotArea, lane: float
) -> list[str]:
    """Return a name and a rule for each rack."""
    spans: dict[str, tuple[float, float]] = {}
    for row in rows:
        start = spans.get(row.rack, (places[row.node], 0.0))[0]
        spans[row.rack] = (start, places[row.node] + row.lanes * lane)
    parts: list[str] = []
    free_from = 0.0
    for rack, (start, end) in spans.items():
        parts.append(line((field.left - 4, start), (field.left - 4, end), FAINT))
        middle = (start + end) / 2 + 4
        # Names of thin racks would cover each other.
        if middle - 11 >= free_from:
            name = shortened(rack, LABELS_MAX, LABEL)
            parts.append(text(field.left - 9, middle, name, LABEL, "end"))
            free_from = middle
    return parts


def _fills(bars: Sequence[GanttBar]) -> dict[str, str]:
    """Return colours for the groups that hold most; the others share one."""
    held: dict[str, float] = {}
    for bar in bars:
        held[bar.group] = held.get(bar.group, 0.0) + (bar.end - bar.start) * bar.lanes
    largest = sorted(held, key=lambda group: (-held[group], group))
    chosen = sorted(largest[:GROUPS_MAX])
    fills = {group: COLOURS[place] for place, group in enumerate(chosen)}
    return fills | dict.fromkeys(largest[GROUPS_MAX:], FAINT)
