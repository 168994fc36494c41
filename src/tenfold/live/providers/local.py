"""Rent virtual nodes of this machine: they join the running control plane, and leave it again.

It costs nothing and needs no account, so a burst policy can be tried before it spends money.
"""

from collections.abc import Sequence
from typing import Protocol

from tenfold.live.providers.provider import Instance, NoCapacity
from tenfold.model.fleet.node import Node
from tenfold.model.ids import NodeId, PoolId, SiteId
from tenfold.model.market.burst import Zone

POOL = "burst"
RELEASED = "burst: released"


class NodeGate(Protocol):
    """How nodes join and leave a control plane."""

    def join(self, nodes: Sequence[Node]) -> None:
        """Add virtual nodes."""
        ...

    def leave(self, nodes: Sequence[str], cause: str) -> None:
        """Take nodes out of service."""
        ...

    def nodes(self) -> dict[str, str]:
        """Return the state of every node: `up`, `cordoned` or `down`."""
        ...


class LocalProvider:
    """Virtual nodes of this machine as a provider; each zone is a site."""

    name = "local"

    def __init__(self, gate: NodeGate, zones: Sequence[Zone], *, nodes_max: int = 64) -> None:
        self._gate = gate
        self._zones = {zone.name: zone for zone in zones}
        self._nodes_max = nodes_max

    def rent(self, zone: str, nodes: int) -> tuple[str, ...]:
        """Join virtual nodes, with the next free numbers."""
        if zone not in self._zones:
            raise NoCapacity(zone, "there is no such zone")
        known = self._gate.nodes()
        active = [one for one in self.instances() if one.zone == zone]
        if len(active) + nodes > self._nodes_max:
            raise NoCapacity(zone, f"{self._nodes_max} virtual nodes at most")
        names: list[str] = []
        number = 0
        while len(names) < nodes:
            number += 1
            if (name := f"{_prefix(zone)}{number}") not in known:
                names.append(name)
        self._gate.join([self._node(name, zone) for name in names])
        return tuple(names)

    def instances(self) -> tuple[Instance, ...]:
        """Return the virtual nodes that have not left."""
        found = [
            Instance(
                id=name,
                zone=name.removeprefix(f"{POOL}-").rpartition("-")[0],
                state="running" if state == "up" else "starting",
                address="127.0.0.1",
            )
            for name, state in self._gate.nodes().items()
            if name.startswith(f"{POOL}-") and state != "down"
        ]
        return tuple(sorted(found, key=lambda one: one.id))

    def release(self, ids: Sequence[str]) -> None:
        """Take virtual nodes out of service; their jobs are requeued."""
        here = {one.id for one in self.instances()}
        leaving = [name for name in ids if name in here]
        if leaving:
            self._gate.leave(leaving, RELEASED)

    def _node(self, name: str, zone: str) -> Node:
        own = self._zones[zone]
        return Node(
            id=NodeId(name),
            pool=PoolId(POOL),
            site=SiteId(zone),
            accelerator=own.accelerator,
            gpus=own.gpus_per_node,
            tags=own.tags,
        )


def _prefix(zone: str) -> str:
    return f"{POOL}-{zone}-"
