"""Growth as a page: the ladder, what it costs, and charts that finance can be handed."""

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
    "By `tenfold grow`: the same fleet, work and seed give the same page. A factor is as good "
    "as its evidence; what could not be judged is listed, and is no promise."
)
Table = tuple[Sequence[str], Sequence[Sequence[str]]]


class GrowPage(Struct, frozen=True, kw_only=True):
    """What the page of a ladder shows."""

    title: str
    lead: str
    axis: str
    most: float
    """The largest factor that was asked for."""
    tiles: Sequence[tuple[str, str]]
    bottlenecks: Table
    top: str
    """How far the ladder reaches, in one sentence."""
    stages: Table = ((), ())
    """What each factor that was asked for takes."""
    orders: Table = ((), ())
    """What to order, in the order in which it is needed."""
    layers: Table
    curves: Sequence[LayerCurve]
    headrooms: Sequence[LayerHeadroom]
    breaks: Mapping[str, float] = {}
    """Where rows of the ladder break, by name."""
    waits: Sequence[Point] = ()
    """Strain of the queue at some factors; empty where it was not judged."""
    wait_limit_s: float = 0.0
    efficiency: Sequence[Point] = ()
    efficiency_least: float = 0.0
    limits: Sequence[tuple[str, str]] = ()
    unknown: Sequence[str] = ()
    assumptions: Sequence[str] = ()


def grow_report(grown: GrowPage) -> str:
    """Return the page of a ladder."""
    sections = [Section("The ladder", _bottleneck_table(grown))]
    if grown.orders[1]:
        sections.append(Section("What it takes", _orders(grown)))
    sections += [
        Section("Against the factor", _charts(grown)),
        Section("Every layer as the fleet stands", _table(grown.layers)),
    ]
    if grown.unknown:
        said = prose_html("A layer without its figures is not ranked, and may break before others.")
        sections.append(Section("Not known", said + list_html(grown.unknown)))
    if grown.assumptions:
        sections.append(Section("Assumed and noted", list_html(grown.assumptions)))
    if grown.limits:
        sections.append(Section("Where a layer counts as broken", pairs_html(grown.limits)))
    return page(grown.title, sections, lead=grown.lead, top_html=tiles_html(grown.tiles), foot=FOOT)


def _bottleneck_table(grown: GrowPage) -> str:
    if not grown.bottlenecks[1]:
        return prose_html(grown.top)
    how = "Each row is one purchase, and stands on those above it."
    return prose_html(how) + _table(grown.bottlenecks) + prose_html(grown.top)


def _orders(grown: GrowPage) -> str:
    how = (
        "Dollars a month are on top of what the fleet costs today, and add up from row to row. "
        "A price that neither a file nor a fact states is not known, and in no sum; neither is a "
        "larger budget, which is granted and spent on the rest."
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
