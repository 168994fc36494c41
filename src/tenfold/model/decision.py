"""The result of a decider: actions, and when to run it again."""

from collections.abc import Sequence

from msgspec import Struct

from tenfold.model.actions import Action
from tenfold.model.units import Millis


class Decision(Struct, frozen=True, gc=False):
    """Actions to take now; `wake_at_ms` requests another cycle even without an event."""

    actions: Sequence[Action] = ()
    wake_at_ms: Millis | None = None


NOTHING = Decision()
