"""Those who wait, and for what.

Jobs of one team, priority and shape wait in one class. A class that found no room is parked
until room of its kind is freed. A class that a quota stopped waits behind the limit it met,
and one that might displace somebody until those it might displace are others. Whatever a
class waits for, nobody looks at it before that has changed.
"""

from collections.abc import Iterator
from heapq import heappop, heappush

from tenfold.decide.place.queue.fair_share_order import FairShareOrder
from tenfold.decide.place.queue.job_class import JobClass, Option, State, Trait
from tenfold.decide.place.queue.preemption_eligibility import (
    BlockedPreemptors,
    PreemptionEligibility,
)
from tenfold.decide.place.quota.team_tree import BlockingLimit, Obstacle, Team, Tree
from tenfold.model.job.job import Job, Shape

__all__ = ["JobClass", "Option", "PendingQueues"]


class PendingQueues:
    """All waiting jobs under a tree of teams."""

    def __init__(self, tree: Tree, eligibility: PreemptionEligibility) -> None:
        self._tree = tree
        self._eligibility = eligibility
        self._order = FairShareOrder(tree)
        self.count = 0
        self.blocked_preemptors = BlockedPreemptors(self._renew)
        self._parked: dict[str, dict[JobClass, None]] = {}
        """Classes that found no room, by shape."""
        self._touched: dict[Team, bool] = {}
        """Teams that hold another than when last looked at, and whether it was ever less."""
        self.is_dirty = False
        """Whether anybody gave something back since all were last set aside."""

    def __iter__(self) -> Iterator[JobClass]:
        for team in self._tree.teams.values():
            yield from team.classes.values()

    def get(self, team: Team, priority: int, shape: Shape, trait: Trait = ()) -> JobClass | None:
        """Return a class, where anybody waits in it."""
        return team.classes.get((priority, shape.key, trait))

    def enter(self, new: JobClass) -> None:
        """Add a class that nobody waits in yet."""
        new.team.classes[new.key] = new

    def add(self, job_class: JobClass, job: Job) -> None:
        """Put a job into its class."""
        place = (job.submitted_ms, job.seq, job)
        heappush(job_class.queue, place)
        if job.terms is not None and job.terms.least_gpus:
            job_class.least = min(job_class.least, 1)
        self.count += 1
        if job_class.queue[0] is place:
            # Another head may find room where the last one found none.
            self._set(job_class, "active")
            self._order.changed(job_class.team)

    def best(self) -> JobClass | None:
        """Return the class whose head has the first turn of all that are worth trying."""
        if self._touched:
            self._recheck()
        best = self._order.best()
        if best is None:
            self._renew()
            self.is_dirty = False
        return best

    def leave(self, job_class: JobClass) -> Job:
        """Take out the head of a class."""
        job = heappop(job_class.queue)[2]
        self.count -= 1
        if not job_class.queue:
            del job_class.team.classes[job_class.key]
            self.blocked_preemptors.pop(job_class)
        if (
            job_class.state == "parked"
            or job_class in self.blocked_preemptors.members
            or not _next_is_alike(job_class, job)
        ):
            # The next head may find room where this one found none.
            self._set(job_class, "active")
        self._order.changed(job_class.team)
        return job

    def usage_changed(self, team: Team) -> None:
        """Hear that what a team holds has changed, and with it its turn."""
        self._touched.setdefault(team, False)
        self._order.changed(team)

    def usage_dropped(self, team: Team) -> None:
        """Hear that a team holds less than before; others may pass limits, or be owed room."""
        self.is_dirty = True
        self._touched[team] = True
        self._order.changed(team)
        for job_class in list(team.path[-2].idle):
            self.requeue(job_class)
        for node in team.path[1:-1]:
            if any(node.guaranteed):
                # How much of a job reaches the limits above depends on what it holds.
                for job_class in list(_below(node)):
                    self.requeue(job_class)

    def set_aside(self, job_class: JobClass, met: list[Obstacle], *, no_capacity: bool) -> None:
        """Set a class aside until a limit in its way is further away, or room is freed."""
        self._set(job_class, "parked" if no_capacity else "gated")
        if no_capacity:
            self._parked.setdefault(job_class.shape.key, {})[job_class] = None
        blocking_limits: list[BlockingLimit] | None = None
        if self._eligibility.is_on and job_class not in self.blocked_preemptors.members:
            blocking_limits = self._eligibility.blocking_limits(job_class)
        counts_lower = blocking_limits is not None
        if blocking_limits is None or _is_elastic(job_class):
            limits = [
                BlockingLimit(*obstacle) for obstacle in met if obstacle[0] is not job_class.team
            ]
            blocking_limits = limits + (blocking_limits or [])
        self._keep(job_class, blocking_limits, counts_lower=counts_lower)

    def requeue(self, job_class: JobClass) -> None:
        """Let a class try again that was set aside."""
        if job_class.queue and job_class.state != "active":
            self._set(job_class, "active")
            self._order.changed(job_class.team)

    def offer(self, gpus: int) -> None:
        """Let the shapes try again that a node with so many free GPUs can hold."""
        for key in list(self._parked):
            if any(job_class.least <= gpus for job_class in self._parked[key]):
                self.unpark(key)

    def unpark(self, shape_key: str) -> None:
        """Let a shape try again."""
        for job_class in list(self._parked.get(shape_key, ())):
            self.requeue(job_class)

    def requeue_all(self) -> None:
        """Let everybody try again, and see anew who wants to displace others."""
        for job_class in list(self):
            self.requeue(job_class)
        self.blocked_preemptors.clear()

    def parked(self) -> Iterator[JobClass]:
        """Yield every class that found no room."""
        if self._touched:
            self._recheck()
        for classes in self._parked.values():
            yield from classes

    def _renew(self) -> None:
        """Bring up to date who may displace others and has not found whom."""
        if self._touched:
            self._recheck()
        blocked_preemptors, eligibility = self.blocked_preemptors, self._eligibility
        for job_class in list(blocked_preemptors.members):
            if (
                job_class.state != "active"
                and eligibility.is_on
                and not eligibility.is_within_quota(job_class)
            ):
                self._recheck_class(job_class)

    def _recheck(self) -> None:
        """Look again at those who were set aside in teams that hold another than before."""
        touched, self._touched = self._touched, {}
        for team, gave in touched.items():
            for job_class in list(team.classes.values()):
                if job_class.state == "active" or self._is_next(job_class):
                    continue
                if gave and self._is_nearer(job_class):
                    self.requeue(job_class)
                else:
                    self._recheck_class(job_class)

    def _is_next(self, job_class: JobClass) -> bool:
        """Return whether a class is past its hurdle and waits for its turn alone."""
        lower_usage, team, eligibility = job_class.lower_usage, job_class.team, self._eligibility
        if lower_usage is None or not self._is_cleared(job_class) or any(team.guaranteed):
            return False
        if (
            len(job_class.options) > 1
            or _is_elastic(job_class)
            or (eligibility.is_on and eligibility.is_within_quota(job_class))
        ):
            return False
        now = eligibility.lower_usage(job_class, job_class.blocking_limits)
        if now != lower_usage:
            moved = zip(job_class.blocking_limits, now, lower_usage, strict=True)
            blocking_limits = [
                each._replace(amount=each.amount - new + old) for each, new, old in moved
            ]
            self._keep(job_class, blocking_limits, counts_lower=True)
        return self._is_cleared(job_class)

    def _is_nearer(self, job_class: JobClass) -> bool:
        """Return whether a class is worth trying now that its own team holds less."""
        eligibility = self._eligibility
        if job_class.state == "parked" and self._tree.is_within(job_class.team, job_class.amounts):
            return True
        if _is_elastic(job_class) or self._may_pass(job_class):
            return True
        return (
            eligibility.is_on
            and job_class not in self.blocked_preemptors.members
            and eligibility.is_eligible(job_class)
        )

    def _recheck_class(self, job_class: JobClass) -> None:
        """Note whether a class that is set aside is owed room, and what it waits for."""
        if self._is_cleared(job_class):
            self.requeue(job_class)
            return
        blocking_limits = (
            self._eligibility.blocking_limits(job_class)
            if self._eligibility.is_on
            else self._limits(job_class)
        )
        counts_lower = self._eligibility.is_on and blocking_limits is not None
        if blocking_limits is not None:
            self.blocked_preemptors.pop(job_class)
        else:
            self.blocked_preemptors[job_class] = None
            blocking_limits = self._limits(job_class)
        # Limits that smaller sizes met are not looked at again.
        blocking_limits += job_class.blocking_limits if _is_elastic(job_class) else ()
        self._keep(job_class, blocking_limits, counts_lower=counts_lower)

    def _may_pass(self, job_class: JobClass) -> bool:
        """Return whether no limit is in the way of a class any more that one stopped."""
        if job_class.state == "parked" and len(job_class.options) == 1:
            return False
        return any(
            self._tree.obstacle(job_class.team, option.amounts) is None
            for option in job_class.options
        )

    def _is_cleared(self, job_class: JobClass) -> bool:
        """Return whether a class could be tried, were it its turn."""
        left = self._tree.left
        return any(
            left(node, number, of_quota) >= amount
            for node, number, amount, of_quota in job_class.blocking_limits
        )

    def _limits(self, job_class: JobClass) -> list[BlockingLimit]:
        """Return the limits in the way of a class that may displace others."""
        met = (self._tree.obstacle(job_class.team, option.amounts) for option in job_class.options)
        return [
            BlockingLimit(*each)
            for each in met
            if each is not None and each[0] is not job_class.team
        ]

    def _keep(
        self, job_class: JobClass, blocking_limits: list[BlockingLimit], *, counts_lower: bool
    ) -> None:
        """Keep a class behind hurdles, the lowest of each kind."""
        if len(blocking_limits) > 1:
            lowest: dict[tuple[Team, int, bool], BlockingLimit] = {}
            for each in sorted(blocking_limits, key=_amount):
                lowest.setdefault((each.node, each.number, each.of_quota), each)
            blocking_limits = list(lowest.values())
        job_class.blocking_limits = tuple(blocking_limits)
        job_class.lower_usage = (
            self._eligibility.lower_usage(job_class, blocking_limits)
            if counts_lower and blocking_limits
            else None
        )
        branch = job_class.team.path[-2]
        if branch is not job_class.team:
            branch.idle.pop(job_class, None)
            if job_class.state == "parked" or job_class in self.blocked_preemptors.members:
                branch.idle[job_class] = None
        self._order.changed(job_class.team)

    def _set(self, job_class: JobClass, state: State) -> None:
        if job_class.state == "parked":
            parked = self._parked[job_class.shape.key]
            del parked[job_class]
            if not parked:
                del self._parked[job_class.shape.key]
        if state == "active":
            job_class.blocking_limits = ()
            job_class.team.path[-2].idle.pop(job_class, None)
        job_class.state = state


def _below(team: Team) -> Iterator[JobClass]:
    """Yield the classes of a team and of all below it."""
    yield from team.classes.values()
    for child in team.children:
        yield from _below(child)


def _next_is_alike(job_class: JobClass, job: Job) -> bool:
    """Return whether what stops a job stops the next of its class as well."""
    if not job_class.queue:
        return False
    head = job_class.queue[0][2]
    return head.terms == job.terms and head.limit_ms == job.limit_ms


def _is_elastic(job_class: JobClass) -> bool:
    terms = job_class.queue[0][2].terms
    return terms is not None and bool(terms.least_gpus)


def _amount(blocking_limit: BlockingLimit) -> int:
    return blocking_limit.amount
