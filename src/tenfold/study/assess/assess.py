"""Put an assessment together."""

from collections.abc import Callable, Sequence

from msgspec import Struct

from tenfold.model.ids import JobId
from tenfold.model.job.recorded import RecordedJob
from tenfold.model.units import SECOND
from tenfold.sim.measure.timeline import Span
from tenfold.study.assess.anonymous import anonymous
from tenfold.study.assess.causes import Causes, Run, memory_gib_of, wait_causes
from tenfold.study.assess.changes import Changes, Simulated, changes_of, closest_policy, price_of
from tenfold.study.assess.evidence import Evidence
from tenfold.study.assess.growth import Outlook, outlook_of
from tenfold.study.assess.use import Use, use_of
from tenfold.study.assess.waits import JobWait, Waits, recorded_waits, waits_of


class FleetNode(Struct, frozen=True, kw_only=True):
    """What a node has."""

    gpus: int
    cpus: float
    memory_gib: float
    """That jobs may be allocated; 0 if not known."""
    partitions: tuple[str, ...]


class Assessment(Struct, frozen=True, kw_only=True):
    """How a cluster is used, what breaks first, and what would help."""

    source: str
    cluster: str
    policy: str
    from_s: float
    until_s: float
    use: Use
    waits: Waits
    causes: Causes
    outlook: Outlook | None
    changes: Changes
    usd_per_gpu_hour: float | None
    usd_held: float | None
    """Dollars of GPU-hours that were held and did not serve a job."""
    fleet_nodes: dict[str, FleetNode]
    """The nodes that causes of waiting are computed with."""
    notes: tuple[str, ...]
    assumed: tuple[str, ...]
    unseen: tuple[tuple[str, str], ...]


class Assessed(Struct, frozen=True, kw_only=True):
    """An assessment, with the simulated runs that its figures can be checked against."""

    assessment: Assessment
    simulated: Simulated


def assess(evidence: Evidence, *, hidden: bool, done: Callable[[str], None]) -> Assessed:
    """Return the assessment of a record; with `hidden`, users and accounts are hashed."""
    shown = anonymous(evidence) if hidden else evidence
    done("computing usage and waits")
    use = use_of(shown)
    if not shown.policy_words:
        shown = closest_policy(shown, done)
    simulated = changes_of(shown, done)
    waited, runs = _waits(shown, simulated)
    done("finding out why jobs waited")
    causes = wait_causes(shown, runs)
    outlook = None
    if shown.work and shown.has_history:
        outlook = outlook_of(shown, lambda count: done(f"scaling up the load: {count} runs"))
    price, _ = price_of(shown.spec)
    held = use.held.unrequested + (use.held.low_cpu or 0.0)
    assessment = Assessment(
        source=shown.source,
        cluster=shown.cluster,
        policy=shown.policy_words,
        from_s=shown.from_s,
        until_s=shown.until_s,
        use=use,
        waits=waits_of(waited, simulated=not shown.has_starts),
        causes=causes,
        outlook=outlook,
        changes=simulated.changes,
        usd_per_gpu_hour=price,
        usd_held=None if price is None else held * price,
        fleet_nodes=_fleet_nodes(shown),
        notes=shown.notes,
        assumed=shown.assumed,
        unseen=shown.unseen,
    )
    return Assessed(assessment=assessment, simulated=simulated)


def _fleet_nodes(evidence: Evidence) -> dict[str, FleetNode]:
    known = {node.name: node for node in evidence.nodes}
    return {
        str(node.id): FleetNode(
            gpus=node.gpus,
            cpus=node.cpus_milli / 1_000,
            memory_gib=memory_gib_of(known.get(str(node.id))),
            partitions=known[str(node.id)].partitions if str(node.id) in known else (),
        )
        for node in evidence.simulated_nodes()
    }


def _waits(evidence: Evidence, simulated: Simulated) -> tuple[list[JobWait], list[Run]]:
    """Return the waits and runs of the record, or of a simulation if it has no start times."""
    if evidence.has_starts:
        runs = [
            Run(one, one.started_s, one.ended_s or evidence.until_s, one.node_names)
            for one in evidence.records
            if one.started_s is not None
        ]
        return recorded_waits(evidence.records, evidence.from_s), runs
    records = {job.id: one for job, one in zip(evidence.work, evidence.records, strict=True)}
    waited: list[JobWait] = []
    runs: list[Run] = []
    for half, baseline in zip(simulated.halves, simulated.baselines, strict=True):
        waits = baseline.waits_ms
        waited += [JobWait(records[job], wait / SECOND) for job, wait in waits.items()]
        placed: dict[JobId, list[Span]] = {}
        for span in sorted(baseline.runs, key=lambda one: one[2]):
            placed.setdefault(span[0].id, []).append(span)
        for job in half.jobs:
            end = half.until_ms
            spans: list[Span] = placed.get(job.id, [(job, (), end, end)])
            first_s = (spans[0][2] - job.submitted_ms) / SECOND
            again_s = waits.get(job.id, 0) / SECOND - first_s
            for place, span in enumerate(spans):
                run = _simulated_run(span, records[job.id], evidence.origin_s)
                counts = place == 0 and job.id in half.measured
                runs.append(run._replace(counts=counts, again_s=again_s if counts else 0.0))
    return waited, runs


def _simulated_run(span: Span, record: RecordedJob, origin_s: float) -> Run:
    _, slots, start, end = span
    names = tuple(dict.fromkeys(str(slot.node) for slot in slots))
    return Run(record, origin_s + start / SECOND, origin_s + end / SECOND, names)


def starts_of(simulated: Simulated) -> Sequence[tuple[str, str, int, int, int]]:
    """Return half, job, arrival, simulated start (-1: none) and wait, in milliseconds."""
    rows: list[tuple[str, str, int, int, int]] = []
    for half, run in zip(simulated.halves, simulated.baselines, strict=True):
        for job in half.jobs:
            if job.id in half.measured:
                start = run.starts_ms.get(job.id, -1)
                rows.append((half.name, job.id, job.submitted_ms, start, run.waits_ms[job.id]))
    return rows
