"""Partitions as queues: which nodes a job may use, and its planned time limit.

A job's `qos` names its partition if one has that name; all other jobs use the default.
"""

from typing import NamedTuple

from tenfold.fleet.fleet import FleetView
from tenfold.model.fleet.hostlist import expand
from tenfold.model.ids import NodeId
from tenfold.model.job.job import Job
from tenfold.model.policy.slurm import SlurmPartition, SlurmPolicy
from tenfold.model.units import DAY, MINUTE, Millis

LONG_MS = Millis(365 * DAY)
"""The limit that Slurm plans with if neither the job nor its partition has one."""


class Queue(NamedTuple):
    """A partition and its nodes; no partition means the whole fleet."""

    name: str
    partition: SlurmPartition | None
    nodes: frozenset[NodeId] | None

    def holds(self, node: NodeId) -> bool:
        """Return whether jobs of this queue may use a node."""
        return self.nodes is None or node in self.nodes

    @property
    def tier(self) -> int:
        """Return the tier of the partition; jobs of a higher tier go first."""
        return self.partition.priority_tier if self.partition else 0

    def limit_ms(self, job: Job) -> Millis:
        """Return the limit that backfill plans with, in whole minutes as Slurm keeps it."""
        most_ms = self.partition.time_max_ms if self.partition else None
        limit_ms = job.limit_ms
        if limit_ms is None and self.partition is not None:
            limit_ms = self.partition.time_default_ms
        if limit_ms is None:
            limit_ms = LONG_MS if most_ms is None else most_ms
        limit_ms = -(-limit_ms // MINUTE) * MINUTE
        return Millis(limit_ms if most_ms is None else min(limit_ms, most_ms))


class Queues:
    """The queues of a policy on the nodes of a fleet."""

    def __init__(self, policy: SlurmPolicy, view: FleetView | None = None) -> None:
        self._by_name = {one.name: _queue(one, view) for one in policy.partitions}
        named = [self._by_name[one.name] for one in policy.partitions if one.is_default]
        self._default = (named or [*self._by_name.values(), Queue("", None, None)])[0]

    def of(self, job: Job) -> Queue:
        """Return the queue of a job."""
        return self._by_name.get(job.qos, self._default)


def _queue(partition: SlurmPartition, view: FleetView | None) -> Queue:
    """Return a partition's queue; if the fleet has none of its nodes, it may use all."""
    nodes = frozenset(
        NodeId(name) for name in expand(partition.nodes) if view and NodeId(name) in view.nodes
    )
    return Queue(partition.name, partition, nodes or None)
