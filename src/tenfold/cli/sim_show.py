"""A simulated run as JSON for programs and as tables for people."""

from collections.abc import Mapping

from msgspec.structs import asdict
from rich.table import Table

from tenfold.cli.output import show, table
from tenfold.clock import process_cpu_s
from tenfold.compose.sim_inputs import Prepared
from tenfold.compose.simulation import SimResult
from tenfold.report.figures import share
from tenfold.sim.meters import Summary
from tenfold.study.fill import FillResult


def run_json(result: SimResult) -> dict[str, object]:
    """Return a run in the words of its contract."""
    cpu_s = process_cpu_s()
    summary = asdict(result.summary)
    return {
        **summary,
        "events": result.events,
        "cpu_s": round(cpu_s, 3),
        "jobs_per_cpu_s": round(result.summary.jobs / max(cpu_s, 1e-6), 1),
        "teams": {team: asdict(part) for team, part in result.teams.items()},
    }


def show_run(prepared: Prepared, result: SimResult) -> None:
    """Print what became of a run."""
    summary, ask = result.summary, prepared.ask
    show(
        f"{summary.jobs:,} jobs on {ask.gpus:,} GPUs of `{prepared.spec.name}` "
        f"under `{ask.policy.name}`: {summary.finished:,} finished, {summary.refused:,} refused",
        "",
        _summary_table(summary),
    )
    if result.teams:
        show("", _teams_table(result.teams))


def _summary_table(summary: Summary) -> Table:
    rows = [
        ["mean completion", hours(summary.avg_jct_s)],
        ["half complete within", hours(summary.p50_jct_s)],
        ["99% complete within", hours(summary.p99_jct_s)],
        ["mean wait", hours(summary.avg_wait_s)],
        ["from first submission to last end", hours(summary.makespan_s)],
        ["GPUs allocated", share(summary.gpu_utilization)],
        ["GPU-hours", f"{summary.gpu_hours:,.0f}"],
        ["of them without progress", f"{summary.gpu_hours_lost:,.0f}"],
        ["preemptions", f"{summary.preemptions:,}"],
        ["runs broken by a lost node", f"{summary.failures:,}"],
        ["evenness over teams (Jain)", f"{summary.jain:.2f}"],
    ]
    return table("", ["", ">"], rows)


def _teams_table(teams: Mapping[str, Summary]) -> Table:
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
    return table("By team", ["team", ">jobs", ">completion", ">wait", ">GPU-h", ">preempted"], rows)


def fill_json(result: FillResult) -> dict[str, object]:
    """Return a filling in the words of its contract."""
    return {**asdict(result), "cpu_s": round(process_cpu_s(), 3)}


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
