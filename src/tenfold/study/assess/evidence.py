"""What an assessment rests on: the record of a cluster, its fleet and its policy.

`work` has a job for the simulator for each record that ran, in the same order. Times in it are
milliseconds since `origin_s`.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from tenfold.compose.fleet import OpenFleet, accelerator_names, canonical_accelerator
from tenfold.compose.inputs import END_STATUSES, job_trace, policy_of
from tenfold.files.fleet.build import build
from tenfold.files.fleet.read import load_fleet
from tenfold.files.fleet.rows import FleetRows, PoolRow
from tenfold.files.inventory.inventory import pools_from
from tenfold.files.slurm.accounting import read_accounting
from tenfold.files.slurm.conf import read_shown_policy, read_slurm_conf
from tenfold.files.slurm.node_use import read_node_use
from tenfold.files.slurm.nodes import read_slurm_nodes
from tenfold.files.slurm.queue import read_queue
from tenfold.files.slurm.saved import SavedOutput
from tenfold.files.traces.trace import status_word
from tenfold.live.slurm.attach.gather import SlurmOutput
from tenfold.model.errors import InvalidFile, NoAnswer
from tenfold.model.facts.catalogue import Catalogue
from tenfold.model.fleet.finding import Finding
from tenfold.model.fleet.node import Node
from tenfold.model.fleet.spec import FleetSpec
from tenfold.model.ids import JobId, TeamId
from tenfold.model.job.job import Job, JobStatus, Shape, shape_of
from tenfold.model.job.recorded import RecordedJob, RecordedNode
from tenfold.model.policy.policy import Policy
from tenfold.model.units import SECOND, Millis
from tenfold.physics.layout import lay_out
from tenfold.physics.nodes import nodes_of

ASSUMED_LOAD = 0.7
"""Share of an unknown fleet that a trace without start times is taken to fill."""
NODE_GPUS = 8
"""GPUs of a node that nothing tells about."""
LEAD_S = 86_400.0
"""How long before its first recorded end a history may begin."""
MOMENT_S = 1.0
"""A shorter record is what can be seen at one moment: the queue of a Slurm without accounting."""
FIRST_DATE_S = 946_684_800.0
"""Times before the year 2000 count from the start of a trace, and are no dates."""
LIVE = "live"
GPUS_UNSEEN = "GPUs of jobs that ended"

UNSEEN_IN_TRACES = (
    ("which nodes jobs ran on", "accounting with node names, as `sacct` prints it"),
    ("how busy allocated GPUs are", "GPU metrics (DCGM)"),
)
UNSEEN_IN_SLURM = (
    (
        "how busy allocated GPUs are",
        "GPU metrics (DCGM), or `AccountingStorageTRES=gres/gpuutil` in Slurm 23.11 or newer",
    ),
    (
        "limits of accounts and QOS",
        "`sacctmgr show assoc`; without it, waits caused by a limit cannot be told apart from the "
        "queue",
    ),
)


class Evidence(Struct, frozen=True, kw_only=True):
    """The record of a cluster."""

    source: str
    cluster: str
    fleet: OpenFleet
    policy: Policy
    policy_words: str
    """The policy, as the page names it; empty if nothing says which it was."""
    records: tuple[RecordedJob, ...]
    """Jobs that ran, by time of submission."""
    work: tuple[Job, ...]
    """The same jobs for the simulator."""
    starts_ms: Mapping[JobId, Millis]
    ends: Mapping[JobId, JobStatus]
    queue: tuple[RecordedJob, ...] = ()
    """Jobs that are pending now."""
    never: tuple[RecordedJob, ...] = ()
    """Jobs that were cancelled before they started."""
    nodes: tuple[RecordedNode, ...] = ()
    """Nodes as they are now; empty for a trace."""
    origin_s: float
    from_s: float
    until_s: float
    notes: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()
    unseen: tuple[tuple[str, str], ...] = ()
    """What could not be read, and what would let it."""

    @property
    def spec(self) -> FleetSpec:
        """The fleet as described."""
        return self.fleet.spec

    @property
    def has_starts(self) -> bool:
        """Return whether the record says when jobs started."""
        return bool(self.starts_ms)

    @property
    def has_history(self) -> bool:
        """Return whether the record covers more than this moment."""
        return self.until_s - self.from_s > MOMENT_S

    @property
    def is_dated(self) -> bool:
        """Return whether its times are dates."""
        return self.until_s > FIRST_DATE_S

    @property
    def span_s(self) -> float:
        """The time that is assessed."""
        return max(1.0, self.until_s - self.from_s)

    def simulated_nodes(self) -> list[Node]:
        """Return the nodes for a simulation."""
        return list(nodes_of(self.fleet.spec, self.fleet.layout))


def from_slurm(output: SlurmOutput, catalogue: Catalogue, policy: str | None) -> Evidence:
    """Return the evidence of a live cluster."""
    queue = read_queue(output.queue, "squeue --json") if output.queue else []
    unseen = list(output.unseen)
    private = _setting(output.config, "PrivateData")
    if any(word in private.split(",") for word in ("jobs", "usage")):
        unseen.append(
            ("jobs of other users", f"an operator: Slurm is set to `PrivateData={private}`")
        )
    printed = _Output(
        source=LIVE,
        nodes=output.nodes,
        config=output.config,
        partitions=output.partitions,
        jobs=output.jobs,
        queue=queue,
        now_s=output.now_s,
    )
    evidence = _slurm_evidence(printed, catalogue, policy)
    from_s = max(output.from_s, evidence.from_s) if output.jobs else output.now_s
    return replace(evidence, from_s=from_s, unseen=(*evidence.unseen, *unseen))


def from_saved(
    saved: SavedOutput, folder: Path, fleet: Path | None, catalogue: Catalogue, policy: str | None
) -> Evidence:
    """Return the evidence in a folder of saved output."""
    jobs = [job for path in saved.accounting for job in read_accounting(path)]
    queue = read_queue(saved.queue, str(folder)) if saved.queue else []
    if saved.conf is not None and policy is None:
        policy = str(saved.conf)
    printed = _Output(
        source=str(folder),
        nodes=saved.nodes,
        config=saved.config,
        partitions=saved.partitions,
        jobs=jobs,
        queue=queue,
        now_s=_latest_s([*jobs, *queue]),
    )
    return _slurm_evidence(printed, catalogue, policy, fleet)


class _Output(NamedTuple):
    """What Slurm's commands printed, live or saved."""

    source: str
    nodes: str
    config: str
    partitions: str
    jobs: Sequence[RecordedJob]
    queue: Sequence[RecordedJob]
    now_s: float


def _slurm_evidence(
    output: _Output, catalogue: Catalogue, policy: str | None, fleet: Path | None = None
) -> Evidence:
    recorded = _without_repeats(output.jobs, output.queue)
    ran = [job for job in recorded if job.started_s is not None]
    cluster = _setting(output.config, "ClusterName")
    spec, assumed = _slurm_fleet(output, ran, catalogue, fleet)
    chosen, words = _slurm_policy(output.config, output.partitions, policy)
    evidence = Evidence(
        source=output.source,
        cluster=cluster or spec.name,
        fleet=OpenFleet(spec=spec, layout=lay_out(spec), catalogue=catalogue),
        policy=chosen,
        policy_words=words,
        records=(),
        work=(),
        starts_ms={},
        ends={},
        queue=tuple(job for job in recorded if job.state == "pending"),
        never=tuple(job for job in recorded if job.started_s is None and job.state != "pending"),
        nodes=tuple(read_node_use(output.nodes, output.source)) if output.nodes else (),
        origin_s=0.0,
        from_s=_from_s(ran, output.now_s),
        until_s=output.now_s,
        assumed=tuple(assumed),
        unseen=tuple(_unseen(output, ran, words)),
    )
    return with_records(evidence, ran)


def _slurm_fleet(
    output: _Output, ran: Sequence[RecordedJob], catalogue: Catalogue, fleet: Path | None
) -> tuple[FleetSpec, list[str]]:
    """Return the fleet, and what is assumed about it."""
    if fleet is not None:
        return load_fleet(fleet, catalogue, unknown_accelerators=True), []
    if not output.nodes:
        spec, said = _fleet_of_runs(ran, catalogue)
        return spec, [said]
    cluster = _setting(output.config, "ClusterName")
    inventory = read_slurm_nodes(output.nodes, output.source)
    draft = pools_from(inventory, catalogue, name=cluster, keep_unusable=True)
    said = "the current nodes existed throughout the history"
    return _built(draft.rows, catalogue), [said]


def _unseen(
    output: _Output, ran: Sequence[RecordedJob], policy_words: str
) -> list[tuple[str, str]]:
    """Return what Slurm's commands did not say, and what would let it."""
    found: list[tuple[str, str]] = []
    tracked = _setting(output.config, "AccountingStorageTRES").lower()
    if output.jobs and output.config and "gres/gpu" not in tracked:
        found.append(
            (GPUS_UNSEEN, "`AccountingStorageTRES=gres/gpu` in slurm.conf, for jobs from then on")
        )
    if not output.jobs and output.source != LIVE:
        found.append(("jobs that ended", "`sacct`: without accounting there is no history"))
    if not output.nodes:
        found.append(("the nodes", "`scontrol show nodes` in the same folder, or `--fleet`"))
    if not policy_words:
        found.append(("how Slurm schedules", "`scontrol show config` in the same folder"))
    if not any(job.cpu_s for job in ran):
        needs = "`JobAcctGatherType` and job steps in Slurm's accounting"
        found.append(("CPU time of jobs", needs))
    return [*found, *UNSEEN_IN_SLURM]


def with_records(evidence: Evidence, ran: Sequence[RecordedJob]) -> Evidence:
    """Return evidence with these jobs and their counterparts for the simulator."""
    ordered = sorted(ran, key=lambda job: (_came_s(job), job.number, job.id))
    origin_s = _came_s(ordered[0]) if ordered else evidence.until_s
    names = accelerator_names(pool.accelerator for pool in evidence.spec.pools)
    several = len(names) > 1
    shapes: dict[tuple[object, ...], Shape] = {}
    seen: Counter[str] = Counter()
    work: list[Job] = []
    starts: dict[JobId, Millis] = {}
    ends: dict[JobId, JobStatus] = {}
    for place, record in enumerate(ordered):
        types = tuple(
            canonical_accelerator(name, names, evidence.fleet.catalogue)
            for name in (record.gpu_types if several else ())
        )
        key = (record.gpus, record.nodes, types, record.cpus, record.memory_gib)
        shape = shapes.get(key)
        if shape is None:
            shape = shapes[key] = _shape(record, types)
        seen[record.id] += 1
        again = seen[record.id]
        job_id = JobId(record.id if again == 1 else f"{record.id}#{again}")
        work.append(_job(record, job_id, shape, (origin_s, evidence.until_s), place))
        if record.started_s is not None:
            starts[job_id] = _millis(max(0.0, record.started_s - origin_s))
        status = END_STATUSES.get(status_word(record.state))
        if status is not None:
            ends[job_id] = status
    return replace(
        evidence,
        records=tuple(ordered),
        work=tuple(work),
        starts_ms=starts,
        ends=ends,
        origin_s=origin_s,
    )


def _job(
    record: RecordedJob, job_id: JobId, shape: Shape, times: tuple[float, float], seq: int
) -> Job:
    """Return a record for the simulator; a job that still runs has run until now."""
    origin_s, now_s = times
    began_s = record.started_s if record.started_s is not None else _came_s(record)
    ran_s = max(0.0, (now_s if record.ended_s is None else record.ended_s) - began_s)
    return Job(
        id=job_id,
        shape=shape,
        submitted_ms=_millis(_came_s(record) - origin_s),
        seq=seq,
        team=TeamId(record.account),
        user=record.user,
        qos=record.partition,
        limit_ms=_limit_ms(record, ran_s),
        duration_ms=_millis(ran_s),
    )


def from_trace(
    path: Path, fleet: Path | None, catalogue: Catalogue, policy: str | None, name: str = ""
) -> Evidence:
    """Return the evidence in a trace of any known format; `name` is one of several in a file."""
    trace = job_trace(path, trace=name)
    statuses, starts = trace.statuses, trace.starts_ms
    records = [_record_of(job, statuses.get(job.id, ""), starts.get(job.id)) for job in trace.jobs]
    ran = [one for one in records if not starts or one.started_s is not None]
    never = [one for one in records if starts and one.started_s is None]
    assumed: list[str] = []
    unseen: list[tuple[str, str]] = []
    if fleet is not None:
        spec = load_fleet(fleet, catalogue, unknown_accelerators=True)
    else:
        spec, said = _fleet_of_runs(ran, catalogue)
        assumed.append(said)
        unseen.append(("the nodes", "`--fleet`: a fleet file"))
    if not starts:
        unseen.append(("when jobs started", "start times in the trace: waits here are simulated"))
    if not any(one.state for one in records):
        unseen.append(("which jobs failed", "a column `status` in the trace"))
    unseen += UNSEEN_IN_TRACES
    words = "" if policy is None else f"policy `{policy}`"
    submitted = [job.submitted_s for job in records]
    evidence = Evidence(
        source=str(path),
        cluster=name or path.name.partition(".")[0],
        fleet=OpenFleet(spec=spec, layout=lay_out(spec), catalogue=catalogue),
        policy=policy_of("slurm" if policy is None else policy),
        policy_words=words,
        records=(),
        work=(),
        starts_ms={},
        ends={},
        never=tuple(never),
        origin_s=0.0,
        from_s=min(submitted),
        until_s=max(submitted),
        notes=tuple(trace.notes),
        assumed=tuple(assumed),
        unseen=tuple(unseen),
    )
    # The jobs of a trace keep their shapes and ids: the record is what the reader made of it.
    made = with_records(evidence, ran)
    by_id = {job.id: job for job in trace.jobs}
    names = accelerator_names(pool.accelerator for pool in spec.pools)
    work = tuple(
        replace(one, shape=_known_types(by_id[one.id].shape, names, catalogue)) for one in made.work
    )
    return replace(made, work=work, starts_ms=made.starts_ms if starts else {})


def _known_types(shape: Shape, names: Mapping[str, str], catalogue: Catalogue) -> Shape:
    """Return a shape with its types as the fleet spells them; on a fleet of one type, with none."""
    if not shape.accelerators:
        return shape
    if len(names) < 2:
        return replace(shape, accelerators=())
    types = tuple(canonical_accelerator(one, names, catalogue) for one in shape.accelerators)
    return replace(shape, accelerators=types)


def _record_of(job: Job, status: str, start_ms: Millis | None) -> RecordedJob:
    gpus = job.shape.gpus + job.shape.milli / 1_000
    submitted_s = job.submitted_ms / SECOND
    started_s = None if start_ms is None else start_ms / SECOND
    per_node = job.shape.gpus_per_node or NODE_GPUS
    nodes = max(1, math.ceil(job.shape.gpus / per_node))
    ended_s = None if started_s is None else started_s + (job.duration_ms or 0) / SECOND
    if started_s is None:
        # Without a start only the length of a run is known.
        ended_s = submitted_s + (job.duration_ms or 0) / SECOND
    return RecordedJob(
        id=job.id,
        user=job.user,
        account=str(job.team),
        partition=job.qos,
        state=status,
        submitted_s=submitted_s,
        eligible_s=submitted_s,
        started_s=started_s,
        ended_s=ended_s,
        limit_s=None if job.limit_ms is None else job.limit_ms / SECOND,
        nodes=nodes,
        gpus=gpus,
        gpus_asked=gpus,
        gpus_per_node_asked=job.shape.gpus_per_node or 0,
        gpu_types=job.shape.accelerators,
        cpus=job.shape.cpus_milli / 1_000,
        memory_gib=job.shape.memory_mib / 1_024,
        priority=job.priority,
    )


def _without_repeats(
    jobs: Sequence[RecordedJob], queue: Sequence[RecordedJob]
) -> list[RecordedJob]:
    """Return each run once; what the queue says of a job is newer than what accounting says."""
    found = {(job.id, job.submitted_s, job.started_s): job for job in jobs}
    for job in queue:
        key = (job.id, job.submitted_s, job.started_s)
        if key not in found:
            if job.started_s is not None:
                found.pop((job.id, job.submitted_s, None), None)
            found[key] = job
    # Accounting keeps one row for the pending members of an array, the queue has one for each.
    pending = any(job.state == "pending" for job in queue)
    return [
        job for job in found.values() if not (pending and job.state == "pending" and "[" in job.id)
    ]


def _slurm_policy(config: str, partitions: str, named: str | None) -> tuple[Policy, str]:
    if named is not None:
        return policy_of(named), f"policy `{named}`"
    if not config:
        return Policy(name="slurm"), ""
    slurm = read_shown_policy(config, partitions, "scontrol show config")
    return Policy(name="slurm", slurm=slurm), "this cluster's Slurm configuration"


def conf_policy(path: Path) -> Policy:
    """Return the policy of a `slurm.conf`."""
    return Policy(name="slurm", slurm=read_slurm_conf(path))


def _fleet_of_runs(records: Sequence[RecordedJob], catalogue: Catalogue) -> tuple[FleetSpec, str]:
    """Return a fleet that could have run these jobs, and how it was found."""
    if not records:
        raise NoAnswer("no-jobs", "no job of this record ran", "check that the file is complete")
    per_node = max(
        NODE_GPUS, *(job.gpus_per_node_asked for job in records), *(_on_one_node(records))
    )
    starts = any(job.started_s is not None for job in records)
    if starts:
        gpus = _peak(records)
        said = "GPUs of the fleet: the most that were in use at once in the history; set `--fleet`"
    else:
        span_s = max(job.submitted_s for job in records) - min(job.submitted_s for job in records)
        work = sum(job.gpus * ((job.ended_s or 0) - job.submitted_s) for job in records)
        gpus = max(*(job.gpus for job in records), 1.0, work / max(1.0, span_s) / ASSUMED_LOAD)
        said = (
            f"GPUs of the fleet: as many as the work of the trace fills to {ASSUMED_LOAD:.0%}; "
            "set `--fleet`"
        )
    nodes = max(1, math.ceil(gpus / per_node))
    row = PoolRow(name="gpus", nodes=nodes, gpus_per_node=per_node, accelerator="unknown GPU")
    return _built(FleetRows(name="assumed", pool={0: row}), catalogue), said


def _on_one_node(records: Sequence[RecordedJob]) -> list[int]:
    return [int(job.gpus) for job in records if job.nodes == 1 and job.gpus <= 16] or [NODE_GPUS]


def _peak(records: Sequence[RecordedJob]) -> float:
    changes = [(job.started_s, job.gpus) for job in records if job.started_s is not None]
    changes += [
        (job.ended_s, -job.gpus)
        for job in records
        if job.started_s is not None and job.ended_s is not None
    ]
    running = most = 0.0
    for _, change in sorted(changes):
        running += change
        most = max(most, running)
    return most


def _built(rows: FleetRows, catalogue: Catalogue) -> FleetSpec:
    findings: list[Finding] = []
    spec = build(rows, rows.name or "cluster", catalogue, findings)
    if spec is None or findings:
        raise InvalidFile(rows.name, findings)
    if not spec.gpus:
        raise NoAnswer(
            "no-gpus",
            f"the {spec.nodes} nodes of this cluster have no GPUs",
            "check `Gres=` in `scontrol show nodes`: an assessment counts GPUs",
        )
    return spec


def _shape(record: RecordedJob, types: tuple[str, ...]) -> Shape:
    gpus = record.gpus if record.gpus <= 1 else float(math.ceil(record.gpus))
    even = record.nodes > 1 and gpus >= record.nodes and gpus % record.nodes == 0
    return shape_of(
        gpus,
        gpus_per_node=int(gpus // record.nodes) if even else None,
        accelerators=types,
        cpus=record.cpus,
        memory_gib=record.memory_gib,
    )


def _limit_ms(record: RecordedJob, ran_s: float) -> Millis | None:
    """Return the limit; a job that ran longer had its limit raised."""
    if record.limit_s is None:
        return None
    return _millis(max(record.limit_s, ran_s if record.state != "timeout" else 0.0))


def _came_s(record: RecordedJob) -> float:
    """Return when the scheduler could first start a job."""
    eligible_s = record.eligible_s
    if eligible_s is None or eligible_s < record.submitted_s:
        return record.submitted_s
    return eligible_s if record.started_s is None else min(eligible_s, record.started_s)


def _from_s(ran: Sequence[RecordedJob], now_s: float) -> float:
    """Return when a record begins: with its first submission, but for one long before any end.

    Accounting from a day on also has the jobs that ran then, which may have come weeks before.
    """
    first_s = min((job.submitted_s for job in ran), default=now_s)
    ended_s = min((job.ended_s for job in ran if job.ended_s is not None), default=now_s)
    return max(first_s, ended_s - LEAD_S)


def _latest_s(jobs: Sequence[RecordedJob]) -> float:
    times = [one for job in jobs for one in (job.submitted_s, job.started_s, job.ended_s) if one]
    if not times:
        raise NoAnswer("no-jobs", "the saved output has no jobs", "save `sacct` or `squeue` too")
    return max(times)


def _setting(config: str, key: str) -> str:
    for line in config.splitlines():
        name, equals, value = line.partition("=")
        if equals and name.strip() == key:
            text = value.strip()
            return "" if text in ("(null)", "none", "N/A") else text
    return ""


def _millis(seconds: float) -> Millis:
    return Millis(round(seconds * SECOND))
