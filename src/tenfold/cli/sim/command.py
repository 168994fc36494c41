"""`tenfold sim`: run jobs through the deciders in virtual time."""

import gc
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

from cyclopts import App, Parameter, validators

from tenfold.cli.output import print_json
from tenfold.cli.process_exit import hold_until_exit
from tenfold.cli.sim.grid import NO_GRID, GridOptions
from tenfold.cli.sim.json import fill_json, run_json
from tenfold.compose.inputs import SimFiles, prepare, prepare_fill
from tenfold.compose.simulation import simulate
from tenfold.model.errors import InputError
from tenfold.model.policy.policy import Placement
from tenfold.model.units import HOUR, SECOND, Millis
from tenfold.sim.world import SimSettings
from tenfold.study.sim.bill import bill

app = App(
    name="sim",
    help="Run jobs through the deciders in virtual time.",
    help_format="plaintext",
    default_parameter=Parameter(show_default=False),
)
app.command("tenfold.cli.sim.failures:failures_command", name="failures")
app.command("tenfold.cli.sim.compare:compare_command", name="compare")
app.command("tenfold.cli.sim.govern:govern_command", name="govern")
app.command("tenfold.cli.sim.importing:import_trace_command", name="import")
app.command("tenfold.cli.sim.generate:generate_command", name="generate")

NOT_NEGATIVE = validators.Number(gte=0, lte=1e9)
FleetFile = Annotated[Path, Parameter(help="A fleet file.")]
JobsFile = Annotated[Path, Parameter(help="Jobs: CSV or Parquet, or a public trace.")]
PolicyNamed = Annotated[
    str,
    Parameter(
        help="tenfold, governed, fifo, sjf, srtf, srsf, las, edf, fair, slurm, a policy file or a "
        "slurm.conf."
    ),
]
PlacementNamed = Annotated[
    Placement | None, Parameter(help="How a place is chosen: tenfold, best-fit or fgd.")
]
Seed = Annotated[int, Parameter(help="Seed of failures and of starts that fail.")]
RestartCost = Annotated[
    float, Parameter(help="Seconds that each resumed run pays first.", validator=NOT_NEGATIVE)
]
CheckpointEvery = Annotated[
    float, Parameter(help="Work that a lost node can cost, 3600.", validator=NOT_NEGATIVE)
]
StartDelay = Annotated[
    float, Parameter(help="From an order to the first step.", validator=NOT_NEGATIVE)
]
Failures = Annotated[
    str, Parameter(help="none, rsc-1, rsc-2, llama-3, infinitehbd, or a trace of faults.")
]
Profiles = Annotated[
    Path | None, Parameter(help="What jobs draw from uplinks, tiers and power, by profile.")
]
Facts = Annotated[Path | None, Parameter(help="Folder of your own facts, over the shipped ones.")]
GridArgs = Annotated[GridOptions, Parameter(name="*")]
Fill = Annotated[bool, Parameter(negative="", help="Jobs arrive in file order and never leave.")]
BundleFile = Annotated[
    Path | None, Parameter(help="Write the run for `tenfold replay`: .jsonl or .jsonl.gz.")
]
ShadowNamed = Annotated[
    str | None, Parameter(help="A second policy that is asked and written down, never obeyed.")
]
HtmlFile = Annotated[Path | None, Parameter(help="Also write a report with charts to this file.")]
DetailFlag = Annotated[
    bool, Parameter(negative="", help="Fairness and fragmentation in JSON too; a little slower.")
]
Force = Annotated[bool, Parameter(negative="", help="Write over an existing file.")]
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
    checkpoint_every_s: CheckpointEvery = HOUR / SECOND,
    start_delay_s: StartDelay = 0.0,
    failures: Failures = "none",
    profiles: Profiles = None,
    grid: GridArgs = NO_GRID,
    fill: Fill = False,
    bundle: BundleFile = None,
    shadow: ShadowNamed = None,
    html: HtmlFile = None,
    detail: DetailFlag = False,
    force: Force = False,
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
        grid=grid.files(),
        settings=SimSettings(
            restart_cost_ms=_millis(restart_cost_s),
            checkpoint_every_ms=_millis(checkpoint_every_s),
            start_delay_ms=_millis(start_delay_s),
            seed=seed,
        ),
    )
    options = _OutputOptions(bundle, shadow, html, detail, force, as_json)
    if fill:
        _fill(files, options)
    else:
        _run(files, options)


class _OutputOptions(NamedTuple):
    """What to give besides the figures."""

    bundle: Path | None
    shadow: str | None
    html: Path | None
    detail: bool
    force: bool
    as_json: bool


def _run(files: SimFiles, options: _OutputOptions) -> None:
    bundle, shadow, html, detail, force, as_json = options
    is_recorded = bundle is not None or shadow is not None
    if is_recorded and html is not None:
        raise InputError(
            "report-without-record",
            "--html draws no run that is recorded or shadowed",
            "run twice, once with --html: the same seed gives the same run",
        )
    # One run and out: what is read stays until the end, so collecting would find nothing.
    gc.disable()
    prepared = prepare(files)
    _print_notes(prepared.notes)
    if is_recorded:
        from tenfold.cli.sim.recorded import run_recorded  # noqa: PLC0415

        run_recorded(prepared, bundle, shadow, facts=files.facts, force=force, as_json=as_json)
        return
    if as_json and html is None and not detail and not sys.stderr.isatty():
        result = simulate(prepared.request)
        print_json(run_json(prepared, result, bill(prepared.spec, result.summary)))
        hold_until_exit(prepared, result)
        return
    # Charts take long to load, and a program that asks for figures needs none.
    from tenfold.cli.sim.present import run_and_present  # noqa: PLC0415

    run_and_present(prepared, html, force=force, detail=detail, as_json=as_json)


def _fill(files: SimFiles, options: _OutputOptions) -> None:
    if options.bundle is not None or options.shadow is not None:
        raise InputError(
            "nothing-to-record",
            "a filling has no time and no decisions to write down",
            "leave out --fill, or --bundle and --shadow",
        )
    if files.grid is not None:
        raise InputError(
            "no-hours", "a filling has no hours for --intensity", "leave out one of the two"
        )
    from tenfold.study.sim.fill import fill as fill_nodes  # noqa: PLC0415

    nodes, trace, chosen = prepare_fill(files)
    _print_notes(trace.notes)
    filled = fill_nodes(nodes, trace.jobs, chosen.placement)
    if options.as_json:
        print_json(fill_json(filled))
        return
    from tenfold.cli.sim.render import show_fill  # noqa: PLC0415

    show_fill(filled)


def _print_notes(notes: Sequence[str]) -> None:
    for note in notes:
        sys.stderr.write(f"note: {note}\n")


def _millis(seconds: float) -> Millis:
    return Millis(round(seconds * SECOND))
