"""Rebuild the wait log of a recorded run by replaying its record.

The record holds everything a wait log observes, so questions about a saved state are answered
from the waits that had ended by then, as well calibrated as in the live run.
"""

from collections.abc import Sequence

from tenfold.engine.loop import run
from tenfold.engine.recording import Line, iterations_of
from tenfold.engine.replay import ReplayWorld
from tenfold.fleet.fleet import Fleet, FleetView
from tenfold.model.actions import StartJob, StopJob
from tenfold.model.decision import Decision
from tenfold.model.events import Event, JobSubmitted
from tenfold.model.units import Millis
from tenfold.study.eta.wait_log import WaitLog

MAX_WAITS = 1_000
"""With more waits than this only every n-th is tracked: each costs a third of a millisecond."""


class _RecordedDecider:
    """Repeats the recorded decisions."""

    name = "recorded"

    def __init__(self, world: ReplayWorld) -> None:
        self._world = world

    def decide(self, view: FleetView, now_ms: Millis, news: Sequence[Event] | None) -> Decision:
        cycle = self._world.next_step().cycle
        return Decision(actions=cycle.actions, wake_at_ms=cycle.wake_at_ms)


def wait_log_of(lines: Sequence[Line]) -> WaitLog:
    """Return the wait log that the run would have produced."""
    wait_log = WaitLog(every=1 + _waits(lines) // MAX_WAITS)
    world = ReplayWorld(iterations_of(lines))
    run(world, Fleet(), [_RecordedDecider(world)], witnesses=[wait_log])
    return wait_log


def _waits(lines: Sequence[Line]) -> int:
    """Return the approximate number of waits; a job that starts in its own cycle does not wait."""
    waits = 0
    for iteration in iterations_of(lines):
        new = {fact.job.id: None for fact in iteration.facts if isinstance(fact, JobSubmitted)}
        for step in iteration.steps:
            for action in step.cycle.actions:
                if isinstance(action, StartJob):
                    new.pop(action.job_id, None)
                waits += isinstance(action, StopJob)
        waits += len(new)
    return waits
