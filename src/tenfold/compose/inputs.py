"""Read the inputs of a simulation: nodes, jobs, policy, faults and profiles.

Readers that most runs do not need are imported where they are used, to keep short runs fast.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from tenfold.compose.fleet import UNUSED_FACTS, accelerator_names, canonical_accelerator, load_facts
from tenfold.compose.simulation import SimRequest
from tenfold.files.fleet.read import load_fleet
from tenfold.files.traces.jobs import read_jobs
from tenfold.files.traces.trace import JobTrace, with_outlived_limits
from tenfold.model.errors import InputError
from tenfold.model.facts.catalogue import Catalogue
from tenfold.model.fault import Fault
from tenfold.model.fleet.node import Node
from tenfold.model.fleet.spec import FleetSpec
from tenfold.model.ids import JobId
from tenfold.model.job.job import Job, JobStatus, Shape
from tenfold.model.policy.fleet_terms import site_costs
from tenfold.model.policy.policy import POLICIES, Placement, Policy
from tenfold.model.units import Millis
from tenfold.physics.layout import Layout, lay_out
from tenfold.physics.nodes import nodes_of
from tenfold.sim.measure.meters import Summary
from tenfold.sim.world import SimSettings

if TYPE_CHECKING:
    from tenfold.compose.grid import Grid, GridFiles
    from tenfold.sim.contention.model import ContentionModel

END_STATUSES: dict[str, JobStatus] = {
    "failed": "failed",
    "cancelled": "cancelled",
    "timeout": "timeout",
}
TABLE_SUFFIXES = (".csv", ".csv.gz", ".parquet")


class SimFiles(Struct, frozen=True, kw_only=True):
    """Files and names given by the user."""

    fleet: Path
    jobs: Path
    policy: str = "tenfold"
    placement: Placement | None = None
    failures: str = "none"
    profiles: Path | None = None
    facts: Path | None = None
    settings: SimSettings = SimSettings()
    restart_assumption: str = ""
    """What is assumed about restarts, if the user did not set their cost."""
    grid: "GridFiles | None" = None


class PreparedRun(Struct, frozen=True, kw_only=True):
    """A simulation that is ready to run, with notes for the user."""

    request: SimRequest
    spec: FleetSpec
    layout: Layout
    notes: tuple[str, ...]
    restart_assumption: str = ""
    grid: "Grid | None" = None
    starts_ms: Mapping[JobId, Millis] = {}
    """When jobs started, if the trace says so."""

    def assumptions(self, summary: Summary) -> tuple[str, ...]:
        """Return the assumptions that the result of this run depends on."""
        has_restarts = bool(summary.preemptions or summary.failures)
        return (self.restart_assumption,) if self.restart_assumption and has_restarts else ()


def prepare(files: SimFiles) -> PreparedRun:
    """Read everything that a simulation needs."""
    catalogue = load_facts(files.facts, without=UNUSED_FACTS)
    spec = load_fleet(files.fleet, catalogue, unknown_accelerators=True)
    layout = lay_out(spec)
    nodes = list(nodes_of(spec, layout))
    trace = job_trace(files.jobs)
    notes = list(trace.notes)
    jobs = _with_canonical_types(trace.jobs, nodes, catalogue)
    policy = replace(policy_of(files.policy, files.placement), sites=site_costs(spec))
    if policy.name == "governed":
        policy, new_notes = _governed(policy, layout, jobs, catalogue)
        notes += new_notes
    grid = None if files.grid is None else _grid(files.grid, jobs)
    notes += () if grid is None else grid.notes
    release_ms = {} if grid is None else grid.release_ms
    faults: Iterable[Fault] = ()
    if files.failures != "none":
        faults, new_notes = _faults(files, catalogue, nodes, jobs, release_ms)
        notes += new_notes
    contention = None
    if files.profiles is not None:
        contention, new_notes = _contention(files.profiles, jobs, layout)
        notes += new_notes
    request = SimRequest(
        nodes=nodes,
        jobs=jobs,
        policy=policy,
        settings=files.settings,
        faults=faults,
        contention=contention,
        release_ms=release_ms,
        ends=_ends(trace.statuses),
    )
    return PreparedRun(
        request=request,
        spec=spec,
        layout=layout,
        notes=tuple(notes),
        restart_assumption=files.restart_assumption,
        grid=grid,
        starts_ms=trace.starts_ms,
    )


def _ends(statuses: Mapping[JobId, str]) -> dict[JobId, JobStatus]:
    """Return how jobs end that do not complete; unknown status words count as completed."""
    return {job: status for job, word in statuses.items() if (status := END_STATUSES.get(word))}


def is_journal_path(path: Path) -> bool:
    """Return whether a path is a state directory or a journal file."""
    return (path / "journal.db").is_file() if path.is_dir() else path.suffix == ".db"


def job_trace(path: Path, *, fill: bool = False, trace: str = "") -> JobTrace:
    """Read jobs from a job table, a public trace format, or a journal.

    Of a job table with several traces, `trace` names the one to read.
    """
    if trace and not path.name.lower().endswith(TABLE_SUFFIXES):
        raise InputError(
            "no-such-trace",
            f"`{path}` is no job table, so it has no trace `{trace}`",
            "leave out `--trace`",
            file=str(path),
            field="--trace",
        )
    if is_journal_path(path):
        from tenfold.journal.jobs.trace import journal_trace  # noqa: PLC0415

        return with_outlived_limits(journal_trace(path))
    if path.name.lower().endswith(TABLE_SUFFIXES):
        return with_outlived_limits(read_jobs(path, fill=fill, trace=trace))

    from tenfold.files.traces.detect import read_trace  # noqa: PLC0415

    return with_outlived_limits(read_trace(path))


def _governed(
    policy: Policy, layout: Layout, jobs: list[Job], catalogue: Catalogue
) -> tuple[Policy, list[str]]:
    """Add the teams and prices of the fleet to a policy."""
    from tenfold.compose.governance import govern_notes, governance_of  # noqa: PLC0415

    govern = governance_of(policy, layout.spec, catalogue)
    notes = govern_notes(govern, layout, jobs)
    return replace(policy, govern=govern), notes


def _grid(files: "GridFiles", jobs: Sequence[Job]) -> "Grid":
    from tenfold.compose.grid import read_grid  # noqa: PLC0415

    return read_grid(files, jobs)


def _faults(
    files: SimFiles,
    catalogue: Catalogue,
    nodes: Sequence[Node],
    jobs: Sequence[Job],
    release_ms: Mapping[JobId, Millis],
) -> tuple[Iterable[Fault], list[str]]:
    from tenfold.compose.failures import failure_source, faults_of  # noqa: PLC0415
    from tenfold.sim.faults.generate import fault_horizon_ms  # noqa: PLC0415

    source = failure_source(files.failures, catalogue)
    gpus = sum(node.gpus for node in nodes)
    end_ms = fault_horizon_ms(jobs, gpus, max(release_ms.values(), default=Millis(0)))
    return faults_of(source, nodes, end_ms, files.settings.seed)


def policy_of(named: str, placement: Placement | None = None) -> Policy:
    """Return a policy by its name, or from a policy file or a slurm.conf."""
    if named in POLICIES:
        policy = Policy(name=named)
    elif Path(named).suffix or len(Path(named).parts) > 1:
        from tenfold.files.policy.read import read_policy  # noqa: PLC0415

        policy = read_policy(Path(named))
    else:
        known = ", ".join(f"`{name}`" for name in POLICIES)
        raise InputError(
            "unknown-policy",
            f"unknown policy `{named}`",
            hint=f"use one of {known}, a policy file or a slurm.conf",
        )
    return policy if placement is None else replace(policy, placement=placement)


def _contention(
    path: Path, jobs: Sequence[Job], layout: Layout
) -> tuple["ContentionModel", list[str]]:
    from tenfold.files.jobs.work_profiles import read_work_profiles  # noqa: PLC0415
    from tenfold.physics.shared_layers import shared_layers  # noqa: PLC0415
    from tenfold.sim.contention.model import ContentionModel  # noqa: PLC0415
    from tenfold.sim.contention.solver import ContentionSolver  # noqa: PLC0415

    profiles = read_work_profiles(path, [str(tier.id) for tier in layout.spec.tiers])
    shared = ContentionModel(ContentionSolver(shared_layers(layout)), profiles)
    return shared, _unknown_profile_notes(jobs, profiles, path)


def _with_canonical_types(
    jobs: list[Job], nodes: Sequence[Node], catalogue: Catalogue
) -> list[Job]:
    """Rewrite accelerator names in requests to those of the fleet."""
    fleet_names = accelerator_names(node.accelerator for node in nodes)
    shapes: dict[str, Shape] = {}
    for job in jobs:
        shape = job.shape
        if shape.accelerators and shape.key not in shapes:
            names = tuple(
                canonical_accelerator(name, fleet_names, catalogue) for name in shape.accelerators
            )
            shapes[shape.key] = replace(shape, accelerators=names)
    if not shapes:
        return jobs
    return [
        replace(job, shape=shapes[job.shape.key]) if job.shape.key in shapes else job
        for job in jobs
    ]


def _unknown_profile_notes(jobs: Sequence[Job], profiles: Iterable[str], path: Path) -> list[str]:
    known = dict.fromkeys(profiles)
    unknown_profiles = dict.fromkeys(job.profile for job in jobs if job.profile not in known)
    if not unknown_profiles:
        return []
    jobs_without = sum(job.profile in unknown_profiles for job in jobs)
    return [f"{jobs_without} jobs have no profile in {path}: they use no network, storage or power"]


def prepare_fill(files: SimFiles) -> tuple[list[Node], JobTrace, Policy]:
    """Read nodes and jobs for a fill run."""
    catalogue = load_facts(files.facts, without=UNUSED_FACTS)
    spec = load_fleet(files.fleet, catalogue, unknown_accelerators=True)
    trace = job_trace(files.jobs, fill=True)
    nodes = list(nodes_of(spec))
    known = trace._replace(jobs=_with_canonical_types(trace.jobs, nodes, catalogue))
    return nodes, known, policy_of(files.policy, files.placement)
