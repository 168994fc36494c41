"""What teams used of late counts beside what they hold."""

from msgspec.structs import replace

from tenfold.decide.place.governed import GovernedPlacer
from tenfold.decide.place.quota.decayed_usage import decayed_usage
from tenfold.decide.place.ranked.learned import WINDOW, epoch
from tenfold.fleet.fleet import HISTORY, Fleet
from tenfold.model.actions import StartJob
from tenfold.model.events import ActionOrdered, JobEnded, JobStarted, JobSubmitted
from tenfold.model.ids import NodeId, TeamId
from tenfold.model.job.job import Slot
from tenfold.model.policy.governance import GovernanceRules
from tenfold.model.units import HOUR, Millis
from tenfold.testing.builders import fleet, job, nodes

DAY = Millis(24 * HOUR)


def ran(made: Fleet, number: int, team: str, from_h: float, to_h: float) -> None:
    """Let a job of eight GPUs run on the first node for some hours."""
    one = replace(job(number, 8, team=team), submitted_ms=Millis(round(from_h * HOUR)))
    start = StartJob(one.id, (Slot(NodeId("n0"), 8),))
    made.apply_all([JobSubmitted(one.submitted_ms, one), ActionOrdered(one.submitted_ms, start)])
    made.apply(JobStarted(one.submitted_ms, one.id))
    made.apply(JobEnded(Millis(round(to_h * HOUR)), one.id))


def test_nothing_was_used_before_anything_ended():
    assert decayed_usage(fleet(nodes(1)), DAY) == {}


def test_a_half_life_of_use_counts_as_half_of_it_held():
    made = fleet(nodes(1))
    ran(made, 0, "a", 0, 24)
    assert decayed_usage(made, DAY) == {(TeamId("a"), ""): 4_000}


def test_after_another_half_life_it_counts_half_as_much():
    made = fleet(nodes(1))
    ran(made, 0, "a", 0, 24)
    ran(made, 1, "b", 47.9, 48)
    used = decayed_usage(made, DAY)
    assert used[TeamId("a"), ""] == 2_000
    assert 0 < used[TeamId("b"), ""] < 50


def test_the_team_that_has_just_used_a_lot_waits():
    made = fleet(nodes(1))
    ran(made, 0, "busy", 0, 24)
    late = Millis(25 * HOUR)
    for number, team in ((1, "busy"), (2, "new")):
        made.apply(JobSubmitted(late, replace(job(number, 8, team=team), submitted_ms=late)))
    for share, first in (("held", "job-1"), ("decayed", "job-2")):
        govern = GovernanceRules(fair_share=share)
        decision = GovernedPlacer(govern).decide(made, late, None)
        starts = [one.job_id for one in decision.actions if isinstance(one, StartJob)]
        assert starts == [first], share


def test_figures_are_taken_at_counts_that_history_can_always_show_again():
    for ended in (0, 1, 15, 16, 100, 5_000, 123_456):
        assert 0 <= ended - epoch(ended) <= HISTORY - WINDOW
