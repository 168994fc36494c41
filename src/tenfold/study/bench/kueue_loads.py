"""The scale scenarios of Kueue's performance tests, as jobs, nodes and terms of teams.

A cohort is a parent that may not borrow, its queues are the teams below it. Kueue's first two
scenarios have quotas and no nodes; ours have nodes with so much slack that room never binds.
"""

from collections.abc import Iterator
from itertools import product

from msgspec import Struct

from tenfold.model.fleet.constraints import PlacementConstraints, TopologyMode
from tenfold.model.fleet.node import Node
from tenfold.model.ids import JobId, NodeId, PoolId, SiteId, TeamId
from tenfold.model.job.job import WHOLE, Job, Shape, shape_of
from tenfold.model.job.terms import Terms
from tenfold.model.policy.governance import GovernanceRules, TeamRules
from tenfold.model.units import DAY, Millis

SLOT = "slot"
"""What stands for an accelerator: a unit of what Kueue's workloads request."""
STARTS_OVER = Terms(checkpoint_every_ms=Millis(365 * DAY))
"""A job that is stopped has saved nothing."""
NODE_SLOTS = 64


class Stream(Struct, frozen=True, kw_only=True):
    """Workloads alike that one queue gets, one after each interval."""

    size: str
    count: int
    every_ms: int
    slots: int
    """What each requests in all."""
    run_ms: int
    priority: int
    pods: int = 1
    how: TopologyMode | None = None
    """How its pods stand in racks; None means anywhere."""

    @property
    def shape(self) -> Shape:
        """What one of them requests; each pod of several has a node of its own."""
        if self.how is None:
            return shape_of(self.slots)
        where = PlacementConstraints(within="rack", how=self.how)
        return shape_of(self.slots, gpus_per_node=self.slots // self.pods, where=where)


class KueueLoad(Struct, frozen=True, kw_only=True):
    """Queues in cohorts, all alike, and what each queue gets."""

    cohorts: int
    queues: int
    """Of each cohort."""
    streams: tuple[Stream, ...]
    slots_per_unit: int = 1
    quota: int = 20
    """Of each queue, in units."""
    borrow: int = 100
    racks: int = 0
    """Racks of real nodes; 0 means that quotas alone are looked at."""
    nodes_per_rack: int = 64
    units_per_node: int = 96

    @property
    def slots(self) -> int:
        """Quota of all queues together, in slots."""
        return self.cohorts * self.queues * self.quota * self.slots_per_unit

    @property
    def work_ms(self) -> float:
        """How long all work takes at full quota, were it all there from the start."""
        work = sum(each.count * each.slots * each.run_ms for each in self.streams)
        return work / (self.quota * self.slots_per_unit)

    @property
    def least_ms(self) -> float:
        """No schedule is over sooner, since no job can run before it arrives.

        At any moment so much work must be left as arrivals had no time for, and then takes
        its time at full quota; and the last to come must run.
        """
        quota = self.quota * self.slots_per_unit
        last = max(each.count * each.every_ms + each.run_ms for each in self.streams)
        moments = {
            place * each.every_ms + after_ms
            for each in self.streams
            for place in range(each.count + 1)
            for after_ms in (0, each.run_ms)
        }
        return max(last, *(at_ms + self._left(at_ms) / quota for at_ms in sorted(moments)))

    def _left(self, at_ms: int) -> int:
        """Return the least slot-milliseconds of a queue that are still to do at a moment."""
        left = 0
        for each in self.streams:
            whole = max(0, min(each.count, (at_ms - each.run_ms) // each.every_ms))
            came = min(each.count, at_ms // each.every_ms)
            begun = sum(
                each.run_ms - (at_ms - place * each.every_ms)
                for place in range(whole + 1, came + 1)
            )
            left += each.slots * (begun + (each.count - came) * each.run_ms)
        return left


def _streams(*rows: tuple[str, int, int, int, int, int]) -> tuple[Stream, ...]:
    return tuple(
        Stream(size=size, count=count, every_ms=every, slots=slots, run_ms=run, priority=priority)
        for size, count, every, slots, run, priority in rows
    )


def _in_racks(
    size: str,
    counts: tuple[int, int, int],
    every_ms: int,
    pods: tuple[int, int],
    run: int,
    first: int,
) -> Iterator[Stream]:
    """Yield the three streams of a size, which run at once; `pods`: how many, slots of each."""
    hows: tuple[TopologyMode, ...] = ("required", "preferred", "balanced")
    for how, count in zip(hows, counts, strict=True):
        yield Stream(
            size=size,
            count=count,
            every_ms=every_ms,
            slots=pods[0] * pods[1],
            run_ms=run,
            priority=first,
            pods=pods[0],
            how=how,
        )


BASELINE = KueueLoad(
    cohorts=5,
    queues=6,
    streams=_streams(
        ("small", 350, 100, 1, 200, 50),
        ("medium", 100, 500, 5, 500, 100),
        ("large", 50, 1_200, 20, 1_000, 200),
    ),
)
LARGE = KueueLoad(
    cohorts=10,
    queues=100,
    streams=_streams(
        ("small", 35, 60, 1, 150, 50),
        ("medium", 11, 300, 5, 350, 100),
        ("large", 4, 700, 20, 700, 200),
    ),
)
# Pods request halves and quarters of a CPU: a slot is a quarter.
TOPOLOGY = KueueLoad(
    cohorts=5,
    queues=6,
    slots_per_unit=4,
    racks=10,
    streams=(
        *_in_racks("small", (120, 120, 110), 100, (2, 2), 200, 50),
        *_in_racks("medium", (34, 33, 33), 500, (4, 5), 500, 100),
        *_in_racks("large", (17, 17, 16), 1_200, (8, 10), 1_000, 200),
    ),
)


def jobs_of(load: KueueLoad, *, restart: bool) -> list[Job]:
    """Return all workloads in order of arrival; with `restart` a stop loses their work."""
    terms = STARTS_OVER if restart else None
    found: list[tuple[int, int, int, int]] = []
    for number, each in enumerate(load.streams):
        for place in range(each.count):
            at_ms = (place + 1) * each.every_ms
            found += [(at_ms, queue, number, place) for queue in range(load.cohorts * load.queues)]
    shapes = [each.shape for each in load.streams]
    jobs: list[Job] = []
    for seq, (at_ms, queue, number, place) in enumerate(sorted(found)):
        stream = load.streams[number]
        jobs.append(
            Job(
                id=JobId(f"{stream.size}-{number}-{queue}-{place}"),
                shape=shapes[number],
                submitted_ms=Millis(at_ms),
                seq=seq,
                team=_queue(queue // load.queues, queue % load.queues),
                priority=stream.priority,
                duration_ms=Millis(stream.run_ms),
                terms=terms,
            )
        )
    return jobs


def nodes_of(load: KueueLoad) -> list[Node]:
    """Return the nodes: those of the scenario, or enough that room never binds."""
    if load.racks:
        slots = load.units_per_node * load.slots_per_unit
        return [
            _node(f"node-{rack}-{place}", slots, f"rack-{rack}")
            for rack, place in product(range(load.racks), range(load.nodes_per_rack))
        ]
    largest = max(each.slots for each in load.streams)
    # Each node may be left with one slot less than the largest workload wants.
    count = -(-load.slots // (NODE_SLOTS - largest + 1))
    return [_node(f"node-{number}", NODE_SLOTS, "") for number in range(count)]


def governance_of(load: KueueLoad) -> GovernanceRules:
    """Return the rules: reclaim from any in the cohort, preempt lower priorities in a queue."""
    quota, borrow = (
        {SLOT: units * load.slots_per_unit * WHOLE} for units in (load.quota, load.borrow)
    )
    teams: list[TeamRules] = []
    for cohort in range(load.cohorts):
        parent = TeamId(f"cohort-{cohort}")
        teams.append(TeamRules(id=parent, borrow={SLOT: 0}))
        teams += [
            TeamRules(id=_queue(cohort, queue), parent=parent, quota=quota, borrow=borrow)
            for queue in range(load.queues)
        ]
    return GovernanceRules(
        teams=tuple(teams), reservations=0, min_run_ms=Millis(0), restart_cost_ms=Millis(1)
    )


def _queue(cohort: int, queue: int) -> TeamId:
    return TeamId(f"queue-{cohort}-{queue}")


def _node(name: str, slots: int, rack: str) -> Node:
    return Node(
        id=NodeId(name),
        pool=PoolId("kueue"),
        site=SiteId("bench"),
        accelerator=SLOT,
        gpus=slots,
        rack=rack,
        pod="block-0" if rack else "",
    )
