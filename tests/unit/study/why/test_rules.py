"""Which rule keeps capacity from a job, and when it ends."""

from msgspec.structs import replace

from tenfold.engine.obstacle import dependency_reason
from tenfold.fleet.fleet import Fleet
from tenfold.model.actions import ReserveStart, StartJob, StopJob
from tenfold.model.events import ActionOrdered, JobStarted, JobStopped, JobSubmitted, NodeJoined
from tenfold.model.ids import JobId, NodeId, TeamId
from tenfold.model.job.job import Job, Slot, shape_of
from tenfold.model.job.terms import Terms, Window
from tenfold.model.policy.governance import GovernanceRules, TeamRules
from tenfold.model.reason import Reason
from tenfold.model.units import HOUR, MINUTE, Millis
from tenfold.report.reasons.render import Reader, render
from tenfold.study.why.redaction import redacted_why
from tenfold.study.why.why import Explainer, Why, dependency_rules
from tenfold.testing.builders import nodes

NOW = Millis(HOUR)
RED, BLUE = TeamId("red"), TeamId("blue")
GPU = 1_000


def rules(**named: object) -> GovernanceRules:
    teams = (TeamRules(id=RED, quota={"any": 16 * GPU}), TeamRules(id=BLUE))
    return replace(GovernanceRules(teams=teams, reservations=0, min_run_ms=Millis(0)), **named)


def held(fleet: Fleet, number: int, since_min: float, **named: object) -> None:
    """Start a job of eight GPUs on node `number`."""
    at_ms = Millis(round(since_min * MINUTE))
    one = Job(
        id=JobId(f"held-{number}"), shape=shape_of(8), submitted_ms=at_ms, seq=number, team=BLUE
    )
    one = replace(one, **named)
    fleet.apply(JobSubmitted(at_ms, one))
    fleet.apply(ActionOrdered(at_ms, StartJob(one.id, (Slot(NodeId(f"n{number}"), 8),))))
    fleet.apply(JobStarted(at_ms, one.id))


def asked(fleet: Fleet, **named: object) -> Job:
    job = Job(
        id=JobId("asked"), shape=shape_of(8), submitted_ms=Millis(50 * MINUTE), seq=99, team=RED
    )
    job = replace(job, **named)
    fleet.apply(JobSubmitted(job.submitted_ms, job))
    return job


def two_nodes() -> Fleet:
    fleet = Fleet()
    fleet.apply_all([NodeJoined(Millis(0), node) for node in nodes(2)])
    return fleet


def said(found: Why) -> dict[str, tuple[str, int | None]]:
    return {one.reason.code: (render(one.reason), one.until_ms) for one in found.rules}


def test_the_minimum_run_time_is_named_until_enough_jobs_have_run_it():
    fleet = two_nodes()
    held(fleet, 0, 20)
    held(fleet, 1, 40)
    job = asked(fleet)
    found = Explainer(fleet, rules(min_run_ms=Millis(HOUR)), NOW).why(job, "none")
    assert found.reason.code == "too-few-free"
    sentence = "`min_run_min` protects 2 running jobs (16 GPUs) from preemption for another 20 min"
    # One node is enough, so the first of the two decides.
    assert said(found) == {"minimum-run": (sentence, 80 * MINUTE)}


def test_two_nodes_are_free_when_the_second_job_has_run_its_minimum_time():
    fleet = two_nodes()
    held(fleet, 0, 20)
    held(fleet, 1, 40)
    job = asked(fleet, shape=shape_of(16, gpus_per_node=8))
    found = Explainer(fleet, rules(min_run_ms=Millis(HOUR)), NOW).why(job, "none")
    assert said(found)["minimum-run"][1] == 100 * MINUTE


def test_jobs_that_may_not_be_preempted_and_time_limits_are_named():
    fleet = two_nodes()
    terms = Terms(preemptible=False)
    held(fleet, 0, 20, terms=terms, limit_ms=Millis(3 * HOUR))
    held(fleet, 1, 40, terms=terms)
    found = Explainer(fleet, rules(), NOW).why(asked(fleet), "none")
    fixed = "`preemptible = false` protects 2 running jobs (16 GPUs) from preemption"
    limits = "running jobs free enough GPUs within 2h 20m, when they reach their time limits"
    assert said(found) == {
        "not-preemptible": (fixed, None),
        "time-limits": (limits, 200 * MINUTE),
    }


def test_a_policy_without_preemption_a_delay_and_an_hourly_limit_are_named():
    fleet = two_nodes()
    held(fleet, 0, 20)
    held(fleet, 1, 40)
    job = asked(fleet)
    none = said(Explainer(fleet, rules(preempts=False), NOW).why(job, "none"))
    assert list(none) == ["no-preemption"]
    delay = said(Explainer(fleet, rules(delay_ms=Millis(30 * MINUTE)), NOW).why(job, "none"))
    assert delay["preemption-delay"][1] == 80 * MINUTE
    order = StopJob(JobId("held-0"), "preempted", Reason("outranked"))
    fleet.apply(ActionOrdered(Millis(45 * MINUTE), order))
    fleet.apply(JobStopped(Millis(45 * MINUTE), JobId("held-0"), "preempted", Millis(0)))
    again = StartJob(JobId("held-0"), (Slot(NodeId("n0"), 8),))
    fleet.apply(ActionOrdered(Millis(46 * MINUTE), again))
    fleet.apply(JobStarted(Millis(46 * MINUTE), JobId("held-0")))
    hourly = said(Explainer(fleet, rules(stops_per_hour=1), NOW).why(job, "none"))
    sentence = "`stops_per_hour`: the policy preempts at most 1 job an hour; the next one in 45 min"
    assert hourly["hourly-preemptions"] == (sentence, 105 * MINUTE)
    often = rules(stops_per_job=1, min_run_ms=Millis(HOUR))
    worn = said(Explainer(fleet, often, NOW).why(job, "none"))
    assert worn["preempted-enough"][0] == (
        "`stops_per_job` protects 1 running job (8 GPUs) from preemption:"
        " each was preempted at least 1 time"
    )


def test_a_job_above_its_quota_preempts_no_other():
    fleet = two_nodes()
    held(fleet, 0, 20)
    held(fleet, 1, 40)
    job = asked(fleet, shape=shape_of(16, gpus_per_node=8))
    teams = (TeamRules(id=RED, quota={"any": 8 * GPU}), TeamRules(id=BLUE))
    found = said(Explainer(fleet, rules(teams=teams), NOW).why(job, "none"))
    assert found == {
        "above-quota": (
            "team `red` is above its quota with this job, so the job cannot preempt others",
            None,
        )
    }


def test_a_window_and_a_quota_end_when_they_say():
    fleet = two_nodes()
    held(fleet, 0, 20, terms=Terms(preemptible=False))
    window = Window(
        id="upkeep", start_ms=Millis(0), end_ms=Millis(3 * HOUR), nodes=("n1",), team=""
    )
    found = Explainer(fleet, rules(windows=(window,)), NOW).why(asked(fleet), "none")
    assert [(one.reason.code, one.until_ms) for one in found.rules] == [("window", 3 * HOUR)]


def test_a_borrowing_limit_ends_when_jobs_of_the_team_reach_their_time_limits():
    fleet = two_nodes()
    held(fleet, 0, 20, team=RED, limit_ms=Millis(2 * HOUR))
    teams = (TeamRules(id=RED, quota={"any": 8 * GPU}, borrow={"any": 0}), TeamRules(id=BLUE))
    found = Explainer(fleet, rules(teams=teams), NOW).why(asked(fleet), "none")
    assert found.reason.code == "quota-exceeded"
    assert [(one.reason.code, one.until_ms) for one in found.rules] == [
        ("quota-exceeded", 140 * MINUTE)
    ]


def test_a_reserved_start_is_named_and_hidden_from_other_teams():
    fleet = two_nodes()
    held(fleet, 0, 20, terms=Terms(preemptible=False))
    gang = Job(
        id=JobId("gang"), shape=shape_of(16, gpus_per_node=8), submitted_ms=Millis(0), team=BLUE
    )
    fleet.apply(JobSubmitted(Millis(0), gang))
    slots = (Slot(NodeId("n0"), 8), Slot(NodeId("n1"), 8))
    order = ReserveStart(gang.id, slots, Millis(90 * MINUTE), Millis(21 * MINUTE))
    fleet.apply(ActionOrdered(Millis(21 * MINUTE), order))
    job = asked(fleet, terms=Terms(preemptible=False))
    found = Explainer(fleet, rules(reservations=1, preempts=False), NOW).why(job, "none")
    assert found.reason.code == "kept-for-a-promise"
    sentence = "2 nodes reserved for job `gang`, which starts within 30 min"
    assert said(found) == {"reserved-start": (sentence, 90 * MINUTE)}
    shown = redacted_why(found, fleet, Reader("red"))
    hidden = "2 nodes reserved for a job of another team, which starts within 30 min"
    assert shown.rules[0].reason.sentence == hidden
    assert "gang" not in str(shown.rules)


def test_a_dependency_ends_with_the_time_limit_of_the_job_it_waits_for():
    fleet = two_nodes()
    held(fleet, 0, 20, limit_ms=Millis(HOUR))
    held(fleet, 1, 20)
    for after, until_ms in ((("held-0",), 80 * MINUTE), (("held-0", "held-1"), None)):
        job = Job(
            id=JobId("asked"),
            shape=shape_of(8),
            submitted_ms=NOW,
            terms=Terms(after=tuple(JobId(name) for name in after)),
        )
        reason = dependency_reason(fleet, job)
        assert reason is not None
        assert [one.until_ms for one in dependency_rules(fleet, job, reason)] == [until_ms]
