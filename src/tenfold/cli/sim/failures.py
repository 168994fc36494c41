"""`tenfold sim failures`: nodes down at once, and the spares that hold a fleet whole."""

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter, validators
from rich.text import Text

from tenfold.cli.output import print_json, show, table
from tenfold.compose.failures import failure_source
from tenfold.compose.fleet import load_facts
from tenfold.files.core.write import write_new_file
from tenfold.files.fleet.read import load_fleet
from tenfold.physics.nodes import nodes_of
from tenfold.report.charts.terminal import bars
from tenfold.report.figures import count, share
from tenfold.report.pages.failures import failures_report
from tenfold.study.sim.spares import Down, SparesAnswer, SparesQuestion, size_spares

AT_LEAST_ONE = validators.Number(gte=1)
DAYS = validators.Number(gt=0, lte=36_500)
BARS_MAX = 16


def failures_command(
    *,
    fleet: Annotated[Path, Parameter(help="A fleet file.")],
    failures: Annotated[
        str, Parameter(help="A preset (`tenfold facts list --kind failure`), none, or a trace.")
    ] = "infinitehbd",
    days: Annotated[
        float | None, Parameter(help="Days to look at: 365, or all of a trace.", validator=DAYS)
    ] = None,
    seeds: Annotated[int, Parameter(help="How often to draw.", validator=AT_LEAST_ONE)] = 20,
    seed: Annotated[int, Parameter(help="Seed of the first draw.")] = 0,
    keep_gpus: Annotated[
        int | None, Parameter(help="GPUs to hold up, if not all.", validator=AT_LEAST_ONE)
    ] = None,
    html: Annotated[Path | None, Parameter(help="Also write a report to this file.")] = None,
    force: Annotated[bool, Parameter(negative="", help="Write over an existing file.")] = False,
    facts: Annotated[Path | None, Parameter(help="Folder of your own facts.")] = None,
    as_json: Annotated[bool, Parameter(name="--json", negative="", help="Print JSON.")] = False,
) -> None:
    """Show how many nodes are down at once, and how many spares hold the fleet whole.

    A preset is drawn anew for each seed; a trace (InfiniteHBD's JSON, or CSV with `node,
    start_s, end_s, cause`) is played once. Plain chance of the same mean is shown beside.
    """
    catalogue = load_facts(facts)
    source = failure_source(failures, catalogue)
    spec = load_fleet(fleet, catalogue, unknown_accelerators=True)
    question = SparesQuestion(days=days, seeds=seeds, seed=seed, keep_gpus=keep_gpus)
    answer = size_spares(spec.name, list(nodes_of(spec)), source, question)
    for note in answer.notes:
        sys.stderr.write(f"note: {note}\n")
    if html is not None:
        write_new_file(html, _report(answer), force=force)
        sys.stderr.write(f"note: the report is written to {html}\n")
    if as_json:
        print_json(answer)
    else:
        show_failures(answer)


def show_failures(answer: SparesAnswer) -> None:
    """Print what was drawn: a sentence, nodes down at once, spares, and jobs by size."""
    show(
        Text(f"{answer.fleet}: {_asked(answer)}"),
        Text(_sentence(answer), style="bold"),
        "",
        table(*_down_table(answer)),
        "",
        Text("days of a year by nodes down at once", style="dim"),
        bars(_binned(answer.time_share_by_down), label=_days),
    )
    if len(answer.pools) > 1:
        show("", table(*_pool_table(answer)))
    if answer.jobs:
        show("", table(*_job_table(answer)))
    if answer.assumed:
        show("", f"assumed in `{answer.failures}`: {', '.join(answer.assumed)}")


def _asked(answer: SparesAnswer) -> str:
    drawn = "played once" if answer.seeds == 1 else f"drawn {answer.seeds} times"
    return (
        f"{count(answer.nodes, 'node')}, {answer.gpus:,} GPUs; failures as in "
        f"`{answer.failures}`, {answer.days:g} days, {drawn}"
    )


def _sentence(answer: SparesAnswer) -> str:
    low, high = answer.interruptions_low, answer.interruptions_high
    return (
        f"{answer.faults_per_day:.3g} faults a day; a job over the whole fleet is interrupted "
        f"{answer.interruptions:,.0f} times in {answer.days:g} days (3 sigma: {low:,.0f} to "
        f"{high:,.0f})"
    )


Table = tuple[str, list[str], list[list[str]]]


def _down_table(answer: SparesAnswer) -> Table:
    kept = f"spare nodes that keep {answer.gpus_kept:,} GPUs up"
    rows = [
        _row("nodes down at once", answer.down),
        _row("  if faults came alone (Poisson)", answer.poisson),
        _row(kept, answer.spares),
        _row("  if faults came alone (Poisson)", answer.spares_poisson),
    ]
    return "", ["", ">mean", ">P50", ">P90", ">P99", ">max"], rows


def _row(name: str, down: Down) -> list[str]:
    most = "" if down.max is None else f"{down.max:,}"
    return [name, f"{down.mean:,.1f}", f"{down.p50:,}", f"{down.p90:,}", f"{down.p99:,}", most]


def _pool_table(answer: SparesAnswer) -> Table:
    columns = ["pool", ">nodes", ">down P50", ">P90", ">P99", ">spares P90", ">P99", ">Poisson P99"]
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
        for one in answer.pools
    ]
    return "", columns, rows


def _job_table(answer: SparesAnswer) -> Table:
    rows = [
        [f"{one.gpus:,}", f"{one.nodes:,}", _long(one.mttf_h), share(one.day_undisturbed)]
        for one in answer.jobs
    ]
    return "", [">job GPUs", ">nodes", ">mean time to a fault", ">a day undisturbed"], rows


def _long(hours: float) -> str:
    return f"{hours / 24:,.1f} days" if hours >= 48 else f"{hours:,.1f} h"


def _days(value: float) -> str:
    return f"{value:.1f}" if value < 10 else f"{value:.0f}"


def _binned(shares: tuple[float, ...]) -> dict[str, float]:
    """Return days of a year by counts, several counts a bar where there are many."""
    width = -(-len(shares) // BARS_MAX)
    return {
        str(low) if width == 1 else f"{low}-{low + width - 1}": 365 * sum(shares[low : low + width])
        for low in range(0, len(shares), width)
    }


def _report(answer: SparesAnswer) -> str:
    return failures_report(
        title=f"{answer.fleet}: nodes down at once",
        lead=f"{_asked(answer)}. {_sentence(answer)}.",
        time_shares=answer.time_share_by_down,
        mean=answer.down.mean,
        tables=[("Spares", _down_table(answer)), ("Jobs by size", _job_table(answer))],
        assumed=answer.assumed,
    )
