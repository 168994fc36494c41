"""Jobs with terms in the simulated world: resized, checkpointed, idle, and how they end."""

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from contention_builders import layers
from tenfold.model.actions import Action, ReserveStart, ResizeJob, StartJob, StopJob
from tenfold.model.events import (
    ActionRefused,
    Event,
    JobEnded,
    JobIdled,
    JobResized,
    JobStarted,
    JobStopped,
    NodeLost,
)
from tenfold.model.fault import Fault
from tenfold.model.ids import JobId, NodeId
from tenfold.model.job.job import Job, Slot
from tenfold.model.job.terms import Terms
from tenfold.model.job.traffic import Traffic, WorkProfile
from tenfold.model.reason import Reason
from tenfold.model.units import MINUTE, SECOND, Millis
from tenfold.sim.contention.model import ContentionModel
from tenfold.sim.contention.solver import ContentionSolver
from tenfold.sim.measure.timeline import timeline
from tenfold.sim.world import SimSettings, SimWorld
from tenfold.testing.builders import job

JOB = JobId("job-0")
N0, N1 = NodeId("n0"), NodeId("n1")
WHY = Reason("room", sentence="others need the room")
ELASTIC = Terms(least_gpus=2, most_gpus=16)


def at(seconds: float) -> Millis:
    return Millis(round(seconds * SECOND))


def with_terms(terms: Terms, *, gpus: int = 8, runs_s: float = 100) -> Job:
    return replace(job(0, gpus, runs_s=runs_s), terms=terms)


def world_of(one: Job, faults: Sequence[Fault] = (), **settings: float) -> SimWorld:
    """A world in which the job has come."""
    made = SimWorld([one], settings=SimSettings(**settings), outages=faults)  # pyright: ignore[reportArgumentType]
    made.wait(None)
    return made


def slots(*gpus: int) -> tuple[Slot, ...]:
    return tuple(Slot(NodeId(f"n{number}"), count) for number, count in enumerate(gpus) if count)


def do(world: SimWorld, action: Action, seconds: float) -> list[Event]:
    return list(world.carry_out([action], at(seconds)))


def start(world: SimWorld, *gpus: int) -> None:
    assert do(world, StartJob(JOB, slots(*gpus)), 0) == [JobStarted(at(0), JOB)]


def resize(world: SimWorld, seconds: float, *gpus: int) -> list[Event]:
    world.wait(at(seconds))
    return do(world, ResizeJob(JOB, slots(*gpus), WHY), seconds)


def rest(world: SimWorld) -> list[Event]:
    found: list[Event] = []
    while (turn := world.wait(None)) is not None:
        found += turn[1]
    return found


def test_a_resized_job_goes_on_at_the_speed_of_its_gpus_without_losing_work():
    world = world_of(with_terms(ELASTIC))
    start(world, 8)
    assert resize(world, 40, 4) == [JobResized(at(40), JOB)]
    # 60 s of work are left, and take twice as long on half of the GPUs.
    assert rest(world) == [JobEnded(at(160), JOB)]
    summary = world.meters.summary([with_terms(ELASTIC)], 8)
    assert summary.resizes == 1
    assert summary.gpu_hours * 3600 == 8 * 40 + 4 * 120
    assert (summary.gpu_hours_lost, summary.goodput, summary.avg_wait_s) == (0, 1, 0)


def test_a_resize_pays_for_a_restart_where_slots_change():
    world = world_of(with_terms(ELASTIC), restart_cost_ms=10 * SECOND)
    start(world, 8)
    resize(world, 40, 8, 8)
    assert rest(world) == [JobEnded(at(40 + 10 + 30), JOB)]
    same = world_of(with_terms(ELASTIC), restart_cost_ms=10 * SECOND)
    start(same, 8)
    resize(same, 40, 8)
    assert rest(same) == [JobEnded(at(100), JOB)]


def test_an_elastic_job_that_starts_smaller_runs_slower_from_the_start():
    world = world_of(with_terms(ELASTIC))
    start(world, 2)
    assert rest(world) == [JobEnded(at(400), JOB)]
    rigid = world_of(with_terms(Terms(kind="training")))
    start(rigid, 8, 8)
    assert rest(rigid) == [JobEnded(at(100), JOB)]


def test_a_resize_takes_the_time_of_a_start():
    world = world_of(with_terms(ELASTIC), start_delay_ms=5 * SECOND)
    world.carry_out([StartJob(JOB, slots(8))], at(0))
    world.wait(None)
    assert resize(world, 45, 4) == []
    facts = rest(world)
    assert facts == [JobResized(at(50), JOB), JobEnded(at(50 + 2 * 55), JOB)]


def test_a_stop_forestalls_a_resize_under_way():
    world = world_of(with_terms(ELASTIC), start_delay_ms=5 * SECOND)
    world.carry_out([StartJob(JOB, slots(8))], at(0))
    world.wait(None)
    resize(world, 45, 4)
    assert do(world, StopJob(JOB, "preempted", WHY), 46) == [
        JobStopped(at(46), JOB, "preempted", at(41))
    ]
    world.carry_out([StartJob(JOB, slots(8))], at(46))
    assert rest(world) == [JobStarted(at(51), JOB), JobEnded(at(51 + 59), JOB)]


def test_a_resize_of_what_does_not_run_or_onto_a_lost_node_is_refused():
    lost = [Fault(at(10), N1, at(1_000))]
    world = world_of(with_terms(ELASTIC), lost)
    [refused] = do(world, ResizeJob(JOB, slots(8), WHY), 0)
    assert isinstance(refused, ActionRefused)
    assert refused.reason.code == "job-not-running"
    start(world, 8)
    world.wait(None)
    [refused] = resize(world, 20, 8, 8)
    assert isinstance(refused, ActionRefused)
    assert refused.reason.code == "node-down"
    plain = world_of(job(0, 8, runs_s=100))
    start(plain, 8)
    [refused] = resize(plain, 20, 4)
    assert isinstance(refused, ActionRefused)
    assert refused.reason.code == "job-not-elastic"


def test_a_node_that_is_lost_before_a_resize_is_done_refuses_it():
    lost = [Fault(at(42), N1, at(1_000))]
    world = world_of(with_terms(ELASTIC), lost, start_delay_ms=5 * SECOND)
    world.carry_out([StartJob(JOB, slots(8))], at(0))
    world.wait(None)
    resize(world, 40, 8, 8)
    facts = rest(world)
    assert [type(fact) for fact in facts] == [NodeLost, ActionRefused, JobEnded]
    assert facts[-1].at_ms == at(105)


def test_what_was_saved_by_a_resize_is_not_lost_with_a_node():
    world = world_of(with_terms(ELASTIC, runs_s=7_200), [Fault(at(1_500), N0, at(2_000))])
    start(world, 8)
    resize(world, 1_000, 4)
    turn = world.wait(None)
    assert turn is not None
    assert turn[1][1] == JobStopped(at(1_500), JOB, "node-lost", at(1_000))


def test_a_job_that_saves_now_and_then_loses_what_came_since_when_it_is_stopped():
    terms = Terms(checkpoint_every_ms=Millis(MINUTE))
    world = world_of(with_terms(terms, runs_s=600))
    start(world, 8)
    world.wait(at(150))
    stop = StopJob(JOB, "preempted", WHY)
    assert do(world, stop, 150) == [JobStopped(at(150), JOB, "preempted", at(120))]
    ready = world_of(with_terms(Terms(), runs_s=600))
    start(ready, 8)
    assert do(ready, stop, 150) == [JobStopped(at(150), JOB, "preempted", at(150))]


def test_checkpoints_are_counted_in_work_not_in_time():
    terms = replace(ELASTIC, checkpoint_every_ms=Millis(MINUTE))
    world = world_of(with_terms(terms, runs_s=600))
    start(world, 4)
    stop = StopJob(JOB, "preempted", WHY)
    # Half as fast: after 150 s 75 s of work are done, and 60 of them saved.
    assert do(world, stop, 150) == [JobStopped(at(150), JOB, "preempted", at(60))]


def test_a_session_idles_holds_its_gpus_and_is_ended_when_they_are_reclaimed():
    terms = Terms(kind="interactive", busy_ms=at(30))
    world = world_of(with_terms(terms))
    start(world, 8)
    turn = world.wait(None)
    assert turn == (at(30), [JobIdled(at(30), JOB, at(30))])
    assert do(world, StopJob(JOB, "idle", WHY), 50) == [JobEnded(at(50), JOB, "cancelled")]
    assert world.wait(None) is None
    summary = world.meters.summary([with_terms(terms)], 8)
    assert (summary.finished, summary.preemptions) == (1, 0)
    assert summary.goodput == pytest.approx(30 / 50)


def test_a_session_that_nobody_reclaims_goes_on_to_its_end():
    world = world_of(with_terms(Terms(kind="interactive", busy_ms=at(30))))
    start(world, 8)
    assert rest(world) == [JobIdled(at(30), JOB, at(30)), JobEnded(at(100), JOB)]
    busy = world_of(with_terms(Terms(kind="interactive", busy_ms=at(100))))
    start(busy, 8)
    assert rest(busy) == [JobEnded(at(100), JOB)]


def test_a_session_that_was_stopped_idles_again_in_its_next_run():
    world = world_of(with_terms(Terms(kind="interactive", busy_ms=at(30))))
    start(world, 8)
    world.wait(None)
    do(world, StopJob(JOB, "preempted", WHY), 40)
    world.carry_out([StartJob(JOB, slots(8))], at(60))
    assert rest(world) == [JobIdled(at(60), JOB, at(60)), JobEnded(at(120), JOB)]


def test_an_elastic_session_idles_later_once_it_is_smaller():
    world = world_of(with_terms(replace(ELASTIC, kind="interactive", busy_ms=at(60))))
    start(world, 8)
    resize(world, 40, 4)
    assert rest(world) == [JobIdled(at(80), JOB, at(80)), JobEnded(at(160), JOB)]


def test_a_promise_is_no_work():
    world = world_of(with_terms(ELASTIC))
    assert do(world, ReserveStart(JOB, slots(8), at(60), at(0)), 0) == []


def test_a_job_ends_as_its_trace_says():
    world = world_of(job(0, 8, runs_s=100))
    world.ends = {JOB: "failed"}
    start(world, 8)
    assert rest(world) == [JobEnded(at(100), JOB, "failed")]


def test_the_gpus_of_a_chart_follow_a_resize():
    one = with_terms(ELASTIC)
    world = world_of(one)
    start(world, 8)
    resize(world, 40, 4)
    rest(world)
    line = timeline([one], world.meters, buckets=4)
    assert line.gpus_allocated == (8, 4, 4, 4)
    assert line.jobs_running == (1, 1, 1, 1)


def test_a_profile_says_what_an_elastic_job_makes_of_its_gpus():
    """By the curve half of the GPUs are worth three fifths of the speed; without one, half."""
    for scaling, end_s in (((4.0, 1.2), (8.0, 1.0)), 40 + 100), ((), 40 + 120):
        profile = WorkProfile(traffic=Traffic(), scaling=scaling)
        shared = ContentionModel(ContentionSolver(layers(1.0, nodes=4)), {"llm": profile})
        one = replace(with_terms(ELASTIC), profile="llm")
        world = SimWorld([one], contention=shared)
        world.wait(None)
        do(world, StartJob(JOB, (Slot(NodeId("n1"), 8),)), 0)
        world.wait(at(40))
        do(world, ResizeJob(JOB, (Slot(NodeId("n2"), 4),), WHY), 40)
        assert rest(world) == [JobEnded(at(end_s), JOB)]
