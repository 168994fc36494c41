"""Fill a fleet until nothing goes in: how much of it can a placement use at all?

Jobs arrive in the order given and never leave; one that does not fit is dropped. What counts
is the share of the fleet's GPUs that is allocated when the requests that have arrived, placed or
not, first reach a share of its capacity.
"""

from collections.abc import Sequence

from msgspec import Struct

from tenfold.decide.place.score.scored import make_capacity
from tenfold.fleet.fleet import Fleet
from tenfold.model.events import NodeJoined
from tenfold.model.fleet.node import Node
from tenfold.model.job.job import WHOLE, Job, Shape
from tenfold.model.policy.policy import Placement
from tenfold.model.units import Millis

MARKS = ("0.8", "0.9", "1.0")


class FillResult(Struct, frozen=True, kw_only=True):
    """What went in."""

    jobs: int
    placed: int
    dropped: int
    gpus: int
    """GPUs of the fleet."""
    gpu_allocated: dict[str, float | None]
    """Share of the GPUs allocated when so much of the capacity had been requested; None where
    the jobs never requested so much."""
    gpu_allocated_end: float
    """The same after the last job."""


def fill(nodes: Sequence[Node], jobs: Sequence[Job], placement: Placement) -> FillResult:
    """Return how far jobs fill these nodes.

    `fgd` knows the mix of all jobs in advance, as it was published; `tenfold` learns it
    from the arrivals.
    """
    fleet = Fleet()
    fleet.apply_all([NodeJoined(Millis(0), node) for node in nodes])
    capacity = make_capacity(fleet, placement)
    if placement == "fgd":
        capacity.know(job.shape for job in jobs)
    whole_milli = sum(node.gpus for node in nodes) * WHOLE
    arrived = allocated = placed = 0
    shares: dict[str, float | None] = dict.fromkeys(MARKS)
    due = [(mark, float(mark) * whole_milli) for mark in MARKS] if whole_milli else []
    for job in jobs:
        shape = job.shape
        if placement == "tenfold":
            capacity.learn(shape)
        requested = requested_milli(shape)
        arrived += requested
        if capacity.claim(shape) is not None:
            allocated += requested
            placed += 1
        while due and arrived >= due[0][1]:
            shares[due.pop(0)[0]] = allocated / whole_milli
    return FillResult(
        jobs=len(jobs),
        placed=placed,
        dropped=len(jobs) - placed,
        gpus=whole_milli // WHOLE,
        gpu_allocated=shares,
        gpu_allocated_end=allocated / whole_milli if whole_milli else 0.0,
    )


def requested_milli(shape: Shape) -> int:
    """Return the thousandths of a GPU that a shape requests."""
    return shape.milli or shape.gpus * WHOLE
