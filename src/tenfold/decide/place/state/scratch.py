"""Tentative changes to room and quotas: what a search changes, and undoes unless it is decided."""

from tenfold.decide.place.quota.allocations import Allocation
from tenfold.decide.place.quota.request import Amounts
from tenfold.decide.place.quota.team_tree import Team, Tree
from tenfold.fleet.topology.topology import TopologyCapacity, TopologyScratch


class QuotaScratch(TopologyScratch):
    """Tentative changes to the free room of a fleet and to what its teams hold."""

    def __init__(self, capacity: TopologyCapacity, tree: Tree) -> None:
        super().__init__(capacity)
        self._tree = tree

    def count(self, team: Team, amounts: Amounts, sign: int) -> int:
        """Count that a team holds more (1) or less (-1), and return the number of the change."""
        self._tree.add(team, amounts, sign)
        return self.record(self._tree.add, team, amounts, -sign)

    def evict(self, allocation: Allocation) -> int:
        """Give back all that a job holds of nodes and quotas; return the number of the change."""
        self._tree.add(allocation.team, allocation.amounts, -1)
        self.capacity.give(allocation.slots, allocation.job.shape)
        return self.record(self._reinstate, allocation)

    def _reinstate(self, allocation: Allocation) -> None:
        self.capacity.take(allocation.slots, allocation.job.shape)
        self._tree.add(allocation.team, allocation.amounts, 1)
