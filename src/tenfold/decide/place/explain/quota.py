"""Which quota or limit is in the way of a job, and how far it would have to move."""

from msgspec import Struct

from tenfold.decide.place.queue.pending_queues import JobClass
from tenfold.decide.place.quota.team_tree import UNLIMITED, Obstacle, Team
from tenfold.decide.place.state.scheduler_state import SchedulerState
from tenfold.model.reason import Amount, Reason, TeamRef, Value


class LimitShortfall(Struct, frozen=True, kw_only=True):
    """What a limit lacks before a job may pass it."""

    team: Team
    number: int
    """Of the resource."""
    by: int


def obstacles(state: SchedulerState, job_class: JobClass) -> list[Obstacle]:
    """Return the limit that each type which would do meets, if all of them meet one."""
    met = [state.tree.obstacle(job_class.team, amounts) for _, amounts in job_class.options]
    return [] if None in met else [each for each in met if each is not None]


def open_types(state: SchedulerState, job_class: JobClass) -> list[str]:
    """Return the types that quotas let a class have now."""
    return [
        name
        for name, amounts in job_class.options
        if state.tree.obstacle(job_class.team, amounts) is None
    ]


def is_fleet_full(state: SchedulerState, met: Obstacle) -> bool:
    """Return whether a limit is only that there is no more: nobody keeps any of it idle."""
    node, number, _ = met
    return node.parent is None and not _kept_idle(node, number)


def shortfall(state: SchedulerState, met: Obstacle) -> LimitShortfall:
    """Return by how much a limit is passed."""
    node, number, flow = met
    return LimitShortfall(team=node, number=number, by=flow - state.tree.room(node, number))


def quota_reason(state: SchedulerState, job_class: JobClass, met: Obstacle) -> Reason:
    """Return what a limit says, with its counts."""
    node, number, _ = met
    unit = state.tree.resources.names[number]
    asked = next((amount for each, amount in job_class.amounts if each == number), 0)
    fields: dict[str, Value] = {
        "asked": Amount(asked, unit),
        "held": Amount(node.held[number], unit),
    }
    if node.parent is None:
        fields["all"] = Amount(node.pool[number], unit)
        if kept := sum(_kept_idle(child, number) for child in node.children):
            fields["kept"] = Amount(kept, unit)
        return Reason("not-lent", fields)
    borrow = node.borrow[number]
    fields["team"], fields["quota"] = TeamRef(node.id), Amount(node.effective[number], unit)
    if 0 < borrow < UNLIMITED:
        fields["borrow"] = Amount(borrow, unit)
    code = "parent-limit" if node.children else "borrow-limit" if borrow else "quota-exceeded"
    return Reason(code, fields)


def _kept_idle(team: Team, number: int) -> int:
    """Return what a team, and those below it, keep for themselves and do not use."""
    own = max(0, team.guaranteed[number] - team.usage[number])
    return own + sum(_kept_idle(child, number) for child in team.children)
