"""Time the decisions of a run, and stop a run that makes no progress."""

from collections.abc import Sequence

from msgspec import Struct

from tenfold.clock import Stopwatch
from tenfold.engine.loop import Decider
from tenfold.fleet.fleet import Fleet, FleetView
from tenfold.model.actions import StartJob, StopJob
from tenfold.model.decision import Decision
from tenfold.model.events import Event
from tenfold.model.units import Millis

CYCLES_MAX = 1_000
"""Cycles at one moment after which a run counts as livelocked."""


class Cycle(Struct, frozen=True):
    """One decision."""

    at_ms: Millis
    cpu_s: float
    starts: int
    stops: int


class TimedDecider:
    """A decider that records how long each of its decisions takes."""

    def __init__(self, inner: Decider) -> None:
        self.name = inner.name
        self.cycles: list[Cycle] = []
        self._inner = inner

    def decide(self, view: FleetView, now_ms: Millis, news: Sequence[Event] | None) -> Decision:
        """Decide like the inner decider, and measure the time."""
        watch = Stopwatch()
        decision = self._inner.decide(view, now_ms, news)
        cpu_s = watch.cpu_s()
        starts = sum(isinstance(each, StartJob) for each in decision.actions)
        stops = sum(isinstance(each, StopJob) for each in decision.actions)
        self.cycles.append(Cycle(now_ms, cpu_s, starts, stops))
        return decision


class LivelockGuard:
    """A witness that stops a run whose decider never settles at one moment."""

    def __init__(self, cycles_most: int = CYCLES_MAX) -> None:
        self._most = cycles_most
        self._at_ms = -1
        self._cycles = 0

    def cycle(self, fleet: Fleet, now_ms: Millis, decider: Decider, decision: Decision) -> None:
        """Count the cycles at one moment."""
        if now_ms != self._at_ms:
            self._at_ms, self._cycles = now_ms, 0
        self._cycles += 1
        assert self._cycles <= self._most, (
            f"`{decider.name}` decided {self._most:,} times at {now_ms} ms without settling"
        )
