"""Ends that came while nobody looked: the fact says when it was seen, and when it was."""

from collections.abc import Sequence

import pytest
from msgspec import UNSET, UnsetType

from tenfold.fleet.fleet import Fleet
from tenfold.journal.derive import ReadTableUpdate
from tenfold.live.attempts.adoption import adopt
from tenfold.live.attempts.attempts import Attempts
from tenfold.live.executor import AttemptEnded, AttemptState, Member
from tenfold.live.job_registry import JobEntry, JobRegistry
from tenfold.model.actions import StartJob
from tenfold.model.events import (
    ActionOrdered,
    Event,
    JobEnded,
    JobStarted,
    JobSubmitted,
    NodeJoined,
)
from tenfold.model.ids import JobId
from tenfold.model.job.job import Job, Slot, shape_of
from tenfold.model.job.run_spec import RunSpec
from tenfold.model.units import Millis
from tenfold.testing.builders import nodes

[NODE] = nodes(1)
JOB = JobId("job-1")
NOW = Millis(60_000)
BEFORE: Sequence[Event] = (
    NodeJoined(Millis(0), NODE),
    JobSubmitted(Millis(0), Job(id=JOB, shape=shape_of(1), submitted_ms=Millis(0), seq=1)),
    ActionOrdered(Millis(0), StartJob(JOB, (Slot(NODE.id, 1),))),
    JobStarted(Millis(1_000), JOB),
)


class Ahead:
    """A clock that is ahead of the machine's."""

    def __init__(self, by_ms: int) -> None:
        self._by_ms = by_ms

    def ahead_ms(self) -> int:
        return self._by_ms


def adopted(ended_ms: int, clock: Ahead | None) -> JobEnded:
    """Return the fact that a controller makes of an end which it finds at `NOW`."""
    fleet = Fleet()
    for event in BEFORE:
        fleet.apply(event)
    registry = JobRegistry([(JOB, JobEntry(RunSpec(name="job", command=("true",)), attempts=1))])
    attempts = Attempts(None, registry, fleet, lambda job, run_spec: None)  # pyright: ignore[reportArgumentType]
    attempts.clock = clock
    end = AttemptEnded(at_ms=Millis(ended_ms), job_id=JOB, attempt=1, exit_code=0)
    state = AttemptState(
        job_id=JOB,
        attempt=1,
        phase="ended",
        members=(Member(node=NODE.id, gpus=(0,)),),
        ordered_ms=Millis(0),
        end=end,
    )
    [fact] = adopt(attempts, [state], NOW)
    assert isinstance(fact, JobEnded)
    fleet.apply(fact)
    return fact


@pytest.mark.parametrize(
    ("ended_ms", "ahead_ms", "told"),
    [
        (20_000, 0, 20_000),
        (20_000, 5_000, 25_000),
        (59_950, 0, UNSET),
        (70_000, 0, UNSET),
        (500, 0, 1_000),
    ],
    ids=["seen late", "by another clock", "seen at once", "in time to come", "before it began"],
)
def test_an_end_is_told_in_the_time_of_the_loop(
    ended_ms: int, ahead_ms: int, told: int | UnsetType
):
    fact = adopted(ended_ms, Ahead(ahead_ms))
    assert fact.at_ms == NOW
    assert fact.ended_ms == told


def test_without_a_clock_that_tells_an_end_is_when_it_was_seen():
    assert adopted(20_000, None).ended_ms is UNSET


def test_listings_show_when_the_last_process_was_gone():
    draft = ReadTableUpdate()
    late = JobEnded(NOW, JOB, exit_code=0, ended_ms=Millis(20_000))
    for seq, event in enumerate((*BEFORE, late), start=1):
        draft.apply(seq, event)
    assert draft.attempts[JOB].ended_ms == 20_000
