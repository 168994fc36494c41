"""A page on nodes down at once: what a law gives beside plain chance of the same mean."""

from collections.abc import Sequence

from tenfold.physics.operations.faults import poisson_share
from tenfold.report.charts.axes import Axis, percent, plain
from tenfold.report.charts.points import Series, line_chart
from tenfold.report.charts.svg import Card
from tenfold.report.pages.html import Section, charts_html, list_html, page, table_html

Table = tuple[str, list[str], list[list[str]]]


def failures_report(
    *,
    title: str,
    lead: str,
    time_shares: Sequence[float],
    mean: float,
    tables: Sequence[tuple[str, Table]],
    assumed: Sequence[str],
) -> str:
    """Return the page: two curves, the tables, and what rests on assumptions."""
    counts = range(len(time_shares))
    plainly = [poisson_share(mean, number) for number in counts]
    down = Axis(title="nodes down at once, or more", from_zero=True, label=plain)
    part = Axis(title="share of the time", from_zero=True, most=1.0, label=percent)
    series = [
        Series(name="simulated", points=_beyond(time_shares), dots=False),
        Series(name="if faults came alone", points=_beyond(plainly), dots=False, dashed=True),
    ]
    chart = line_chart(Card(title="How much of the time so many are down"), series, down, part)
    sections = [
        Section("Nodes down at once", charts_html(chart)),
        *(
            Section(name, table_html([column.lstrip(">") for column in columns], rows))
            for name, (_, columns, rows) in tables
            if rows
        ),
    ]
    if assumed:
        words = [f"`{field}` is an assumption: state your own in a facts file" for field in assumed]
        sections.append(Section("Assumed", list_html(words)))
    return page(title, sections, lead=lead)


def _beyond(shares: Sequence[float]) -> tuple[tuple[float, float], ...]:
    left = 1.0
    points: list[tuple[float, float]] = []
    for number, one in enumerate(shares):
        points.append((float(number), max(0.0, left)))
        left -= one
    return tuple(points)
