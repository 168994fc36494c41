"""Free capacity as a team sees it: without nodes of reservations and windows for others."""

from collections.abc import Sequence

from tenfold.decide.place.state.scheduler_state import SchedulerState
from tenfold.fleet.obstacle import FreeCapacity, fits, free_capacity, needs, obstacle_to
from tenfold.model.job.job import Shape
from tenfold.model.reason import JobRef, Reason


def governed_free_capacity(
    state: SchedulerState, shape: Shape, accelerators: Sequence[str]
) -> FreeCapacity:
    """Return the counts for the kind of node, among these types, that comes closest."""
    kept = (slot.node for each in state.reserved.values() for slot in each.reservation.slots)
    return free_capacity(state.capacity, shape, accelerators, kept, state.windows.open)


def capacity_reason(
    state: SchedulerState, shape: Shape, accelerators: Sequence[str], room: FreeCapacity
) -> Reason:
    """Return the first thing that blocks a shape which its team's quota allows."""
    if fits(state.capacity, shape, accelerators):
        return Reason("others-first")
    if state.reserved and _fits_unreserved(state, shape, accelerators):
        first = min(state.reserved.values(), key=lambda each: each.reservation.start_ms)
        fields = needs(room)
        fields["kept"], fields["job"] = room.nodes_kept, JobRef(first.job.id, first.job.team)
        fields["more"] = len(state.reserved) - 1
        return Reason("kept-for-a-promise", fields)
    return obstacle_to(state.capacity, shape, accelerators, room)


def _fits_unreserved(state: SchedulerState, shape: Shape, accelerators: Sequence[str]) -> bool:
    """Return whether a shape would fit if nothing were reserved for others."""
    with state.scratch.trial():
        for each in state.reserved.values():
            state.scratch.unhide(state.capacity.around(each.reservation.slots))
        return fits(state.capacity, shape, accelerators)
