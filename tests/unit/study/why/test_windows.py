"""A job that a window or its hours hold back is told which, and when they let it go."""

from msgspec.structs import replace

from tenfold.decide.place.governed import GovernedPlacer
from tenfold.fleet.fleet import Fleet
from tenfold.model.actions import StartJob
from tenfold.model.events import ActionOrdered, JobStarted, JobSubmitted, NodeJoined
from tenfold.model.ids import JobId, NodeId, TeamId
from tenfold.model.job.job import Job, Slot, shape_of
from tenfold.model.job.terms import Hours, Terms, Window
from tenfold.model.policy.governance import GovernanceRules, TeamRules
from tenfold.model.units import HOUR, Millis
from tenfold.report.reasons.render import render
from tenfold.study.why.changes import RequestChange
from tenfold.study.why.why import Explainer, Why, eta_for, why
from tenfold.testing.builders import nodes

NOW = Millis(HOUR)
PLAIN = GovernanceRules(reservations=0)
STAYS = Terms(preemptible=False)


def asked(gpus: int, *, limit_h: int | None = None, terms: Terms | None = None) -> Job:
    return Job(
        id=JobId("asked"),
        shape=shape_of(gpus),
        submitted_ms=Millis(0),
        seq=9,
        team=TeamId("red"),
        limit_ms=None if limit_h is None else Millis(limit_h * HOUR),
        terms=terms,
    )


def window(start_h: int, end_h: int, *names: str, team: str = "") -> Window:
    start_ms, end_ms = Millis(start_h * HOUR), Millis(end_h * HOUR)
    return Window(id="upkeep", start_ms=start_ms, end_ms=end_ms, nodes=names, team=team)


def fleet_of(count: int, job: Job, *busy: str) -> Fleet:
    fleet = Fleet()
    fleet.apply_all([NodeJoined(Millis(0), node) for node in nodes(count, accelerator="A")])
    for number, node in enumerate(busy):
        held = replace(asked(8, terms=STAYS), id=JobId(f"held-{number}"), seq=number)
        fleet.apply(JobSubmitted(Millis(0), held))
        fleet.apply(ActionOrdered(Millis(0), StartJob(held.id, (Slot(NodeId(node), 8),))))
        fleet.apply(JobStarted(Millis(0), held.id))
    fleet.apply(JobSubmitted(Millis(0), job))
    return fleet


def answer(fleet: Fleet, *windows: Window) -> Why:
    govern = replace(PLAIN, windows=windows)
    return why(fleet, govern, fleet.pending[JobId("asked")], NOW)


def test_an_open_window_is_named_with_its_nodes_and_its_end():
    found = answer(fleet_of(2, asked(8), "n0"), window(0, 3, "n1"))
    assert found.reason.code == "window"
    assert render(found.reason) == (
        "needs 8 GPUs on 1 node; window `upkeep` holds node `n1` for another 2h 00m"
    )
    assert found.free_capacity is not None
    assert (found.free_capacity.nodes_in_window, found.free_capacity.nodes_away) == (1, 0)
    # The other node may be given back before that.
    assert found.not_before_ms is None


def test_a_window_over_all_nodes_is_a_bound_for_the_start():
    found = answer(fleet_of(2, asked(8)), window(0, 3))
    assert found.reason.code == "window"
    assert found.not_before_ms == 3 * HOUR


def test_a_window_to_come_holds_back_who_would_run_into_it_and_a_shorter_limit_helps():
    fleet = fleet_of(2, asked(8, limit_h=9), "n0")
    found = answer(fleet, window(4, 6))
    assert found.reason.code == "window"
    assert render(found.reason) == (
        "needs 8 GPUs on 1 node for up to 9h 00m; "
        "window `upkeep` starts in 3h 00m on 2 nodes and ends in 5h 00m"
    )
    assert found.not_before_ms == 6 * HOUR
    assert found.cheapest is not None
    assert found.cheapest.change == RequestChange(limit_ms=Millis(3 * HOUR))


def test_a_window_of_its_own_team_is_open_to_a_job():
    own = window(0, 3, "n1", team="red")
    assert answer(fleet_of(2, asked(8), "n0"), own).state == "starts"
    found = answer(fleet_of(2, asked(8), "n0", "n1"), own)
    assert found.reason.code == "too-few-free"
    assert found.free_capacity is not None
    assert found.free_capacity.nodes_in_window == 0


def test_a_window_that_is_not_in_the_way_is_not_blamed():
    found = answer(fleet_of(2, asked(16), "n0"), window(0, 3, "n1"))
    assert found.reason.code == "too-few-free"
    assert "(1 in a window)" in render(found.reason)


def test_jobs_alike_but_for_their_limits_have_reasons_of_their_own():
    fleet = fleet_of(1, asked(8, limit_h=9))
    short = replace(asked(8, limit_h=1), id=JobId("short"), seq=10)
    fleet.apply(JobSubmitted(Millis(0), short))
    govern = replace(PLAIN, windows=(window(4, 6),))
    asker = Explainer(fleet, govern, NOW)
    told = [asker.why(job, "none").reason.code for job in fleet.pending.values()]
    # The short one is gone before the window and takes the node; the long one is too late.
    assert told == ["too-few-free", "starts-now"]


def test_off_peak_hours_say_when_they_begin():
    hours = (Hours(Millis(22 * HOUR), Millis(24 * HOUR)), Hours(Millis(6 * HOUR), Millis(7 * HOUR)))
    fleet = fleet_of(1, asked(8, terms=Terms(off_peak=True)))
    found = why(fleet, replace(PLAIN, off_peak=hours), fleet.pending[JobId("asked")], NOW)
    said = "starts only in off-peak hours, which begin in 5h 00m"
    assert (found.reason.code, render(found.reason)) == ("off-peak", said)
    assert found.not_before_ms == 6 * HOUR


def test_quotas_of_the_day_say_when_they_would_let_a_job_in():
    night = ((Hours(Millis(20 * HOUR), Millis(24 * HOUR)), {"A": 16_000}),)
    teams = (TeamRules(id=TeamId("red"), quota={"A": 8_000}, borrow={"A": 0}, hours=night),)
    fleet = fleet_of(2, asked(8), "n0")
    found = why(fleet, replace(PLAIN, teams=teams), fleet.pending[JobId("asked")], NOW)
    assert found.reason.code == "quota-hours"
    assert render(found.reason) == (
        "requests 8 A; team `red` holds 8 (quota 8, no borrowing); quota rises to 16 A in 19h 00m"
    )
    # Others may give back what they hold before that.
    assert found.not_before_ms is None


def test_no_forecast_comes_before_a_window_is_over():
    fleet = fleet_of(2, asked(8))
    govern = replace(PLAIN, windows=(window(0, 3),))
    found = answer(fleet, *govern.windows)
    eta = eta_for(fleet, found, NOW, lambda: GovernedPlacer(govern))
    assert eta is not None
    assert eta.p50_ms >= 3 * HOUR
    late = replace(found, not_before_ms=Millis(90 * HOUR))
    bound = eta_for(fleet, late, NOW, lambda: GovernedPlacer(govern))
    assert bound is not None
    assert (bound.p50_ms, bound.p90_ms) == (90 * HOUR, 90 * HOUR)
