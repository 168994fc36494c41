"""The order of teams: siblings are compared at each level of the tree.

Each parent keeps heaps of its child teams in fair share order: one of teams with a class worth
trying, and one for each blocking limit. When a limit has enough headroom its heap counts too;
nothing has to be notified, and only the first team is examined. A change in one team costs a
few steps in its own branch and nothing elsewhere.
"""

from bisect import insort
from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from typing import Any

from tenfold.decide.place.queue.job_class import JobClass
from tenfold.decide.place.quota.team_tree import BlockingLimit, Team, Tree

Place = tuple[int, float, int, int, int, int, Team]
"""Sort key of a team among its siblings: within quota, share, its head, stamp, team."""
STALE_MOST = 64
"""Stale heap entries allowed beyond four per team before a heap is cleaned up."""


class FairShareOrder:
    """The heaps of all parents, updated on demand."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._stale: dict[Team, None] = {}
        """Teams whose usage or pending jobs changed."""

    def changed(self, team: Team) -> None:
        """Note that the usage or the pending jobs of a team changed."""
        self._stale[team] = None

    def best(self) -> JobClass | None:
        """Return the class with the first head in fair share order among those worth trying."""
        if self._stale:
            self._refresh_all()
        node = self._tree.root
        cleared: list[BlockingLimit | None] = [None]
        while node.children:
            if node.limit_amounts:
                cleared += self._cleared_at(node)
            first: Place | None = None
            for blocking_limit in cleared:
                place = _top(node, blocking_limit)
                if place is not None and (first is None or place < first):
                    first = place
            if first is None:
                return None
            node = first[6]
        return _first_of(node, cleared)

    def _refresh_all(self) -> None:
        """Update the entries of all changed teams and their ancestors."""
        levels: dict[int, dict[Team, None]] = {}
        for team in self._stale:
            levels.setdefault(len(team.path), {})[team] = None
        self._stale.clear()
        for depth in range(max(levels), 1, -1):
            above = levels.setdefault(depth - 1, {})
            for node in levels.get(depth, ()):
                self._refresh(node)
                assert node.parent is not None
                above[node.parent] = None

    def _refresh(self, node: Team) -> None:
        """Renew the entries of a team among its siblings."""
        parent = node.parent
        assert parent is not None
        node.stamp += 1
        head: JobClass | None = _first_head(node) if node.children else _head(node)
        node.head = head
        if head is None:
            return
        submitted, seq, _ = head.queue[0]
        within, share = self._tree.fair_share_key(node, head.amounts)
        place = (within, share, -head.priority, submitted, seq, node.stamp, node)
        most = STALE_MOST + 4 * len(parent.children)
        if parent.parent is not None:
            _push(parent.heads, place, most)
        for blocking_limit in self._before_parent(node) if node.children else _before_leaf(node):
            places = parent.waits.get(blocking_limit)
            if places is None:
                places = parent.waits[blocking_limit] = []
                if blocking_limit is not None and blocking_limit.node is parent:
                    amounts = parent.limit_amounts.setdefault(
                        (blocking_limit.number, blocking_limit.of_quota), []
                    )
                    insort(amounts, blocking_limit.amount)
            _push(places, place, most)

    def _before_parent(self, node: Team) -> Iterator[BlockingLimit | None]:
        """Yield the limits that block teams below a parent, other than the parent's own."""
        cleared: list[BlockingLimit | None] = [None, *self._cleared_at(node)]
        if any(_top(node, blocking_limit) is not None for blocking_limit in cleared):
            yield None
        for blocking_limit in list(node.waits):
            if (
                blocking_limit is not None
                and blocking_limit.node is not node
                and _top(node, blocking_limit) is not None
            ):
                yield blocking_limit

    def _cleared_at(self, node: Team) -> list[BlockingLimit]:
        """Return the blocking limits of a team that now have enough headroom."""
        found: list[BlockingLimit] = []
        for (number, of_quota), amounts in node.limit_amounts.items():
            left = self._tree.left(node, number, of_quota)
            for amount in amounts:
                if amount > left:
                    break
                found.append(BlockingLimit(node, number, amount, of_quota))
        return found


def _top(node: Team, blocking_limit: BlockingLimit | None) -> Place | None:
    """Return the first entry behind a blocking limit, dropping stale ones."""
    places = node.waits.get(blocking_limit)
    if places is None:
        return None
    while places and places[0][5] != places[0][6].stamp:
        heappop(places)
    if places:
        return places[0]
    del node.waits[blocking_limit]
    if blocking_limit is not None and blocking_limit.node is node:
        amounts = node.limit_amounts[blocking_limit.number, blocking_limit.of_quota]
        amounts.remove(blocking_limit.amount)
        if not amounts:
            del node.limit_amounts[blocking_limit.number, blocking_limit.of_quota]
    return None


def _push(places: list[Any], place: Place, most: int) -> None:
    heappush(places, place)
    if len(places) > most:
        places[:] = [each for each in places if each[5] == each[6].stamp]
        heapify(places)


def _first_head(node: Team) -> JobClass | None:
    """Return the head of the first team below a parent."""
    heads = node.heads
    while heads and heads[0][5] != heads[0][6].stamp:
        heappop(heads)
    return heads[0][6].head if heads else None


def _head(team: Team) -> JobClass | None:
    """Return the first class of a team, blocked or not."""
    head: JobClass | None = None
    for job_class in team.classes.values():
        if head is None or job_class.is_before(head):
            head = job_class
    return head


def _before_leaf(team: Team) -> dict[BlockingLimit | None, None]:
    """Return the limits that block the classes of a team; None means that one is not blocked."""
    found: dict[BlockingLimit | None, None] = {}
    for job_class in team.classes.values():
        if job_class.state == "active":
            found[None] = None
        else:
            for blocking_limit in job_class.blocking_limits:
                found[blocking_limit] = None
    return found


def _first_of(team: Team, cleared: list[BlockingLimit | None]) -> JobClass | None:
    """Return the first class of a team that is worth trying."""
    first: JobClass | None = None
    for job_class in team.classes.values():
        is_ready = job_class.state == "active" or any(
            blocking_limit in cleared for blocking_limit in job_class.blocking_limits
        )
        if is_ready and (first is None or job_class.is_before(first)):
            first = job_class
    return first
