"""Which failures count against a job, and what follows from them."""

import pytest
from msgspec import UNSET

from tenfold.fleet.failure_log import FailureLog
from tenfold.fleet.retries import (
    ATTEMPTS_MOST,
    BACK_OFF_MS_MOST,
    CRASHES_MOST,
    LOSSES_MOST,
    back_off_ms,
    counts_against_job,
    retries_crash,
    retries_loss,
)
from tenfold.live.executor import AttemptLost
from tenfold.live.failures import loss_of
from tenfold.model.events import JobStopped
from tenfold.model.ids import JobId, NodeId
from tenfold.model.job.failures import AttemptFailure, Crashes
from tenfold.model.job.job import Job, Slot, shape_of
from tenfold.model.reason import Reason
from tenfold.model.units import SECOND, Millis

JOB = Job(id=JobId("job-1"), shape=shape_of(1), submitted_ms=Millis(0))
SLOTS = (Slot(NodeId("n1"), 1),)


def lost(code: str, *, node_is_lost: bool = False, saved_ms: int | None = None) -> AttemptFailure:
    observed = AttemptLost(Millis(7), JOB.id, 1, Reason(code))
    saved = None if saved_ms is None else Millis(saved_ms)
    return loss_of(observed, SLOTS, saved, node_is_lost=node_is_lost)


def stop(failure: AttemptFailure) -> JobStopped:
    return JobStopped(Millis(9), JOB.id, "node-lost", Millis(0), failure=failure)


def test_the_delay_doubles_up_to_a_limit_for_any_number_of_failures():
    assert [back_off_ms(count) for count in range(5)] == [
        count * SECOND for count in (0, 1, 2, 4, 8)
    ]
    assert back_off_ms(7) == back_off_ms(10**9) == BACK_OFF_MS_MOST


@pytest.mark.parametrize("code", ["supervisor-lost", "supervisor-told", "of-another-executor"])
def test_a_supervisor_that_ends_on_a_node_that_goes_on_counts_against_the_job(code: str):
    log = FailureLog()
    for _ in range(3):
        log.stopped(stop(lost(code)), JOB)
    assert log.crashes == {JOB.id: Crashes(3)}


@pytest.mark.parametrize("code", ["node-lost", "machine-restarted", "attempt-unknown"])
def test_a_node_that_ends_does_not_count_against_the_job(code: str):
    log = FailureLog()
    log.stopped(stop(lost(code)), JOB)
    log.stopped(stop(lost("supervisor-lost", node_is_lost=True)), JOB)
    assert log.crashes == {}


def test_losses_that_were_recorded_before_they_counted_do_not_count():
    recorded = AttemptFailure(1, "lost", Millis(7), NodeId("n1"))
    assert not counts_against_job(recorded)
    assert not counts_against_job(UNSET)


def test_a_newer_checkpoint_starts_the_count_again():
    log = FailureLog()
    for saved_ms in (None, None, 100, 100, 200):
        log.stopped(stop(lost("supervisor-lost", saved_ms=saved_ms)), JOB)
    assert log.crashes == {JOB.id: Crashes(1, Millis(200))}


def test_losses_and_failures_of_the_command_have_limits():
    assert retries_loss(Crashes(LOSSES_MOST), 9)
    assert not retries_loss(Crashes(LOSSES_MOST + 1), 9)
    assert retries_crash(Crashes(CRASHES_MOST), 4, saves=True)
    assert not retries_crash(Crashes(CRASHES_MOST + 1), 4, saves=True)
    assert not retries_crash(Crashes(1), 1, saves=False)


def test_a_job_that_saves_before_each_failure_ends_as_well():
    assert retries_loss(Crashes(1), ATTEMPTS_MOST - 1)
    assert not retries_loss(Crashes(1), ATTEMPTS_MOST)
    assert not retries_crash(Crashes(1), ATTEMPTS_MOST, saves=True)
