"""`tenfold sim generate`: make a job table from a mix that was fitted to a trace."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter, validators
from msgspec import Struct

from tenfold.cli.output import print_json, show
from tenfold.files.traces.write import write_jobs
from tenfold.report.figures import count, share
from tenfold.study.sim.workload import GeneratedWorkload, WorkloadRequest, generate_workload

FleetFile = Annotated[Path, Parameter(help="A fleet file; its teams submit the jobs.")]
Mixes = Annotated[
    list[str], Parameter(help="A workload of the facts; may be given again.", negative="")
]
OutFile = Annotated[Path, Parameter(help="Job table to write: .csv, .csv.gz or .parquet.")]
Days = Annotated[
    float, Parameter(help="How long jobs are submitted.", validator=validators.Number(gt=0))
]
Loads = Annotated[
    list[float] | None,
    Parameter(
        help="GPU time asked for over what the fleet has, 0.9; one a mix, or one for all.",
        negative="",
        validator=validators.Number(gt=0, lte=100),
    ),
]
GpusMost = Annotated[
    float | None,
    Parameter(help="Leave larger jobs out; half the fleet.", validator=validators.Number(gt=0)),
]
Seed = Annotated[int, Parameter(help="The same seed gives the same jobs.")]
Facts = Annotated[Path | None, Parameter(help="Folder of your own facts, over the shipped ones.")]


class WorkSummary(Struct, frozen=True, kw_only=True):
    """What was generated."""

    jobs: int
    teams: int
    gpus: int
    """Of the fleet."""
    days: float
    gpu_hours: float
    load: float
    seed: int
    out: str


def generate_command(
    *,
    fleet: FleetFile,
    mix: Mixes,
    out: OutFile,
    days: Days = 14.0,
    load: Loads = None,
    max_gpus: GpusMost = None,
    seed: Seed = 0,
    facts: Facts = None,
    force: Annotated[bool, Parameter(negative="", help="Write over an existing file.")] = False,
    as_json: Annotated[bool, Parameter(name="--json", negative="", help="Print JSON.")] = False,
) -> None:
    """Draw jobs from workload mixes until they load a fleet as asked.

    `tenfold facts list --kind workload` names the mixes: some are fitted to public traces,
    some made up. Time 0 is a Monday, 0:00.
    """
    request = WorkloadRequest(
        fleet=fleet,
        mixes=mix,
        loads=load or [0.9],
        days=days,
        seed=seed,
        max_gpus=max_gpus,
        facts=facts,
    )
    workload = generate_workload(request)
    write_jobs(out, workload.trace, force=force)
    summary = _summary(workload, request, str(out))
    if as_json:
        print_json(summary)
        return
    unit = "day" if days == 1 else "days"
    teams = f" of {count(summary.teams, 'team')}" if summary.teams > 1 else ""
    show(
        f"{count(summary.jobs, 'job')}{teams} over {days:g} {unit}, {summary.gpu_hours:,.0f} "
        f"GPU-hours: {share(summary.load)} of {summary.gpus:,} GPUs: {out}"
    )


def _summary(workload: GeneratedWorkload, request: WorkloadRequest, out: str) -> WorkSummary:
    return WorkSummary(
        jobs=len(workload.trace.jobs),
        teams=workload.teams,
        gpus=workload.gpus,
        days=request.days,
        gpu_hours=round(workload.gpu_hours, 3),
        load=round(workload.load, 4),
        seed=request.seed,
        out=out,
    )
