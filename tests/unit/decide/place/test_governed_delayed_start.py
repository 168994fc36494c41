"""A start that takes a while is noted in the governed decider's books, which are kept."""

import pytest

from tenfold.decide.place import governed as placers
from tenfold.decide.place.governed import GovernedPlacer
from tenfold.fleet.fleet import Fleet
from tenfold.model.events import ActionOrdered, Event, JobStarted
from tenfold.model.policy.governance import GovernanceRules
from tenfold.model.units import MINUTE, Millis
from tenfold.testing.builders import fleet, job, nodes

LATER = Millis(700)
GOVERN = GovernanceRules(min_run_ms=Millis(10 * MINUTE))


def begun(placer: GovernedPlacer) -> Fleet:
    """Two jobs that were ordered to start, and one that waits for either's room."""
    waiting = [job(1, 8, team="red"), job(2, 8, team="red"), job(3, 8, team="blue")]
    made = fleet(nodes(2), *waiting)
    decision = placer.decide(made, Millis(0), None)
    orders: list[Event] = [ActionOrdered(Millis(0), action) for action in decision.actions]
    assert len(orders) >= 2
    made.apply_all(orders)
    placer.decide(made, Millis(0), orders)
    return made


def test_a_late_start_is_decided_on_as_by_a_fresh_decider(monkeypatch: pytest.MonkeyPatch):
    warm = GovernedPlacer(GOVERN)
    made = begun(warm)
    for number, at_ms in enumerate((LATER, Millis(2 * LATER)), start=1):
        started = JobStarted(at_ms, made.orders[next(iter(made.orders))].job.id)
        made.apply(started)
        fresh = GovernedPlacer(GOVERN).decide(made, at_ms, None)
        with monkeypatch.context() as patched:
            patched.setattr(placers, "SchedulerState", _rebuilt)
            found = warm.decide(made, at_ms, [started])
        assert (list(found.actions), found.wake_at_ms) == (list(fresh.actions), fresh.wake_at_ms)
        assert len(made.running) == number


def _rebuilt(*_: object) -> None:
    raise AssertionError("the books were made anew")
