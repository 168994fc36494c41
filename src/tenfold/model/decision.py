"""What a decider answers: wishes, and when it wants to be asked again."""

from collections.abc import Sequence

from msgspec import Struct

from tenfold.model.actions import Action
from tenfold.model.units import Millis


class Decision(Struct, frozen=True, gc=False):
    """What should be done now; `wake_at_ms` asks for another turn even without a fact."""

    actions: Sequence[Action] = ()
    wake_at_ms: Millis | None = None


NOTHING = Decision()
