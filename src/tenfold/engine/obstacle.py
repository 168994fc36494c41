"""Why does a job wait? What it needs, what is free, and who goes before it.

Whether it is its turn, or could ever be, is asked of the decider; what is short is counted on
the index that knows domains and the power of racks.
"""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from tenfold.engine.loop import Decider
from tenfold.engine.obstacle_line import Alone, alone, jobs_ahead
from tenfold.fleet.capacity import Seat
from tenfold.fleet.fleet import Fleet
from tenfold.fleet.topology import TopologyCapacity
from tenfold.fleet.topology_bank import TopologyBank
from tenfold.model.job import WHOLE, Job, per_member
from tenfold.model.reason import Reason
from tenfold.model.units import Millis


class Obstacle(Struct, frozen=True, kw_only=True):
    """What stands between a waiting job and its start."""

    reason: Reason
    nodes_needed: int
    gpus_per_node: float
    nodes_with_room: int
    nodes_alike: int
    """Nodes of the kind that is nearest to holding it, those that are away included."""
    nodes_away: int
    gpus_needed: float
    gpus_free: int
    """Whole GPUs free on nodes of that kind."""
    ahead: int | None = None
    """Jobs that would start before it if all nodes were free; None where nobody could say."""
    never: bool = False
    """Whether it can never start."""


def obstacle_of(fleet: Fleet, job: Job, now_ms: Millis, decider: Decider | None = None) -> Obstacle:
    """Return why a pending job does not run now; `decider` is a fresh one."""
    capacity = TopologyCapacity.of(fleet)
    seats = capacity.seats(job.shape)
    asked = None if decider is None else alone(fleet, job, now_ms, decider)
    refused = () if asked is None else asked.refused
    if not seats or refused or (asked is None and not capacity.could_hold(job.shape)):
        return _never(fleet, job, refused)
    seat = max(seats, key=lambda each: len(_with_room(each, job)) / _members(each))
    bank, with_room = seat.bank, _with_room(seat, job)
    free = sum(gpus for gpus, is_open in zip(bank.free, bank.is_open, strict=True) if is_open)
    found = Obstacle(
        reason=Reason("", ""),
        nodes_needed=_members(seat),
        gpus_per_node=job.shape.milli / WHOLE if job.shape.milli else seat.gpus,
        nodes_with_room=len(with_room),
        nodes_alike=len(bank.names),
        nodes_away=bank.is_open.count(False),
        gpus_needed=_asked(job),
        gpus_free=free,
        ahead=None if decider is None else jobs_ahead(fleet, job.id, now_ms, decider),
    )
    reason = _short(found) or _unplaced(capacity, job, seat, with_room, asked)
    return _with_ahead(replace(found, reason=reason or _turn(found, asked)))


def _never(fleet: Fleet, job: Job, refused: Sequence[Reason]) -> Obstacle:
    """Return the obstacle of a job that can never start, in the decider's words if it has any."""
    reason = Reason(
        "never-fits", f"no nodes alike could hold shape `{job.shape.key}`, even if all were free"
    )
    if refused:
        said = "; and ".join(each.sentence for each in refused)
        reason = Reason(refused[0].code, said)
    return Obstacle(
        reason=reason,
        nodes_needed=0,
        gpus_per_node=0,
        nodes_with_room=0,
        nodes_alike=0,
        nodes_away=0,
        gpus_needed=_asked(job),
        gpus_free=sum(fleet.gpus_free.values()),
        never=True,
    )


def _short(found: Obstacle) -> Reason | None:
    """Return that too few nodes have room, if so it is."""
    if found.nodes_with_room >= found.nodes_needed:
        return None
    free = "1 GPU was free" if found.gpus_free == 1 else f"{found.gpus_free:,} GPUs were free"
    needs = f"it needs {_nodes(found)} free: {_had(found)}"
    if found.gpus_free >= found.gpus_needed:
        return Reason("room-scattered", f"{needs}, though {free}")
    return Reason("too-few-free", f"{needs}, {free}")


def _unplaced(
    capacity: TopologyCapacity, job: Job, seat: Seat, with_room: Sequence[int], asked: Alone | None
) -> Reason | None:
    """Return what keeps a gang off nodes that have room: its domain, or the power of racks."""
    if asked is not None and asked.starts:
        return None
    slots = capacity.claim_from((seat,), job.shape)
    if slots is not None:
        capacity.give(slots, job.shape)
        return None
    bank, where, needed = seat.bank, job.shape.where, _members(seat)
    assert isinstance(bank, TopologyBank), "an index that knows places has such banks"
    if where is not None and where.how == "required" and where.within:
        groups = bank.groups(where.within)
        counts = [0] * len(groups.names)
        for number in with_room:
            counts[groups.of[number]] += 1
        best = counts.index(max(counts))
        if counts[best] < needed:
            said = (
                f"the best, `{groups.names[best]}`, had {counts[best]:,} of {groups.sizes[best]:,}"
            )
            return Reason(
                "wrong-domain", f"it needs {needed:,} nodes in one {where.within}: {said}"
            )
    room = f"{len(with_room):,} of {len(bank.names):,} nodes had room"
    if bank.racks:
        return Reason("rack-power", f"{room}, but racks could not feed {needed:,} more")
    if where is not None and where.within:
        said = f"{room}, but {needed:,} nodes could not stand {where.how} by {where.within}"
        return Reason("wrong-domain", said)
    return None


def _turn(found: Obstacle, asked: Alone | None) -> Reason:
    """Return that there was room: others go first, or the policy would not start it at all."""
    if asked is None or asked.starts:
        return Reason("others-first", f"there was room, and its turn had not come: {_had(found)}")
    return Reason("held-back", f"there was room, and the policy held it back: {_had(found)}")


def _with_ahead(found: Obstacle) -> Obstacle:
    if not found.ahead:
        return found
    noun = "job" if found.ahead == 1 else "jobs"
    said = f"{found.reason.sentence}; {found.ahead:,} {noun} ahead of it"
    return replace(found, reason=Reason(found.reason.code, said))


def _nodes(found: Obstacle) -> str:
    each = f"{found.gpus_per_node:g} GPUs" if found.gpus_per_node != 1 else "1 GPU"
    nodes = "a node" if found.nodes_needed == 1 else f"{found.nodes_needed:,} nodes"
    return f"{nodes} with {each}"


def _had(found: Obstacle) -> str:
    away = f" ({found.nodes_away:,} away)" if found.nodes_away else ""
    return f"{found.nodes_with_room:,} of {found.nodes_alike:,} nodes had room{away}"


def _members(seat: Seat) -> int:
    return seat.members + (seat.rest > 0)


def _asked(job: Job) -> float:
    return job.shape.milli / WHOLE or job.shape.gpus


def _with_room(seat: Seat, job: Job) -> list[int]:
    """Return the open nodes of a bank that could take one member now, were they fed."""
    bank, shape = seat.bank, job.shape
    cpus, memory = per_member(shape, _members(seat))
    room: list[int] = []
    for number, is_open in enumerate(bank.is_open):
        if not is_open or bank.free[number] < (0 if shape.milli else seat.gpus):
            continue
        if shape.milli and not bank.free[number]:
            given = bank.given.get(number, {})
            if all(milli + shape.milli > WHOLE for milli in given.values()):
                continue
        if bank.counts_cpus and bank.cpus[number] < cpus:
            continue
        if bank.counts_memory and bank.memory[number] < memory:
            continue
        room.append(number)
    return room
