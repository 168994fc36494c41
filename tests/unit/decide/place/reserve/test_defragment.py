"""Small jobs are moved together where that lets a gang start."""

from msgspec.structs import replace

from tenfold.compose.simulation import SimRequest, simulate
from tenfold.decide.place.governed import GovernedPlacer
from tenfold.engine.recording import Recording
from tenfold.fleet.fleet import Fleet
from tenfold.model.actions import ReserveStart, StartJob, StopJob
from tenfold.model.events import ActionOrdered, JobEnded, JobStarted, JobSubmitted
from tenfold.model.ids import JobId, NodeId
from tenfold.model.job.job import Job, Slot
from tenfold.model.job.terms import Terms
from tenfold.model.policy.governance import GovernanceRules
from tenfold.model.policy.policy import Policy
from tenfold.model.units import HOUR, MINUTE, Millis
from tenfold.testing.builders import fleet, job, nodes

RULES = GovernanceRules(
    defragment=True,
    reserve_after_ms=Millis(0),
    restart_cost_ms=Millis(MINUTE),
    min_run_ms=Millis(0),
)
LATER = Millis(HOUR)


def scattered(*terms: Terms | None) -> Fleet:
    """Two nodes of eight GPUs, each with a job of two that has long run, and a gang of eight."""
    small = [replace(job(number, 2), terms=one) for number, one in enumerate(terms)]
    made = fleet(nodes(2), *small)
    for number, one in enumerate(small):
        start = StartJob(one.id, (Slot(NodeId(f"n{number}"), 2),))
        made.apply_all([ActionOrdered(Millis(0), start), JobStarted(Millis(0), one.id)])
    made.apply(JobSubmitted(LATER, replace(job(9, 8), submitted_ms=LATER)))
    return made


def decided(made: Fleet, govern: GovernanceRules = RULES) -> list[object]:
    return list(GovernedPlacer(govern).decide(made, LATER, None).actions)


def test_a_small_job_moves_to_the_other_small_one():
    stop, reservation = decided(scattered(None, None))
    assert isinstance(stop, StopJob)
    assert stop.cause == "moved"
    assert stop.reason.code == "defragmented"
    assert isinstance(reservation, ReserveStart)
    assert reservation.job_id == "job-9"
    moved_from = f"n{stop.job_id.removeprefix('job-')}"
    assert [slot.node for slot in reservation.slots] == [moved_from]


def test_nobody_moves_unless_the_policy_says_so():
    actions = decided(scattered(None, None), replace(RULES, defragment=False))
    assert not any(isinstance(one, StopJob) for one in actions)


def test_the_one_moves_whose_moving_loses_less():
    saved = Terms(checkpoint_every_ms=Millis(MINUTE))
    lost = Terms(checkpoint_every_ms=Millis(50 * MINUTE))
    stop = decided(scattered(lost, saved))[0]
    assert isinstance(stop, StopJob)
    assert stop.job_id == "job-1"


def test_nobody_moves_where_that_costs_more_than_the_gang_would_wait():
    dear = replace(RULES, restart_cost_ms=Millis(1_000 * HOUR))
    assert not any(isinstance(one, StopJob) for one in decided(scattered(None, None), dear))


def test_who_may_not_be_stopped_and_who_sits_at_a_session_stay():
    fixed, session = Terms(preemptible=False), Terms(kind="interactive")
    actions = decided(scattered(fixed, session))
    assert not any(isinstance(one, StopJob) for one in actions)


def test_nobody_moves_where_there_is_no_room_elsewhere():
    made = scattered(None, None)
    made.apply(JobSubmitted(LATER, replace(job(10, 6), submitted_ms=LATER)))
    start = StartJob(JobId("job-10"), (Slot(NodeId("n0"), 6),))
    made.apply_all([ActionOrdered(LATER, start), JobStarted(LATER, JobId("job-10"))])
    assert not any(isinstance(one, StopJob) for one in decided(made))


def test_in_a_run_the_gang_starts_long_before_the_small_ones_end():
    small = [job(0, 4, runs_s=36_000), job(1, 4, runs_s=600), job(2, 6, runs_s=36_000)]
    gang = job(3, 8, at_s=1_200, runs_s=600)
    recording = Recording()
    asked: list[Job] = [*small, gang]
    policy = Policy(name="governed", govern=RULES)
    simulate(SimRequest(nodes=nodes(3), jobs=asked, policy=policy), journal=recording)
    ends = [line for line in recording.lines if isinstance(line, JobEnded)]
    assert next(one.job_id for one in ends if one.job_id != "job-1") == "job-3"
