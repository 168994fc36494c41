"""Which pending classes may preempt, and whether preempting would let them start.

A job may preempt borrowed capacity where one of its teams is within its quota, and lower
priorities of its own team. Preempting helps against a limit only if the victims count towards
it: own jobs always do, borrowed jobs of a sibling do at limits above both. A class that neither
would help is not eligible, and waits until its blocking limit has more headroom.
"""

from collections.abc import Callable, Iterator, Sequence

from tenfold.decide.place.queue.job_class import JobClass
from tenfold.decide.place.quota.allocations import Allocations
from tenfold.decide.place.quota.request import Amounts
from tenfold.decide.place.quota.team_tree import BlockingLimit, Team, Tree


class PreemptionEligibility:
    """Which pending classes may preempt, given current usage."""

    def __init__(self, tree: Tree, allocations: Allocations, *, preempts: bool) -> None:
        self._tree = tree
        self._allocations = allocations
        self._preempts = preempts
        self.resizing = False
        """Whether a resize is in progress: nothing is preempted until it is done."""

    @property
    def is_on(self) -> bool:
        """Whether preemption is possible at all now."""
        return self._preempts and not self.resizing

    def is_eligible(self, job_class: JobClass) -> bool:
        """Return whether a class may preempt, if there are victims."""
        return self.blocking_limits(job_class) is None

    def is_within_quota(self, job_class: JobClass) -> bool:
        """Return whether a class is within its own team's quota, whatever other teams do."""
        within = self._tree.is_within
        return any(within(job_class.team, option.amounts) for option in job_class.options)

    def blocking_limits(self, job_class: JobClass) -> list[BlockingLimit] | None:
        """Return the limits that keep a class from preempting or starting; None if it may preempt.

        Limits that depend on its own team alone are left out.
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
        """Return for each limit the usage of lower priorities in the team of a class."""
        below = self._allocations.below
        return tuple(
            0 if each.of_quota else below(job_class.team, job_class.priority, each.number)
            for each in blocking_limits
        )

    def _blocked(self, job_class: JobClass, amounts: Amounts) -> BlockingLimit | bool:
        """Return the first limit that no preemption would help against, or whether one is hit.

        True: victims may help. False: no limit is hit and there are no victims.
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
        """Yield what would unblock a class: the limit itself, or the quota of a parent below it."""
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
    """Classes that may preempt but found no victims that would help."""

    def __init__(self, renew: Callable[[], None]) -> None:
        self.members: dict[JobClass, None] = {}
        """As of the last check."""
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
        """Remove a class."""
        self.members.pop(job_class, None)

    def clear(self) -> None:
        """Remove all; they are about to be tried again."""
        self.members.clear()
