"""A simulated run as text tables and small charts."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping

from rich.table import Table

from tenfold.cli.output import show, table
from tenfold.cli.screen import Text
from tenfold.cli.sim.grid import grid_figures
from tenfold.compose.inputs import PreparedRun
from tenfold.compose.simulation import SimResult
from tenfold.report.charts.runs import span
from tenfold.report.charts.terminal import levels, shares_line
from tenfold.report.figures import count, share
from tenfold.report.reasons.render import render
from tenfold.sim.measure.meters import Summary
from tenfold.study.sim.bill import Bill
from tenfold.study.sim.detail import Detail
from tenfold.study.sim.fill import FillResult
from tenfold.study.sim.green import Green, green
from tenfold.study.sim.recorded import recorded_figures

WAITS_S = (0, 60, 600, 3_600, 6 * 3_600, 86_400, 7 * 86_400)
LINE_CELLS = 80
REASONS = 3
"""Reasons for rejected jobs that are printed; the others are counted."""


def show_run(
    prepared: PreparedRun, result: SimResult, costs: Bill, detail: Detail | None = None
) -> None:
    """Print the result of a run, with small charts if its details are given."""
    summary, request = result.summary, prepared.request
    rows = figures(summary, costs, detail, green(prepared, result))
    recorded = recorded_cells(prepared)
    if recorded:
        cells = [(name, value, recorded.get(name, "")) for name, value in rows]
        shown = table("", ["", ">simulated", ">recorded"], cells)
    else:
        shown = table("", ["", ">"], rows)
    show(run_headline(prepared, result), *rejections(result), "", shown)
    if detail is not None and detail.timeline.at_s:
        _show_charts(detail, request.gpus)
    if result.teams:
        show("", _teams_table(result.teams))
    for assumption in prepared.assumptions(summary):
        show("", assumption)


def run_headline(prepared: PreparedRun, result: SimResult) -> str:
    """Return a run in one line: how many jobs on what, and how many finished."""
    summary, request = result.summary, prepared.request
    return (
        f"{count(summary.jobs, 'job')} on fleet `{prepared.spec.name}` "
        f"({count(request.gpus, 'GPU')}), policy `{request.policy.name}`: "
        f"{summary.finished:,} finished, {summary.refused:,} rejected"
    )


def rejections(result: SimResult) -> list[str]:
    """Return why jobs were rejected, the most frequent reasons first."""
    found = Counter(
        "; ".join(render(reason) for reason in reasons) for reasons in result.meters.refused_reasons
    )
    lines = [f"rejected: {count(jobs, 'job')}: {why}" for why, jobs in found.most_common(REASONS)]
    if len(found) > REASONS:
        rest = sum(found.values()) - sum(jobs for _, jobs in found.most_common(REASONS))
        lines.append(f"rejected: {count(rest, 'job')} for other reasons")
    return lines


def figures(
    summary: Summary, costs: Bill, detail: Detail | None, grid_use: Green | None = None
) -> list[tuple[str, str]]:
    """Return the rows of the report of a run."""

    def of_finished(text: str) -> str:
        return text if summary.finished else "-"

    rows = [
        ("mean job completion time", of_finished(hours(summary.avg_jct_s))),
        ("median job completion time", of_finished(hours(summary.p50_jct_s))),
        ("P99 job completion time", of_finished(hours(summary.p99_jct_s))),
        ("mean wait", of_finished(hours(summary.avg_wait_s))),
        ("makespan", of_finished(hours(summary.makespan_s))),
        ("GPUs allocated", of_finished(share(summary.gpu_utilization))),
        ("GPU-hours allocated", f"{summary.gpu_hours:,.0f}"),
        ("GPU-hours lost", f"{summary.gpu_hours_lost:,.0f}"),
        ("preemptions", f"{summary.preemptions:,}"),
        ("runs lost to node failures", f"{summary.failures:,}"),
        ("fairness of slowdown (Jain)", of_finished(f"{summary.jain:.2f}")),
    ]
    if detail is not None and detail.fairness is not None:
        fair = detail.fairness
        rows.append(("mean finish-time fairness", f"{fair.rho_mean:,.2f}"))
        rows.append(("jobs slower than under a fair share", share(fair.late_share)))
    if detail is not None and detail.fragmentation is not None:
        rows.append(("fragmentation of free GPUs", share(detail.fragmentation)))
    if costs.usd is not None:
        rows.append(("fleet cost (including idle time)", f"${costs.usd:,.0f}"))
    if costs.usd_per_gpu_hour is not None:
        rows.append(("cost per useful GPU-hour", f"${costs.usd_per_gpu_hour:,.2f}"))
    rows.append(("energy (including cooling)", f"{costs.kwh:,.0f} kWh"))
    return rows if grid_use is None else rows + grid_figures(grid_use)


def recorded_cells(prepared: PreparedRun) -> dict[str, str]:
    """Return what the trace itself recorded, by the names of the rows; empty without starts."""
    request = prepared.request
    found = recorded_figures(request.jobs, prepared.starts_ms, request.gpus)
    if found is None:
        return {}
    return {
        "mean job completion time": hours(found.avg_jct_s),
        "median job completion time": hours(found.p50_jct_s),
        "P99 job completion time": hours(found.p99_jct_s),
        "mean wait": hours(found.avg_wait_s),
        "makespan": hours(found.makespan_s),
        "GPUs allocated": share(found.gpu_utilization),
    }


def _show_charts(detail: Detail, gpus: int) -> None:
    """Print allocated GPUs and waiting jobs over time, and the distribution of waits."""
    line = detail.timeline
    busy = shares_line([one / max(1, gpus) for one in line.gpus_allocated], LINE_CELLS)
    most = max(line.jobs_waiting)
    queue = shares_line([one / most if most else 0.0 for one in line.jobs_waiting], LINE_CELLS)
    waits = detail.waits_s
    within = {
        "no wait" if limit == 0 else f"up to {span(limit)}": bisect_right(waits, limit) / len(waits)
        for limit in WAITS_S
    }
    show(
        "",
        Text(f"allocated GPUs over time (of {gpus:,})", style="dim"),
        Text(busy),
        Text(f"waiting jobs over time (peak {most:,.0f})", style="dim"),
        Text(queue),
        "",
        Text("share of jobs by total wait (cumulative)", style="dim"),
        levels(within),
    )


def _teams_table(teams: Mapping[str, Summary]) -> Table:
    columns, rows = teams_rows(teams)
    return table("By team", columns, rows)


def teams_rows(teams: Mapping[str, Summary]) -> tuple[list[str], list[list[str]]]:
    """Return columns and rows of the table of teams."""
    rows = [
        [
            team or "(none)",
            f"{part.finished:,}",
            hours(part.avg_jct_s) if part.finished else "-",
            hours(part.avg_wait_s) if part.finished else "-",
            f"{part.gpu_hours:,.0f}",
            f"{part.preemptions:,}",
        ]
        for team, part in teams.items()
    ]
    return ["team", ">jobs", ">mean JCT", ">mean wait", ">GPU-hours", ">preemptions"], rows


def show_fill(result: FillResult) -> None:
    """Print how full the fleet got."""
    rows = [
        [f"{float(at):.0%}", "not reached" if full is None else share(full)]
        for at, full in result.gpu_allocated.items()
    ]
    show(
        "GPUs allocated, by GPUs requested (both as share of capacity)",
        table("", [">requested", ">allocated"], rows),
    )


def hours(seconds: float) -> str:
    """Return a duration in the unit that people would use."""
    if seconds >= 2 * 86_400:
        return f"{seconds / 86_400:,.1f} d"
    if round(seconds / 60) >= 60:
        return f"{seconds / 3_600:,.1f} h"
    value, unit = (seconds / 60, "min") if seconds >= 120 else (seconds, "s")
    if 0 < value < 0.05:
        return f"<0.1 {unit}"
    return f"{value:.0f} {unit}" if value >= 9.95 or value == 0 else f"{value:.1f} {unit}"
