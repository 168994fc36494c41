"""A complete run: events, orders, outcomes, and where each cycle ended.

Events alone do not show where one cycle ended and the next began: a job of zero length starts
and ends at one moment, and a decider may wake without an event. So each cycle has a record after
its events, and what lies between two such records is one step of the run.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from tenfold.engine.decision_log import Cycle, cycle_of
from tenfold.engine.loop import Decider
from tenfold.fleet.fleet import Fleet
from tenfold.model.decision import Decision
from tenfold.model.events import ActionOrdered, Event
from tenfold.model.units import Millis

Line = Event | Cycle
"""What a recording holds, in order."""


class Step(NamedTuple):
    """What one decider did in an iteration, and the immediate outcomes."""

    cycle: Cycle
    orders: Sequence[ActionOrdered]
    outcomes: Sequence[Event]


class LoopIteration(NamedTuple):
    """One return of `World.wait`: the events of a moment, then a step of each decider."""

    at_ms: Millis
    facts: Sequence[Event]
    steps: Sequence[Step]


class Recording:
    """A journal and a witness at once: keeps a run in memory."""

    def __init__(self) -> None:
        self.lines: list[Line] = []

    def append(self, events: Sequence[Event]) -> None:
        """Keep events, in order."""
        self.lines += events

    def cycle(self, fleet: Fleet, now_ms: Millis, decider: Decider, decision: Decision) -> None:
        """Keep the record that closes a cycle."""
        self.lines.append(cycle_of(fleet, now_ms, decider, decision))


def events_of(lines: Iterable[Line]) -> Iterator[Event]:
    """Yield the events of a recording without its cycles."""
    for line in lines:
        if not isinstance(line, Cycle):
            yield line


def iterations_of(lines: Iterable[Line], deciders: int = 1) -> Iterator[LoopIteration]:
    """Yield the iterations of a run; events after the last cycle belong to none."""
    facts: list[Event] = []
    orders: list[ActionOrdered] = []
    outcomes: list[Event] = []
    steps: list[Step] = []
    for line in lines:
        if isinstance(line, ActionOrdered):
            orders.append(line)
        elif not isinstance(line, Cycle):
            (outcomes if orders else facts).append(line)
        else:
            steps.append(Step(line, orders, outcomes))
            orders, outcomes = [], []
            if len(steps) == deciders:
                yield LoopIteration(line.at_ms, facts, steps)
                facts, steps = [], []
