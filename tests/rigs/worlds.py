"""Random small worlds: a few nodes of a few kinds, jobs that compete for them, and trouble.

Times lie on a coarse grid and shapes are few, so that ties, full nodes and parked shapes are
common. The dice are an argument: a seeded `random.Random` gives the same world anywhere,
and one that a property-testing library supplies gives worlds that it can make smaller. What
only governed placement heeds is drawn last, and only where it is asked for.
"""

from random import Random

from msgspec import Struct
from msgspec.structs import replace

from tenfold.model.fault import Fault
from tenfold.model.fleet.node import Node
from tenfold.model.ids import DomainId, JobId, NodeId, PoolId, SiteId, TeamId
from tenfold.model.job.job import Job, Shape, shape_of
from tenfold.model.job.terms import Terms
from tenfold.model.policy.governance import GovernanceRules
from tenfold.model.policy.policy import PLACEMENTS, Placement
from tenfold.model.policy.slurm import Backfill, PriorityWeights, SlurmPartition, SlurmPolicy
from tenfold.model.units import HOUR, MINUTE, SECOND, Millis
from tests.rigs.governed.worlds import governance, on_terms, placed

GPUS = (0, 1, 2, 4, 4, 8)
ACCELERATORS = ("", "a100", "h100", "l4")
GAPS_MS = (0, 0, 0, 0, 1, 250, SECOND, 30 * SECOND, 5 * MINUTE, 20 * MINUTE, HOUR)
LENGTHS_MS = (
    *(0, 1, 999, 30 * SECOND, MINUTE, 299_999, 5 * MINUTE, 300_001),
    *(10 * MINUTE, 25 * MINUTE, HOUR, 100 * MINUTE, 3 * HOUR, 7 * HOUR),
)
OUTAGES_MS = (1, SECOND, MINUTE, 5 * MINUTE, 20 * MINUTE, HOUR, 4 * HOUR)
DELAYS_MS = (0, 0, 0, 1, SECOND, 30 * SECOND, 5 * MINUTE)
STAYS = Terms(preemptible=False)


class SmallWorld(Struct, frozen=True, kw_only=True):
    """Everything that a run depends on beside the policy's name."""

    nodes: tuple[Node, ...]
    jobs: tuple[Job, ...]
    """In order of submission."""
    faults: tuple[Fault, ...] = ()
    """In order of time."""
    restart_cost_ms: Millis = Millis(0)
    checkpoint_every_ms: Millis = Millis(HOUR)
    start_delay_ms: Millis = Millis(0)
    stop_delay_ms: Millis = Millis(0)
    start_failure_share: float = 0.0
    seed: int = 0
    placement: Placement = "tenfold"
    las_limits_gpu_s: tuple[float, ...] = (3_250, 7_200)
    slurm: SlurmPolicy = SlurmPolicy()
    govern: GovernanceRules | None = None


def drawn_world(
    dice: Random,
    *,
    jobs: tuple[int, int] = (50, 60),
    faults: tuple[int, int] = (3, 6),
    governed: bool = False,
) -> SmallWorld:
    """Return a world with a number of jobs and faults between these bounds.

    With `governed` its nodes and jobs, otherwise the same, also have places, tags and terms,
    and there are rules for its teams. Without, some jobs may say that they are not to be stopped.
    """
    world = _plain_world(dice, jobs, faults)
    if not governed:
        return replace(world, jobs=_some_stay(dice, world.jobs))
    nodes, queue = placed(dice, world.nodes), on_terms(dice, world.jobs)
    return replace(world, nodes=nodes, jobs=queue, govern=governance(dice, nodes, queue))


def _plain_world(dice: Random, jobs: tuple[int, int], faults: tuple[int, int]) -> SmallWorld:
    nodes = _nodes(dice)
    queue = _jobs(dice, dice.randint(*jobs), _shapes(dice, nodes))
    has_delays = dice.random() < 0.5
    return SmallWorld(
        nodes=nodes,
        jobs=queue,
        faults=_faults(dice, dice.randint(*faults), nodes, queue[-1].submitted_ms),
        restart_cost_ms=Millis(dice.choice((0, 0, 1, 10 * SECOND, 5 * MINUTE))),
        checkpoint_every_ms=Millis(dice.choice((0, SECOND, 10 * MINUTE, HOUR))),
        start_delay_ms=Millis(dice.choice(DELAYS_MS) if has_delays else 0),
        stop_delay_ms=Millis(dice.choice(DELAYS_MS) if has_delays else 0),
        start_failure_share=dice.choice((0.0, 0.0, 0.3)) if has_delays else 0.0,
        seed=dice.randrange(1 << 16),
        placement=dice.choice(PLACEMENTS),
        las_limits_gpu_s=dice.choice(((3_250, 7_200), (60, 600, 3_600))),
        slurm=_slurm(dice, nodes),
    )


def _nodes(dice: Random) -> tuple[Node, ...]:
    nodes: list[Node] = []
    for kind in range(dice.randint(1, 3)):
        accelerator, gpus = dice.choice(ACCELERATORS), dice.choice(GPUS)
        # A node without GPUs is there for its CPUs.
        cpus = dice.choice((4, 16)) if dice.random() < 0.5 or gpus == 0 else 0
        memory = dice.choice((32, 64)) if dice.random() < 0.4 else 0
        for number in range(dice.randint(1, 4)):
            rack = f"r{kind}{number // 2}"
            nodes.append(
                Node(
                    id=NodeId(f"n{kind}{number}"),
                    pool=PoolId(f"p{kind}"),
                    site=SiteId(dice.choice("ss" + "t")),
                    accelerator=accelerator if gpus else "",
                    gpus=gpus,
                    cpus_milli=cpus * 1_000,
                    memory_mib=memory * 1_024,
                    rack=rack,
                    domains=(DomainId(rack),),
                )
            )
    return tuple(nodes)


def _shapes(dice: Random, nodes: tuple[Node, ...]) -> list[Shape]:
    """Return the few shapes of a world; now and then one that nothing can hold."""
    kinds = sorted({node.accelerator for node in nodes if node.accelerator})
    largest = max(node.gpus for node in nodes)
    in_all = sum(node.gpus for node in nodes)
    shapes: list[Shape] = []
    for _ in range(dice.randint(1, 6)):
        gpus, per_node = _ask(dice, largest, in_all)
        wanted: tuple[str, ...] = ()
        if kinds and dice.random() < 0.3:
            wanted = tuple(sorted({dice.choice(kinds), dice.choice((*kinds, "mi300x"))}))
        shapes.append(
            shape_of(
                gpus,
                gpus_per_node=per_node,
                accelerators=wanted,
                cpus=dice.choice((0.5, 1, 3, 8)) if gpus == 0 or dice.random() < 0.3 else 0,
                memory_gib=dice.choice((1, 7, 24)) if dice.random() < 0.2 else 0,
            )
        )
    return shapes


def _ask(dice: Random, largest: int, in_all: int) -> tuple[float, int | None]:
    """Return GPUs and GPUs per node of one shape."""
    kind = dice.randrange(8)
    if kind == 0 or largest == 0:
        return 0, None
    if kind == 1:
        return dice.choice((0.1, 0.25, 0.5, 0.6)), None
    if kind <= 4:
        return dice.randint(1, largest), None
    if kind == 5:
        return dice.randint(1, max(1, in_all)), None
    if kind == 6:
        return dice.randint(largest, 2 * largest + 1), None
    per_node = dice.randint(1, largest)
    return dice.randint(per_node, 3 * per_node), per_node


def _jobs(dice: Random, count: int, shapes: list[Shape]) -> tuple[Job, ...]:
    teams = ("", "a", "b", "c")[: dice.randint(1, 4)]
    jobs: list[Job] = []
    now_ms = 0
    for seq in range(count):
        if jobs and dice.random() < 0.25:
            # One more of the same, as arrays and sweeps submit them.
            jobs.append(replace(jobs[-1], id=JobId(f"job-{seq}"), seq=seq))
            continue
        now_ms += dice.choice(GAPS_MS)
        length_ms = dice.choice(LENGTHS_MS)
        limit_ms = Millis(max(MINUTE, length_ms)) if dice.random() < 0.4 else None
        jobs.append(
            Job(
                id=JobId(f"job-{seq}"),
                shape=dice.choice(shapes),
                submitted_ms=Millis(now_ms),
                seq=seq,
                team=TeamId(dice.choice(teams)),
                qos=dice.choice(("", "", "some")),
                priority=dice.choice((0, 0, 0, -50, 100)),
                limit_ms=limit_ms,
                deadline_ms=Millis(now_ms + length_ms * 2) if dice.random() < 0.4 else None,
                duration_ms=Millis(length_ms),
            )
        )
    return tuple(jobs)


def _some_stay(dice: Random, jobs: tuple[Job, ...]) -> tuple[Job, ...]:
    """Let some jobs be such as may not be stopped for others: in half of the worlds, a few."""
    share = dice.choice((0.0, 0.0, 0.1, 0.3))
    if not share:
        return jobs
    return tuple(replace(job, terms=STAYS) if dice.random() < share else job for job in jobs)


def _faults(dice: Random, count: int, nodes: tuple[Node, ...], last_ms: int) -> tuple[Fault, ...]:
    """Return outages of any nodes; some begin at one moment, some overlap."""
    faults: list[Fault] = []
    at_ms = 0
    for _ in range(count):
        if not faults or dice.random() < 0.7:
            at_ms = dice.randrange(max(1, last_ms + HOUR) // MINUTE + 1) * MINUTE
        node = dice.choice(nodes)
        faults.append(Fault(Millis(at_ms), node.id, Millis(at_ms + dice.choice(OUTAGES_MS))))
    return tuple(sorted(faults, key=lambda fault: (fault.at_ms, fault.node_id)))


def _slurm(dice: Random, nodes: tuple[Node, ...]) -> SlurmPolicy:
    """Return a small Slurm: with or without partitions, weights and backfill."""
    some = ",".join(dict.fromkeys(dice.choice(nodes).id for _ in range(2)))
    partitions = (
        SlurmPartition(name="all", nodes="ALL", is_default=True),
        SlurmPartition(name="some", nodes=some, priority_tier=dice.randint(1, 2)),
    )
    return SlurmPolicy(
        priority=dice.choice(("basic", "multifactor")),
        weights=PriorityWeights(age=500, fairshare=dice.choice((0, 1_000)), job_size=200),
        scheduler=dice.choice(("backfill", "backfill", "builtin")),
        backfill=Backfill(jobs_tested_max=dice.choice((3, 500))),
        queue_depth=dice.choice((2, 100)),
        partitions=partitions if dice.random() < 0.5 else (),
    )
