"""What a shape takes from quotas: amounts by resource, for each accelerator type that fits."""

from collections.abc import Mapping, Sequence

from tenfold.model.fleet.node import Node
from tenfold.model.ids import NodeId
from tenfold.model.job.job import WHOLE, Slot
from tenfold.model.policy.governance import ANY, USD, GovernanceRules
from tenfold.model.units import UsdMicros

Amounts = tuple[tuple[int, int], ...]
"""(number of the resource, amount), for resources that quotas or limits name."""


class Resources:
    """The resources of a fleet, numbered: every accelerator type, and what quotas name."""

    def __init__(self, govern: GovernanceRules, nodes: Mapping[NodeId, Node]) -> None:
        self.names: list[str] = []
        self.number: dict[str, int] = {}
        self.capacity: list[int] = []
        """Thousandths of a GPU that have joined, or 0 for resources without a count."""
        self._prices: Mapping[str, UsdMicros] = govern.usd_micros_per_gpu_hour
        totals: dict[str, int] = {}
        for node in nodes.values():
            if node.gpus:
                totals[node.accelerator] = totals.get(node.accelerator, 0) + node.gpus * WHOLE
        for name, total in totals.items():
            self._add(name, total)
        self.types = len(self.names)
        """Resources below this number are accelerator types."""
        named: dict[str, None] = {}
        for team in govern.teams:
            for amounts in (team.quota, team.borrow, team.lend, *(held for _, held in team.hours)):
                named.update(dict.fromkeys(amounts))
        self._add(ANY, sum(totals.values()))
        if USD in named:
            worth = sum(
                gpus * self._prices.get(name, UsdMicros(0)) // WHOLE
                for name, gpus in totals.items()
            )
            self._add(USD, worth)
        for name in named:
            if name not in self.number:
                self._add(name, 0)
        self.governed = [name in named for name in self.names]
        """Whether a team's terms name the resource; others have no limit."""
        self._amounts_cache: dict[tuple[int, str], Amounts] = {}

    def _add(self, name: str, capacity: int) -> None:
        self.number[name] = len(self.names)
        self.names.append(name)
        self.capacity.append(capacity)

    def amounts_for(self, milli: int, accelerator: str) -> Amounts:
        """Return what these thousandths of a GPU of one type take from quotas."""
        amounts = self._amounts_cache.get((milli, accelerator))
        if amounts is None:
            found = [(self.number[accelerator], milli)] if accelerator in self.number else []
            found.append((self.number[ANY], milli))
            if USD in self.number:
                price = self._prices.get(accelerator, UsdMicros(0))
                found.append((self.number[USD], milli * price // WHOLE))
            amounts = self._amounts_cache[milli, accelerator] = tuple(found) if milli else ()
        return amounts


def milli_of(slots: Sequence[Slot]) -> int:
    """Return the thousandths of a GPU in slots."""
    return sum(slot.milli or slot.gpus * WHOLE for slot in slots)
