"""HTML page on nodes down at once, with independent failures for comparison."""

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
    """Return the page: two curves, the tables, and the assumptions."""
    counts = range(len(time_shares))
    plainly = [poisson_share(mean, number) for number in counts]
    down = Axis(title="at least this many nodes down", from_zero=True, label=plain)
    part = Axis(title="share of time", from_zero=True, most=1.0, label=percent)
    series = [
        Series(name="simulated", points=_beyond(time_shares), dots=False),
        Series(
            name="if failures were independent", points=_beyond(plainly), dots=False, dashed=True
        ),
    ]
    chart = line_chart(Card(title="Time with at least this many nodes down"), series, down, part)
    sections = [
        Section("Nodes down at once", charts_html(chart)),
        *(
            Section(name, table_html([column.lstrip(">") for column in columns], rows))
            for name, (_, columns, rows) in tables
            if rows
        ),
    ]
    if assumed:
        words = [
            f"`{field}` is an assumption; set your own value in a facts file" for field in assumed
        ]
        sections.append(Section("Assumptions", list_html(words)))
    return page(title, sections, lead=lead)


def _beyond(shares: Sequence[float]) -> tuple[tuple[float, float], ...]:
    left = 1.0
    points: list[tuple[float, float]] = []
    for number, one in enumerate(shares):
        points.append((float(number), max(0.0, left)))
        left -= one
    return tuple(points)
