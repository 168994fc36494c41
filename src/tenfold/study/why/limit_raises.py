"""Quotas and limits to raise so that a pending job is admitted, and by how much."""

from collections.abc import Iterator

from tenfold.decide.place.explain.quota import shortfall
from tenfold.decide.place.explain.settled import Settled
from tenfold.decide.place.queue.pending_queues import JobClass
from tenfold.decide.place.quota.team_tree import UNLIMITED, Team
from tenfold.model.job.job import Job
from tenfold.study.why.changes import LimitRaise, RaiseLimits


def limit_raises(settled: Settled, job: Job, job_class: JobClass) -> Iterator[RaiseLimits]:
    """Yield quota and limit raises that would admit a job, type by type."""
    named = settled.state.tree.named
    if job.team not in named:
        return
    for option in range(len(job_class.options)):
        limits = _limits_raised(settled, job_class, option)
        if limits:
            yield RaiseLimits(tuple(limits))
        quota = _quota_raised(settled, job_class, option)
        if quota:
            yield RaiseLimits(tuple(quota))
        if limits and quota:
            yield RaiseLimits((*limits, *quota))


def _limits_raised(settled: Settled, job_class: JobClass, option: int) -> list[LimitRaise]:
    """Return the raises after which no limit blocks the job."""
    tree = settled.state.tree
    amounts = job_class.options[option].amounts
    moved: list[tuple[Team, int, int]] = []
    raises: list[LimitRaise] = []
    while (met := tree.obstacle(job_class.team, amounts)) is not None:
        lacks = shortfall(settled.state, met)
        node, number = lacks.team, lacks.number
        name = tree.resources.names[number]
        if node.parent is None:
            raises += _lent(tree.root, number, name, lacks.by)
        elif node.borrow[number] < UNLIMITED and node.id in tree.named:
            raises.append(LimitRaise(node.id, "borrow", name, lacks.by))
        node.borrow[number] += lacks.by
        moved.append((node, number, lacks.by))
    for node, number, by in moved:
        node.borrow[number] -= by
    return raises


def _lent(root: Team, number: int, name: str, by: int) -> list[LimitRaise]:
    """Return the teams that could lend idle quota they hold back."""
    found: list[LimitRaise] = []
    left = list(root.children)
    for team in left:
        idle = min(by, team.guaranteed[number] - team.usage[number])
        if idle > 0:
            found.append(LimitRaise(team.id, "lend", name, idle))
            by -= idle
        left += team.children
    return found if by <= 0 else []


def _quota_raised(settled: Settled, job_class: JobClass, option: int) -> list[LimitRaise]:
    """Return the quota raises with which the job and all that its team holds are within quota."""
    tree, team = settled.state.tree, job_class.team
    return [
        LimitRaise(team.id, "quota", tree.resources.names[number], short)
        for number, amount in job_class.options[option].amounts
        if tree.resources.governed[number]
        and (short := team.held[number] + amount - team.effective[number]) > 0
    ]
