"""Clusters alone and merged: the same jobs on each fleet by itself, then on all of them as one.

The joined history is what all clusters were asked for. A gang still runs in one site, and a job
that names no accelerator keeps to the types of the cluster that it was submitted to.
"""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from tenfold.compose.fleet import UNUSED_FACTS, load_facts
from tenfold.compose.governance import governance_of
from tenfold.compose.inputs import PreparedRun, SimFiles, policy_of, prepare
from tenfold.compose.simulation import SimRequest, SimResult, simulate
from tenfold.files.fleet.build import build
from tenfold.files.fleet.merge import merge_fleets, merged_teams, read_source
from tenfold.model.errors import InputError
from tenfold.model.fleet.node import Node
from tenfold.model.fleet.spec import FleetSpec
from tenfold.model.ids import JobId, NodeId, TeamId
from tenfold.model.job.job import Job, JobStatus, Shape
from tenfold.model.units import HOUR, SECOND, Millis
from tenfold.physics.nodes import nodes_of

LONGER, LONGER_S = 0.01, 1.0


class MergeQuestion(Struct, frozen=True, kw_only=True):
    """Clusters to merge: a fleet file and a history of jobs for each."""

    clusters: tuple[SimFiles, ...]
    any_accelerator: bool = False
    """Jobs without an accelerator type may run on any cluster's GPUs."""
    together: bool = False
    """All histories begin together, also where their times overlap."""
    name: str = "merged"


class Waits(Struct, frozen=True, kw_only=True):
    """How long the jobs that finish alone and merged wait."""

    jobs: int
    wait_s_mean: float
    wait_s_mean_before: float
    wait_s_p90: float
    wait_s_p90_before: float


class TeamMerged(Struct, frozen=True, kw_only=True):
    """One team alone and merged; teams with one name in several clusters are one."""

    team: str
    clusters: tuple[str, ...]
    waits: Waits
    gpu_hours_elsewhere: float
    """GPU-hours that its jobs run in other clusters than their own, merged."""
    only_merged: int
    """Jobs that finish only if merged, such as those larger than their own cluster."""


class ClusterMerged(Struct, frozen=True, kw_only=True):
    """One cluster alone, and its nodes as a part of the merged fleet."""

    name: str
    nodes: int
    gpus: int
    jobs: int
    gpu_utilization: float
    """Of its GPUs until the last job of any run ends, so that alone and merged can be compared."""
    gpu_utilization_before: float
    gpu_hours_from_others: float
    """GPU-hours that its nodes run for jobs of other clusters, merged."""


class MergeAnswer(Struct, frozen=True, kw_only=True):
    """What merging clusters changes for the same jobs."""

    policy: str
    gpus: int
    waits: Waits
    gpu_utilization: float
    """Of all GPUs until the last job ends."""
    gpu_utilization_before: float
    makespan_s: float
    makespan_s_before: float
    """Of the cluster that is busy the longest."""
    never: int
    """Jobs that finish neither alone nor merged, such as gangs larger than any site."""
    clusters: tuple[ClusterMerged, ...]
    teams: tuple[TeamMerged, ...]
    losing: tuple[str, ...]
    """Teams whose mean wait grows by more than 1% and a second."""
    notes: tuple[str, ...]


class _Ran(Struct, frozen=True):
    """One job that finished: its wait, and the GPU-milliseconds of its last run by node."""

    wait_ms: int
    gpu_ms: float
    node: NodeId


class _Cluster(Struct, frozen=True, kw_only=True):
    name: str
    run: PreparedRun
    jobs: tuple[Job, ...]
    """As they are called in the joined history."""


def merge_clusters(question: MergeQuestion) -> MergeAnswer:
    """Simulate each cluster with its own jobs, then the merged fleet with all of them."""
    if len(question.clusters) < 2:
        raise InputError(
            "nothing-to-merge",
            "merge needs at least two clusters",
            "pass two or more fleet files, and as many job tables in the same order",
        )
    catalogue = load_facts(question.clusters[0].facts, without=UNUSED_FACTS)
    sources = [read_source(files.fleet, catalogue) for files in question.clusters]
    draft = merge_fleets(sources, question.name, prefix_nodes=True)
    spec = build(draft.rows, question.name, catalogue, [])
    assert spec is not None, "valid fleets merge into a valid fleet"
    clusters = _clusters(question, [one.spec for one in sources], merged_teams(sources))
    policy = policy_of(question.clusters[0].policy, question.clusters[0].placement)
    if policy.name == "governed":
        policy = replace(policy, govern=governance_of(policy, spec, catalogue))
    nodes = list(nodes_of(spec))
    joined = SimRequest(
        nodes=nodes,
        jobs=_joined([one.jobs for one in clusters]),
        policy=policy,
        settings=question.clusters[0].settings,
        ends={job: end for one in clusters for job, end in _ends(one).items()},
    )
    alone = [simulate(replace(one.run.request, jobs=_joined([one.jobs]))) for one in clusters]
    notes = [*(note for one in clusters for note in one.run.notes), *_assumed(question, clusters)]
    found = _Compared(clusters, alone, simulate(joined), nodes)
    return found.answer(policy.name, tuple(dict.fromkeys(notes)))


def _clusters(
    question: MergeQuestion, specs: Sequence[FleetSpec], teams: Sequence[dict[str, str]]
) -> list[_Cluster]:
    runs = [prepare(files) for files in question.clusters]
    together = _begins_together(question, runs)
    names = _names([spec.name for spec in specs])
    met: dict[JobId, int] = {}
    for run in runs:
        for job in run.request.jobs:
            met[job.id] = met.get(job.id, 0) + 1
    has_clash = any(count > 1 for count in met.values())
    found: list[_Cluster] = []
    for name, run, called in zip(names, runs, teams, strict=True):
        prefix = f"{name}/" if has_clash else ""
        shift = run.request.jobs[0].submitted_ms if together else 0
        types = tuple(
            dict.fromkeys(node.accelerator for node in run.request.nodes if node.accelerator)
        )
        kept = () if question.any_accelerator else types
        jobs = tuple(_renamed(job, prefix, shift, called, kept) for job in run.request.jobs)
        found.append(_Cluster(name=name, run=run, jobs=jobs))
    return found


def _begins_together(question: MergeQuestion, runs: Sequence[PreparedRun]) -> bool:
    """Return whether histories are moved to one start: times that never overlap say nothing."""
    first = max(run.request.jobs[0].submitted_ms for run in runs)
    last = min(run.request.jobs[-1].submitted_ms for run in runs)
    return question.together or first > last


def _names(stated: Sequence[str]) -> list[str]:
    """Return a name for each cluster; fleets of one name are numbered."""
    return [
        name if stated.index(name) == place else f"{name}-{place + 1}"
        for place, name in enumerate(stated)
    ]


def _renamed(
    job: Job, prefix: str, shift: int, teams: dict[str, str], types: tuple[str, ...]
) -> Job:
    """Return a job as the joined history calls it, at its time there."""
    terms = job.terms
    if terms is not None and prefix:
        after_any = terms.after_any
        terms = replace(
            terms,
            after=tuple(JobId(prefix + one) for one in terms.after),
            after_any=(
                tuple(JobId(prefix + one) for one in after_any)
                if isinstance(after_any, tuple)
                else after_any
            ),
            array=prefix + terms.array if terms.array else "",
        )
    deadline_ms = job.deadline_ms
    return replace(
        job,
        id=JobId(prefix + job.id),
        submitted_ms=Millis(job.submitted_ms - shift),
        deadline_ms=None if deadline_ms is None else Millis(deadline_ms - shift),
        team=TeamId(teams.get(job.team, job.team)),
        shape=_kept_to(job.shape, types),
        terms=terms,
    )


def _kept_to(shape: Shape, types: tuple[str, ...]) -> Shape:
    """Return a shape that keeps to these accelerators if it asks for GPUs and names none."""
    if shape.accelerators or not types or not (shape.gpus or shape.milli):
        return shape
    return replace(shape, accelerators=types, key=f"{shape.key} @{'|'.join(types)}")


def _joined(histories: Sequence[Sequence[Job]]) -> list[Job]:
    """Return all jobs in order of submission, numbered anew."""
    jobs = [job for history in histories for job in history]
    jobs.sort(key=lambda job: job.submitted_ms)
    return [replace(job, seq=number) for number, job in enumerate(jobs)]


def _ends(cluster: _Cluster) -> dict[JobId, JobStatus]:
    old = cluster.run.request.ends
    pairs = zip(cluster.run.request.jobs, cluster.jobs, strict=True)
    return {new.id: old[job.id] for job, new in pairs if job.id in old}


def _assumed(question: MergeQuestion, clusters: Sequence[_Cluster]) -> list[str]:
    notes = [
        "assumed: data is equally close to every cluster; moving it takes no time and costs nothing"
    ]
    if _begins_together(question, [one.run for one in clusters]):
        notes.append("assumed: all histories begin together")
    if not question.any_accelerator:
        notes.append(
            "jobs without an accelerator type keep to the types of their own cluster "
            "(change with --any-accelerator)"
        )
    restarts = clusters[0].run.restart_assumption
    return [*notes, restarts] if restarts else notes


class _Compared:
    """The runs side by side, by cluster and by team."""

    def __init__(
        self,
        clusters: Sequence[_Cluster],
        alone: Sequence[SimResult],
        merged: SimResult,
        nodes: Sequence[Node],
    ) -> None:
        self._clusters = clusters
        self._alone = alone
        self._merged = merged
        self._gpus = sum(node.gpus for node in nodes)
        self._before = {job: ran for one in alone for job, ran in _finished(one).items()}
        self._after = _finished(merged)
        self._home = {job.id: place for place, one in enumerate(clusters) for job in one.jobs}
        # The merged file has the pools of each fleet in turn, so its nodes are in that order.
        sizes = [len(one.run.request.nodes) for one in clusters]
        places = [place for place, size in enumerate(sizes) for _ in range(size)]
        self._cluster_of = {node.id: at for node, at in zip(nodes, places, strict=True)}

    def answer(self, policy: str, notes: tuple[str, ...]) -> MergeAnswer:
        """Return the figures of all clusters, of each, and of each team."""
        teams = self._teams()
        every = [job for one in self._clusters for job in one.jobs]
        return MergeAnswer(
            policy=policy,
            gpus=self._gpus,
            waits=self._waits(every),
            gpu_utilization=_used([self._merged], self._gpus),
            gpu_utilization_before=_used(self._alone, self._gpus),
            makespan_s=self._merged.summary.makespan_s,
            makespan_s_before=max(one.summary.makespan_s for one in self._alone),
            never=sum(job.id not in self._before and job.id not in self._after for job in every),
            clusters=tuple(self._cluster(place) for place in range(len(self._clusters))),
            teams=teams,
            losing=tuple(one.team for one in teams if _waits_longer(one.waits)),
            notes=notes,
        )

    def _teams(self) -> tuple[TeamMerged, ...]:
        jobs: dict[str, list[Job]] = {}
        for one in self._clusters:
            for job in one.jobs:
                jobs.setdefault(job.team, []).append(job)
        return tuple(self._team(team, jobs[team]) for team in sorted(jobs))

    def _team(self, team: str, jobs: Sequence[Job]) -> TeamMerged:
        homes = sorted(dict.fromkeys(self._home[job.id] for job in jobs))
        away = [job for job in jobs if self._is_elsewhere(job)]
        return TeamMerged(
            team=team,
            clusters=tuple(self._clusters[place].name for place in homes),
            waits=self._waits(jobs),
            gpu_hours_elsewhere=self._gpu_hours(away),
            only_merged=sum(job.id in self._after and job.id not in self._before for job in jobs),
        )

    def _cluster(self, place: int) -> ClusterMerged:
        own, alone = self._clusters[place], self._alone[place]
        gpus = own.run.request.gpus
        here = [job for one in self._clusters for job in one.jobs if self._is_in(job, place)]
        return ClusterMerged(
            name=own.name,
            nodes=len(own.run.request.nodes),
            gpus=gpus,
            jobs=len(own.jobs),
            gpu_utilization=self._share(self._gpu_hours(here), gpus),
            gpu_utilization_before=self._share(alone.summary.gpu_hours, gpus),
            gpu_hours_from_others=self._gpu_hours(
                [job for job in here if self._home[job.id] != place]
            ),
        )

    def _share(self, gpu_hours: float, gpus: int) -> float:
        """Return a part of the GPU-hours of so many GPUs until the last job of any run ends."""
        runs = (*self._alone, self._merged)
        last_h = max(run.summary.makespan_s for run in runs) * SECOND / HOUR
        return gpu_hours / (last_h * gpus) if last_h and gpus else 0.0

    def _is_in(self, job: Job, place: int) -> bool:
        ran = self._after.get(job.id)
        return ran is not None and self._cluster_of[ran.node] == place

    def _is_elsewhere(self, job: Job) -> bool:
        return job.id in self._after and not self._is_in(job, self._home[job.id])

    def _gpu_hours(self, jobs: Sequence[Job]) -> float:
        return sum(self._after[job.id].gpu_ms for job in jobs) / HOUR

    def _waits(self, jobs: Sequence[Job]) -> Waits:
        both = [job.id for job in jobs if job.id in self._before and job.id in self._after]
        before = sorted(self._before[job].wait_ms for job in both)
        after = sorted(self._after[job].wait_ms for job in both)
        return Waits(
            jobs=len(both),
            wait_s_mean=_mean_s(after),
            wait_s_mean_before=_mean_s(before),
            wait_s_p90=_nearest_s(after),
            wait_s_p90_before=_nearest_s(before),
        )


def _finished(result: SimResult) -> dict[JobId, _Ran]:
    """Return the jobs that came to an end: their waits, and where they last ran."""
    found: dict[JobId, _Ran] = {}
    for job, slots, ran, held, end in result.meters.ends:
        gpus = sum(slot.gpus + slot.milli / 1_000 for slot in slots)
        found[job.id] = _Ran(end - job.submitted_ms - held, gpus * ran, slots[0].node)
    return found


def _used(runs: Sequence[SimResult], gpus: int) -> float:
    """Return the GPU-hours of all runs over those of all GPUs until the last of them ends."""
    hours = max(run.summary.makespan_s for run in runs) * SECOND / HOUR * gpus
    return sum(run.summary.gpu_hours for run in runs) / hours if hours else 0.0


def _waits_longer(waits: Waits) -> bool:
    more = waits.wait_s_mean - waits.wait_s_mean_before
    return more > max(LONGER_S, LONGER * waits.wait_s_mean_before)


def _mean_s(waits: Sequence[int]) -> float:
    return sum(waits) / len(waits) / SECOND if waits else 0.0


def _nearest_s(waits: Sequence[int]) -> float:
    """Return the wait that nine of ten jobs do not exceed."""
    return waits[max(0, -(-len(waits) * 9 // 10) - 1)] / SECOND if waits else 0.0
