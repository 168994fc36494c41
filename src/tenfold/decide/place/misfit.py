"""Why a shape can never run on this fleet, in the words of its first obstacle."""

from tenfold.fleet.capacity import Capacity
from tenfold.model.job import Shape
from tenfold.model.reason import Reason


def never_fits(capacity: Capacity, shape: Shape) -> tuple[Reason, ...]:
    """Return the reason that holds even for an empty, whole fleet."""
    kinds = capacity.banks
    if shape.accelerators and not any(kind[1] in shape.accelerators for kind in kinds):
        wanted = " or ".join(f"`{name}`" for name in shape.accelerators)
        return (Reason("no-such-accelerator", f"no node of this fleet has {wanted}"),)
    seats = capacity.seats(shape)
    if not seats:
        return (Reason("larger-than-a-node", f"no node can hold a member of shape `{shape.key}`"),)
    most = max(len(seat.bank.names) for seat in seats)
    least = min(seat.members + (seat.rest > 0) for seat in seats)
    return (
        Reason(
            "larger-than-the-fleet",
            f"the gang needs {least} nodes and the largest set of nodes alike has {most}",
        ),
    )
