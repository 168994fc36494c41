"""`tenfold policy preview`: what a policy change would do to each team."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from tenfold.cli.arguments import Facts, Json
from tenfold.cli.errors import Exit
from tenfold.cli.output import print_json, print_note, show, table
from tenfold.cli.progress import progress
from tenfold.cli.screen import Text
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
from tenfold.cli.sim.render import hours
from tenfold.compose.inputs import SimFiles, policy_of
from tenfold.report.figures import share
from tenfold.study.govern.preview import PolicyRun, Preview, TeamResult, preview
from tenfold.study.parallel import process_map, usable_cpus

EXIT_NO = 1
ARROW = "\u2192"


def preview_command(
    policy: Annotated[str, Parameter(help="New policy: a name, a policy file or a slurm.conf")],
    *,
    fleet: FleetFile,
    jobs: JobsFile,
    against: Annotated[
        str, Parameter(help="Current policy to compare with (default: tenfold)")
    ] = "tenfold",
    failures: Failures = "none",
    seed: Seed = 0,
    restart_cost_s: RestartCost = None,
    workers: Workers = None,
    facts: Facts = None,
    as_json: Json = False,
) -> None:
    """Simulate a policy change; the help text is in `command`, which imports this lazily."""
    for named in (against, policy):
        policy_of(named)
    files = SimFiles(
        fleet=fleet,
        jobs=jobs,
        failures=failures,
        facts=facts,
        settings=world_settings(restart_cost_s, seed),
        restart_assumption=restart_assumption(restart_cost_s),
    )
    with progress("runs finished", 2) as done:
        run = partial(process_map, workers=workers or usable_cpus())
        answer = preview(files, policy, against, run, done)
    for note in dict.fromkeys((*answer.before.notes, *answer.after.notes)):
        print_note(note)
    print_json(answer) if as_json else show_preview(answer)
    if answer.before.error or answer.after.error:
        raise Exit(EXIT_NO)


def show_preview(answer: Preview) -> None:
    """Print both policies team by team, then overall, then which teams gain or lose."""
    sides = (answer.before, answer.after)
    failed = [side for side in sides if side.error is not None]
    for side in failed:
        assert side.error is not None, "only those that failed are here"
        hint = f" ({side.error.hint})" if side.error.hint else ""
        show(Text(f"`{side.policy}`: {side.error.message}{hint} [{side.error.code}]"))
    if failed:
        return
    old, new = (Path(side.policy).name for side in sides)
    show(Text(f"`{old}` {ARROW} `{new}`", style="bold"))
    if answer.after.teams:
        show("", table("", *_teams(answer)))
    show("", table("", ["", f">{old}", f">{new}"], _whole(answer)), "")
    show(f"{answer.verdict[:1].upper()}{answer.verdict[1:]}.")


def _teams(answer: Preview) -> tuple[list[str], list[list[str]]]:
    before, after = answer.before.teams, answer.after.teams
    has_unfinished = any(side.unfinished for side in (*before.values(), *after.values()))
    columns = ["team", ">mean wait", ">wait P90", ">GPU-hours", ">share", ">preempted"]
    columns += [">unfinished"] if has_unfinished else []
    rows: list[list[str]] = []
    for team, new in after.items():
        cells = zip(_cells(before[team]), _cells(new), strict=True)
        rows.append([team or "(none)", *(_change(*pair) for pair in cells)][: len(columns)])
    return columns, rows


def _cells(side: TeamResult) -> list[str]:
    return [
        hours(side.wait_s_mean),
        hours(side.wait_s_p90),
        f"{side.gpu_hours:,.0f}",
        share(side.share),
        f"{side.preemptions:,}",
        f"{side.unfinished:,}",
    ]


def _change(before: str, after: str) -> str:
    return after if before == after else f"{before} {ARROW} {after}"


def _whole(answer: Preview) -> Sequence[tuple[str, str, str]]:
    old, new = (_figures(side) for side in (answer.before, answer.after))
    return [(name, before, new[name]) for name, before in old.items()]


def _figures(side: PolicyRun) -> dict[str, str]:
    whole = side.whole
    assert whole is not None, "a run that failed is not shown"
    return {
        "fairness of slowdown (Jain)": f"{side.jain:.2f}",
        "GPUs allocated": f"{side.gpu_utilization:.1%}",
        "makespan": hours(side.makespan_s),
        "mean wait": hours(whole.wait_s_mean),
        "wait, P90": hours(whole.wait_s_p90),
        "preemptions": f"{whole.preemptions:,}",
        "jobs finished": f"{whole.finished:,}",
        "jobs unfinished": f"{whole.unfinished:,}",
    }
