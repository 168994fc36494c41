"""A held job: no policy sees it, it survives a snapshot, until it is released or cancelled."""

import msgspec
import pytest
from msgspec.structs import replace

from tenfold.compose.policies import placing_decider
from tenfold.engine.digest import fleet_digest
from tenfold.fleet.check import check
from tenfold.fleet.image import FleetImage, fleet_from, image_of
from tenfold.model.events import (
    ActionOrdered,
    JobCancelled,
    JobEnded,
    JobHeld,
    JobReleased,
    JobStarted,
    JobSubmitted,
)
from tenfold.model.ids import JobId
from tenfold.model.job.terms import Terms
from tenfold.model.policy.policy import POLICIES, Policy, PolicyName
from tenfold.model.reason import Reason
from tenfold.model.units import MINUTE, Millis
from tenfold.testing.builders import fleet, job, nodes

WHY = Reason("quarantined", {"error": "ValueError"})
SMALL, OTHER = job(1, 4, at_s=1), job(2, 8, at_s=2)


@pytest.mark.parametrize("name", POLICIES)
def test_every_policy_decides_as_if_a_held_job_were_not_there(name: PolicyName):
    one = fleet(nodes(2))
    warm = placing_decider(Policy(name=name))
    warm.decide(one, Millis(0), None)
    now_ms = Millis(MINUTE)
    for events in (
        [JobSubmitted(now_ms, SMALL), JobHeld(now_ms, SMALL.id, WHY)],
        [JobSubmitted(now_ms, OTHER)],
    ):
        one.apply_all(events)
        decided = list(warm.decide(one, now_ms, events).actions)
        assert decided == list(placing_decider(Policy(name=name)).decide(one, now_ms, None).actions)
        assert SMALL.id not in [action.job_id for action in decided]


@pytest.mark.parametrize("name", POLICIES)
def test_every_policy_decides_on_a_released_job_as_on_any_other(name: PolicyName):
    one = fleet(nodes(2))
    warm = placing_decider(Policy(name=name))
    warm.decide(one, Millis(0), None)
    now_ms = Millis(MINUTE)
    started: list[JobId] = []
    for events in (
        [JobSubmitted(now_ms, SMALL), JobHeld(now_ms, SMALL.id, WHY)],
        [JobReleased(now_ms, SMALL.id)],
    ):
        one.apply_all(events)
        decided = list(warm.decide(one, now_ms, events).actions)
        fresh = placing_decider(Policy(name=name)).decide(one, now_ms, None)
        assert decided == list(fresh.actions)
        started = [action.job_id for action in decided]
    assert started == [SMALL.id]
    check(one)


@pytest.mark.parametrize("name", POLICIES)
def test_a_released_job_still_waits_for_the_jobs_that_it_names(name: PolicyName):
    later = replace(SMALL, terms=Terms(after=(OTHER.id,)))
    one = fleet(nodes(2), OTHER)
    warm = placing_decider(Policy(name=name))
    [start] = warm.decide(one, Millis(0), None).actions
    now_ms = Millis(MINUTE)
    for events, expected in (
        ([ActionOrdered(now_ms, start), JobStarted(now_ms, OTHER.id)], []),
        ([JobSubmitted(now_ms, later), JobHeld(now_ms, later.id, WHY)], []),
        ([JobReleased(now_ms, later.id, "ops")], []),
        ([JobEnded(now_ms, OTHER.id, "completed")], [later.id]),
    ):
        one.apply_all(events)
        decided = warm.decide(one, now_ms, events).actions
        if name != "slurm":  # It thinks at times of its own.
            assert [action.job_id for action in decided] == expected, events


def test_a_held_job_is_in_snapshots_and_digests_until_it_is_cancelled():
    one = fleet(nodes(1), SMALL)
    before = fleet_digest(one)
    one.apply(JobHeld(Millis(1), SMALL.id, WHY))
    check(one)
    assert (list(one.held), list(one.pending)) == ([SMALL.id], [])
    text = msgspec.json.encode(image_of(one))
    again = fleet_from(msgspec.json.decode(text, type=FleetImage))
    assert fleet_digest(again) == fleet_digest(one) != before
    for each in (one, again, one.fork()):
        each.apply(JobCancelled(Millis(2), SMALL.id))
        assert not each.held
    assert fleet_digest(one) == fleet_digest(again)


def test_an_empty_hold_leaves_no_trace_in_a_snapshot():
    assert b"held" not in msgspec.json.encode(image_of(fleet(nodes(1), SMALL)))


def test_a_job_that_is_not_held_cannot_be_released():
    with pytest.raises(KeyError):
        fleet(nodes(1), SMALL).apply(JobReleased(Millis(1), SMALL.id))


def test_a_job_that_is_not_pending_cannot_be_held():
    with pytest.raises(KeyError):
        fleet(nodes(1)).apply(JobHeld(Millis(1), JobId("gone"), WHY))
