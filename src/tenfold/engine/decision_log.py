"""The decision log: what each cycle ordered, why, and its next wake-up time.

Counts are those after the cycle's orders were carried out.
"""

from collections.abc import Iterable

from msgspec import Struct

from tenfold.engine.loop import Decider
from tenfold.fleet.fleet import FleetView
from tenfold.model.actions import Action
from tenfold.model.decision import Decision
from tenfold.model.units import Millis

OBSERVED = "observed"
"""The decider of a reading of another scheduler's cluster: what it did was only recorded."""


class Cycle(
    Struct, frozen=True, forbid_unknown_fields=True, gc=False, tag="Cycle", omit_defaults=True
):
    """One decision, and the state of the fleet after its orders were carried out."""

    at_ms: Millis
    decider: str
    version: int
    """Events applied by then, including the cycle's own orders and their outcomes."""
    pending: int
    running: int
    actions: tuple[Action, ...] = ()
    wake_at_ms: Millis | None = None
    is_cut: bool = False
    """Its record was lost when a controller was killed: its orders and the state afterwards are
    known, but not its wake-up time.
    """


def cycle_of(view: FleetView, now_ms: Millis, decider: Decider, decision: Decision) -> Cycle:
    """Return the record of one cycle."""
    return Cycle(
        now_ms,
        decider.name,
        view.version,
        len(view.pending),
        len(view.running),
        tuple(decision.actions),
        decision.wake_at_ms,
    )


def is_observed(lines: Iterable[object]) -> bool:
    """Return whether a record is of another scheduler's cluster."""
    return any(isinstance(line, Cycle) and line.decider == OBSERVED for line in lines)
