"""What holds for every reason, and for every change that is said to help."""

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from tenfold.decide.place.explain.settled import Settled
from tenfold.decide.place.explain.why import Reasons
from tenfold.decide.place.governed import GovernedPlacer
from tenfold.fleet.check import check
from tenfold.fleet.fleet import Fleet
from tenfold.model.actions import RefuseJob, ResizeJob, StartJob, StopJob
from tenfold.model.decision import Decision
from tenfold.model.events import (
    ActionOrdered,
    JobEnded,
    JobRefused,
    JobResized,
    JobStarted,
    JobStopped,
    JobSubmitted,
    NodeJoined,
)
from tenfold.model.ids import JobId
from tenfold.model.policy.governance import GovernanceRules
from tenfold.model.units import MINUTE, Millis
from tenfold.report.reasons.render import render
from tenfold.study.why.changes import apply_change
from tenfold.study.why.why import Explainer
from tests.rigs.worlds import drawn_world

ROUNDS = 4
seeds = st.integers(0, 1 << 32)


def carried_out(fleet: Fleet, decision: Decision, now_ms: Millis) -> bool:
    """Make facts of what was decided at once; say whether anybody gave anything back."""
    for action in decision.actions:
        fleet.apply(ActionOrdered(now_ms, action))
        match action:
            case StartJob():
                fleet.apply(JobStarted(now_ms, action.job_id))
            case StopJob():
                fleet.apply(JobStopped(now_ms, action.job_id, action.cause, Millis(0)))
            case RefuseJob():
                fleet.apply(JobRefused(now_ms, action.job_id, action.reasons))
            case ResizeJob():
                fleet.apply(JobResized(now_ms, action.job_id))
            case _:
                pass
    return any(isinstance(action, StopJob | ResizeJob) for action in decision.actions)


def crowded(seed: int) -> tuple[Fleet, GovernanceRules, Millis]:
    """A governed fleet some way into its work, with jobs that wait."""
    dice = Random(seed)
    world = drawn_world(dice, jobs=(6, 16), faults=(0, 1), governed=True)
    govern, now_ms = world.govern, Millis(0)
    assert govern is not None
    fleet = Fleet()
    fleet.apply_all([NodeJoined(now_ms, node) for node in world.nodes])
    for job in world.jobs:
        now_ms = max(now_ms, job.submitted_ms)
        fleet.apply(JobSubmitted(now_ms, job))
        if dice.random() < 0.5:
            for _ in range(ROUNDS):
                if not carried_out(
                    fleet, GovernedPlacer(govern).decide(fleet, now_ms, None), now_ms
                ):
                    break
        if fleet.running and dice.random() < 0.2:
            fleet.apply(JobEnded(now_ms, dice.choice(list(fleet.running))))
    return fleet, govern, Millis(now_ms + dice.choice((0, 10 * MINUTE)))


def is_started(fleet: Fleet, govern: GovernanceRules, job_id: JobId, now_ms: Millis) -> bool:
    """Ask a fresh decider, and once more when the stops and resizes it orders are facts."""
    for _ in range(2):
        decision = GovernedPlacer(govern).decide(fleet, now_ms, None)
        started = [one.job_id for one in decision.actions if isinstance(one, StartJob)]
        if job_id in started:
            return True
        if not carried_out(fleet, decision, now_ms):
            return False
    return False


@settings(max_examples=60, deadline=None)
@given(seeds)
def test_the_cheapest_change_really_schedules_the_job(seed: int):
    fleet, govern, now_ms = crowded(seed)
    explainer = Explainer(fleet, govern, now_ms)
    for job in list(fleet.pending.values())[:4]:
        cheapest = explainer.why(job).cheapest
        if cheapest is not None:
            fork, rules = apply_change(fleet, govern, job.id, cheapest.change, now_ms)
            check(fork)
            assert is_started(fork, rules, job.id, now_ms), cheapest.advice


@settings(max_examples=60, deadline=None)
@given(seeds)
def test_a_job_is_said_to_start_if_and_only_if_the_decider_starts_it(seed: int):
    fleet, govern, now_ms = crowded(seed)
    decision = GovernedPlacer(govern).decide(fleet, now_ms, None)
    started = {one.job_id: one.slots for one in decision.actions if isinstance(one, StartJob)}
    refused = {one.job_id for one in decision.actions if isinstance(one, RefuseJob)}
    explainer = Explainer(fleet, govern, now_ms)
    for job in fleet.pending.values():
        answer = explainer.why(job, "none")
        assert answer.slots == started.get(job.id, ())
        assert (answer.state == "never") == (job.id in refused)
        assert answer.reason.code
        assert render(answer.reason)


@settings(max_examples=40, deadline=None)
@given(seeds)
def test_a_search_that_ends_early_finds_the_cheapest_of_all(seed: int):
    fleet, govern, now_ms = crowded(seed)
    early, every = Explainer(fleet, govern, now_ms), Explainer(fleet, govern, now_ms)
    for job in list(fleet.pending.values())[:4]:
        assert early.why(job).cheapest == every.why(job, "every").cheapest


@settings(max_examples=40, deadline=None)
@given(seeds)
def test_asking_changes_nothing_and_repeats_itself(seed: int):
    fleet, govern, now_ms = crowded(seed)
    before = (fleet.version, dict(fleet.pending), dict(fleet.running), dict(fleet.gpus_free))
    explainer = Explainer(fleet, govern, now_ms)
    jobs = list(fleet.pending.values())[:4]
    first = [explainer.why(job) for job in jobs]
    assert [explainer.why(job) for job in reversed(jobs)][::-1] == first
    assert before == (
        fleet.version,
        dict(fleet.pending),
        dict(fleet.running),
        dict(fleet.gpus_free),
    )


@settings(max_examples=40, deadline=None)
@given(seeds)
def test_searches_leave_the_books_as_they_were(seed: int):
    fleet, govern, now_ms = crowded(seed)
    explainer = Explainer(fleet, govern, now_ms)
    for job in list(fleet.pending.values())[:4]:
        explainer.why(job)
    fresh = Reasons(Settled(fleet, govern, now_ms))
    for job in fleet.pending.values():
        answer, blocked = explainer.why(job, "none"), fresh.blocked(job)
        assert (answer.reason, answer.free_capacity) == (blocked.reason, blocked.room)
        assert (answer.holders, answer.standing) == (blocked.holders, blocked.standing)
