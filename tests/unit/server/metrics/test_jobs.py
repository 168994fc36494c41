"""The figures about jobs, from facts alone."""

from prometheus_client.parser import text_string_to_metric_families

from tenfold.fleet.fleet import Fleet
from tenfold.model.actions import ResizeJob, StartJob
from tenfold.model.events import (
    ActionOrdered,
    Event,
    JobEnded,
    JobResized,
    JobStarted,
    JobStopped,
    JobSubmitted,
    NodeJoined,
)
from tenfold.model.fleet.node import Node
from tenfold.model.ids import JobId, NodeId, PoolId, SiteId
from tenfold.model.job.failures import AttemptFailure
from tenfold.model.job.job import Job, Slot, shape_of
from tenfold.model.reason import Reason
from tenfold.model.units import SECOND, Millis
from tenfold.server.metrics.jobs import JobMeters
from tenfold.server.metrics.metrics import Meters

JOB, N1 = JobId("job"), NodeId("n1")


def s(seconds: float) -> Millis:
    return Millis(round(seconds * SECOND))


def begun(gpus: int = 8) -> list[Event]:
    """A job that was submitted at 0 s, ordered at 10 s and runs from 12 s on."""
    job = Job(id=JOB, shape=shape_of(gpus), submitted_ms=s(0))
    node = Node(id=N1, pool=PoolId("p"), site=SiteId("s"), gpus=8)
    return [
        NodeJoined(s(0), node),
        JobSubmitted(s(0), job),
        ActionOrdered(s(10), StartJob(JOB, (Slot(N1, gpus),))),
        JobStarted(s(12), JOB),
    ]


def crashed(at_s: float, saved_s: float) -> JobStopped:
    failure = AttemptFailure(1, "exited", s(at_s - 2), N1)
    return JobStopped(s(at_s), JOB, "crashed", s(saved_s), 1, failure)


def figures(*parts: list[Event], restarts: bool = False) -> dict[str, float]:
    """Return the meters after these facts; with a restart of the loop after each part."""
    meters, fleet = Meters(), Fleet()
    follows = JobMeters(meters, fleet)
    for events in parts:
        follows.note(events, events[-1].at_ms)
        fleet.apply_all(events)
        if restarts:
            follows = JobMeters(meters, fleet)
    return {
        sample.name.removeprefix("tenfold_") + "".join(sample.labels.values()): sample.value
        for family in text_string_to_metric_families(meters.text().decode())
        for sample in family.samples
        if "bucket" not in sample.name
    }


def again() -> list[Event]:
    """The job is ordered again at 110 s, runs from 115 s and completes at 215 s."""
    return [
        ActionOrdered(s(110), StartJob(JOB, (Slot(N1, 8),))),
        JobStarted(s(115), JOB),
        JobEnded(s(215), JOB),
    ]


def test_a_failure_and_what_came_of_it_are_timed():
    for restarts in (False, True):
        found = figures(begun(), [crashed(102, saved_s=60)], again(), restarts=restarts)
        assert found["queue_wait_seconds_sum"] == 12
        assert found["failure_detection_seconds_sum"] == 2
        assert found["failure_recovery_seconds_sum"] == 13
        assert found["allocated_gpu_seconds_totalcrashed"] == 8 * 92
        assert found["allocated_gpu_seconds_totalcompleted"] == 8 * 105
        assert found["useful_gpu_seconds_total"] == 8 * (60 + 100)
        assert found["completed_job_useful_seconds_total"] == 160
        assert found["completed_job_wall_seconds_total"] == 215


def test_a_job_that_is_given_up_was_of_no_use_and_is_no_completed_one():
    ended = JobEnded(s(50), JOB, "failed", 1, AttemptFailure(1, "exited", s(49), N1))
    found = figures(begun(), [ended])
    assert found["failure_detection_seconds_count"] == 1
    assert found["allocated_gpu_seconds_totalfailed"] == 8 * 40
    assert found["useful_gpu_seconds_total"] == 0
    assert found["completed_job_wall_seconds_total"] == 0


def test_a_resize_parts_what_was_held_before_from_what_is_held_after():
    resize = ActionOrdered(
        s(60), ResizeJob(JOB, (Slot(N1, 8),), Reason("more", sentence="there is room"))
    )
    found = figures(begun(4), [resize, JobResized(s(70), JOB), JobEnded(s(100), JOB)])
    assert found["allocated_gpu_seconds_totalresized"] == 4 * 60
    assert found["allocated_gpu_seconds_totalcompleted"] == 8 * 30
    assert found["useful_gpu_seconds_total"] == 4 * 58 + 8 * 30
