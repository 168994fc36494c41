"""Which quota or limit is in the way of a job, and how far it would have to move."""

from msgspec import Struct

from tenfold.decide.place.govern.books import Books
from tenfold.decide.place.govern.lines import Class
from tenfold.decide.place.govern.tree import UNLIMITED, Obstacle, Team
from tenfold.model.govern import ANY, USD
from tenfold.model.job import WHOLE
from tenfold.model.reason import Reason


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
    asks = f"it asks for {amount_of(asked, unit)}"
    if node.parent is None:
        held, all_of = amount_of(node.held[number], unit), amount_of(node.pool[number], unit)
        kept = sum(_kept_idle(child, number) for child in node.children)
        idle = f", and {amount_of(kept, unit)} more are not lent" if kept else ""
        return Reason("not-lent", f"{asks}: teams hold {held} of {all_of}{idle}")
    quota, borrow = node.effective[number], node.borrow[number]
    holds = f"team `{node.id}` holds {amount_of(node.held[number], unit)}"
    limit = f"its quota is {amount_of(quota, unit)}"
    if 0 < borrow < UNLIMITED:
        limit += f" and it may borrow {amount_of(borrow, unit)}"
    elif not borrow:
        limit += " and it may not borrow"
    code = "parent-limit" if node.children else "borrow-limit" if borrow else "quota-exceeded"
    return Reason(code, f"{asks}: {holds}, {limit}")


def amount_of(amount: int, unit: str) -> str:
    """Return an amount of a resource in words."""
    if unit == USD:
        return f"${amount / 1e6:,.2f} an hour"
    gpus = f"{amount / WHOLE:,g}"
    if unit == ANY:
        return f"{gpus} GPU" if amount == WHOLE else f"{gpus} GPUs"
    return f"{gpus} {unit}"


def _kept_idle(team: Team, number: int) -> int:
    """Return what a team, and those below it, keep for themselves and do not use."""
    own = max(0, team.guaranteed[number] - team.usage[number])
    return own + sum(_kept_idle(child, number) for child in team.children)
