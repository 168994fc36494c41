"""Windows: nodes that are kept for a team, or for nobody, at times that are known before.

While one is open its nodes take no others' jobs, and what runs there is stopped if it may
be. Before it opens, no job is started there that would still run then and could not be
stopped.
"""

from collections.abc import Iterable, Mapping

from tenfold.fleet.capacity import Slots
from tenfold.fleet.topology import TopologyCapacity
from tenfold.model import hostlist
from tenfold.model.govern import Govern
from tenfold.model.ids import NodeId
from tenfold.model.job import Job
from tenfold.model.node import Node
from tenfold.model.terms import Window
from tenfold.model.units import DAY, Millis

AHEAD_MS = DAY
"""How long before a window jobs are kept off that say nothing and may not be stopped."""


class Windows:
    """The windows of a policy on the nodes of a fleet, at one moment."""

    def __init__(self, govern: Govern, nodes: Mapping[NodeId, Node], now_ms: Millis) -> None:
        self.open: dict[NodeId, str] = {}
        """Nodes of open windows, and the team that may use them (nobody if empty)."""
        self._coming: dict[NodeId, list[tuple[int, str, int | None]]] = {}
        """Nodes of windows to come: when, for whom, and the time between two of them."""
        self.next_ms: int | None = None
        """When a window opens or closes next."""
        for window in govern.windows:
            start_ms, end_ms = _turn(window, now_ms)
            if end_ms <= now_ms:
                continue
            edge_ms = start_ms if now_ms < start_ms else end_ms
            self.next_ms = edge_ms if self.next_ms is None else min(self.next_ms, edge_ms)
            for node_id in _named(window.nodes, nodes):
                if start_ms <= now_ms:
                    self.open[node_id] = window.team
                else:
                    coming = self._coming.setdefault(node_id, [])
                    coming.append((start_ms, window.team, _gap_ms(window)))

    def close(self, capacity: TopologyCapacity) -> None:
        """Hide the nodes of open windows."""
        for node_id in self.open:
            capacity.set_open(node_id, False)

    def bars(self, node_id: NodeId, job: Job) -> bool:
        """Return whether a job may not be on a node now."""
        team = self.open.get(node_id)
        return team is not None and (not team or team != job.team)

    def clashes(self, slots: Slots, job: Job, now_ms: Millis) -> list[NodeId]:
        """Return nodes on which a job would still run when a window opens."""
        if not self._coming:
            return []
        return [
            slot.node
            for slot in slots
            for start_ms, team, gap_ms in self._coming.get(slot.node, ())
            if team != job.team and start_ms < now_ms + _runs_ms(job, gap_ms)
        ]

    def coming_for(self, job: Job, now_ms: Millis) -> list[NodeId]:
        """Return all nodes that a job may not take because of what is coming."""
        if not self._coming:
            return []
        return [
            node_id
            for node_id, coming in self._coming.items()
            if any(
                team != job.team and start_ms < now_ms + _runs_ms(job, gap_ms)
                for start_ms, team, gap_ms in coming
            )
        ]


def _runs_ms(job: Job, gap_ms: int | None) -> int:
    """Return how long a job has to be let alone before a window that leaves such gaps.

    One that fits into no gap is kept off only for the later half of each.
    """
    if job.limit_ms is not None and (gap_ms is None or job.limit_ms <= gap_ms):
        return job.limit_ms
    if job.terms is None or job.terms.preemptible:
        return 0
    return AHEAD_MS if gap_ms is None else min(AHEAD_MS, gap_ms // 2)


def _gap_ms(window: Window) -> int | None:
    """Return the time between two turns of a window; None where there is one only."""
    length_ms = window.end_ms - window.start_ms
    return None if window.every_ms is None else max(0, window.every_ms - length_ms)


def _turn(window: Window, now_ms: Millis) -> tuple[int, int]:
    """Return the window that is open now, or the next."""
    if window.every_ms is None or now_ms < window.start_ms:
        return window.start_ms, window.end_ms
    passed = (now_ms - window.start_ms) // window.every_ms
    start_ms = window.start_ms + passed * window.every_ms
    length = window.end_ms - window.start_ms
    if start_ms + length <= now_ms:
        start_ms += window.every_ms
    return start_ms, start_ms + length


def _named(names: Iterable[str], nodes: Mapping[NodeId, Node]) -> dict[NodeId, None]:
    """Return the nodes that names of nodes, racks and pools stand for; none means all."""
    wanted: dict[str, None] = {}
    for name in names:
        wanted[name] = None
        if "[" in name or "," in name:
            wanted.update(dict.fromkeys(hostlist.expand(name)))
    return {
        node.id: None
        for node in nodes.values()
        if not wanted or node.id in wanted or node.rack in wanted or node.pool in wanted
    }
