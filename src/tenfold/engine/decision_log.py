"""The decision log: what each cycle ordered, why, and when it asked to be woken.

Counts are those after the cycle's orders were carried out.
"""

from msgspec import Struct

from tenfold.engine.loop import Decider
from tenfold.fleet.fleet import FleetView
from tenfold.model.actions import Action
from tenfold.model.decision import Decision
from tenfold.model.units import Millis


class Cycle(
    Struct, frozen=True, forbid_unknown_fields=True, gc=False, tag="Cycle", omit_defaults=True
):
    """One decision, and how the fleet stood once its orders were carried out."""

    at_ms: Millis
    decider: str
    version: int
    """Facts applied by then: the cycle's own orders and their outcomes are among them."""
    pending: int
    running: int
    actions: tuple[Action, ...] = ()
    wake_at_ms: Millis | None = None
    is_cut: bool = False
    """Its record went with a controller that was killed: what it ordered is known, and how the
    fleet stood after it, but not when it wished to be woken."""


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
