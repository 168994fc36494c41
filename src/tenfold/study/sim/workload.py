"""Generate a job trace for a fleet file from workload mixes."""

from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from tenfold.compose.fleet import load_facts
from tenfold.files.fleet.read import load_fleet
from tenfold.files.traces.trace import JobTrace
from tenfold.model.errors import InputError
from tenfold.model.facts.catalogue import Catalogue
from tenfold.model.fleet.spec import FleetSpec
from tenfold.model.ids import JobId
from tenfold.model.job.job import Job
from tenfold.model.units import DAY, Millis
from tenfold.physics.nodes import nodes_of
from tenfold.sim.workload.generate import (
    Demand,
    TeamPart,
    ends_of,
    generate_jobs,
    gpu_hours,
    merged,
)


class WorkloadRequest(Struct, frozen=True, kw_only=True):
    """What to generate: mixes, the load of each, and the time span."""

    fleet: Path
    mixes: Sequence[str]
    loads: Sequence[float]
    """One for each mix, or one that they share evenly."""
    days: float
    seed: int = 0
    max_gpus: float | None = None
    facts: Path | None = None


class GeneratedWorkload(Struct, frozen=True, kw_only=True):
    """Generated jobs and their totals."""

    trace: JobTrace
    fleet: str
    gpus: int
    teams: int
    gpu_hours: float
    load: float
    """Requested GPU time over the GPU time of the fleet."""


def generate_workload(request: WorkloadRequest) -> GeneratedWorkload:
    """Generate the jobs of each mix for a fleet and merge them into one trace."""
    catalogue = load_facts(request.facts)
    spec = load_fleet(request.fleet, catalogue, unknown_accelerators=True)
    nodes = list(nodes_of(spec))
    gpus = sum(node.gpus for node in nodes)
    if not gpus:
        raise InputError(
            "no-gpus",
            f"fleet `{spec.name}` has no GPUs",
            "add a pool with `gpus_per_node`",
            file=str(request.fleet),
        )
    span_ms = Millis(round(request.days * DAY))
    teams = teams_of(spec, catalogue)
    groups: list[list[Job]] = []
    ends: dict[JobId, str] = {}
    for name, load in zip(dict.fromkeys(request.mixes), _loads(request), strict=True):
        mix = catalogue.workloads.get(name)
        demand = Demand(span_ms=span_ms, load=load, teams=teams, max_gpus=request.max_gpus)
        jobs = generate_jobs(mix, nodes, demand, request.seed)
        groups.append(jobs)
        ends |= ends_of(mix, jobs, request.seed)
    jobs = merged(groups)
    if not jobs:
        raise InputError(
            "no-work",
            f"{request.days:g} days at this load are less than one job on fleet `{spec.name}`",
            "increase `--days` or `--load`",
        )
    hours = gpu_hours(jobs)
    return GeneratedWorkload(
        trace=JobTrace(jobs, [], ends),
        fleet=spec.name,
        gpus=gpus,
        teams=len(dict.fromkeys(job.team for job in jobs)),
        gpu_hours=hours,
        load=hours / (gpus * request.days * 24),
    )


def teams_of(spec: FleetSpec, catalogue: Catalogue) -> tuple[TeamPart, ...]:
    """Return the leaf teams of a fleet, by weight.

    A team requests the accelerators that it has a quota for; any, if it has none.
    """
    parents = {team.parent for team in spec.teams}
    there = {pool.accelerator for pool in spec.pools if pool.accelerator}
    parts: list[TeamPart] = []
    for team in spec.teams:
        if team.id in parents:
            continue
        found = [catalogue.accelerators.find(name) for name in team.quota_gpus]
        names = dict.fromkeys(part.name for part in found if part is not None)
        types = tuple(name for name in names if name in there)
        parts.append(TeamPart(name=team.id, part=team.weight, accelerators=types))
    return tuple(parts)


def _loads(request: WorkloadRequest) -> list[float]:
    mixes = list(dict.fromkeys(request.mixes))
    if len(request.loads) == len(mixes):
        return list(request.loads)
    if len(request.loads) == 1:
        return [request.loads[0] / len(mixes)] * len(mixes)
    raise InputError(
        "loads-and-mixes",
        f"{len(mixes)} `--mix` but {len(request.loads)} `--load` values",
        "give one `--load` for all mixes, or one per `--mix`",
    )
