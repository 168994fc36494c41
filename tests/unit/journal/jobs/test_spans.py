"""What jobs of a journal wanted and got, with those that wait."""

from tenfold.journal.jobs.spans import spans_of
from tenfold.model.capacity.history import UNKNOWN_LEFT
from tenfold.model.events import JobCancelled, JobEnded, JobStarted, JobStopped, JobSubmitted
from tenfold.model.ids import JobId
from tenfold.model.job.job import Job, Shape
from tenfold.model.units import Millis


def submitted(name: str, at: int) -> JobSubmitted:
    job = Job(id=JobId(name), shape=Shape(key="8", gpus=8), submitted_ms=Millis(at))
    return JobSubmitted(at_ms=Millis(at), job=job)


def test_jobs_that_wait_run_or_are_over_are_all_there():
    spans, end = spans_of(
        [
            submitted("done", 0),
            submitted("waits", 5),
            submitted("gone", 6),
            submitted("runs", 7),
            JobStarted(at_ms=Millis(10), job_id=JobId("done")),
            JobStopped(
                at_ms=Millis(20), job_id=JobId("done"), cause="preempted", progress_ms=Millis(0)
            ),
            JobStarted(at_ms=Millis(30), job_id=JobId("done")),
            JobEnded(at_ms=Millis(45), job_id=JobId("done"), status="completed"),
            JobCancelled(at_ms=Millis(50), job_id=JobId("gone")),
            JobStarted(at_ms=Millis(60), job_id=JobId("runs")),
            submitted("last", 80),
        ]
    )
    by_name = {str(one.job.id): one for one in spans}
    assert end == 80
    assert by_name["done"].runs == ((10, 20), (30, 45))
    assert by_name["runs"].runs == ((60, 80),)
    assert {name: one.left == UNKNOWN_LEFT for name, one in by_name.items()} == {
        "done": False,
        "waits": True,
        "gone": False,
        "runs": True,
        "last": True,
    }
