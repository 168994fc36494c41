"""`tenfold sim govern`: what quotas do to each team, and what borrowing gains."""

from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from tenfold.cli.arguments import Facts, Force, Json
from tenfold.cli.errors import Exit
from tenfold.cli.output import print_json, print_note
from tenfold.cli.progress import progress
from tenfold.cli.sim.govern_render import governance_page, show_governance
from tenfold.cli.sim.options import (
    Failures,
    FleetFile,
    JobsFile,
    RestartCost,
    Seed,
    Workers,
    restart_assumption,
    world_settings,
)
from tenfold.compose.inputs import SimFiles
from tenfold.files.core.write import open_new_file
from tenfold.study.govern.compare import SHARING_MODES, governance
from tenfold.study.parallel import process_map, usable_cpus

EXIT_NO = 1


def govern_command(
    *,
    fleet: FleetFile,
    jobs: JobsFile,
    policy: Annotated[
        str,
        Parameter(
            help="Policy file, or `governed` to use the teams and quotas in the fleet"
            " file (default: governed)"
        ),
    ] = "governed",
    failures: Failures = "none",
    seed: Seed = 0,
    restart_cost_s: RestartCost = None,
    workers: Workers = None,
    html: Annotated[Path | None, Parameter(help="Also write an HTML report to this file")] = None,
    force: Force = False,
    facts: Facts = None,
    as_json: Json = False,
) -> None:
    """Compare a quota policy with other ways to share a fleet between teams.

    The same jobs run under the quota policy, FIFO, `tenfold` without teams, fixed partitions and
    fair-share weights. The output shows how long each team waits, how much of its entitlement it
    receives, and how much borrowing improves on fixed partitions. Exits with status 1 if a run
    fails.
    """
    files = SimFiles(
        fleet=fleet,
        jobs=jobs,
        policy=policy,
        failures=failures,
        facts=facts,
        settings=world_settings(restart_cost_s, seed),
        restart_assumption=restart_assumption(restart_cost_s),
    )
    opened = nullcontext() if html is None else open_new_file(html, force=force)
    with opened as stream:
        with progress("runs done", len(SHARING_MODES)) as done:
            run = partial(process_map, workers=workers or usable_cpus())
            answer = governance(files, run, done)
        if stream is not None:
            stream.write(governance_page(answer).encode())
    for note in answer.notes:
        print_note(note)
    if html is not None:
        print_note(f"report written to {html}")
    print_json(answer) if as_json else show_governance(answer)
    if any(shared_run.error for shared_run in answer.runs):
        raise Exit(EXIT_NO)
