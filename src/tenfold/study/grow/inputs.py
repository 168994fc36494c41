"""Read the inputs of a growth analysis: the fleet, its job history and its limits."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from tenfold.compose.failures import FailureSource, failure_source
from tenfold.compose.fleet import OpenFleet, load_facts
from tenfold.compose.governance import governance_of
from tenfold.compose.inputs import SimFiles, policy_of, prepare
from tenfold.files.fleet.read import load_fleet
from tenfold.files.growth import read_grow
from tenfold.files.jobs.work_profiles import read_work_profiles
from tenfold.files.measured.rows import read_measured
from tenfold.model.errors import InputError
from tenfold.model.facts.catalogue import Catalogue
from tenfold.model.facts.failure_law import NO_FAILURES
from tenfold.model.fleet.spec import FleetSpec
from tenfold.model.growth.growth import Grown, GrowSpec
from tenfold.model.growth.measured import UsagePoint
from tenfold.model.ids import JobId
from tenfold.model.job.job import WHOLE, Job, JobStatus
from tenfold.model.job.traffic import WorkProfile
from tenfold.model.policy.policy import Policy
from tenfold.model.policy.team_quotas import with_free_borrowing, with_quotas
from tenfold.model.units import Millis
from tenfold.physics.layout import lay_out
from tenfold.study.sim.workload import WorkloadRequest, generate_workload

ASYNC_SAVES = "async-saves"
"""Code of the relief that makes checkpoints asynchronous."""
_LINK = re.compile(r"link \S+ - \S+\Z")
"""A measured resource that is a link between sites."""
MIX_DAYS = 14.0
MIX_LOAD = 0.6
"""Share of the fleet that a workload mix fills today; an assumption."""


class GrowFiles(Struct, frozen=True, kw_only=True):
    """The files and names given on the command line."""

    fleet: Path
    jobs: Path | None = None
    mix: str = ""
    load: float = MIX_LOAD
    policy: str = "tenfold"
    failures: str = "none"
    profiles: Path | None = None
    grow: Path | None = None
    measured: Path | None = None
    facts: Path | None = None
    seed: int = 0


class PlannedFleet(Struct, frozen=True, kw_only=True):
    """A fleet that was grown from today's, and how it is run."""

    spec: FleetSpec
    policy: Policy
    reliefs: tuple[str, ...] = ()
    capacity: Mapping[str, float] = {}
    purchases_usd: float = 0.0
    """Monthly cost of what was bought and has no key of its own."""


class GrowInputs(Struct, frozen=True, kw_only=True):
    """Everything a growth analysis reads, as values."""

    fleet: OpenFleet
    jobs: Sequence[Job] = ()
    starts_ms: Mapping[JobId, Millis] = {}
    """When jobs of the history started, if it says so."""
    ends: Mapping[JobId, JobStatus] = {}
    """How jobs ended that did not complete."""
    mix: str = ""
    policy: Policy = Policy()
    failures: FailureSource = NO_FAILURES
    grow: GrowSpec = GrowSpec()
    measured: Sequence[UsagePoint] = ()
    profiles: Mapping[str, WorkProfile] = {}
    notes: Sequence[str] = ()
    planned: PlannedFleet | None = None
    """The fleet to analyse, if it is not today's but was grown from it."""


def grow_inputs(files: GrowFiles) -> GrowInputs:
    """Read all inputs; a fleet file alone is enough."""
    if files.jobs is not None and files.mix:
        raise InputError(
            "jobs-and-mix",
            "`--jobs` and `--mix` are both given, but only one workload can be used",
            "leave out `--jobs` or `--mix`",
        )
    measured = () if files.measured is None else read_measured(files.measured)
    catalogue = load_facts(files.facts)
    grown = _grown_from(files, catalogue)
    found = _work(files if grown is None else replace(files, fleet=grown[0]), catalogue)
    fleet = found.fleet
    if files.measured is not None:
        _check_links(files.measured, measured, fleet.spec)
    inputs = replace(
        found,
        failures=failure_source(files.failures, catalogue),
        measured=measured,
        profiles=_profiles(files, fleet),
    )
    if files.grow is not None:
        inputs = replace(inputs, grow=read_grow(files.grow, catalogue, fleet.spec))
    if grown is not None:
        inputs = replace(inputs, planned=planned_fleet(inputs, grown[1], grown[2]))
    return inputs


def _check_links(file: Path, measured: Sequence[UsagePoint], spec: FleetSpec) -> None:
    """Refuse measurements of links between sites that the fleet does not have."""
    known = [f"link {link.a} - {link.b}" for link in spec.links]
    for point in measured:
        if _LINK.match(point.resource) and point.resource not in known:
            names = ", ".join(f"`{name}`" for name in known) or "none"
            raise InputError(
                "unknown-link",
                f"`{point.resource}` was measured, but the fleet has no such link",
                f"use measurements of this fleet, or add the `[[link]]`; known: {names}",
                file=str(file),
                field="resource",
            )


def _grown_from(files: GrowFiles, catalogue: Catalogue) -> tuple[Path, FleetSpec, Grown] | None:
    """Return the fleet file before, and the planned fleet; None if it is today's."""
    if files.grow is None:
        return None
    spec = load_fleet(files.fleet, catalogue, unknown_accelerators=True)
    grown = read_grow(files.grow, catalogue, spec).grown
    return None if grown is None else (files.grow.parent / grown.fleet, spec, grown)


def planned_fleet(inputs: GrowInputs, spec: FleetSpec, grown: Grown) -> PlannedFleet:
    """Return a planned fleet, and the policy that it is run with."""
    policy = inputs.policy
    if grown.policy and grown.policy != policy.name:
        policy = replace(policy, name=grown.policy, slurm=None)
    if grown.sched_max_job_start is not None and policy.slurm is not None:
        slurm = replace(policy.slurm, jobs_started_max=grown.sched_max_job_start)
        policy = replace(policy, slurm=slurm)
    if grown.quota_gpus:
        milli = {team: round(gpus * WHOLE) for team, gpus in grown.quota_gpus.items()}
        policy = with_quotas(policy, milli, {str(one.id): one.weight for one in spec.teams})
    if grown.free_borrowing:
        policy = with_free_borrowing(policy)
    return PlannedFleet(
        spec=spec,
        policy=policy,
        reliefs=(ASYNC_SAVES,) if grown.async_checkpoints else (),
        capacity=grown.capacity,
        purchases_usd=grown.usd_per_month,
    )


def _work(files: GrowFiles, catalogue: Catalogue) -> GrowInputs:
    """Return the fleet with its history, with jobs drawn from a mix, or without jobs."""
    if files.jobs is not None:
        return _history(files, files.jobs, catalogue)
    spec = load_fleet(files.fleet, catalogue, unknown_accelerators=True)
    fleet = OpenFleet(spec=spec, layout=lay_out(spec), catalogue=catalogue)
    policy = policy_of(files.policy)
    if not files.mix:
        said = "no `--jobs` or `--mix`: limits that depend on the workload are not checked"
        return GrowInputs(fleet=fleet, policy=policy, notes=(said,))
    request = WorkloadRequest(
        fleet=files.fleet,
        mixes=[files.mix],
        loads=[files.load],
        days=MIX_DAYS,
        seed=files.seed,
        facts=files.facts,
    )
    work = generate_workload(request)
    said = (
        f"no job history: {MIX_DAYS:g} days generated from mix `{files.mix}` at "
        f"{work.load:.0%} load"
    )
    jobs = work.trace.jobs
    if policy.name == "governed":
        policy = replace(policy, govern=governance_of(policy, spec, catalogue))
    return GrowInputs(fleet=fleet, policy=policy, mix=files.mix, jobs=jobs, notes=(said,))


def _history(files: GrowFiles, jobs: Path, catalogue: Catalogue) -> GrowInputs:
    sim_files = SimFiles(fleet=files.fleet, jobs=jobs, policy=files.policy, facts=files.facts)
    prepared = prepare(sim_files)
    request = prepared.request
    return GrowInputs(
        fleet=OpenFleet(spec=prepared.spec, layout=prepared.layout, catalogue=catalogue),
        jobs=request.jobs,
        starts_ms=prepared.starts_ms,
        ends=request.ends,
        policy=request.policy,
        notes=prepared.notes,
    )


def _profiles(files: GrowFiles, fleet: OpenFleet) -> Mapping[str, WorkProfile]:
    if files.profiles is None:
        return {}
    return read_work_profiles(files.profiles, [str(tier.id) for tier in fleet.spec.tiers])
