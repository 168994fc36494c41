"""Who is owed room: they may displace others, if going far enough lets them in.

A job may displace what others borrowed where one of its teams is within its quota, or a lower
priority of its own team. That helps against a limit only where those who could go count
towards it: own jobs do everywhere, what a sibling borrowed does at limits above both. Whom
neither would help is owed nothing, and waits until the limit in its way is further away.
"""

from collections.abc import Callable, Iterator, Sequence

from tenfold.decide.place.queue.job_class import JobClass
from tenfold.decide.place.quota.allocations import Allocations
from tenfold.decide.place.quota.request import Amounts
from tenfold.decide.place.quota.team_tree import BlockingLimit, Team, Tree


class PreemptionEligibility:
    """What those who wait may displace, as the tree and the holdings stand."""

    def __init__(self, tree: Tree, allocations: Allocations, *, preempts: bool) -> None:
        self._tree = tree
        self._allocations = allocations
        self._preempts = preempts
        self.resizing = False
        """Whether a job is being resized: nobody is displaced until it is done."""

    @property
    def is_on(self) -> bool:
        """Whether anybody may be displaced at all."""
        return self._preempts and not self.resizing

    def is_eligible(self, job_class: JobClass) -> bool:
        """Return whether a class may displace anybody at all, if there is somebody to displace."""
        return self.blocking_limits(job_class) is None

    def is_within_quota(self, job_class: JobClass) -> bool:
        """Return whether a class is owed room whatever happens outside its own team."""
        within = self._tree.is_within
        return any(within(job_class.team, option.amounts) for option in job_class.options)

    def blocking_limits(self, job_class: JobClass) -> list[BlockingLimit] | None:
        """Return what keeps a class from being owed room or let in; None where it is owed some.

        What changes with its own team alone is left out.
        """
        found: list[BlockingLimit] = []
        for option in job_class.options:
            blocked = self._blocked(job_class, option.amounts)
            if blocked is True:
                return None
            if blocked is not False:
                found += self._ways_past(job_class.team, option.amounts, blocked)
        return found

    def lower_usage(
        self, job_class: JobClass, blocking_limits: Sequence[BlockingLimit]
    ) -> tuple[int, ...]:
        """Return by hurdle what a class could do itself about it: its team's lower priorities."""
        below = self._allocations.below
        return tuple(
            0 if each.of_quota else below(job_class.team, job_class.priority, each.number)
            for each in blocking_limits
        )

    def _blocked(self, job_class: JobClass, amounts: Amounts) -> BlockingLimit | bool:
        """Return the first limit that nobody's going would help against, or whether any is met.

        True: those who could go may help. False: no limit is met and nobody could go.
        """
        governed, team, is_met = self._tree.resources.governed, job_class.team, False
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
                        below = self._allocations.below(team, job_class.priority, number)
                    if below < short and not self._is_within(team.path[:place], amounts):
                        return BlockingLimit(node, number, flow - below)
                if kept := node.guaranteed[number]:
                    flow = max(0, before + flow - kept) - max(0, before - kept)
                if not flow:
                    break
        if is_met or self._allocations.has_lower_priority(team, job_class.priority):
            return True
        return self._is_within(team.path[:-1], amounts)

    def _is_within(self, nodes: tuple[Team, ...], amounts: Amounts) -> bool:
        within = self._tree.is_within
        return any(within(node, amounts) for node in nodes)

    def _ways_past(
        self, team: Team, amounts: Amounts, blocking_limit: BlockingLimit
    ) -> Iterator[BlockingLimit]:
        """Yield what opens the way past a limit: it, or the quota of a parent below it."""
        if blocking_limit.node is team:
            return
        yield blocking_limit
        governed = self._tree.resources.governed
        for node in team.path[1:]:
            if node is blocking_limit.node:
                return
            for number, amount in amounts:
                if governed[number] and node.held[number] + amount > node.effective[number]:
                    yield BlockingLimit(node, number, amount, of_quota=True)
                    break


class BlockedPreemptors:
    """Classes that may displace others and found nobody whose going would help."""

    def __init__(self, renew: Callable[[], None]) -> None:
        self.members: dict[JobClass, None] = {}
        """As last looked at."""
        self._renew = renew

    def __bool__(self) -> bool:
        self._renew()
        return bool(self.members)

    def __iter__(self) -> Iterator[JobClass]:
        self._renew()
        return iter(list(self.members))

    def __setitem__(self, job_class: JobClass, _: None) -> None:
        self.members[job_class] = None

    def pop(self, job_class: JobClass, _: None = None) -> None:
        """Forget a class."""
        self.members.pop(job_class, None)

    def clear(self) -> None:
        """Forget all; they are about to be tried."""
        self.members.clear()
