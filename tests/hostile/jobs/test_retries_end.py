"""Jobs that would be started for ever: they are started more and more slowly, and then fail."""

from itertools import pairwise
from pathlib import Path

import pytest
from msgspec import UNSET

from hostile.jobs.hurried_loop import NODE, HurriedLoop, hurried_loop
from tenfold.fleet.retries import BACK_OFF_MS_MOST, LOSSES_MOST
from tenfold.journal import read
from tenfold.journal.store import open_store
from tenfold.live.inbox import SetNodeState
from tenfold.live.local.attempt.folder import file_name
from tenfold.model.actions import StartJob
from tenfold.model.events import (
    ActionOrdered,
    ActionRefused,
    Event,
    JobEnded,
    JobStarted,
    JobStopped,
)
from tenfold.model.ids import JobId
from tenfold.model.units import SECOND
from tenfold.report.reasons.render import render


def starts(loop: HurriedLoop, job_id: JobId) -> list[ActionOrdered]:
    return [
        event
        for event in loop.events
        if isinstance(event, ActionOrdered)
        and isinstance(event.action, StartJob)
        and event.action.job_id == job_id
    ]


@pytest.mark.parametrize("signal", ["KILL", "TERM"])
def test_a_job_that_kills_its_supervisor_fails_and_the_record_says_why(tmp_path: Path, signal: str):
    with hurried_loop(tmp_path) as loop:
        job_id = loop.submit("sh", "-c", f"kill -{signal} $PPID; exec sleep 600")
        ended = loop.end_of(job_id)
        other = loop.submit("true")
        after = loop.end_of(other)
    assert isinstance(ended, JobEnded)
    assert ended.status == "failed"
    assert ended.failure is not UNSET
    assert ended.failure.reason is not UNSET
    said = render(ended.failure.reason)
    assert said.startswith(f"lost {LOSSES_MOST + 1} attempts in a row without a new checkpoint: ")
    assert "the supervisor" in said
    assert isinstance(after, JobEnded)
    assert after.status == "completed"
    assert len(starts(loop, job_id)) == LOSSES_MOST + 1
    store = open_store(str(loop.journal))
    story = read.job(store, job_id)
    store.close()
    assert story is not None
    reasons = [one.reason for one in story.attempts]
    code = "supervisor-lost" if signal == "KILL" else "supervisor-told"
    assert reasons == [code] * LOSSES_MOST + ["failed"]


def test_lost_attempts_are_repeated_more_and_more_slowly(tmp_path: Path):
    with hurried_loop(tmp_path) as loop:
        job_id = loop.submit("sh", "-c", "kill -KILL $PPID; exec sleep 600")
        loop.end_of(job_id)
    losses = [one.at_ms for one in loop.events if isinstance(one, JobStopped | JobEnded)]
    delays = [later - sooner for sooner, later in pairwise(losses)]
    wanted = [min(BACK_OFF_MS_MOST, SECOND * 2**count) for count in range(LOSSES_MOST)]
    assert all(delay >= least for delay, least in zip(delays, wanted, strict=True)), delays


def test_a_node_that_is_lost_time_and_again_costs_the_job_nothing(tmp_path: Path):
    gate = tmp_path / "open"
    with hurried_loop(tmp_path) as loop:
        job_id = loop.submit("sh", "-c", f"test -e {gate} || exec sleep 600")
        for count in range(1, LOSSES_MOST + 4):
            loop.wait(lambda one: isinstance(one, JobStarted), count)
            if count == LOSSES_MOST + 3:
                gate.touch()
            loop.ask(SetNodeState(NODE.id, "down", "power"))
            loop.wait(lambda one: isinstance(one, JobStopped), count)
            loop.ask(SetNodeState(NODE.id, "up"))
        ended = loop.end_of(job_id)
    assert isinstance(ended, JobEnded)
    assert ended.status == "completed"
    stops = [one for one in loop.events if isinstance(one, JobStopped)]
    assert {one.cause for one in stops} == {"node-lost"}
    begun = [one.at_ms for one in loop.events if isinstance(one, JobStarted)]
    assert len(begun) == LOSSES_MOST + 4
    assert all(later - sooner < 60 * SECOND for sooner, later in pairwise(begun))


def test_a_start_that_can_never_work_is_tried_once(tmp_path: Path):
    with hurried_loop(tmp_path) as loop:
        job_id = loop.submit("true", folder="a" * 300)
        ended = loop.end_of(job_id)
    assert isinstance(ended, JobEnded)
    assert ended.status == "failed"
    assert len(starts(loop, job_id)) == 1
    assert ended.failure is not UNSET
    assert ended.failure.reason is not UNSET
    assert "cannot start: " in render(ended.failure.reason)


def test_a_start_that_is_refused_for_now_is_tried_more_and_more_slowly(tmp_path: Path):
    with hurried_loop(tmp_path) as loop:
        first = loop.submit("true")
        loop.end_of(first)
        number = int(first.rpartition("-")[2]) + 1
        # A file where the folder of the next job should be: no attempt of it can be recorded.
        (loop.run / "attempts" / file_name(f"job-{number}")).touch()
        job_id = loop.submit("true")
        assert job_id == f"job-{number}"

        def is_refused(event: Event) -> bool:
            return isinstance(event, ActionRefused) and event.action.job_id == job_id

        refusals = [loop.wait(is_refused, count) for count in range(1, 9)]
    delays = [later.at_ms - sooner.at_ms for sooner, later in pairwise(refusals)]
    assert all(
        delay >= min(BACK_OFF_MS_MOST, SECOND * 2**count) for count, delay in enumerate(delays)
    ), delays
