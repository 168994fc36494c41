"""`tenfold sim failures`: nodes down at once, and the spares that cover them."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter, validators

from tenfold.cli.arguments import Facts, Force, Json
from tenfold.cli.output import print_json, print_note, show, table
from tenfold.cli.screen import Text
from tenfold.compose.failures import failure_source
from tenfold.compose.fleet import load_facts
from tenfold.files.core.write import write_new_file
from tenfold.files.fleet.read import load_fleet
from tenfold.physics.nodes import nodes_of
from tenfold.report.charts.terminal import bars
from tenfold.report.figures import count, share
from tenfold.report.pages.failures import failures_report
from tenfold.study.sim.nodes_down import SparesRequest
from tenfold.study.sim.spares import DownStats, SparesReport, size_spares

AT_LEAST_ONE = validators.Number(gte=1)
DAYS = validators.Number(gt=0, lte=36_500)
BARS_MAX = 16


def failures_command(
    *,
    fleet: Annotated[Path, Parameter(help="Fleet file")],
    failures: Annotated[
        str,
        Parameter(
            help="Failure preset (`tenfold facts list --kind failure`), none, or a "
            "fault trace (default: infinitehbd)"
        ),
    ] = "infinitehbd",
    days: Annotated[
        float | None,
        Parameter(help="Days to simulate (default: 365, or the whole trace)", validator=DAYS),
    ] = None,
    seeds: Annotated[
        int | None,
        Parameter(
            help="Number of random seeds (default: enough for P99 to converge within 5% or 0.25 "
            "nodes)",
            validator=AT_LEAST_ONE,
        ),
    ] = None,
    seed: Annotated[int, Parameter(help="First random seed (default: 0)")] = 0,
    keep_gpus: Annotated[
        int | None, Parameter(help="GPUs to keep available (default: all)", validator=AT_LEAST_ONE)
    ] = None,
    html: Annotated[Path | None, Parameter(help="Also write an HTML report to this file")] = None,
    force: Force = False,
    facts: Facts = None,
    as_json: Json = False,
) -> None:
    """Estimate how many nodes are down at the same time and how many spares cover them.

    A preset is sampled once per seed. A fault trace (InfiniteHBD JSON, or CSV with the columns
    node, start_s, end_s and cause) is replayed once. Independent (Poisson) failures with the same
    mean are shown for comparison.
    """
    catalogue = load_facts(facts)
    source = failure_source(failures, catalogue)
    spec = load_fleet(fleet, catalogue, unknown_accelerators=True)
    request = SparesRequest(days=days, seeds=seeds, seed=seed, keep_gpus=keep_gpus)
    result = size_spares(spec.name, list(nodes_of(spec)), source, request)
    for note in result.notes:
        print_note(note)
    if html is not None:
        write_new_file(html, _report(result), force=force)
        print_note(f"report written to {html}")
    if as_json:
        print_json(result)
    else:
        show_failures(result)


def show_failures(result: SparesReport) -> None:
    """Print the headline, nodes down at once, spares, and jobs by size."""
    show(
        Text(f"{result.fleet}: {_setup_line(result)}"),
        Text(_headline(result), style="bold"),
        "",
        table(*_down_table(result)),
        "",
        Text("days per year by number of nodes down", style="dim"),
        bars(_histogram(result.time_share_by_down), label=_days),
    )
    if len(result.pools) > 1:
        show("", table(*_pool_table(result)))
    if result.jobs:
        show("", table(*_job_table(result)))
    if result.assumed:
        show("", f"assumed in `{result.failures}`: {', '.join(result.assumed)}")


def _setup_line(result: SparesReport) -> str:
    runs = "1 run" if result.seeds == 1 else f"{result.seeds} runs"
    return (
        f"{count(result.nodes, 'node')}, {count(result.gpus, 'GPU')}, "
        f"failures `{result.failures}`, {runs} of {result.days:g} days"
    )


def _headline(result: SparesReport) -> str:
    low, high = result.interruptions_low, result.interruptions_high
    return (
        f"{result.faults_per_day:.3g} faults per day; a job on the whole fleet is interrupted "
        f"{count(round(result.interruptions), 'time')} in {result.days:g} days "
        f"(3 sigma: {low:,.0f} to {high:,.0f})"
    )


Table = tuple[str, list[str], list[list[str]]]


def _down_table(result: SparesReport) -> Table:
    kept = f"spares to keep {count(result.gpus_kept, 'GPU')} up"
    rows = [
        _row("nodes down at once", result.down, f"{result.down.mean:,.1f}"),
        _row("  if failures were independent", result.poisson, f"{result.poisson.mean:,.1f}"),
        _row(kept, result.spares),
        _row("  if failures were independent", result.spares_poisson),
    ]
    return "", ["", ">mean", ">P50", ">P90", ">P99", ">max"], rows


def _row(name: str, down: DownStats, mean: str = "") -> list[str]:
    most = "" if down.max is None else f"{down.max:,}"
    return [name, mean, f"{down.p50:,}", f"{down.p90:,}", f"{down.p99:,}", most]


def _pool_table(result: SparesReport) -> Table:
    columns = [
        "pool",
        ">nodes",
        ">down P50",
        ">down P90",
        ">down P99",
        ">spares P90",
        ">spares P99",
        ">if independent",
    ]
    rows = [
        [
            one.pool,
            f"{one.nodes:,}",
            f"{one.down.p50:,}",
            f"{one.down.p90:,}",
            f"{one.down.p99:,}",
            f"{one.spares.p90:,}",
            f"{one.spares.p99:,}",
            f"{one.spares_poisson.p99:,}",
        ]
        for one in result.pools
    ]
    return "", columns, rows


def _job_table(result: SparesReport) -> Table:
    rows = [
        [f"{one.gpus:,}", f"{one.nodes:,}", _duration(one.mttf_h), share(one.day_undisturbed)]
        for one in result.jobs
    ]
    return "", [">job GPUs", ">nodes", ">MTTF", ">24 h without failure"], rows


def _duration(hours: float) -> str:
    return f"{hours / 24:,.1f} days" if hours >= 48 else f"{hours:,.1f} h"


def _days(value: float) -> str:
    return f"{value:.1f}" if value < 10 else f"{value:.0f}"


def _histogram(shares: tuple[float, ...]) -> dict[str, float]:
    """Return days per year by count, with several counts per bar if there are many."""
    width = -(-len(shares) // BARS_MAX)
    return {
        str(low) if width == 1 else f"{low}-{low + width - 1}": 365 * sum(shares[low : low + width])
        for low in range(0, len(shares), width)
    }


def _report(result: SparesReport) -> str:
    return failures_report(
        title=f"{result.fleet}: nodes down at once",
        lead=f"{_setup_line(result)}. {_headline(result)}.",
        time_shares=result.time_share_by_down,
        mean=result.down.mean,
        tables=[("Spares", _down_table(result)), ("Jobs by size", _job_table(result))],
        assumed=result.assumed,
    )
