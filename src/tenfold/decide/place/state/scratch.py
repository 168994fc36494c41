"""Tentative changes to nodes and quotas: made by a search, undone unless committed."""

from tenfold.decide.place.quota.allocations import Allocation
from tenfold.decide.place.quota.request import Amounts
from tenfold.decide.place.quota.team_tree import Team, Tree
from tenfold.fleet.topology.topology import TopologyCapacity, TopologyScratch


class QuotaScratch(TopologyScratch):
    """Tentative changes to the free capacity of a fleet and to the usage of its teams."""

    def __init__(self, capacity: TopologyCapacity, tree: Tree) -> None:
        super().__init__(capacity)
        self._tree = tree

    def count(self, team: Team, amounts: Amounts, sign: int) -> int:
        """Change the usage of a team by amounts, times 1 or -1; return the number of the change."""
        self._tree.add(team, amounts, sign)
        return self.record(self._tree.add, team, amounts, -sign)

    def evict(self, allocation: Allocation) -> int:
        """Release all nodes and quota that a job holds; return the number of the change."""
        self._tree.add(allocation.team, allocation.amounts, -1)
        self.capacity.give(allocation.slots, allocation.job.shape)
        return self.record(self._reinstate, allocation)

    def _reinstate(self, allocation: Allocation) -> None:
        self.capacity.take(allocation.slots, allocation.job.shape)
        self._tree.add(allocation.team, allocation.amounts, 1)
