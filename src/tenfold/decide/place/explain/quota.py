"""Which quota or limit is in the way of a job, and how far it would have to move."""

from msgspec import Struct

from tenfold.decide.place.queue.pending_queues import Class
from tenfold.decide.place.quota.team_tree import UNLIMITED, Obstacle, Team
from tenfold.decide.place.state.scheduler_state import Books
from tenfold.model.reason import Amount, Reason, TeamRef, Value


class Missing(Struct, frozen=True, kw_only=True):
    """What a limit lacks before a job may pass it."""

    team: Team
    number: int
    """Of the resource."""
    by: int


def obstacles(books: Books, cls: Class) -> list[Obstacle]:
    """Return the limit that each type which would do meets, if all of them meet one."""
    met = [books.tree.obstacle(cls.team, amounts) for _, amounts in cls.options]
    return [] if None in met else [each for each in met if each is not None]


def open_types(books: Books, cls: Class) -> list[str]:
    """Return the types that quotas let a class have now."""
    return [name for name, amounts in cls.options if books.tree.obstacle(cls.team, amounts) is None]


def is_all_taken(books: Books, met: Obstacle) -> bool:
    """Return whether a limit is only that there is no more: nobody keeps any of it idle."""
    node, number, _ = met
    return node.parent is None and not _kept_idle(node, number)


def missing(books: Books, met: Obstacle) -> Missing:
    """Return by how much a limit is passed."""
    node, number, flow = met
    return Missing(team=node, number=number, by=flow - books.tree.room(node, number))


def quota_reason(books: Books, cls: Class, met: Obstacle) -> Reason:
    """Return what a limit says, with its counts."""
    node, number, _ = met
    unit = books.tree.resources.names[number]
    asked = next((amount for each, amount in cls.amounts if each == number), 0)
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
