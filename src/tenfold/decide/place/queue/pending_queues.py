"""All pending jobs, and what each class of them waits for.

Jobs of one team, priority and shape share a class. A class that does not fit is parked until
matching capacity is released. A class that hit a quota waits behind that limit; one that may
preempt waits until there are other victims. A class is not tried again before that.
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
    """All pending jobs under the tree of teams."""

    def __init__(self, tree: Tree, eligibility: PreemptionEligibility) -> None:
        self._tree = tree
        self._eligibility = eligibility
        self._order = FairShareOrder(tree)
        self.count = 0
        self.blocked_preemptors = BlockedPreemptors(self._renew)
        self._parked: dict[str, dict[JobClass, None]] = {}
        """Classes that did not fit, by shape."""
        self._touched: dict[Team, bool] = {}
        """Teams whose usage changed since the last check, and whether it ever dropped."""
        self.is_dirty = False
        """Whether any usage dropped since all classes were last set aside."""

    def __iter__(self) -> Iterator[JobClass]:
        for team in self._tree.teams.values():
            yield from team.classes.values()

    def get(self, team: Team, priority: int, shape: Shape, trait: Trait = ()) -> JobClass | None:
        """Return a class if it has pending jobs."""
        return team.classes.get((priority, shape.key, trait))

    def add_class(self, new: JobClass) -> None:
        """Add a class without jobs."""
        new.team.classes[new.key] = new

    def add(self, job_class: JobClass, job: Job) -> None:
        """Add a job to its class."""
        place = (job.submitted_ms, job.seq, job)
        heappush(job_class.queue, place)
        if job.terms is not None and job.terms.least_gpus:
            job_class.least = min(job_class.least, 1)
        self.count += 1
        if job_class.queue[0] is place:
            # A new head may fit where the last one did not.
            self._set(job_class, "active")
            self._order.changed(job_class.team)

    def best(self) -> JobClass | None:
        """Return the class with the first head in fair share order among those worth trying."""
        if self._touched:
            self._recheck()
        best = self._order.best()
        if best is None:
            self._renew()
            self.is_dirty = False
        return best

    def dequeue(self, job_class: JobClass) -> Job:
        """Remove the head of a class and return it."""
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
            # The next head may fit where this one did not.
            self._set(job_class, "active")
        self._order.changed(job_class.team)
        return job

    def usage_changed(self, team: Team) -> None:
        """Note that the usage of a team changed, and with it its order."""
        self._touched.setdefault(team, False)
        self._order.changed(team)

    def usage_dropped(self, team: Team) -> None:
        """Note that a team uses less: others may pass limits, or may preempt now."""
        self.is_dirty = True
        self._touched[team] = True
        self._order.changed(team)
        for job_class in list(team.path[-2].blocked_classes):
            self.requeue(job_class)
        for node in team.path[1:-1]:
            if any(node.guaranteed):
                # How much of a request counts at the limits above depends on current usage.
                for job_class in list(_below(node)):
                    self.requeue(job_class)

    def set_aside(self, job_class: JobClass, met: list[Obstacle], *, no_capacity: bool) -> None:
        """Set a class aside until a blocking limit has headroom or capacity is released."""
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
        """Requeue a class that was set aside."""
        if job_class.queue and job_class.state != "active":
            self._set(job_class, "active")
            self._order.changed(job_class.team)

    def capacity_freed(self, gpus: int) -> None:
        """Requeue the shapes that fit on a node with this many free GPUs."""
        for key in list(self._parked):
            if any(job_class.least <= gpus for job_class in self._parked[key]):
                self.unpark(key)

    def unpark(self, shape_key: str) -> None:
        """Requeue a shape."""
        for job_class in list(self._parked.get(shape_key, ())):
            self.requeue(job_class)

    def requeue_all(self) -> None:
        """Requeue everything, and check again which classes may preempt."""
        for job_class in list(self):
            self.requeue(job_class)
        self.blocked_preemptors.clear()

    def parked(self) -> Iterator[JobClass]:
        """Yield every class that did not fit."""
        if self._touched:
            self._recheck()
        for classes in self._parked.values():
            yield from classes

    def _renew(self) -> None:
        """Update which classes may preempt but have no victims."""
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
        """Check classes again that were set aside in teams whose usage changed."""
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
        """Return whether a class has passed its blocking limit and only waits for its order."""
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
        """Return whether a class is worth trying now that its own team uses less."""
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
        """Update whether a class set aside may preempt, and what it waits for."""
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
        # Limits that smaller sizes hit are not checked again.
        blocking_limits += job_class.blocking_limits if _is_elastic(job_class) else ()
        self._keep(job_class, blocking_limits, counts_lower=counts_lower)

    def _may_pass(self, job_class: JobClass) -> bool:
        """Return whether a class stopped by a limit is no longer blocked by any."""
        if job_class.state == "parked" and len(job_class.options) == 1:
            return False
        return any(
            self._tree.obstacle(job_class.team, option.amounts) is None
            for option in job_class.options
        )

    def _is_cleared(self, job_class: JobClass) -> bool:
        """Return whether any blocking limit of a class has enough headroom."""
        left = self._tree.left
        return any(
            left(node, number, of_quota) >= amount
            for node, number, amount, of_quota in job_class.blocking_limits
        )

    def _limits(self, job_class: JobClass) -> list[BlockingLimit]:
        """Return the limits that block a class which may preempt."""
        met = (self._tree.obstacle(job_class.team, option.amounts) for option in job_class.options)
        return [
            BlockingLimit(*each)
            for each in met
            if each is not None and each[0] is not job_class.team
        ]

    def _keep(
        self, job_class: JobClass, blocking_limits: list[BlockingLimit], *, counts_lower: bool
    ) -> None:
        """Keep a class behind its blocking limits, the lowest of each kind."""
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
            branch.blocked_classes.pop(job_class, None)
            if job_class.state == "parked" or job_class in self.blocked_preemptors.members:
                branch.blocked_classes[job_class] = None
        self._order.changed(job_class.team)

    def _set(self, job_class: JobClass, state: State) -> None:
        if job_class.state == "parked":
            parked = self._parked[job_class.shape.key]
            del parked[job_class]
            if not parked:
                del self._parked[job_class.shape.key]
        if state == "active":
            job_class.blocking_limits = ()
            job_class.team.path[-2].blocked_classes.pop(job_class, None)
        job_class.state = state


def _below(team: Team) -> Iterator[JobClass]:
    """Yield the classes of a team and of all teams below it."""
    yield from team.classes.values()
    for child in team.children:
        yield from _below(child)


def _next_is_alike(job_class: JobClass, job: Job) -> bool:
    """Return whether the next job of a class is blocked by the same things."""
    if not job_class.queue:
        return False
    head = job_class.queue[0][2]
    return head.terms == job.terms and head.limit_ms == job.limit_ms


def _is_elastic(job_class: JobClass) -> bool:
    terms = job_class.queue[0][2].terms
    return terms is not None and bool(terms.least_gpus)


def _amount(blocking_limit: BlockingLimit) -> int:
    return blocking_limit.amount
