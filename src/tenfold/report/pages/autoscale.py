"""HTML page on a service under an autoscaler: figures, replicas over time, decisions."""

from collections.abc import Sequence

from msgspec import Struct

from tenfold.report.charts.axes import Axis, plain
from tenfold.report.charts.points import Series, line_chart
from tenfold.report.charts.svg import Card
from tenfold.report.pages.html import Section, charts_html, page, prose_html, table_html

COLUMNS = ("time", "ready", "starting", "target", "reason")


class AutoscalePage(Struct, frozen=True, kw_only=True):
    """The content of the page."""

    title: str
    lead: str
    figures: Sequence[tuple[str, str]]
    replicas: Sequence[tuple[float, float]]
    busy: Sequence[tuple[float, float]]
    steps: Sequence[Sequence[str]]
    """The first decisions that changed something."""
    steps_in_all: int


def autoscale_page(content: AutoscalePage) -> str:
    """Return the page."""
    hours = Axis(title="hours", from_zero=True, label=plain)
    replicas = Axis(title="replicas", from_zero=True, label=plain)
    series = [
        Series(name="paid for", points=tuple(content.replicas), dots=False),
        Series(name="kept busy by requests", points=tuple(content.busy), dots=False, dashed=True),
    ]
    chart = line_chart(Card(title="Replicas over time"), series, hours, replicas)
    shown = (
        prose_html(f"The first {len(content.steps):,} of {content.steps_in_all:,} decisions.")
        if len(content.steps) < content.steps_in_all
        else ""
    )
    sections = [
        Section("Figures", table_html(["", "value"], [list(one) for one in content.figures])),
        Section("Replicas", charts_html(chart)),
        Section("Decisions", shown + table_html(list(COLUMNS), content.steps)),
    ]
    return page(content.title, sections, lead=content.lead)
