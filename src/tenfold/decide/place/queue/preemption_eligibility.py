"""Who is owed room: they may displace others, if going far enough lets them in.

A job may displace what others borrowed where one of its teams is within its quota, or a lower
priority of its own team. That helps against a limit only where those who could go count
towards it: own jobs do everywhere, what a sibling borrowed does at limits above both. Whom
neither would help is owed nothing, and waits until the limit in its way is further away.
"""

from collections.abc import Callable, Iterator, Sequence

from tenfold.decide.place.queue.job_class import Class
from tenfold.decide.place.quota.allocations import Holdings
from tenfold.decide.place.quota.request import Amounts
from tenfold.decide.place.quota.team_tree import Hurdle, Team, Tree


class Owing:
    """What those who wait may displace, as the tree and the holdings stand."""

    def __init__(self, tree: Tree, holdings: Holdings, *, preempts: bool) -> None:
        self._tree = tree
        self._holdings = holdings
        self._preempts = preempts
        self.resizing = False
        """Whether a job is being resized: nobody is displaced until it is done."""

    @property
    def is_on(self) -> bool:
        """Whether anybody may be displaced at all."""
        return self._preempts and not self.resizing

    def is_owed(self, cls: Class) -> bool:
        """Return whether a class may displace anybody at all, if there is somebody to displace."""
        return self.hurdles(cls) is None

    def is_firm(self, cls: Class) -> bool:
        """Return whether a class is owed room whatever happens outside its own team."""
        within = self._tree.is_within
        return any(within(cls.team, option.amounts) for option in cls.options)

    def hurdles(self, cls: Class) -> list[Hurdle] | None:
        """Return what keeps a class from being owed room or let in; None where it is owed some.

        What changes with its own team alone is left out.
        """
        found: list[Hurdle] = []
        for option in cls.options:
            blocked = self._blocked(cls, option.amounts)
            if blocked is True:
                return None
            if blocked is not False:
                found += self._ways_past(cls.team, option.amounts, blocked)
        return found

    def lower(self, cls: Class, hurdles: Sequence[Hurdle]) -> tuple[int, ...]:
        """Return by hurdle what a class could do itself about it: its team's lower priorities."""
        below = self._holdings.below
        return tuple(
            0 if each.of_quota else below(cls.team, cls.priority, each.number) for each in hurdles
        )

    def _blocked(self, cls: Class, amounts: Amounts) -> Hurdle | bool:
        """Return the first limit that nobody's going would help against, or whether any is met.

        True: those who could go may help. False: no limit is met and nobody could go.
        """
        governed, team, is_met = self._tree.resources.governed, cls.team, False
        for number, amount in amounts:
            if not governed[number]:
                continue
            flow, below = amount, -1
            for place, node in enumerate(team.path):
                before = node.usage[number]
                short = before + flow - node.pool[number] - node.borrow[number]
                if short > 0:
                    is_met = True
                    if below < 0:
                        below = self._holdings.below(team, cls.priority, number)
                    if below < short and not self._is_within(team.path[:place], amounts):
                        return Hurdle(node, number, flow - below)
                if kept := node.guaranteed[number]:
                    flow = max(0, before + flow - kept) - max(0, before - kept)
                if not flow:
                    break
        if is_met or self._holdings.has_below(team, cls.priority):
            return True
        return self._is_within(team.path[:-1], amounts)

    def _is_within(self, nodes: tuple[Team, ...], amounts: Amounts) -> bool:
        within = self._tree.is_within
        return any(within(node, amounts) for node in nodes)

    def _ways_past(self, team: Team, amounts: Amounts, hurdle: Hurdle) -> Iterator[Hurdle]:
        """Yield what opens the way past a limit: it, or the quota of a parent below it."""
        if hurdle.node is team:
            return
        yield hurdle
        governed = self._tree.resources.governed
        for node in team.path[1:]:
            if node is hurdle.node:
                return
            for number, amount in amounts:
                if governed[number] and node.held[number] + amount > node.effective[number]:
                    yield Hurdle(node, number, amount, of_quota=True)
                    break


class Wanting:
    """Classes that may displace others and found nobody whose going would help."""

    def __init__(self, renew: Callable[[], None]) -> None:
        self.members: dict[Class, None] = {}
        """As last looked at."""
        self._renew = renew

    def __bool__(self) -> bool:
        self._renew()
        return bool(self.members)

    def __iter__(self) -> Iterator[Class]:
        self._renew()
        return iter(list(self.members))

    def __setitem__(self, cls: Class, _: None) -> None:
        self.members[cls] = None

    def pop(self, cls: Class, _: None = None) -> None:
        """Forget a class."""
        self.members.pop(cls, None)

    def clear(self) -> None:
        """Forget all; they are about to be tried."""
        self.members.clear()
