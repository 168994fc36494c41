"""`tenfold sim`: simulate jobs on a fleet with the real scheduling code, in virtual time."""

import gc
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

from cyclopts import App, Parameter, validators
from msgspec.structs import replace

from tenfold.cli.arguments import Facts, Force, Json
from tenfold.cli.output import print_json, print_note
from tenfold.cli.process_exit import hold_until_exit
from tenfold.cli.sim.grid import NO_GRID, GridOptions
from tenfold.cli.sim.json import fill_json, run_json
from tenfold.cli.sim.options import RestartCost, restart_assumption, world_settings
from tenfold.compose.inputs import SimFiles, prepare, prepare_fill
from tenfold.compose.simulation import simulate
from tenfold.model.errors import InputError
from tenfold.model.policy.policy import Placement
from tenfold.model.units import HOUR, SECOND, Millis
from tenfold.study.sim.bill import bill

app = App(
    name="sim",
    help="Simulate jobs on a fleet with the real scheduling code.",
    help_format="plaintext",
    default_parameter=Parameter(show_default=False),
)
app.command(
    "tenfold.cli.sim.failures:failures_command",
    name="failures",
    help="""Estimate how many nodes are down at the same time and how many spares cover them.

    A preset is sampled once per seed. A fault trace (InfiniteHBD JSON, or CSV with the columns
    node, start_s, end_s and cause) is replayed once. Independent (Poisson) failures with the same
    mean are shown for comparison.
    """,
)
app.command(
    "tenfold.cli.sim.autoscale:autoscale_command",
    name="autoscale",
    help="""Simulate the replicas of a service under an autoscaler, request by request.

    The request trace has the columns t_s, input_tokens and output_tokens. The simulation file
    has the keys slots, prefill_tokens_per_s, decode_tokens_per_s, cold_start_s or cold_start_file,
    replicas_min, replicas_max, ttft_objective_s, attainment and more. Policy static is the
    smallest fixed number of replicas that meets the objective, chosen in hindsight.
    """,
)
app.command(
    "tenfold.cli.sim.merge:merge_command",
    name="merge",
    help="""Simulate clusters separately and merged, and compare waits and usage by team.

    Pass the job tables in the same order as the fleet files. Each cluster runs its own jobs; then
    one fleet of all nodes runs all jobs. A multi-node job never spans sites.
    """,
)
app.command(
    "tenfold.cli.sim.burst:burst_command",
    name="burst",
    help="""Compare your own nodes, your own nodes with burst, and rented nodes only, on a trace.

    A job is sent to rented nodes only if it would be late on your own nodes, would finish earlier
    on rented ones (staging and start-up included), and fits the budget.
    """,
)
app.command(
    "tenfold.cli.sim.compare:compare_command",
    name="compare",
    help="""Run the same jobs under several policies, fleets and seeds, and compare the results.

    Runs use local processes, or Ray with --ray. If a run fails, the others are still reported, and
    the command exits with status 1. Scores are relative to the first policy.
    """,
)
app.command(
    "tenfold.cli.sim.govern:govern_command",
    name="govern",
    help="""Compare a quota policy with other ways to share a fleet between teams.

    The same jobs run under the quota policy, FIFO, `tenfold` without teams, fixed partitions and
    fair-share weights. The output shows how long each team waits, how much of its entitlement it
    receives, and how much borrowing improves on fixed partitions. Exits with status 1 if a run
    fails.
    """,
)
app.command(
    "tenfold.cli.sim.importing:import_trace_command",
    name="import",
    help="""Convert a public trace, or Slurm or Kubernetes records, to a job table.

    Skipped jobs and assumptions are printed to standard error.
    """,
)
app.command(
    "tenfold.cli.sim.spot:spot_command",
    name="spot",
    help="""Simulate a job with a deadline on spot and on-demand capacity.

    The availability trace is CSV or Parquet with the columns t_s (seconds) and value (nodes
    available); it repeats after its end. Without --policy, all policies are compared. Exits with
    status 1 if a deadline is missed.
    """,
)
app.command(
    "tenfold.cli.sim.generate:generate_command",
    name="generate",
    help="""Generate a job table with the sizes, durations and arrival pattern of a workload.

    List the workloads with `tenfold facts list --kind workload`; some are fitted to public traces.
    Time 0 is Monday, 00:00.
    """,
)

NOT_NEGATIVE = validators.Number(gte=0, lte=1e9)
FleetFile = Annotated[Path, Parameter(help="Fleet file")]
JobsFile = Annotated[Path, Parameter(help="Job table (CSV or Parquet) or public trace")]
PolicyNamed = Annotated[
    str,
    Parameter(
        help="Policy: tenfold, governed, fifo, sjf, srtf, srsf, las, edf, fair, "
        "slurm, a policy file or a slurm.conf (default: tenfold)"
    ),
]
PlacementNamed = Annotated[Placement | None, Parameter(help="Node selection (default: tenfold)")]
Seed = Annotated[int, Parameter(help="Random seed for failures (default: 0)")]
CheckpointEvery = Annotated[
    float, Parameter(help="Seconds between checkpoints (default: 3600)", validator=NOT_NEGATIVE)
]
StartDelay = Annotated[
    float,
    Parameter(
        help="Seconds between the start decision and the first step (default: 0)",
        validator=NOT_NEGATIVE,
    ),
]
Failures = Annotated[
    str,
    Parameter(
        help="Failure preset (`tenfold facts list --kind failure`) or fault trace (default: none)"
    ),
]
Profiles = Annotated[
    Path | None, Parameter(help="Profile file: how much network, storage and power each job uses")
]
GridArgs = Annotated[GridOptions, Parameter(name="*")]
Fill = Annotated[
    bool, Parameter(negative="", help="Fill the fleet: jobs arrive in file order and never end")
]
BundleFile = Annotated[
    Path | None, Parameter(help="Record the run for `tenfold replay` (.jsonl or .jsonl.gz)")
]
ShadowNamed = Annotated[
    str | None, Parameter(help="Second policy, whose decisions are recorded but not applied")
]
HtmlFile = Annotated[Path | None, Parameter(help="Also write an HTML report to this file")]
DetailFlag = Annotated[
    bool, Parameter(negative="", help="Add fairness and fragmentation to the JSON output (slower)")
]


@app.command
def run(
    *,
    fleet: FleetFile,
    jobs: JobsFile,
    policy: PolicyNamed = "tenfold",
    placement: PlacementNamed = None,
    seed: Seed = 0,
    restart_cost_s: RestartCost = None,
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
    """Simulate a job trace on a fleet and report waits, utilisation and cost.

    Job columns: job_id, team, user, submit_s, duration_s, gpus, gpus_per_node,
    gpu_type, status, qos, cpus, mem_gib, limit_s and more. Unknown columns are ignored with a note.
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
        settings=replace(
            world_settings(restart_cost_s, seed),
            checkpoint_every_ms=_millis(checkpoint_every_s),
            start_delay_ms=_millis(start_delay_s),
        ),
        restart_assumption=restart_assumption(restart_cost_s),
    )
    options = _OutputOptions(bundle, shadow, html, detail, force, as_json)
    if fill:
        _fill(files, options)
    else:
        _run(files, options)


class _OutputOptions(NamedTuple):
    """What to write besides the figures."""

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
            "`--html` cannot be combined with `--bundle` or `--shadow`",
            "run twice, once with `--html`: the same seed gives the same run",
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
    # Charts take long to load, and JSON output needs none.
    from tenfold.cli.sim.present import run_and_present  # noqa: PLC0415

    run_and_present(prepared, html, force=force, detail=detail, as_json=as_json)


def _fill(files: SimFiles, options: _OutputOptions) -> None:
    if options.bundle is not None or options.shadow is not None:
        raise InputError(
            "nothing-to-record",
            "`--fill` makes no decisions to record",
            "drop `--fill`, or `--bundle` and `--shadow`",
        )
    if files.grid is not None:
        raise InputError(
            "no-hours",
            "`--fill` has no clock, so `--intensity` does not apply",
            "drop one of the two",
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
        print_note(note)


def _millis(seconds: float) -> Millis:
    return Millis(round(seconds * SECOND))
