"""What deciders share that change where another decider's starts go, and nothing else."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from tenfold.decide.place.indexed import IndexedDecider
from tenfold.fleet.capacity import Capacity
from tenfold.fleet.view import FleetView
from tenfold.model.actions import Action, StartJob
from tenfold.model.decision import Decision
from tenfold.model.events import Event
from tenfold.model.units import Millis


class MovedStarts(ABC):
    """Wraps a decider. A subclass says which starts go elsewhere."""

    def __init__(self, inner: IndexedDecider) -> None:
        self._inner = inner
        self._has_moved = False

    @property
    def name(self) -> str:
        """Its name in the decision log: the policy that decides."""
        return self._inner.name

    @property
    def index(self) -> Capacity | None:
        """The policy's index; None after a start was moved, since the policy then rebuilds it."""
        return None if self._has_moved else self._inner.index

    def decide(self, view: FleetView, now_ms: Millis, news: Sequence[Event] | None) -> Decision:
        """Return the other decider's decision, with some starts on other nodes."""
        # Its cache still has the nodes it chose: let it rebuild from the view.
        decision = self._inner.decide(view, now_ms, None if self._has_moved else news)
        self._has_moved = False
        if not decision.actions:
            return decision
        actions = self.moved(view, decision.actions)
        self._has_moved = any(
            isinstance(after, StartJob)
            and isinstance(before, StartJob)
            and after.slots != before.slots
            for before, after in zip(decision.actions, actions, strict=True)
        )
        return Decision(actions, decision.wake_at_ms)

    @abstractmethod
    def moved(self, view: FleetView, actions: Sequence[Action]) -> Sequence[Action]:
        """Return the same actions in the same order, with the slots that starts get."""
