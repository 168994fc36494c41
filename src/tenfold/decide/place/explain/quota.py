"""Which quota or limit blocks a job, and how far it would have to be raised."""

from msgspec import Struct

from tenfold.decide.place.queue.pending_queues import JobClass
from tenfold.decide.place.quota.team_tree import UNLIMITED, Obstacle, Team
from tenfold.decide.place.state.scheduler_state import SchedulerState
from tenfold.model.reason import Amount, Reason, TeamRef, Value


class LimitShortfall(Struct, frozen=True, kw_only=True):
    """How much a limit is short of what a job needs."""

    team: Team
    number: int
    """Number of the resource."""
    by: int


def obstacles(state: SchedulerState, job_class: JobClass) -> list[Obstacle]:
    """Return the limit hit with each accelerator type, if all of them hit one."""
    met = [state.tree.obstacle(job_class.team, amounts) for _, amounts in job_class.options]
    return [] if None in met else [each for each in met if each is not None]


def open_types(state: SchedulerState, job_class: JobClass) -> list[str]:
    """Return the accelerator types that quotas allow a class now."""
    return [
        name
        for name, amounts in job_class.options
        if state.tree.obstacle(job_class.team, amounts) is None
    ]


def is_fleet_full(state: SchedulerState, met: Obstacle) -> bool:
    """Return whether a limit only reflects a full fleet: no team keeps unused quota from others."""
    node, number, _ = met
    return node.parent is None and not _unused_unlent(node, number)


def shortfall(state: SchedulerState, met: Obstacle) -> LimitShortfall:
    """Return by how much a limit is short."""
    node, number, flow = met
    return LimitShortfall(team=node, number=number, by=flow - state.tree.headroom(node, number))


def quota_reason(state: SchedulerState, job_class: JobClass, met: Obstacle) -> Reason:
    """Return a limit as a reason, with its counts."""
    node, number, _ = met
    unit = state.tree.resources.names[number]
    requested = next((amount for each, amount in job_class.amounts if each == number), 0)
    fields: dict[str, Value] = {
        "asked": Amount(requested, unit),
        "held": Amount(node.held[number], unit),
    }
    if node.parent is None:
        fields["all"] = Amount(node.pool[number], unit)
        if kept := sum(_unused_unlent(child, number) for child in node.children):
            fields["kept"] = Amount(kept, unit)
        return Reason("not-lent", fields)
    borrow = node.borrow[number]
    fields["team"], fields["quota"] = TeamRef(node.id), Amount(node.effective[number], unit)
    if 0 < borrow < UNLIMITED:
        fields["borrow"] = Amount(borrow, unit)
    code = "parent-limit" if node.children else "borrow-limit" if borrow else "quota-exceeded"
    return Reason(code, fields)


def _unused_unlent(team: Team, number: int) -> int:
    """Return the quota that a team and those below it neither use nor lend."""
    own = max(0, team.guaranteed[number] - team.usage[number])
    return own + sum(_unused_unlent(child, number) for child in team.children)
