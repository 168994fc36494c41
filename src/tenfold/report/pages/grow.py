"""The HTML report of a growth analysis: what breaks in which order, what it costs, and charts."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from tenfold.report.charts.growth import (
    LayerCurve,
    LayerHeadroom,
    efficiency_chart,
    headroom_chart,
    strain_chart,
    wait_chart,
)
from tenfold.report.charts.points import Point, Rule
from tenfold.report.pages.html import (
    Section,
    charts_html,
    list_html,
    page,
    pairs_html,
    prose_html,
    table_html,
    tiles_html,
)

FOOT = (
    "Made with `tenfold grow`: the same fleet, workload and seed give the same page. A factor is "
    "only as good as its evidence. Layers that could not be evaluated are listed as unknown."
)
Table = tuple[Sequence[str], Sequence[Sequence[str]]]


class GrowPage(Struct, frozen=True, kw_only=True):
    """What the report shows."""

    title: str
    lead: str
    axis: str
    most: float
    """The largest factor requested."""
    tiles: Sequence[tuple[str, str]]
    bottlenecks: Table
    top: str
    """How far all fixes together reach, in one sentence."""
    stages: Table = ((), ())
    """What each requested factor takes."""
    orders: Table = ((), ())
    """What to order, in the order it is needed."""
    layers: Table
    curves: Sequence[LayerCurve]
    headrooms: Sequence[LayerHeadroom]
    breaks: Mapping[str, float] = {}
    """Where layers break, by name."""
    waits: Sequence[Point] = ()
    """Utilisation of the wait limit at some factors; empty if not evaluated."""
    wait_limit_s: float = 0.0
    efficiency: Sequence[Point] = ()
    efficiency_least: float = 0.0
    limits: Sequence[tuple[str, str]] = ()
    unknown: Sequence[str] = ()
    assumptions: Sequence[str] = ()


def grow_report(grown: GrowPage) -> str:
    """Return the report as HTML."""
    sections = [Section("What breaks first, in order", _bottleneck_table(grown))]
    if grown.orders[1]:
        sections.append(Section("Cost and order dates", _orders(grown)))
    sections += [
        Section("Charts", _charts(grown)),
        Section("All layers, before any fix", _table(grown.layers)),
    ]
    if grown.unknown:
        said = prose_html("Layers with missing inputs are not ranked and may break earlier.")
        sections.append(Section("Unknown", said + list_html(grown.unknown)))
    if grown.assumptions:
        sections.append(Section("Assumptions and notes", list_html(grown.assumptions)))
    if grown.limits:
        sections.append(Section("Limits", pairs_html(grown.limits)))
    return page(grown.title, sections, lead=grown.lead, top_html=tiles_html(grown.tiles), foot=FOOT)


def _bottleneck_table(grown: GrowPage) -> str:
    if not grown.bottlenecks[1]:
        return prose_html(grown.top)
    how = "Each row is one fix, and assumes that the fixes above it are in place."
    return prose_html(how) + _table(grown.bottlenecks) + prose_html(grown.top)


def _orders(grown: GrowPage) -> str:
    how = (
        "Costs are on top of what the fleet costs today and add up from row to row. Fixes of "
        "unknown price are left out of the totals, and so are budget increases, which pay for the "
        "other fixes."
    )
    return _table(grown.stages) + prose_html(how) + _table(grown.orders)


def _charts(grown: GrowPage) -> str:
    rules = [Rule(at=max(1.0, k), label=name) for name, k in grown.breaks.items()]
    pictures = [strain_chart(grown.curves, grown.axis, rules)]
    if grown.waits:
        pictures.append(wait_chart(grown.waits, grown.wait_limit_s, grown.axis))
    if grown.efficiency:
        pictures.append(efficiency_chart(grown.efficiency, grown.efficiency_least, grown.axis))
    pictures.append(headroom_chart(grown.headrooms, grown.most))
    return charts_html(*pictures)


def _table(shown: Table) -> str:
    return table_html(*shown)
