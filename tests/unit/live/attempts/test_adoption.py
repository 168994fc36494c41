"""What a controller finds of the one before it, and what it makes of reasons to stop."""

import pytest

from tenfold.fleet.fleet import Fleet
from tenfold.live.attempts.active import StopReason
from tenfold.live.attempts.adoption import adopt
from tenfold.live.attempts.attempts import Attempts
from tenfold.live.executor import AttemptEnded, AttemptStarted, AttemptState, Launch, Member
from tenfold.live.job_registry import JobEntry, JobRegistry
from tenfold.model.actions import StartJob
from tenfold.model.events import ActionOrdered, JobEnded, JobStopped, JobSubmitted, NodeJoined
from tenfold.model.ids import JobId
from tenfold.model.job.job import Job, Slot, shape_of
from tenfold.model.job.run_spec import RunSpec
from tenfold.model.units import Millis
from tenfold.testing.builders import nodes

[NODE] = nodes(1)
NAMES = [JobId(name) for name in ("over", "lives", "unheard-of")]


class Noting:
    """An executor that only notes what it is to start."""

    def __init__(self) -> None:
        self.launches: list[Launch] = []

    def start(self, launch: Launch) -> None:
        self.launches.append(launch)


def test_a_device_of_an_attempt_that_is_over_stays_with_the_one_that_has_it_now():
    fleet, noting = Fleet(), Noting()
    fleet.apply(NodeJoined(Millis(0), NODE))
    slot = Slot(NODE.id, 1)
    for name in NAMES:
        fleet.apply(
            JobSubmitted(Millis(0), Job(id=name, shape=shape_of(1), submitted_ms=Millis(0), seq=1))
        )
        fleet.apply(ActionOrdered(Millis(0), StartJob(name, (slot,))))
    registry = JobRegistry(
        [(name, JobEntry(RunSpec(name=name, command=("true",)), attempts=1)) for name in NAMES]
    )
    attempts = Attempts(noting, registry, fleet, lambda job, run_spec: None)  # pyright: ignore[reportArgumentType]
    held = (Member(node=NODE.id, gpus=(0,)),)
    ended = AttemptEnded(at_ms=Millis(1), job_id=NAMES[0], attempt=1, exit_code=0)
    states = [
        AttemptState(
            job_id=NAMES[0],
            attempt=1,
            phase="ended",
            members=held,
            ordered_ms=Millis(0),
            end=ended,
        ),
        AttemptState(
            job_id=NAMES[1], attempt=1, phase="running", members=held, ordered_ms=Millis(0)
        ),
    ]
    adopt(attempts, states, Millis(2))
    assert [(one.job_id, one.members[0].gpus) for one in noting.launches] == [(NAMES[2], (1,))]


class Obeying(Noting):
    """An executor that also notes what it is to stop."""

    def __init__(self) -> None:
        super().__init__()
        self.stops: list[JobId] = []

    def stop(self, job_id: JobId, attempt: int, grace_ms: Millis) -> None:
        self.stops.append(job_id)


@pytest.mark.parametrize(
    ("reasons", "status"),
    [
        (("cancelled", "preempted"), "cancelled"),
        (("preempted", "cancelled"), "cancelled"),
        (("cancelled", "timeout"), "cancelled"),
        (("preempted",), "preempted"),
    ],
)
def test_a_cancel_stands_over_any_other_reason_to_stop(
    reasons: tuple[StopReason, ...], status: str
):
    fleet, obeying, name = Fleet(), Obeying(), NAMES[0]
    waits = Job(id=name, shape=shape_of(1), submitted_ms=Millis(0), seq=1)
    fleet.apply_all([NodeJoined(Millis(0), NODE), JobSubmitted(Millis(0), waits)])
    registry = JobRegistry([(name, JobEntry(RunSpec(name=name, command=("true",)), attempts=0))])
    attempts = Attempts(obeying, registry, fleet, lambda job, run_spec: None)  # pyright: ignore[reportArgumentType]
    live = attempts.order(waits, (Slot(NODE.id, 1),))
    fleet.apply(ActionOrdered(Millis(0), StartJob(name, live.slots)))
    attempts.launch(live)
    attempts.started(AttemptStarted(Millis(1), name, live.attempt), Millis(1))
    for why in reasons:
        attempts.stop(live, why)
    assert obeying.stops == [name] * len(reasons)
    gone = AttemptEnded(at_ms=Millis(9), job_id=name, attempt=live.attempt, how="stopped")
    [fact] = attempts.ended(gone, Millis(9))
    assert isinstance(fact, JobEnded | JobStopped)
    assert (fact.status if isinstance(fact, JobEnded) else fact.cause) == status
