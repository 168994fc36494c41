"""`tenfold sim merge`: clusters alone and as one fleet, with the same jobs."""

from typing import Annotated

from cyclopts import Parameter

from tenfold.cli.arguments import Facts, Json
from tenfold.cli.output import print_json, print_note, show, table
from tenfold.cli.screen import Text
from tenfold.cli.sim.compare import FleetFiles, JobsFiles
from tenfold.cli.sim.options import RestartCost, Seed, restart_assumption, world_settings
from tenfold.cli.sim.render import hours
from tenfold.compose.inputs import SimFiles
from tenfold.model.errors import InputError
from tenfold.report.figures import count
from tenfold.study.sim.merged import MergeAnswer, MergeQuestion, Waits, merge_clusters


def merge_command(
    *,
    fleet: FleetFiles,
    jobs: JobsFiles,
    policy: Annotated[
        str,
        Parameter(help="Policy, policy file or slurm.conf for all runs (default: tenfold)"),
    ] = "tenfold",
    any_accelerator: Annotated[
        bool,
        Parameter(
            help="Let jobs without an accelerator type run on any cluster's GPUs",
            negative="",
        ),
    ] = False,
    together: Annotated[
        bool,
        Parameter(
            help="Align the start of all histories (default: only if their times do not overlap)",
            negative="",
        ),
    ] = False,
    seed: Seed = 0,
    restart_cost_s: RestartCost = None,
    facts: Facts = None,
    as_json: Json = False,
) -> None:
    """Simulate clusters separately and merged, and compare waits and usage by team.

    Pass the job tables in the same order as the fleet files. Each cluster runs its own jobs; then
    one fleet of all nodes runs all jobs. A multi-node job never spans sites.
    """
    if len(fleet) != len(jobs):
        raise InputError(
            "not-as-many",
            f"{count(len(fleet), 'fleet file')}, but {count(len(jobs), 'job table')}",
            "pass one job table for each fleet file, in the same order",
        )
    clusters = tuple(
        SimFiles(
            fleet=one,
            jobs=history,
            policy=policy,
            facts=facts,
            settings=world_settings(restart_cost_s, seed),
            restart_assumption=restart_assumption(restart_cost_s),
        )
        for one, history in zip(fleet, jobs, strict=True)
    )
    answer = merge_clusters(
        MergeQuestion(clusters=clusters, any_accelerator=any_accelerator, together=together)
    )
    for note in answer.notes:
        print_note(note)
    print_json(answer) if as_json else _show(answer)


def _show(answer: MergeAnswer) -> None:
    waits = answer.waits
    show(
        Text(
            f"{count(len(answer.clusters), 'cluster')}, {answer.gpus:,} GPUs, policy "
            f"`{answer.policy}`: mean wait {_change(waits)} over {count(waits.jobs, 'job')}; "
            f"GPUs allocated {answer.gpu_utilization_before:.0%} -> {answer.gpu_utilization:.0%}; "
            f"makespan {hours(answer.makespan_s_before)} -> {hours(answer.makespan_s)}",
            style="bold",
        )
    )
    rows = [
        [
            one.name,
            f"{one.nodes:,}",
            f"{one.gpus:,}",
            f"{one.jobs:,}",
            f"{one.gpu_utilization_before:.0%}",
            f"{one.gpu_utilization:.0%}",
            f"{one.gpu_hours_from_others:,.0f}",
        ]
        for one in answer.clusters
    ]
    names = ["cluster", ">nodes", ">GPUs", ">jobs", ">alone", ">merged", ">GPU-h for others"]
    show("", table("", names, rows))
    rows = [
        [
            one.team or "(none)",
            ", ".join(one.clusters),
            f"{one.waits.jobs:,}",
            hours(one.waits.wait_s_mean_before),
            hours(one.waits.wait_s_mean),
            hours(one.waits.wait_s_p90_before),
            hours(one.waits.wait_s_p90),
            f"{one.gpu_hours_elsewhere:,.0f}",
            f"{one.only_merged:,}" if one.only_merged else "-",
        ]
        for one in answer.teams
    ]
    names = ["team", "clusters", ">jobs", ">mean wait", ">merged", ">P90 wait", ">merged"]
    show("", table("", [*names, ">GPU-h elsewhere", ">only merged"], rows))
    if answer.never:
        show("", f"finish neither alone nor merged: {count(answer.never, 'job')}")
    losing = ", ".join(f"`{team}`" if team else "jobs without a team" for team in answer.losing)
    show("", f"waits longer if merged: {losing or 'no team'}")


def _change(waits: Waits) -> str:
    return f"{hours(waits.wait_s_mean_before)} -> {hours(waits.wait_s_mean)}"
