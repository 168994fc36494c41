"""Which nodes Slurm takes for a gang: in the order of its file, from the tightest run of them.

Slurm (select/cons_tres without a topology) looks at the nodes that could each hold a member,
cuts them into runs of neighbours, and takes the shortest run that holds the whole gang, from
its first node on. Where none does, it takes the longest run and goes on with the others.
Neither the emptiest nor the fullest node is preferred.
"""

from collections.abc import Callable, Iterator

from tenfold.fleet.capacity import Bank, Capacity, Seat, Slots
from tenfold.model.ids import NodeId
from tenfold.model.job.job import WHOLE, Shape, Slot, per_member

Usable = Callable[[NodeId], bool]
"""Whether a job may use a node: its partition holds it and no reservation is in the way."""


def choose(capacity: Capacity, shape: Shape, usable: Usable) -> Slots | None:
    """Return where the gang would go now; nothing is taken."""
    for seat in capacity.seats(shape):
        slots = _share(seat.bank, shape, usable) if shape.milli else _gang(seat, shape, usable)
        if slots is not None:
            return slots
    return None


def could_hold(capacity: Capacity, shape: Shape, usable: Usable) -> bool:
    """Return whether these nodes, all up and empty, would hold the gang."""
    return any(
        sum(usable(name) for name in seat.bank.names) >= seat.members + (seat.rest > 0)
        for seat in capacity.seats(shape)
    )


def _gang(seat: Seat, shape: Shape, usable: Usable) -> Slots | None:
    bank, members = seat.bank, seat.members + (seat.rest > 0)
    if bank.with_room(seat.gpus) < seat.members:
        return None
    room = list(_with_room(bank, seat.gpus, shape, members, usable))
    if len(room) < seat.members:
        return None
    chosen = _from_runs(room, seat.members)
    slots = [bank.slots(number, seat.gpus)[0] for number in chosen]
    if seat.rest:
        last = next(
            (n for n in _with_room(bank, seat.rest, shape, members, usable) if n not in chosen),
            -1,
        )
        if last < 0:
            return None
        slots.append(bank.slots(last, seat.rest)[0])
    return tuple(slots)


def _from_runs(room: list[int], wanted: int) -> list[int]:
    """Return `wanted` nodes of `room`, from as few and as tight runs as Slurm would take."""
    runs: list[list[int]] = []
    for number in room:
        if runs and runs[-1][-1] == number - 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    chosen: list[int] = []
    while len(chosen) < wanted:
        left = wanted - len(chosen)
        enough = [run for run in runs if len(run) >= left]
        best = min(enough, key=len) if enough else max(runs, key=len)
        runs.remove(best)
        chosen += best[:left]
    return chosen


def _with_room(bank: Bank, gpus: int, shape: Shape, members: int, usable: Usable) -> Iterator[int]:
    cpus, memory = per_member(shape, members)
    for number, free in enumerate(bank.free):
        if (
            free >= gpus
            and bank.is_open[number]
            and (not bank.counts_cpus or bank.cpus[number] >= cpus)
            and (not bank.counts_memory or bank.memory[number] >= memory)
            and usable(bank.names[number])
        ):
            yield number


def _share(bank: Bank, shape: Shape, usable: Usable) -> Slots | None:
    """Return the first device with enough left, in the order of nodes and devices."""
    for number in _with_room(bank, 0, shape, 1, usable):
        given = bank.given.get(number, {})
        for device in range(bank.size):
            milli = given.get(device, 0)
            if milli + shape.milli <= WHOLE and (milli or bank.free[number]):
                return (Slot(bank.names[number], 0, shape.milli, device),)
    return None
