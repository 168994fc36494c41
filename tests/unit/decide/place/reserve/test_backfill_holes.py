"""Who may use nodes that are kept for a promised gang until it starts."""

from msgspec.structs import replace

from tenfold.decide.place.governed import GovernedPlacer
from tenfold.fleet.fleet import Fleet
from tenfold.model.actions import ReserveStart, StartJob
from tenfold.model.events import ActionOrdered, JobStarted, JobSubmitted
from tenfold.model.ids import JobId
from tenfold.model.job.job import Job, Slot
from tenfold.model.policy.governance import GovernanceRules
from tenfold.model.units import HOUR, MINUTE, Millis
from tenfold.testing.builders import fleet, job, nodes

GOVERN = GovernanceRules(reserve_after_ms=Millis(0), preempts=False)
NOW = Millis(MINUTE)


def kept() -> Fleet:
    """Two nodes: one is busy for an hour, the other is kept for a gang of red, of priority 3."""
    busy = replace(job(1, 8, team="blue"), limit_ms=Millis(HOUR))
    made = fleet(nodes(2), busy, replace(job(2, 16, team="red"), priority=3))
    made.apply(ActionOrdered(Millis(0), StartJob(busy.id, (Slot(nodes(1)[0].id, 8),))))
    made.apply(JobStarted(Millis(0), busy.id))
    [reservation] = GovernedPlacer(GOVERN).decide(made, Millis(0), None).actions
    assert isinstance(reservation, ReserveStart)
    assert (reservation.job_id, reservation.start_ms) == ("job-2", HOUR)
    made.apply(ActionOrdered(Millis(0), reservation))
    return made


def short(team: str, priority: int, *, minutes: int = 10) -> Job:
    limited = replace(job(3, 1, team=team), limit_ms=Millis(minutes * MINUTE))
    return replace(limited, priority=priority, submitted_ms=NOW)


def started(newcomer: Job) -> list[JobId]:
    made = kept()
    made.apply(JobSubmitted(NOW, newcomer))
    decision = GovernedPlacer(GOVERN).decide(made, NOW, None)
    return [action.job_id for action in decision.actions if isinstance(action, StartJob)]


def test_a_job_that_ends_before_the_promise_uses_its_node():
    assert started(short("blue", 0)) == ["job-3"]
    assert started(short("red", 3)) == ["job-3"]


def test_a_job_that_would_still_run_then_waits():
    assert started(short("blue", 0, minutes=61)) == []


def test_a_job_that_could_displace_the_gang_may_not_use_what_is_kept_for_it():
    assert started(short("red", 4)) == []


def test_a_priority_counts_within_its_team_alone():
    assert started(short("blue", 4)) == ["job-3"]
