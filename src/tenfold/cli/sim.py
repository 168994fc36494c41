"""`tenfold sim`: run jobs through the deciders in virtual time."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter, validators

from tenfold.cli.output import print_json
from tenfold.cli.sim_failures import failures_command
from tenfold.cli.sim_import import import_trace_command
from tenfold.cli.sim_show import fill_json, run_json, show_fill, show_run
from tenfold.compose.sim_inputs import SimFiles, prepare, prepare_fill
from tenfold.compose.simulation import simulate
from tenfold.model.policy import Placement
from tenfold.model.units import HOUR, SECOND, Millis
from tenfold.sim.world import SimSettings
from tenfold.study.fill import fill as fill_fleet

app = App(
    name="sim",
    help="Run jobs through the deciders in virtual time.",
    help_format="plaintext",
    default_parameter=Parameter(show_default=False),
)
app.command(failures_command, name="failures")
app.command(import_trace_command, name="import")

NOT_NEGATIVE = validators.Number(gte=0, lte=1e9)
FleetFile = Annotated[Path, Parameter(help="A fleet file.")]
JobsFile = Annotated[Path, Parameter(help="Jobs: CSV or Parquet, or a public trace.")]
PolicyNamed = Annotated[
    str,
    Parameter(
        help="tenfold, fifo, sjf, srtf, srsf, las, edf, fair, slurm, a policy file or a slurm.conf."
    ),
]
PlacementNamed = Annotated[
    Placement | None, Parameter(help="How a place is chosen: tenfold, best-fit or fgd.")
]
Seed = Annotated[int, Parameter(help="Seed of failures and of starts that fail.")]
RestartCost = Annotated[
    float, Parameter(help="Seconds that each resumed run pays first.", validator=NOT_NEGATIVE)
]
Failures = Annotated[
    str, Parameter(help="none, rsc-1, rsc-2, llama-3, infinitehbd, or a trace of faults.")
]
Profiles = Annotated[
    Path | None, Parameter(help="What jobs draw from uplinks, tiers and power, by profile.")
]
Facts = Annotated[Path | None, Parameter(help="Folder of your own facts, over the shipped ones.")]
Json = Annotated[bool, Parameter(name="--json", negative="", help="Print JSON.")]


@app.command
def run(
    *,
    fleet: FleetFile,
    jobs: JobsFile,
    policy: PolicyNamed = "tenfold",
    placement: PlacementNamed = None,
    seed: Seed = 0,
    restart_cost_s: RestartCost = 0.0,
    checkpoint_every_s: Annotated[
        float, Parameter(help="Work that a lost node can cost, 3600.", validator=NOT_NEGATIVE)
    ] = HOUR / SECOND,
    start_delay_s: Annotated[
        float, Parameter(help="From an order to the first step.", validator=NOT_NEGATIVE)
    ] = 0.0,
    failures: Failures = "none",
    profiles: Profiles = None,
    fill: Annotated[
        bool, Parameter(negative="", help="Jobs arrive in file order and never leave.")
    ] = False,
    facts: Facts = None,
    as_json: Json = False,
) -> None:
    """Run a trace of jobs on a fleet and say what became of it.

    Jobs have the columns job_id, team, user, submit_s, duration_s, gpus, gpus_per_node,
    gpu_type, status, qos, cpus, mem_gib and limit_s; others are ignored with a note.
    """
    files = SimFiles(
        fleet=fleet,
        jobs=jobs,
        policy=policy,
        placement=placement,
        failures=failures,
        profiles=profiles,
        facts=facts,
        settings=SimSettings(
            restart_cost_ms=_millis(restart_cost_s),
            checkpoint_every_ms=_millis(checkpoint_every_s),
            start_delay_ms=_millis(start_delay_s),
            seed=seed,
        ),
    )
    if fill:
        nodes, trace, chosen = prepare_fill(files)
        _say(trace.notes)
        filled = fill_fleet(nodes, trace.jobs, chosen.placement)
        print_json(fill_json(filled)) if as_json else show_fill(filled)
        return
    prepared = prepare(files)
    _say(prepared.notes)
    result = simulate(prepared.ask)
    print_json(run_json(result)) if as_json else show_run(prepared, result)


def _say(notes: Sequence[str]) -> None:
    for note in notes:
        sys.stderr.write(f"note: {note}\n")


def _millis(seconds: float) -> Millis:
    return Millis(round(seconds * SECOND))
