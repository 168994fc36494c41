"""Placing held jobs: only what is in scope, once, and given back when Slurm does not start it."""

from collections.abc import Sequence

import pytest
from msgspec import Struct
from msgspec.structs import replace

from tenfold.compose.policies import placing_decider
from tenfold.fleet.fleet import Fleet
from tenfold.live.slurm.attach.orders import OrderFailed
from tenfold.model.actions import StartJob
from tenfold.model.errors import Refused
from tenfold.model.events import (
    ActionOrdered,
    ActionRefused,
    Event,
    JobHeld,
    JobReleased,
    JobStarted,
)
from tenfold.model.ids import JobId, NodeId
from tenfold.model.job.job import Slot
from tenfold.model.job.recorded import RecordedJob
from tenfold.model.policy.policy import Policy
from tenfold.model.units import Millis
from tenfold.study.attach.act import TRIES_MOST, ActMark, Actor, ActScope, mark_of
from tenfold.study.attach.observe import Observer, remembered
from unit.study.attach.test_observe import ended, job, kinds, reading

HOME = "0123456789ab"
SCOPE = ActScope(partitions=("all",), start_within_s=60)


def held(name: str, **fields: object) -> RecordedJob:
    """Return a job of 8 GPUs that its user holds."""
    base = replace(job(name), is_held=True, reason="JobHeldUser", comment="my words")
    return replace(base, **fields)


class Orders(Struct):
    """Orders as they were given; `said` is what Slurm answers to a release."""

    given: list[tuple[str, ...]] = []
    said: str = ""

    def release(self, job_id: str, nodes: Sequence[str], comment: str, before: str) -> None:
        """Note a release."""
        if self.said:
            raise OrderFailed(self.said)
        self.given.append(("release", job_id, ",".join(nodes), comment))

    def hold(self, job_id: str, comment: str) -> None:
        """Note a hold."""
        self.given.append(("hold", job_id, comment))

    def unbind(self, job_id: str, comment: str) -> None:
        """Note that Slurm may choose."""
        self.given.append(("unbind", job_id, comment))


class Cluster:
    """A journal, an actor, and what they did."""

    def __init__(self, scope: ActScope = SCOPE, said: str = "") -> None:
        fleet = Fleet()
        self.observer = Observer(fleet, remembered(fleet, {}, 0))
        self.orders = Orders(said=said)
        self.acted: list[Event] = []
        policy = Policy(name="fifo")
        self.actor = Actor(HOME, scope, lambda: placing_decider(policy), self.orders, self._emit)

    def _emit(self, events: Sequence[Event]) -> None:
        self.observer.fleet.apply_all(events)
        self.acted += events

    def read(self, now_s: float, *queue: RecordedJob) -> list[Event]:
        """Record a reading, act, and return the events of the reading."""
        one = reading(now_s, *queue)
        events = self.observer.events(one)
        self.actor.after(self.observer.fleet, one, Millis(round(now_s * 1_000)))
        return events


def test_a_held_job_is_ordered_in_the_journal_and_released_on_its_nodes() -> None:
    one = Cluster()
    one.read(2_000, held("1"))
    assert kinds(one.acted) == [JobReleased, ActionOrdered]
    assert one.acted[1] == ActionOrdered(
        Millis(2_000_000), StartJob(JobId("1"), (Slot(NodeId("n2"), 8),))
    )
    assert one.orders.given == [("release", "1", "n2", f"tenfold-act:{HOME}:1 my words")]
    waits = replace(job("1"), comment=f"tenfold-act:{HOME}:1 my words", required_nodes=("n1",))
    one.read(2_010, waits)
    assert len(one.orders.given) == 1
    events = one.read(
        2_020,
        replace(
            job("1", started_s=2_012, node_names=("n2",), state="running"), comment=waits.comment
        ),
    )
    assert kinds(events) == [JobStarted]
    assert one.actor.counts.started == 1


@pytest.mark.parametrize(
    "other",
    [
        held("1", reason="JobHeldAdmin"),
        held("1", partition="other"),
        held("1", partitions=("all", "other")),
        job("1"),
        held("1", comment="tenfold-act:ba9876543210:1 theirs"),
        held("1", required_nodes=("n1",)),
        held("1", exclusive=True),
        held("1+0"),
        held("1", features="a|b"),
        held("1", dependency="afterok:7(unfulfilled)"),
        held("1", eligible_s=9_000.0),
    ],
    ids=[
        "admin hold",
        "partition",
        "one of two partitions",
        "not held",
        "other attachment",
        "nodes named",
        "whole nodes",
        "heterogeneous",
        "constraint",
        "dependency",
        "begin time",
    ],
)
def test_a_job_that_is_not_ours_to_place_is_left_alone(other: RecordedJob) -> None:
    one = Cluster()
    one.read(2_000, other)
    assert (one.orders.given, one.acted) == ([], [])


def test_without_a_scope_nothing_is_touched_and_an_account_narrows_it() -> None:
    assert not ActScope().has(held("1"))
    scope = ActScope(partitions=("all",), accounts=("speech",))
    assert not scope.has(held("1"))
    assert scope.has(held("1", account="speech"))


def test_two_held_jobs_never_share_gpus_and_the_third_waits_for_room() -> None:
    one = Cluster()
    one.read(2_000, held("1"), held("2"), held("3"))
    assert [given[1:3] for given in one.orders.given] == [("1", "n2"), ("2", "n1")]


def test_a_job_that_slurm_does_not_start_is_held_placed_again_and_then_left_to_slurm() -> None:
    one = Cluster()
    now_s, record = 2_000.0, held("1")
    for turn in range(1, TRIES_MOST + 1):
        one.read(now_s, record)
        comment = one.orders.given[-1][3]
        assert mark_of(comment, HOME) == ActMark(HOME, turn)
        waits = replace(job("1"), comment=comment, required_nodes=("n1",))
        one.read(now_s + 30, waits)
        assert one.orders.given[-1][0] == "release"
        one.read(now_s + 61, waits)
        refused = [event for event in one.acted if isinstance(event, ActionRefused)]
        assert (len(refused), refused[-1].reason.code) == (turn, "not-started-in-time")
        record = held("1", comment=one.orders.given[-1][2])
        now_s += 100
    assert [given[0] for given in one.orders.given] == [
        "release",
        "hold",
        "release",
        "hold",
        "release",
        "unbind",
    ]
    left = one.orders.given[-1][2]
    assert left == f"tenfold-act:{HOME}:left my words"
    one.read(now_s, replace(job("1"), comment=left))
    one.read(now_s + 10, held("1", comment=left))
    assert len(one.orders.given) == 2 * TRIES_MOST


def test_after_a_crash_between_the_order_and_slurm_the_job_is_placed_once_more() -> None:
    one = Cluster()
    one.read(2_000, held("1"))
    one.orders.given.clear()
    # The order is in the journal, and Slurm still holds the job.
    events = one.read(2_010, held("1"))
    assert kinds(events) == [ActionRefused, JobHeld]
    assert len(one.orders.given) == 1


def test_a_job_released_before_a_crash_that_lost_its_order_is_held_again() -> None:
    one = Cluster()
    comment = f"tenfold-act:{HOME}:1 my words"
    one.read(2_000, replace(job("1"), comment=comment, required_nodes=("n1",)))
    assert one.orders.given == [("hold", "1", comment)]


def test_a_released_job_that_is_moved_out_of_scope_is_left_alone() -> None:
    one = Cluster()
    one.read(2_000, held("1"))
    waits = replace(job("1"), partition="other", comment=f"tenfold-act:{HOME}:1 my words")
    one.read(2_100, waits)
    one.read(2_110, waits)
    assert [given[0] for given in one.orders.given] == ["release"]


def test_a_job_that_started_and_ended_between_two_readings_counts_as_started() -> None:
    one = Cluster()
    one.read(2_000, held("1"))
    one.read(2_100, ended("1", 2_001, 2_050))
    assert one.actor.counts.started == 1


def test_an_order_that_slurm_refuses_is_an_event_and_rights_that_are_missing_an_error() -> None:
    one = Cluster(said="Requested node configuration is not available")
    one.read(2_000, held("1"))
    assert isinstance(one.acted[-1], ActionRefused)
    assert one.acted[-1].reason.code == "slurm-refused"
    for now_s in (2_010, 2_020, 2_030):
        one.read(now_s, held("1"))
    assert one.actor.counts.refused == 3
    assert "refused 3 orders" in one.actor.counts.skipped["1"]
    with pytest.raises(Refused, match="Invalid user id"):
        Cluster(said="Invalid user id for job 1").read(2_000, held("1"))


def test_another_job_that_slurm_starts_on_the_nodes_ends_the_order() -> None:
    one = Cluster()
    one.read(2_000, held("1"))
    comment = one.orders.given[0][3]
    waits = replace(job("1"), comment=comment, required_nodes=("n1",))
    for now_s in (2_010, 2_020, 2_030):
        one.read(now_s, waits, job("2", started_s=2_005, node_names=("n2",), state="running"))
    refused = [given for given in one.orders.given if given[0] == "hold"]
    assert refused == [("hold", "1", comment)]
    assert JobId("2") in one.observer.fleet.running
    assert JobId("1") in one.observer.fleet.pending


def test_a_start_on_other_nodes_and_a_cancellation_end_the_order() -> None:
    one = Cluster()
    one.read(2_000, held("1"))
    events = one.read(2_010, job("1", started_s=2_005, node_names=("n1",), state="running"))
    assert kinds(events) == [ActionRefused, ActionOrdered, JobStarted]
    other = Cluster()
    other.read(2_000, held("1"))
    gone = job("1", state="cancelled", ended_s=2_004)
    assert [type(event).__name__ for event in other.read(2_010, gone)] == [
        "ActionRefused",
        "JobCancelled",
    ]


def test_a_job_on_one_node_is_never_split() -> None:
    one = Cluster()
    taken = [job("8", started_s=1_500, gpus=4, gpus_asked=4, node_gpus=(4,)),
             job("9", started_s=1_500, gpus=4, gpus_asked=4, node_names=("n2",), node_gpus=(4,),
                 state="running")]  # fmt: skip
    one.read(2_000, *taken, held("1"))
    assert one.orders.given == []
