"""A held job: no policy sees it, it survives a snapshot, and only its cancellation ends it."""

import msgspec
import pytest

from tenfold.compose.policies import placing_decider
from tenfold.engine.digest import fleet_digest
from tenfold.fleet.check import check
from tenfold.fleet.image import FleetImage, fleet_from, image_of
from tenfold.model.events import JobCancelled, JobHeld, JobSubmitted
from tenfold.model.ids import JobId
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


def test_a_job_that_is_not_pending_cannot_be_held():
    with pytest.raises(KeyError):
        fleet(nodes(1)).apply(JobHeld(Millis(1), JobId("gone"), WHY))
