"""The jobs that a real Slurm ran, run again by the simulator under its own `slurm.conf`.

The simulator is given what a trace would hold: when each job was submitted, what it asked
for and how long it ran. When each one starts is its own affair, and is what is compared.
"""

from collections.abc import Sequence

from msgspec import Struct
from scipy.stats import kendalltau

from tenfold.decide.place.slurm.slurm import SlurmPlacer
from tenfold.engine.loop import run
from tenfold.fleet.fleet import Fleet
from tenfold.model.events import NodeJoined
from tenfold.model.fleet.node import Node
from tenfold.model.ids import JobId, NodeId, PoolId, SiteId
from tenfold.model.job.job import Job, shape_of
from tenfold.model.policy.slurm import SlurmPolicy
from tenfold.model.units import MINUTE, SECOND, Millis
from tenfold.sim.world import SimWorld

from .slurm import SlurmNode
from .slurm_jobs import Outcome


class Pair(Struct, frozen=True):
    """One job's wait in both worlds."""

    outcome: Outcome
    real_s: float
    simulated_s: float


class Comparison(Struct, frozen=True, kw_only=True):
    """How alike the two runs were."""

    pairs: list[Pair]
    wait_real_s: float
    wait_simulated_s: float
    tau: float
    """Kendall's tau-b of the two orders of starting."""

    @property
    def wait_error(self) -> float:
        """Return the difference of the mean waits over the real one."""
        return abs(self.wait_simulated_s - self.wait_real_s) / self.wait_real_s


def compare(
    outcomes: Sequence[Outcome], nodes: Sequence[SlurmNode], policy: SlurmPolicy, began_ms: int
) -> Comparison:
    """Run the jobs again in the simulator and set the two side by side."""
    simulated = replay(outcomes, nodes, policy, began_ms)
    pairs = [
        Pair(
            outcome,
            (outcome.started_ms - outcome.submitted_ms) / SECOND,
            (simulated[outcome.id] - outcome.submitted_ms) / SECOND,
        )
        for outcome in outcomes
    ]
    order = kendalltau(
        [outcome.started_ms for outcome in outcomes],
        [simulated[outcome.id] for outcome in outcomes],
    )
    return Comparison(
        pairs=pairs,
        wait_real_s=sum(pair.real_s for pair in pairs) / len(pairs),
        wait_simulated_s=sum(pair.simulated_s for pair in pairs) / len(pairs),
        tau=float(order.statistic),
    )


def replay(
    outcomes: Sequence[Outcome], nodes: Sequence[SlurmNode], policy: SlurmPolicy, began_ms: int
) -> dict[str, int]:
    """Return when each job starts in the simulator, in the real run's time.

    Time zero is the last whole minute before the controller began: Slurm rounds what it plans
    to steps of the clock.
    """
    zero_ms = began_ms // MINUTE * MINUTE
    jobs = [job_of(outcome, zero_ms) for outcome in outcomes]
    jobs.sort(key=lambda job: (job.submitted_ms, job.seq))
    world = SimWorld(jobs, initial_events=[NodeJoined(Millis(0), node_of(node)) for node in nodes])
    run(world, Fleet(), [SlurmPlacer(policy)])
    assert len(world.meters.ends) == len(jobs), "a job of the real run did not end in the replay"
    return {job.id: zero_ms + end_ms - held_ms for job, _, _, held_ms, end_ms in world.meters.ends}


def job_of(outcome: Outcome, zero_ms: int) -> Job:
    """Return a real job as a trace would tell it."""
    asked = outcome.asked
    return Job(
        id=JobId(outcome.id),
        shape=shape_of(
            asked.gpus_per_node * asked.nodes,
            gpus_per_node=asked.gpus_per_node,
            accelerators=("h100",),
            cpus=asked.nodes,
        ),
        submitted_ms=Millis(outcome.submitted_ms - zero_ms),
        seq=outcome.order,
        qos=asked.partition,
        priority=-asked.nice,
        limit_ms=Millis(asked.limit_minutes * MINUTE),
        duration_ms=Millis(outcome.ended_ms - outcome.started_ms),
    )


def node_of(node: SlurmNode) -> Node:
    """Return a node of the real cluster as the fleet knows it."""
    return Node(
        id=NodeId(node.name),
        pool=PoolId("slurm"),
        site=SiteId("here"),
        accelerator=node.gpu_type,
        gpus=node.gpus,
        cpus_milli=node.cpus * 1_000,
        memory_mib=node.memory_mib,
    )
