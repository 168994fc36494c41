"""What is said about the time before which a job cannot start is true in the run that follows."""

from collections.abc import Sequence
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from tenfold.decide.place.governed import GovernedPlacer
from tenfold.engine.loop import run
from tenfold.fleet.fleet import Fleet, FleetView
from tenfold.model.actions import StartJob
from tenfold.model.decision import Decision
from tenfold.model.events import Event
from tenfold.model.ids import JobId
from tenfold.model.policy.governance import GovernanceRules
from tenfold.model.units import Millis
from tenfold.study.why.why import Explainer
from tests.rigs.soak import simulated
from tests.rigs.worlds import drawn_world


class Asked:
    """A governed decider that is asked about everybody who waits, before each decision."""

    name = "governed"

    def __init__(self, govern: GovernanceRules) -> None:
        self._govern = govern
        self._decider = GovernedPlacer(govern)
        self.bounds: dict[JobId, Millis] = {}
        self.codes: dict[str, int] = {}

    def decide(self, view: FleetView, now_ms: Millis, news: Sequence[Event] | None) -> Decision:
        decision = self._decider.decide(view, now_ms, news)
        for action in decision.actions:
            if isinstance(action, StartJob):
                assert now_ms >= self.bounds.pop(action.job_id, now_ms), (
                    f"`{action.job_id}` is early"
                )
        assert isinstance(view, Fleet)
        explainer = Explainer(view, self._govern, now_ms)
        for job in view.pending.values():
            told = explainer.why(job, "none")
            self.codes[told.reason.code] = self.codes.get(told.reason.code, 0) + 1
            if told.not_before_ms is not None:
                assert told.not_before_ms > now_ms
                self.bounds[job.id] = told.not_before_ms
        return decision


def ask_all_along(seed: int) -> Asked:
    """Run a drawn world to its end, and ask at every cycle."""
    world = drawn_world(Random(seed), jobs=(8, 20), faults=(0, 1), governed=True)
    assert world.govern is not None
    asked = Asked(world.govern)
    run(simulated(world), Fleet(), [asked])
    return asked


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 1 << 32))
def test_no_job_starts_before_its_window_or_its_hours_let_it(seed: int):
    ask_all_along(seed)


def test_such_worlds_have_jobs_that_windows_and_hours_hold_back():
    codes = [code for seed in range(40) for code in ask_all_along(seed).codes]
    assert "window" in codes
    assert "off-peak" in codes
