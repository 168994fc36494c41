"""Why does a job wait? What it needs, what is free, and who goes before it.

Who goes before is asked of the decider itself, on a copy of the fleet in which everything
that runs is gone: it starts what it would start, those leave, and so on until the job's turn.
"""

from msgspec import Struct
from msgspec.structs import replace

from tenfold.engine.loop import Decider
from tenfold.fleet.capacity import Capacity, Seat
from tenfold.fleet.fleet import Fleet
from tenfold.model.actions import RefuseJob, StartJob
from tenfold.model.ids import JobId
from tenfold.model.job import WHOLE, Job, per_member
from tenfold.model.reason import Reason
from tenfold.model.units import Millis

ROUNDS_MOST = 1_000
"""Times that a copy of the fleet is filled before the line is called too long to count."""


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


def obstacle_of(fleet: Fleet, job: Job, now_ms: Millis, decider: Decider | None = None) -> Obstacle:
    """Return why a pending job does not run now; `decider` is a fresh one."""
    capacity = Capacity.of(fleet)
    seats = capacity.seats(job.shape)
    fits = capacity.could_hold(job.shape)
    ahead = jobs_ahead(fleet, job.id, now_ms, decider) if fits and decider else None
    if not fits:
        sentence = f"no nodes alike could hold shape `{job.shape.key}`, even if all were free"
        return Obstacle(
            reason=Reason("never-fits", sentence),
            nodes_needed=0,
            gpus_per_node=0,
            nodes_with_room=0,
            nodes_alike=0,
            nodes_away=0,
            gpus_needed=_asked(job),
            gpus_free=sum(fleet.gpus_free.values()),
            ahead=ahead,
        )
    seat = max(seats, key=lambda each: _with_room(each, job) / _members(each))
    bank, members = seat.bank, _members(seat)
    free = sum(gpus for gpus, is_open in zip(bank.free, bank.is_open, strict=True) if is_open)
    found = Obstacle(
        reason=Reason("", ""),
        nodes_needed=members,
        gpus_per_node=job.shape.milli / WHOLE if job.shape.milli else seat.gpus,
        nodes_with_room=_with_room(seat, job),
        nodes_alike=len(bank.names),
        nodes_away=bank.is_open.count(False),
        gpus_needed=_asked(job),
        gpus_free=free,
        ahead=ahead,
    )
    return _with_reason(found)


def _with_reason(found: Obstacle) -> Obstacle:
    each = f"{found.gpus_per_node:g} GPUs" if found.gpus_per_node != 1 else "1 GPU"
    nodes = "a node" if found.nodes_needed == 1 else f"{found.nodes_needed:,} nodes"
    away = f" ({found.nodes_away:,} away)" if found.nodes_away else ""
    had = f"{found.nodes_with_room:,} of {found.nodes_alike:,} nodes had room{away}"
    free = "1 GPU was free" if found.gpus_free == 1 else f"{found.gpus_free:,} GPUs were free"
    if found.nodes_with_room >= found.nodes_needed:
        code, sentence = "others-first", f"there was room, and its turn had not come: {had}"
    elif found.gpus_free >= found.gpus_needed:
        code = "room-scattered"
        sentence = f"it needs {nodes} with {each} free: {had}, though {free}"
    else:
        code = "too-few-free"
        sentence = f"it needs {nodes} with {each} free: {had}, {free}"
    if found.ahead:
        noun = "job" if found.ahead == 1 else "jobs"
        sentence += f"; {found.ahead:,} {noun} ahead of it"
    return replace(found, reason=Reason(code, sentence))


def jobs_ahead(fleet: Fleet, job_id: JobId, now_ms: Millis, decider: Decider) -> int | None:
    """Return how many waiting jobs a decider would start before one, were all nodes free."""
    ahead = 0
    left = _emptied(fleet)
    for _ in range(ROUNDS_MOST):
        decision = decider.decide(left, now_ms, None)
        gone = [one for one in decision.actions if isinstance(one, StartJob | RefuseJob)]
        for action in gone:
            if action.job_id == job_id:
                return ahead
            ahead += isinstance(action, StartJob)
            del left.pending[action.job_id]
            left.past.pop(action.job_id, None)
            left.promises.pop(action.job_id, None)
        # A promise brings nobody nearer to a start than waiting does.
        if not gone:
            if decision.wake_at_ms is None or decision.wake_at_ms <= now_ms:
                return None
            now_ms = decision.wake_at_ms
        left.version += 1
    return None


def _emptied(fleet: Fleet) -> Fleet:
    """Return a copy in which nothing runs; what waits, and what is away, stays."""
    empty = fleet.fork()
    empty.running.clear()
    empty.orders.clear()
    empty.idle.clear()
    empty.shares.clear()
    for node_id, node in empty.nodes.items():
        empty.gpus_free[node_id] = node.gpus
        empty.cpus_milli_free[node_id] = node.cpus_milli
        empty.memory_mib_free[node_id] = node.memory_mib
    empty.past = {job_id: past for job_id, past in empty.past.items() if job_id in empty.pending}
    return empty


def _members(seat: Seat) -> int:
    return seat.members + (seat.rest > 0)


def _asked(job: Job) -> float:
    return job.shape.milli / WHOLE or job.shape.gpus


def _with_room(seat: Seat, job: Job) -> int:
    """Count open nodes of a bank that could take one member now."""
    bank, shape = seat.bank, job.shape
    cpus, memory = per_member(shape, _members(seat))
    room = 0
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
        room += 1
    return room
