"""HTML page that compares policies: a scorecard and overlaid charts."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from tenfold.report.charts.runs import TimeSeries, count_over_time, share_over_time, times_chart
from tenfold.report.pages.html import Section, charts_html, list_html, page, prose_html, table_html

FOOT = (
    "Simulated by Tenfold. The same jobs, fleets, policies and seeds always give the same result. "
    "A star marks the best policy."
)
Table = tuple[Sequence[str], Sequence[Sequence[str]]]


class Overlay(Struct, frozen=True, kw_only=True):
    """Policies with the same jobs on the same fleet; charts have one line per policy."""

    title: str
    table: Table
    scores: Table
    allocated: Mapping[str, TimeSeries]
    waiting: Mapping[str, TimeSeries]
    waits_s: Mapping[str, Sequence[float]]
    jcts_s: Mapping[str, Sequence[float]]


class ComparePage(Struct, frozen=True, kw_only=True):
    """Content of the page."""

    title: str
    lead: str
    overlays: Sequence[Overlay]
    failed: Sequence[str]
    notes: Sequence[str]


def compare_report(compared: ComparePage) -> str:
    """Return the page of a comparison."""
    sections = [Section(one.title, _body(one)) for one in compared.overlays]
    if compared.failed:
        sections.append(Section("Failed runs", list_html(compared.failed)))
    if compared.notes:
        sections.append(Section("Notes", list_html(compared.notes)))
    return page(compared.title, sections, lead=compared.lead, foot=FOOT)


def _body(one: Overlay) -> str:
    """Return tables and charts; the curves show the first seed."""
    parts = [_table(one.table)]
    if one.scores[1]:
        parts += [
            prose_html("Scorecard: change of each policy relative to the baseline."),
            _table(one.scores),
        ]
    if one.allocated:
        below = "log scale from 1 s"
        parts.append(
            charts_html(
                share_over_time("GPUs allocated", one.allocated),
                count_over_time("Jobs waiting", "jobs", one.waiting),
                times_chart("Wait", below, one.waits_s),
                times_chart("Job completion time", "from submission to end", one.jcts_s),
            )
        )
    return "".join(parts)


def _table(shown: Table) -> str:
    columns, rows = shown
    return table_html([column.lstrip(">") for column in columns], rows)
