"""One simulation run of a grown fleet: from the history and a factor to the figures of a window.

The function and its task pickle, so that runs can use other processes. A run reads only part of
the fleet; two fleets that agree in that part share their runs.
"""

from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tenfold.compose.failures import FailureSource, faults_of
from tenfold.compose.simulation import SimRequest, SimResult, simulate
from tenfold.model.facts.failure_law import NO_FAILURES
from tenfold.model.fault import Fault
from tenfold.model.fleet.node import Node
from tenfold.model.fleet.spec import Expectation, FleetSpec, LintPolicy, Pool, Site, Tier
from tenfold.model.growth.growth import Axis, grown_by
from tenfold.model.ids import JobId
from tenfold.model.job.job import WHOLE, Job, JobStatus
from tenfold.model.job.traffic import WorkProfile
from tenfold.model.policy.policy import Policy
from tenfold.model.units import DAY, HOUR, Bytes, Millis, UsdMicros
from tenfold.physics.layout import Layout, lay_out
from tenfold.physics.nodes import nodes_of
from tenfold.physics.shared_layers import shared_layers
from tenfold.sim.contention.model import ContentionModel
from tenfold.sim.contention.solver import ContentionSolver
from tenfold.sim.measure.stranded import stranded_share
from tenfold.sim.measure.timeline import Span
from tenfold.sim.measure.window import (
    Window,
    allocated_milli_ms,
    job_waits,
    runs_until,
    window_figures,
    window_of,
)
from tenfold.sim.measure.window_losses import entitlement_fairness, lost_milli_ms, nodes_down_p99
from tenfold.sim.workload.scale import copy_marker, original_id, scale_jobs
from tenfold.sim.world import SimSettings
from tenfold.study.grow.runs.fleet import grown_fleet, grown_govern


class GrowTask(Struct, frozen=True, kw_only=True):
    """A history, the fleet it runs on, and how far to grow along which axis."""

    spec: FleetSpec
    jobs: Sequence[Job]
    policy: Policy = Policy()
    axis: Axis = "jobs"
    factor: float = 1.0
    seed: int = 0
    profiles: Mapping[str, WorkProfile] = {}
    ends: Mapping[JobId, JobStatus] = {}
    failures: FailureSource = NO_FAILURES
    settings: SimSettings = SimSettings()
    history_window: Window | None = None
    """The part of the history to simulate; None: all of it, measured after its warm-up."""


class RunFigures(Struct, frozen=True, kw_only=True):
    """The figures of a run, all from the window after the warm-up."""

    jobs: int
    load: float
    """GPU time requested over GPU time available."""
    wait_s_p90_gpu: float
    """P90 wait, weighted by GPU time requested."""
    wait_s_p90_worst: float
    """P90 wait of the team or job size that waits longest."""
    worst_class: str
    utilisation: float
    stranded: float
    """Share of all GPUs that idled because no waiting job could use them."""
    jain_entitlement: float
    goodput: float
    """Share of the allocated GPU time that was progress."""
    lost_gpu_h_per_day: dict[str, float]
    """Allocated GPU time lost, by cause."""
    admissions_per_s: float
    down_nodes_p99: float
    wait_s_p90_by_type: dict[str, float] = {}
    """P90 wait by the accelerator types that jobs ask for."""


class RunOutcome(Struct, frozen=True, kw_only=True):
    """A run with everything its figures are computed from."""

    nodes: Sequence[Node]
    jobs: Sequence[Job]
    window: Window
    result: SimResult
    runs: list[Span]

    @property
    def gpus(self) -> int:
        """GPUs of the fleet that ran."""
        return sum(node.gpus for node in self.nodes)


def run_once(task: GrowTask) -> RunFigures:
    """Return the figures of one run."""
    ran = simulate_task(task)
    meters, fleet, window = ran.result.meters, ran.result.fleet, ran.window
    found = job_waits(ran.jobs, ran.runs, meters, window)
    node_gpus = max((node.gpus for node in ran.nodes), default=1)
    seen = window_figures(found, ran.runs, window, ran.gpus, node_gpus)
    lost = lost_milli_ms(ran.runs, meters, fleet.past, ran.result.work_ms, window)
    held = allocated_milli_ms(ran.runs, window)
    days = window.length_ms / DAY
    weights = {str(team.id): team.weight for team in task.spec.teams}
    return RunFigures(
        jobs=seen.jobs,
        load=seen.load,
        wait_s_p90_gpu=seen.wait_s_p90_gpu,
        wait_s_p90_worst=seen.wait_s_p90_worst,
        worst_class=seen.worst_class,
        utilisation=seen.utilisation,
        stranded=stranded_share(ran.nodes, ran.jobs, ran.runs, meters, window),
        jain_entitlement=entitlement_fairness(found, ran.runs, window, ran.gpus, weights),
        goodput=max(0.0, 1 - sum(lost.values()) / held) if held else 1.0,
        lost_gpu_h_per_day={name: one / WHOLE / HOUR / days for name, one in lost.items()},
        admissions_per_s=seen.starts_per_s,
        down_nodes_p99=float(nodes_down_p99(meters, window)),
        wait_s_p90_by_type=seen.wait_s_p90_by_type,
    )


def simulate_task(task: GrowTask) -> RunOutcome:
    """Simulate a task up to the end of its window: the history or a part of it."""
    spec = grown_fleet(task.spec, grown_by(task.axis, "nodes", task.factor))
    layout = lay_out(spec)
    nodes = list(nodes_of(spec, layout))
    window = task.history_window or window_of(task.jobs)
    until_ms = Millis(window.until_ms)
    scaling = {name: profile.scaling for name, profile in task.profiles.items()}
    jobs = scale_jobs(task.jobs, task.axis, task.factor, task.seed, scaling=scaling)
    if task.history_window is not None:
        jobs = reaching(jobs, window)
    marker = copy_marker(task.jobs)
    request = SimRequest(
        nodes=nodes,
        jobs=jobs,
        policy=_policy(task.policy, jobs, marker),
        settings=replace(task.settings, seed=task.seed),
        faults=_faults(task, nodes, until_ms),
        contention=_contention(task, layout),
        ends=_ends(task.ends, jobs, marker),
        until_ms=until_ms,
    )
    result = simulate(request)
    runs = list(runs_until(result.meters, result.fleet.running, until_ms))
    return RunOutcome(nodes=nodes, jobs=jobs, window=window, result=result, runs=runs)


def reaching(jobs: Iterable[Job], window: Window) -> list[Job]:
    """Return the jobs submitted within a window, and earlier ones still running then.

    Dependencies that are left out had finished by then.
    """
    kept = [
        job
        for job in jobs
        if job.submitted_ms <= window.until_ms
        and job.submitted_ms + (job.duration_ms or 0) >= window.from_ms
    ]
    known = {job.id: True for job in kept}
    return [_without(job, known) for job in kept]


def _without(job: Job, known: Mapping[JobId, bool]) -> Job:
    terms = job.terms
    if terms is None or all(one in known for one in terms.after):
        return job
    after = tuple(one for one in terms.after if one in known)
    return replace(job, terms=replace(terms, after=after))


def run_digest(spec: FleetSpec, policy: Policy, failures: str = "") -> str:
    """Return a digest of everything a run reads of a fleet and its policy.

    Site power, prices, tier capacities and links between sites are not read.
    """
    read = replace(
        spec,
        name="",
        sites=tuple(_site(site) for site in spec.sites),
        pools=tuple(_pool(pool) for pool in spec.pools),
        tiers=tuple(_tier(tier) for tier in spec.tiers),
        links=(),
        expects=Expectation(),
        lint=LintPolicy(),
    )
    return blake2b(msgspec.json.encode((read, policy, failures)), digest_size=16).hexdigest()


def _site(site: Site) -> Site:
    return replace(site, power_kw_limit=None, pue=1.0, usd_per_kwh=0.0, co2_g_per_kwh=0.0)


def _pool(pool: Pool) -> Pool:
    return replace(pool, price=None, labels={})


def _tier(tier: Tier) -> Tier:
    return replace(tier, capacity=Bytes(0), usd_micros_per_tb_month=UsdMicros(0), power_w=0)


def _policy(policy: Policy, jobs: Iterable[Job], marker: str) -> Policy:
    """Return the policy with queues for copies of teams, if it has queues."""
    if policy.govern is None:
        return policy
    teams = dict.fromkeys(job.team for job in jobs)
    return replace(policy, govern=grown_govern(policy.govern, teams, marker))


def _faults(task: GrowTask, nodes: Sequence[Node], until_ms: Millis) -> Iterable[Fault]:
    if task.failures is NO_FAILURES or task.failures == NO_FAILURES:
        return ()
    return faults_of(task.failures, nodes, until_ms, task.seed)[0]


def _contention(task: GrowTask, layout: Layout) -> ContentionModel | None:
    """Return what jobs share; a job reads and writes the same along every axis."""
    if not task.profiles:
        return None
    return ContentionModel(ContentionSolver(shared_layers(layout)), task.profiles)


def _ends(
    ends: Mapping[JobId, JobStatus], jobs: Iterable[Job], marker: str
) -> Mapping[JobId, JobStatus]:
    """Return how jobs end that do not complete; a copy ends like its original."""
    if not ends:
        return ends
    return {job.id: ends[model] for job in jobs if (model := original_id(job.id, marker)) in ends}
