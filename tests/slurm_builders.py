"""A small fleet and its jobs for the tests of the `slurm` policy."""

from collections.abc import Sequence

from tenfold.decide.place.slurm.slurm import SlurmPlacer
from tenfold.fleet.fleet import Fleet
from tenfold.model.actions import StartJob
from tenfold.model.decision import Decision
from tenfold.model.events import ActionOrdered, JobEnded, JobStarted, JobSubmitted, NodeJoined
from tenfold.model.fleet.node import Node
from tenfold.model.ids import JobId, NodeId, PoolId, SiteId, TeamId
from tenfold.model.job.job import Job, Slot, shape_of
from tenfold.model.policy.slurm import Backfill, PriorityWeights, SlurmPartition, SlurmPolicy
from tenfold.model.units import MINUTE, SECOND, Millis

NO_WEIGHTS = PriorityWeights()


def policy(
    *,
    weights: PriorityWeights = NO_WEIGHTS,
    partitions: tuple[SlurmPartition, ...] = (),
    backfills: bool = True,
    queue_depth: int = 100,
    jobs_tested_max: int = 500,
) -> SlurmPolicy:
    """A Slurm whose passes come every second, and whose priorities change every minute."""
    return SlurmPolicy(
        priority="multifactor",
        weights=weights,
        age_max_ms=Millis(10 * MINUTE),
        calc_period_ms=Millis(MINUTE),
        scheduler="backfill" if backfills else "builtin",
        backfill=Backfill(
            interval_ms=Millis(SECOND),
            resolution_ms=Millis(SECOND),
            window_ms=Millis(120 * MINUTE),
            jobs_tested_max=jobs_tested_max,
        ),
        queue_depth=queue_depth,
        parameters={"batch_sched_delay": "1"},
        partitions=partitions,
    )


def node(number: int, gpus: int = 8) -> Node:
    return Node(id=NodeId(f"n{number}"), pool=PoolId("p"), site=SiteId("s"), gpus=gpus)


def fleet(nodes: int, gpus: int = 8) -> Fleet:
    """Nodes n1, n2 ... that are up and empty."""
    made = Fleet()
    made.apply_all([NodeJoined(Millis(0), node(number, gpus)) for number in range(1, nodes + 1)])
    return made


def job(
    name: str,
    gpus: int,
    *,
    limit_minutes: int | None = 10,
    at_s: int = 0,
    seq: int = 0,
    per_node: int | None = None,
    team: str = "",
    qos: str = "",
    priority: int = 0,
) -> Job:
    return Job(
        id=JobId(name),
        shape=shape_of(gpus, gpus_per_node=per_node),
        submitted_ms=Millis(at_s * SECOND),
        seq=seq,
        team=TeamId(team),
        qos=qos,
        priority=priority,
        limit_ms=None if limit_minutes is None else Millis(limit_minutes * MINUTE),
    )


def submit(to: Fleet, *jobs: Job) -> None:
    """Submit jobs in the order given; `seq` follows it where jobs come at one moment."""
    to.apply_all([JobSubmitted(one.submitted_ms, one) for one in jobs])


def begin(to: Fleet, one: Job, *nodes: str, at_s: int = 0) -> None:
    """Let a job run on these nodes, the gang spread evenly."""
    slots = tuple(Slot(NodeId(name), one.shape.gpus // len(nodes)) for name in nodes)
    now_ms = Millis(at_s * SECOND)
    submit(to, one)
    to.apply_all([ActionOrdered(now_ms, StartJob(one.id, slots)), JobStarted(now_ms, one.id)])


def end(to: Fleet, name: str, at_s: int) -> None:
    to.apply(JobEnded(Millis(at_s * SECOND), JobId(name)))


def decided(to: Fleet, by: SlurmPolicy, at_s: int = 0) -> Decision:
    return SlurmPlacer(by).decide(to, Millis(at_s * SECOND), None)


def starts(to: Fleet, by: SlurmPolicy, at_s: int = 0) -> dict[str, list[str]]:
    """What a fresh decider starts now: nodes by job, in order."""
    return nodes_by_job(decided(to, by, at_s).actions)


def nodes_by_job(actions: Sequence[object]) -> dict[str, list[str]]:
    return {
        action.job_id: [slot.node for slot in action.slots]
        for action in actions
        if isinstance(action, StartJob)
    }
