"""HTML page of a simulated run: results, over time, by job, by rack and by team."""

from collections.abc import Sequence

from msgspec import Struct

from tenfold.report.charts.gantt import GanttBar, GanttRow, gantt
from tenfold.report.charts.runs import (
    TimeSeries,
    count_over_time,
    share_over_time,
    time_unit,
    times_chart,
)
from tenfold.report.charts.svg import Card
from tenfold.report.pages.html import (
    Section,
    charts_html,
    list_html,
    page,
    pairs_html,
    table_html,
    tiles_html,
)

FOOT = "Simulated by Tenfold. The same jobs, fleet, policy and seed always give the same result."
WIDE = 1000


class RunPage(Struct, frozen=True, kw_only=True):
    """Content of the page. Curves are over seconds since the first submission."""

    title: str
    lead: str
    tiles: Sequence[tuple[str, str]]
    figures: Sequence[tuple[str, str]]
    allocated: TimeSeries
    """Share of the GPUs."""
    waiting: TimeSeries
    running: TimeSeries
    down: TimeSeries
    waits_s: Sequence[float]
    jcts_s: Sequence[float]
    rows: Sequence[GanttRow]
    bars: Sequence[GanttBar]
    shown: str
    """Which part of the fleet the gantt chart shows."""
    teams: tuple[Sequence[str], Sequence[Sequence[str]]]
    assumed: Sequence[str]


def sim_report(run: RunPage) -> str:
    """Return the page of a run."""
    over_time = [
        share_over_time("GPUs allocated", {"allocated": run.allocated}),
        count_over_time("Jobs", "jobs", {"waiting": run.waiting, "running": run.running}),
    ]
    if any(value for _, value in run.down):
        over_time.append(count_over_time("Nodes down", "nodes", {"down": run.down}))
    below = "log scale from 1 s"
    by_job = [
        times_chart("Wait", below, {"wait": run.waits_s}),
        times_chart("Job completion time", "from submission to end", {"completion": run.jcts_s}),
    ]
    columns, rows = run.teams
    sections = [
        Section("Results", pairs_html(run.figures)),
        Section("Over time", charts_html(*over_time)),
        Section("By job", charts_html(*by_job)),
        Section("By rack", charts_html(_gantt(run))),
    ]
    if rows:
        heads = [column.lstrip(">") for column in columns]
        sections.append(Section("By team", table_html(heads, rows)))
    if run.assumed:
        sections.append(Section("Assumptions", list_html(run.assumed)))
    return page(run.title, sections, lead=run.lead, top_html=tiles_html(run.tiles), foot=FOOT)


def _gantt(run: RunPage) -> str:
    unit = time_unit(max((at for at, _ in run.allocated), default=0.0))
    scaled = [
        GanttBar(
            bar.node,
            bar.lane,
            bar.lanes,
            bar.start / unit.seconds,
            bar.end / unit.seconds,
            bar.group,
            bar.hint,
        )
        for bar in run.bars
    ]
    card = Card(title="Jobs on nodes, by team", subtitle=run.shown, width=WIDE)
    return gantt(card, run.rows, scaled, unit.axis())
