"""The book of a run that was recorded: the waits in its record, followed once more.

Nobody kept a book while the run went on, but all that a book sees stands in the record. So
what is asked about a saved state is answered from the waits that had ended by then, and is
as well calibrated as if somebody had.
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
"""Of more waits than this only each so many-th is followed: all are forecast once more, and
that takes a third of a millisecond each."""


class _RecordedDecider:
    """Decides what was decided."""

    name = "recorded"

    def __init__(self, world: ReplayWorld) -> None:
        self._world = world

    def decide(self, view: FleetView, now_ms: Millis, news: Sequence[Event] | None) -> Decision:
        cycle = self._world.next_step().cycle
        return Decision(actions=cycle.actions, wake_at_ms=cycle.wake_at_ms)


def wait_log_of(lines: Sequence[Line]) -> WaitLog:
    """Return the book that would have been kept while these lines were written."""
    wait_log = WaitLog(every=1 + _waits(lines) // MAX_WAITS)
    world = ReplayWorld(iterations_of(lines))
    run(world, Fleet(), [_RecordedDecider(world)], witnesses=[wait_log])
    return wait_log


def _waits(lines: Sequence[Line]) -> int:
    """Return about how many waits a record holds: who starts in its own turn does not wait."""
    waits = 0
    for turn in iterations_of(lines):
        new = {fact.job.id: None for fact in turn.facts if isinstance(fact, JobSubmitted)}
        for step in turn.steps:
            for action in step.cycle.actions:
                if isinstance(action, StartJob):
                    new.pop(action.job_id, None)
                waits += isinstance(action, StopJob)
        waits += len(new)
    return waits
