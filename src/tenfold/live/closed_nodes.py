"""Nodes on which nothing starts: closed by the system behind an executor, or about to leave.

Closed nodes are cordoned until it opens them. Once the last job on a leaving node has ended, it is
gone. What is asked is kept in the reason of the cordon, so a restart continues; uncordoning a node
that leaves keeps it.
"""

from collections.abc import Callable, Iterable, Mapping

from msgspec import UNSET, Struct

from tenfold.fleet.view import FleetView
from tenfold.live.executor import NodeClosed, NodeOpened
from tenfold.live.inbox import LeaveNodes
from tenfold.model.events import Event, NodeCordoned, NodeLeft, NodeLost, NodeReturned
from tenfold.model.ids import NodeId
from tenfold.model.reason import NodeRef, Reason, UserRef, Value
from tenfold.model.units import Millis

DRAINED, FOREIGN = "closed-in-engine", "used-by-others"
"""Codes of these cordons: the engine starts nothing there, or jobs of others run there."""
CODES = (DRAINED, FOREIGN)
LEAVING = "leaving"
"""Reason code of the cordon of a node that leaves."""


class ClosedNodes:
    """The nodes that are cordoned because of that, and no others: users cordon nodes, too."""

    def __init__(self, view: FleetView) -> None:
        self._view = view
        self._ours: set[NodeId] = set()

    def restore(self, causes: Iterable[tuple[NodeId, str]]) -> None:
        """Take over the cordons of an earlier control plane, by the codes of their causes."""
        self._ours.update(node for node, cause in causes if cause in CODES)

    def observe(self, observed: NodeClosed | NodeOpened, now_ms: Millis) -> list[Event]:
        """Return what changes for a node."""
        state = self._view.states.get(observed.node)
        if isinstance(observed, NodeClosed):
            if state != "up":
                return []
            self._ours.add(observed.node)
            return [NodeCordoned(now_ms, observed.node, observed.reason)]
        if observed.node not in self._ours:
            return []
        self._ours.remove(observed.node)
        return [NodeReturned(now_ms, observed.node)] if state == "cordoned" else []


class Departure(Struct, frozen=True):
    """How a node leaves."""

    until_ms: Millis | None
    """When its jobs are stopped; None if they may finish."""
    by: str


class LeavingNodes:
    """The nodes that are about to leave."""

    def __init__(self, view: FleetView) -> None:
        self._view = view
        self.nodes: dict[NodeId, Departure] = {}

    def restore(self, causes: Iterable[tuple[NodeId, str, Mapping[str, Value]]]) -> None:
        """Continue what was asked of an earlier control plane."""
        for node, cause, fields in causes:
            if cause == LEAVING and self._view.states.get(node, "up") != "up":
                until, by = fields.get("until_ms"), fields.get("by")
                self.nodes[node] = Departure(
                    Millis(until) if isinstance(until, int) else None,
                    by.name if isinstance(by, UserRef) else "",
                )

    def __contains__(self, node: NodeId) -> bool:
        return node in self.nodes

    def request(self, request: LeaveNodes, now_ms: Millis) -> list[Event] | Reason:
        """Return the events of a request; or why none of the nodes may leave."""
        unknown = tuple(NodeRef(one) for one in request.nodes if one not in self._view.nodes)
        if unknown:
            return Reason("no-such-node", {"nodes": unknown})
        until = None if request.grace_ms is None else Millis(now_ms + request.grace_ms)
        fields: dict[str, Value] = {}
        if request.by:
            fields["by"] = UserRef(request.by)
        if until is not None:
            fields["until_ms"] = until
        events: list[Event] = []
        for node in request.nodes:
            self.nodes[node] = Departure(until, request.by)
            events.append(NodeCordoned(now_ms, node, Reason(LEAVING, fields)))
        return events

    def due(
        self,
        now_ms: Millis,
        touched: Mapping[NodeId | None, None],
        stop_on_node: Callable[[NodeId], None],
    ) -> list[Event]:
        """Return the events of nodes that are empty, or whose time is over.

        Nodes that are `touched` have other events at this moment, and are left for the next.
        """
        events: list[Event] = []
        busy = _busy(self._view)
        for node, departure in list(self.nodes.items()):
            state = self._view.states.get(node, "up")
            if node in touched:
                continue
            if state == "up":
                # It was uncordoned, and stays.
                del self.nodes[node]
            elif node not in busy:
                del self.nodes[node]
                events.append(NodeLeft(now_ms, node, departure.by or UNSET))
            elif state != "down" and _is_over(departure, now_ms):
                events.append(NodeLost(now_ms, node, LEAVING))
                stop_on_node(node)
        return events

    def next_ms(self) -> Millis | None:
        """Return when jobs are to be stopped next."""
        times = [
            one.until_ms
            for node, one in self.nodes.items()
            if one.until_ms is not None and self._view.states.get(node) == "cordoned"
        ]
        return min(times, default=None)


def _is_over(departure: Departure, now_ms: Millis) -> bool:
    return departure.until_ms is not None and now_ms >= departure.until_ms


def _busy(view: FleetView) -> dict[NodeId, None]:
    """Return the nodes that jobs hold."""
    found: dict[NodeId, None] = {}
    for order in view.orders.values():
        found |= {slot.node: None for slot in order.slots}
    for run in view.running.values():
        found |= {slot.node: None for slot in (*run.slots, *(run.becoming or ()))}
    return found
