"""Windows: nodes reserved for one team, or for maintenance, at known times.

While a window is open, its nodes take no jobs of others, and preemptible jobs there are stopped.
Before it opens, jobs that would still run then and cannot be stopped are not started there. A
job that fits in no gap between recurring windows never starts.
"""

from collections.abc import Iterable, Mapping, Sequence
from math import lcm

from tenfold.decide.place.quota.team_tree import next_off_peak_ms
from tenfold.fleet.capacity import Slots
from tenfold.fleet.topology.topology import TopologyCapacity
from tenfold.model.fleet import hostlist
from tenfold.model.fleet.node import Node
from tenfold.model.ids import NodeId
from tenfold.model.job.job import Job
from tenfold.model.job.terms import Window
from tenfold.model.policy.governance import GovernanceRules
from tenfold.model.units import DAY, Millis

AHEAD_MS = DAY
"""How long before a window to keep off jobs without a limit that cannot be stopped."""
OCCURRENCES_MOST = 64
"""Occurrences of the rarest window to check where windows never coincide again."""


class Windows:
    """The windows of a policy on the nodes of a fleet, at one time."""

    def __init__(
        self, govern: GovernanceRules, nodes: Mapping[NodeId, Node], now_ms: Millis
    ) -> None:
        self.open: dict[NodeId, str] = {}
        """Nodes of open windows, and the team that may use them (empty: none)."""
        self._on: dict[NodeId, list[tuple[Window, int]]] = {}
        """For each node, its windows that are not over, and when each opens next or opened."""
        self._gaps: dict[tuple[object, ...], int | None] = {}
        self._off_peak = govern if govern.off_peak else None
        self.next_ms: int | None = None
        """When the next window opens or closes."""
        for window in govern.windows:
            start_ms, end_ms = _occurrence(window, now_ms)
            if end_ms <= now_ms:
                continue
            edge_ms = start_ms if now_ms < start_ms else end_ms
            self.next_ms = edge_ms if self.next_ms is None else min(self.next_ms, edge_ms)
            for node_id in _named(window.nodes, nodes):
                self._on.setdefault(node_id, []).append((window, start_ms))
                if start_ms <= now_ms:
                    same = self.open.get(node_id, window.team) == window.team
                    self.open[node_id] = window.team if same else ""

    def close(self, capacity: TopologyCapacity) -> None:
        """Hide the nodes of open windows."""
        for node_id in self.open:
            capacity.set_open(node_id, False)

    def bars(self, node_id: NodeId, job: Job) -> bool:
        """Return whether a window keeps a job off a node now."""
        team = self.open.get(node_id)
        return team is not None and (not team or team != job.team)

    def clashes(self, slots: Slots, job: Job, now_ms: Millis) -> bool:
        """Return whether a job would still hold these slots when a window opens there."""
        return bool(self._on) and any(self._comes(slot.node, job, now_ms) for slot in slots)

    def coming_for(self, job: Job, now_ms: Millis) -> list[NodeId]:
        """Return the nodes a job may not use because of upcoming windows."""
        return [node_id for node_id in self._on if self._comes(node_id, job, now_ms)]

    def never_for(self, job: Job) -> list[NodeId]:
        """Return nodes on which no gap between windows is long enough for a job."""
        if job.limit_ms is None or job.terms is None or job.terms.preemptible:
            return []
        return [node_id for node_id in self._on if self._is_too_long(node_id, job)]

    def _comes(self, node_id: NodeId, job: Job, now_ms: Millis) -> bool:
        """Return whether a window opens on a node before a job would end.

        A preemptible job that fits in no gap may run until a window opens.
        """
        on = self._on.get(node_id)
        if on is None:
            return False
        may_stop = job.terms is None or job.terms.preemptible
        if job.limit_ms is None:
            if may_stop:
                return False
            gap_ms = self._gap_ms(node_id, job)
            runs_ms = AHEAD_MS if gap_ms is None else min(AHEAD_MS, gap_ms // 2)
        elif may_stop and self._is_too_long(node_id, job):
            return False
        else:
            runs_ms = job.limit_ms
        return any(
            start_ms < now_ms + runs_ms for window, start_ms in on if _bars(window, job.team)
        )

    def _is_too_long(self, node_id: NodeId, job: Job) -> bool:
        """Return whether a job would run into a window on a node whenever it started."""
        gap_ms = self._gap_ms(node_id, job)
        return gap_ms is not None and job.limit_ms is not None and job.limit_ms > gap_ms

    def _gap_ms(self, node_id: NodeId, job: Job) -> int | None:
        """Return the longest gap between windows for a job on a node; None if unlimited."""
        barring = [window for window, _ in self._on[node_id] if _bars(window, job.team)]
        hours = self._off_peak if job.terms is not None and job.terms.off_peak else None
        key = (hours is not None, *(window.id for window in barring))
        if key not in self._gaps:
            self._gaps[key] = _longest_gap_ms(barring, hours)
        return self._gaps[key]


def _bars(window: Window, team: str) -> bool:
    return not window.team or window.team != team


def _longest_gap_ms(windows: Sequence[Window], hours: GovernanceRules | None) -> int | None:
    """Return the longest gap between recurring windows; None if none recur.

    With off-peak hours, a gap counts from the first off-peak moment in it.
    """
    again = [(window, window.every_ms) for window in windows if window.every_ms is not None]
    if not again:
        return None
    from_ms = max(window.start_ms for window, _ in again)
    periods = [every for _, every in again] + ([int(DAY)] if hours is not None else [])
    until_ms = from_ms + min(lcm(*periods), OCCURRENCES_MOST * max(periods))
    spans: list[tuple[int, int]] = []
    for window, every_ms in again:
        start_ms = window.start_ms + (from_ms - window.start_ms) // every_ms * every_ms
        length_ms = window.end_ms - window.start_ms
        while start_ms <= until_ms:
            spans.append((start_ms, start_ms + length_ms))
            start_ms += every_ms
    longest, over_ms = 0, from_ms
    for start_ms, end_ms in sorted(spans):
        if hours is not None:
            over_ms = next_off_peak_ms(hours, over_ms)
        longest = max(longest, start_ms - over_ms)
        over_ms = max(over_ms, end_ms)
    return longest


def _occurrence(window: Window, now_ms: Millis) -> tuple[int, int]:
    """Return the current occurrence of a window, or the next."""
    if window.every_ms is None or now_ms < window.start_ms:
        return window.start_ms, window.end_ms
    passed = (now_ms - window.start_ms) // window.every_ms
    start_ms = window.start_ms + passed * window.every_ms
    length = window.end_ms - window.start_ms
    if start_ms + length <= now_ms:
        start_ms += window.every_ms
    return start_ms, start_ms + length


def _named(names: Iterable[str], nodes: Mapping[NodeId, Node]) -> dict[NodeId, None]:
    """Return the nodes matched by names of nodes, racks and pools; no names match all."""
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
