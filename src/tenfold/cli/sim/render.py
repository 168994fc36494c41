"""A simulated run as tables and small charts for people."""

from bisect import bisect_right
from collections.abc import Mapping

from rich.table import Table
from rich.text import Text

from tenfold.cli.output import show, table
from tenfold.cli.sim.grid import grid_figures
from tenfold.compose.inputs import PreparedRun
from tenfold.compose.simulation import SimResult
from tenfold.report.charts.runs import span
from tenfold.report.charts.terminal import levels, shares_line
from tenfold.report.figures import count, share
from tenfold.sim.measure.meters import Summary
from tenfold.study.sim.bill import Bill
from tenfold.study.sim.detail import Detail
from tenfold.study.sim.fill import FillResult
from tenfold.study.sim.green import Green, green

WAITS_S = (0, 60, 600, 3_600, 6 * 3_600, 86_400, 7 * 86_400)
LINE_CELLS = 80


def show_run(
    prepared: PreparedRun, result: SimResult, costs: Bill, detail: Detail | None = None
) -> None:
    """Print what became of a run, with small charts where it was looked at closely."""
    summary, request = result.summary, prepared.request
    show(
        run_headline(prepared, result),
        "",
        table("", ["", ">"], figures(summary, costs, detail, green(prepared, result))),
    )
    if detail is not None and detail.timeline.at_s:
        _show_charts(detail, request.gpus)
    if result.teams:
        show("", _teams_table(result.teams))


def run_headline(prepared: PreparedRun, result: SimResult) -> str:
    """Return a run in one line: how many jobs on what, and how many finished."""
    summary, request = result.summary, prepared.request
    return (
        f"{count(summary.jobs, 'job')} on {count(request.gpus, 'GPU')} of `{prepared.spec.name}` "
        f"under `{request.policy.name}`: {summary.finished:,} finished, {summary.refused:,} refused"
    )


def figures(
    summary: Summary, costs: Bill, detail: Detail | None, grid_use: Green | None = None
) -> list[tuple[str, str]]:
    """Return the figures of a run and what they are."""
    rows = [
        ("mean completion", hours(summary.avg_jct_s)),
        ("half complete within", hours(summary.p50_jct_s)),
        ("99% complete within", hours(summary.p99_jct_s)),
        ("mean wait", hours(summary.avg_wait_s)),
        ("from first submission to last end", hours(summary.makespan_s)),
        ("GPUs allocated", share(summary.gpu_utilization)),
        ("GPU-hours", f"{summary.gpu_hours:,.0f}"),
        ("of them without progress", f"{summary.gpu_hours_lost:,.0f}"),
        ("preemptions", f"{summary.preemptions:,}"),
        ("runs broken by a lost node", f"{summary.failures:,}"),
        ("evenness over teams (Jain)", f"{summary.jain:.2f}"),
    ]
    if detail is not None and detail.fairness is not None:
        fair = detail.fairness
        rows.append(("time against an even share, mean", f"{fair.rho_mean:,.2f}"))
        rows.append(("jobs later than on an even share", share(fair.late_share)))
    if detail is not None and detail.fragmentation is not None:
        rows.append(("free GPUs of no use to the next job", share(detail.fragmentation)))
    if costs.usd is not None:
        rows.append(("dollars for the fleet, idle or not", f"${costs.usd:,.0f}"))
    if costs.usd_per_gpu_hour is not None:
        rows.append(("dollars a GPU-hour of progress", f"${costs.usd_per_gpu_hour:,.2f}"))
    rows.append(("energy at the meter", f"{costs.kwh:,.0f} kWh"))
    return rows if grid_use is None else rows + grid_figures(grid_use)


def _show_charts(detail: Detail, gpus: int) -> None:
    """Print allocated GPUs over time, and how many jobs had started within a time."""
    line = detail.timeline
    busy = shares_line([one / max(1, gpus) for one in line.gpus_allocated], LINE_CELLS)
    most = max(line.jobs_waiting)
    queue = shares_line([one / most if most else 0.0 for one in line.jobs_waiting], LINE_CELLS)
    waits = detail.waits_s
    within = {
        "at once" if limit == 0 else f"within {span(limit)}": bisect_right(waits, limit)
        / len(waits)
        for limit in WAITS_S
    }
    show(
        "",
        Text(f"GPUs allocated over time, of {gpus:,}", style="dim"),
        Text(busy),
        Text(f"jobs that wait, at most {most:,.0f}", style="dim"),
        Text(queue),
        "",
        Text("jobs by how long they waited in all", style="dim"),
        levels(within),
    )


def _teams_table(teams: Mapping[str, Summary]) -> Table:
    columns, rows = teams_rows(teams)
    return table("By team", columns, rows)


def teams_rows(teams: Mapping[str, Summary]) -> tuple[list[str], list[list[str]]]:
    """Return a table of teams: its columns and rows."""
    rows = [
        [
            team or "(none)",
            f"{part.finished:,}",
            hours(part.avg_jct_s),
            hours(part.avg_wait_s),
            f"{part.gpu_hours:,.0f}",
            f"{part.preemptions:,}",
        ]
        for team, part in teams.items()
    ]
    return ["team", ">jobs", ">completion", ">wait", ">GPU-h", ">preempted"], rows


def show_fill(result: FillResult) -> None:
    """Print how full a fleet became."""
    rows = [
        [f"{float(at):.0%}", "never asked" if full is None else share(full)]
        for at, full in result.gpu_allocated.items()
    ]
    show(table("GPUs allocated when requests reach", ["of capacity", ">allocated"], rows))


def hours(seconds: float) -> str:
    """Return a time in the unit that people would say it in."""
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:,.1f} {unit}"
    return f"{seconds:,.1f} s"
