"""`tenfold sim burst`: late jobs on rented nodes, against only your own nodes and only rented."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from tenfold.cli.arguments import Facts, Json
from tenfold.cli.output import print_json, show, table
from tenfold.cli.screen import Text
from tenfold.cli.sim.options import FleetFile, JobsFile, RestartCost, world_settings
from tenfold.compose.fleet import load_facts
from tenfold.compose.inputs import SimFiles
from tenfold.files.policy.burst import read_burst
from tenfold.report.figures import count
from tenfold.report.reasons.render import plain
from tenfold.study.burst.run import BurstAnswer, compare_burst


def burst_command(
    *,
    fleet: FleetFile,
    jobs: JobsFile,
    burst: Annotated[Path, Parameter(help="Burst file: budget, limits and zones")],
    policy: Annotated[
        str, Parameter(help="Policy on your own nodes (default: tenfold)")
    ] = "tenfold",
    restart_cost_s: RestartCost = None,
    facts: Facts = None,
    as_json: Json = False,
) -> None:
    """Compare your own nodes, your own nodes with burst, and rented nodes only, on a trace.

    A job is sent to rented nodes only if it would be late on your own nodes, would finish earlier
    on rented ones (staging and start-up included), and fits the budget.
    """
    files = SimFiles(
        fleet=fleet,
        jobs=jobs,
        policy=policy,
        facts=facts,
        settings=world_settings(restart_cost_s, 0),
    )
    answer = compare_burst(files, read_burst(burst, load_facts(facts).accelerators))
    if as_json:
        print_json(answer)
    else:
        _show(answer)


def _show(answer: BurstAnswer) -> None:
    rows = [
        [
            row.way,
            f"{row.usd:,.2f}",
            f"{row.own_usd:,.2f}",
            f"{row.rented_usd:,.2f}",
            str(row.jobs_rented),
            f"{row.deadlines_missed} of {row.deadlines}",
            f"{row.avg_wait_s:,.0f}",
            str(row.not_run),
        ]
        for row in answer.rows
    ]
    columns = ["", ">$", ">own $", ">rented $", ">jobs", ">deadlines missed", ">wait s", ">not run"]
    show(
        f"simulated {answer.hours:,.1f} h; budget ${answer.budget_usd:,.2f}",
        "",
        table("", columns, rows),
    )
    if answer.refused:
        show("")
    for code, jobs in sorted(answer.refused.items()):
        show(f"{count(jobs, 'late job')} not burst: {plain(code).removeprefix('burst ')} ({code})")
    for note in answer.notes:
        show(Text(f"note: {note}", style="dim"))
