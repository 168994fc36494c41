"""Accepted cancellations: recorded before the attempt is stopped, and continued by a successor."""

import pytest

from tenfold.engine.digest import fleet_digest
from tenfold.fleet.check import check
from tenfold.fleet.fleet import Fleet
from tenfold.fleet.image import fleet_from, image_of
from tenfold.live.attempts.adoption import adopt
from tenfold.live.attempts.attempts import Attempts
from tenfold.live.executor import AttemptEnded, AttemptLost, AttemptState, Launch, OrderRefused
from tenfold.live.job_registry import JobEntry, JobRegistry
from tenfold.model.actions import StartJob
from tenfold.model.events import (
    ActionOrdered,
    ActionRefused,
    Event,
    JobCancelled,
    JobCancelRequested,
    JobEnded,
    JobStarted,
    JobSubmitted,
    NodeJoined,
)
from tenfold.model.ids import JobId
from tenfold.model.job.job import Job, Slot, shape_of
from tenfold.model.job.run_spec import CheckpointSpec, RunSpec
from tenfold.model.reason import Reason
from tenfold.model.units import Millis
from tenfold.testing.builders import nodes

[NODE] = nodes(1)
JOB = JobId("job-1")
T = Millis(5)


class Noting:
    """An executor that notes what it is to start and to stop."""

    def __init__(self) -> None:
        self.launches: list[Launch] = []
        self.stops: list[JobId] = []

    def start(self, launch: Launch) -> None:
        self.launches.append(launch)

    def stop(self, job_id: JobId, attempt: int, grace_ms: Millis) -> None:
        self.stops.append(job_id)


def fleet_with(*events: Event) -> Fleet:
    fleet = Fleet()
    fleet.apply(NodeJoined(Millis(0), NODE))
    job = Job(id=JOB, shape=shape_of(1), submitted_ms=Millis(0), seq=1)
    fleet.apply(JobSubmitted(Millis(0), job))
    fleet.apply(ActionOrdered(Millis(0), StartJob(JOB, (Slot(NODE.id, 1),))))
    fleet.apply_all(events)
    check(fleet)
    return fleet


def attempts_of(fleet: Fleet, noting: Noting, *, saves: bool = False) -> Attempts:
    saved = CheckpointSpec(folder="ckpt") if saves else None
    entry = JobEntry(RunSpec(name="job", command=("true",), checkpoint=saved), attempts=1)
    registry = JobRegistry([(JOB, entry)])
    return Attempts(noting, registry, fleet, lambda job, run_spec: None)  # pyright: ignore[reportArgumentType]


def state(end: AttemptEnded | AttemptLost | None = None) -> AttemptState:
    return AttemptState(
        job_id=JOB, attempt=1, phase="running", members=(), ordered_ms=Millis(0), end=end
    )


STARTED = JobStarted(Millis(1), JOB)
REQUESTED = JobCancelRequested(Millis(2), JOB, "ann")


def test_a_successor_stops_what_it_finds_running():
    noting = Noting()
    attempts = attempts_of(fleet_with(STARTED, REQUESTED), noting)
    assert adopt(attempts, [state()], T) == []
    assert noting.stops == [JOB]
    ended = AttemptEnded(at_ms=Millis(3), job_id=JOB, attempt=1, how="stopped", signal=9)
    assert attempts.ended(ended, T) == [JobEnded(T, JOB, "cancelled", 137, by="ann")]


@pytest.mark.parametrize(
    "end",
    [
        AttemptEnded(at_ms=Millis(3), job_id=JOB, attempt=1, how="stopped", exit_code=0),
        AttemptLost(Millis(3), JOB, 1, Reason("supervisor-lost")),
    ],
    ids=["stopped", "lost"],
)
def test_a_successor_records_who_cancelled_what_has_ended(end: AttemptEnded | AttemptLost):
    attempts = attempts_of(fleet_with(STARTED, REQUESTED), Noting())
    [event] = adopt(attempts, [state(end)], T)
    assert isinstance(event, JobEnded)
    assert (event.status, event.by) == ("cancelled", "ann")


def test_a_start_that_was_cancelled_is_not_sent_again():
    noting = Noting()
    attempts = attempts_of(fleet_with(REQUESTED), noting)
    refused, cancelled = adopt(attempts, [], T)
    assert noting.launches == []
    assert isinstance(refused, ActionRefused)
    assert cancelled == JobCancelled(T, JOB, "ann")


def test_a_cancelled_start_that_is_refused_for_now_does_not_wait_for_another():
    fleet, noting = fleet_with(), Noting()
    attempts = attempts_of(fleet, noting)
    adopt(attempts, [], T)
    [request] = attempts.request_cancel(active := attempts.get(JOB), "ann", T)  # pyright: ignore[reportArgumentType]
    assert active is not None
    assert attempts.request_cancel(active, "bob", T) == []
    fleet.apply(request)
    events = attempts.refused(OrderRefused(T, JOB, 1, Reason("cannot-write"), True), T)
    fleet.apply_all(events)
    assert events[-1] == JobCancelled(T, JOB, "ann")
    assert not fleet.pending
    assert not fleet.cancel_requests
    check(fleet)


def test_a_job_that_fails_while_it_is_being_cancelled_is_not_started_again():
    fleet = fleet_with(STARTED, REQUESTED)
    attempts = attempts_of(fleet, Noting(), saves=True)
    adopt(attempts, [state()], T)
    [event] = attempts.ended(AttemptEnded(at_ms=T, job_id=JOB, attempt=1, exit_code=1), T)
    assert isinstance(event, JobEnded)
    assert (event.status, event.by) == ("cancelled", "ann")
    fleet.apply(event)
    assert not fleet.cancel_requests


def test_a_request_is_part_of_what_a_fleet_holds():
    without, fleet = fleet_with(STARTED), fleet_with(STARTED, REQUESTED)
    assert fleet_digest(fleet) != fleet_digest(without)
    assert fleet_digest(fleet_from(image_of(fleet))) == fleet_digest(fleet)
    assert fleet.fork().cancel_requests == {JOB: "ann"}
