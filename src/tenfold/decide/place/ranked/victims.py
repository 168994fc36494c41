"""Whom to displace: the fewest of those with the worst turns that make room on real nodes.

Candidates are added worst first until enough nodes qualify; then everyone whose going
turns out not to be needed is let off again, best first. Nobody is displaced in vain.
"""

from collections.abc import Iterable

from tenfold.decide.place.ranked.ranking import Holder
from tenfold.decide.place.ranked.victims_counted import CountedSearch
from tenfold.fleet.capacity import Bank, Capacity, Seat
from tenfold.fleet.scratch import Scratch
from tenfold.model.job.job import Shape


def choose_victims(
    capacity: Capacity, shape: Shape, candidates: Iterable[Holder]
) -> list[Holder] | None:
    """Return holders whose going would let the shape fit, or None if none do."""
    seats = capacity.seats(shape)
    # With one kind of node to look at, the worst few are usually enough.
    worst_first = candidates if len(seats) == 1 else list(candidates)
    for seat in seats:
        if shape.cpus_milli or shape.memory_mib:
            victims = CountedSearch(capacity, seat, shape).victims(worst_first)
        else:
            victims = _for_seat(capacity, seat, worst_first)
        if victims is not None and _fits_without(capacity, shape, victims):
            return victims
    return None


def _for_seat(capacity: Capacity, seat: Seat, worst_first: Iterable[Holder]) -> list[Holder] | None:
    bank, gpus = seat.bank, max(1, seat.gpus)
    wanted = seat.members + (seat.rest > 0) - bank.with_room(gpus)
    if wanted <= 0:
        return None
    extra: dict[int, int] = {}
    chosen: list[int] = []
    picked: list[Holder] = []
    for holder in worst_first:
        if not holder.may_go:
            continue
        touched = False
        for slot in holder.slots:
            home, number = capacity.place[slot.node]
            if home is not bank or not bank.is_open[number]:
                continue
            touched = True
            before = bank.free[number] + extra.get(number, 0)
            extra[number] = extra.get(number, 0) + slot.gpus
            if before < gpus <= before + slot.gpus:
                chosen.append(number)
        if touched:
            picked.append(holder)
        if len(chosen) >= wanted:
            return _needed(capacity, bank, gpus, chosen[:wanted], picked)
    return None


def _needed(
    capacity: Capacity, bank: Bank, gpus: int, chosen: list[int], picked: list[Holder]
) -> list[Holder]:
    """Let off, best first, everyone without whom the chosen nodes still have room."""
    spare = {number: bank.free[number] - gpus for number in chosen}
    there: list[tuple[Holder, list[tuple[int, int]]]] = []
    for holder in picked:
        parts = [
            (number, slot.gpus)
            for slot in holder.slots
            for home, number in (capacity.place[slot.node],)
            if home is bank and number in spare
        ]
        if parts:
            there.append((holder, parts))
            for number, given in parts:
                spare[number] += given
    needed: list[Holder] = []
    for holder, parts in reversed(there):
        if all(spare[number] >= given for number, given in parts):
            for number, given in parts:
                spare[number] -= given
        else:
            needed.append(holder)
    needed.reverse()
    return needed


def _fits_without(capacity: Capacity, shape: Shape, victims: list[Holder]) -> bool:
    """Return whether a shape finds room once these are gone."""
    scratch = Scratch(capacity)
    with scratch.trial():
        for victim in victims:
            scratch.release(victim.slots, victim.job.shape)
        return scratch.claim(shape) is not None
