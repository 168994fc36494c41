"""Which submissions can never start on a fleet, and how `gpus` divides over its nodes.

The fleet is taken as idle and healthy: a node that is busy, cordoned or down may come back. The
policy's own checks decide, so a submission is refused here only where the loop would refuse it.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property

from tenfold.compose.policies import capacity_of, placing_decider
from tenfold.decide.place.allocate.upkeep import never_between
from tenfold.decide.place.misfit import never_fits
from tenfold.decide.place.state.scheduler_state import SchedulerState
from tenfold.engine.queue_position import decide_alone
from tenfold.fleet.capacity import Capacity, GangSplit
from tenfold.fleet.fleet import Fleet
from tenfold.fleet.obstacle import members_of
from tenfold.fleet.topology.topology import powered_capacity
from tenfold.model.events import NodeJoined
from tenfold.model.fleet.node import Node
from tenfold.model.job.job import Job, Shape, shape_of
from tenfold.model.job.submission import Submission, last_member
from tenfold.model.policy.governance import GovernanceRules
from tenfold.model.policy.policy import Policy
from tenfold.model.reason import Reason
from tenfold.model.units import Millis


class FleetCheck:
    """An idle, healthy copy of a fleet to check submissions against."""

    def __init__(self, nodes: Iterable[Node], policy: Policy, now_ms: Millis) -> None:
        self.fleet = Fleet()
        self.fleet.apply_all([NodeJoined(now_ms, node) for node in nodes])
        self._policy = policy
        self._now_ms = now_ms
        self._govern = (policy.govern or GovernanceRules()) if policy.name == "governed" else None

    @cached_property
    def capacity(self) -> Capacity:
        """The index of nodes that the policy uses."""
        if self._state is not None:
            return self._state.capacity
        if self._policy.name == "slurm":
            return powered_capacity(self.fleet) or Capacity.of(self.fleet)
        return capacity_of(self._policy.placement, None)(self.fleet)

    @cached_property
    def _state(self) -> SchedulerState | None:
        if self._govern is None:
            return None
        return SchedulerState(self._govern, self.fleet, self._now_ms)

    def job_of(self, submission: Submission) -> Job:
        """Return a job of a submission as the policy sees it, with the tags that its team needs."""
        job = last_member(submission, 1, self._now_ms).job
        return job if self._state is None else self._state.residency.apply(job)

    def never(self, submission: Submission) -> tuple[Reason, ...]:
        """Return why no job of a submission can ever start; nothing if it can."""
        return self.never_for(self.job_of(submission))

    def never_for(self, job: Job) -> tuple[Reason, ...]:
        """Return why a job can never start; nothing if it can."""
        if self._state is not None:
            job = self._state.residency.apply(job)
        if not self.capacity.could_hold(job.shape):
            return never_fits(self.capacity, job.shape)
        if self._state is not None:
            found = self._state.never(job) or never_between(self._state, job)
            return () if found is None else (found,)
        if self._policy.name == "slurm":
            # Every pass of this policy is due at time 0.
            return decide_alone(
                self.fleet, job, Millis(0), placing_decider(self._policy, has_gates=False)
            ).refused
        return ()

    def exact_split(self, shape: Shape) -> Shape | None:
        """Return a shape that gets exactly the GPUs it requests; None if no split does.

        Without GPUs per node, a gang larger than a node gets whole nodes. Where they are more than
        it requests, it gets the largest number of GPUs per node that divides evenly over whole
        nodes of another kind.
        """
        if shape.gpus_per_node or shape.gpus <= 1:
            return shape
        possible = [split for split in self.capacity.splits(shape) if _has_nodes(split)]
        if all(split.members * split.gpus == shape.gpus for split in possible):
            return shape
        sizes = {split.node_index.size for split in self.capacity.splits(shape)}
        whole = [shape.gpus] if max(sizes) >= shape.gpus else []
        whole += [size for size in sorted(sizes, reverse=True) if not shape.gpus % size]
        return next(self._that_fit(shape, whole), None)

    def even_splits(self, shape: Shape) -> Iterator[Shape]:
        """Yield shapes with as many GPUs in all that fit, with the most GPUs per node first."""
        sizes = [kind[2] for kind in self.capacity.node_indexes]
        most = min(max(sizes, default=0), shape.gpus)
        return self._that_fit(shape, (each for each in range(most, 0, -1) if not shape.gpus % each))

    def fits(self, shape: Shape) -> bool:
        """Return whether the idle fleet holds a shape."""
        return self.capacity.could_hold(shape)

    def _that_fit(self, shape: Shape, per_node: Iterable[int]) -> Iterator[Shape]:
        shapes = (sized(shape, shape.gpus, each) for each in per_node)
        return (one for one in shapes if self.fits(one))


def sized(shape: Shape, gpus: int, per_node: int | None) -> Shape:
    """Return a shape with another size; its nodes keep their CPUs and memory."""
    scale = 1.0
    if shape.gpus_per_node and per_node:
        scale = (gpus / per_node) / (shape.gpus / shape.gpus_per_node)
    return shape_of(
        gpus,
        gpus_per_node=per_node,
        accelerators=shape.accelerators,
        cpus=shape.cpus_milli * scale / 1_000,
        memory_gib=shape.memory_mib * scale / 1_024,
        where=shape.where,
    )


def most_that(holds: Callable[[int], bool], most: int) -> int:
    """Return the largest number from 1 to `most` for which a condition holds; 0 if none."""
    least = 0
    while least < most:
        middle = (least + most + 1) // 2
        least, most = (middle, most) if holds(middle) else (least, middle - 1)
    return least


def _has_nodes(split: GangSplit) -> bool:
    return members_of(split) <= len(split.node_index.names)
