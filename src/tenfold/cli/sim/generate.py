"""`tenfold sim generate`: generate a job table from workload facts."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter, validators
from msgspec import Struct

from tenfold.cli.arguments import Facts, Force, Json
from tenfold.cli.output import print_json, show
from tenfold.files.traces.write import write_jobs
from tenfold.report.figures import count, share
from tenfold.study.sim.workload import GeneratedWorkload, WorkloadRequest, generate_workload

FleetFile = Annotated[Path, Parameter(help="Fleet file; the jobs are submitted by its teams")]
Mixes = Annotated[
    list[str], Parameter(help="Workload to generate; repeat to combine several", negative="")
]
OutFile = Annotated[Path, Parameter(help="Job table to write: .csv, .csv.gz or .parquet")]
Days = Annotated[
    float, Parameter(help="Days of submissions (default: 14)", validator=validators.Number(gt=0))
]
Loads = Annotated[
    list[float] | None,
    Parameter(
        help="Requested GPU time as a fraction of the fleet's GPU time; repeat to set one per "
        "--mix (default: 0.9)",
        negative="",
        validator=validators.Number(gt=0, lte=100),
    ),
]
GpusMost = Annotated[
    float | None,
    Parameter(
        name=["--max-gpus", "--gpus-most"],
        help="Size of the largest job, in GPUs (default: half of its team's limit)",
        validator=validators.Number(gt=0),
    ),
]
Seed = Annotated[int, Parameter(help="Random seed; the same seed gives the same jobs (default: 0)")]


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
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Generate a job table with the sizes, durations and arrival pattern of a workload.

    List the workloads with `tenfold facts list --kind workload`; some are fitted to public traces.
    Time 0 is Monday, 00:00.
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
    teams = f" from {count(summary.teams, 'team')}" if summary.teams > 1 else ""
    show(
        f"{count(summary.jobs, 'job')}{teams} over {days:g} {unit}, {summary.gpu_hours:,.0f} "
        f"GPU-hours ({share(summary.load)} of {count(summary.gpus, 'GPU')}), written to {out}"
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
