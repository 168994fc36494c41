"""Policies that never resize anybody, in a fleet where somebody else does."""

import pytest
from msgspec.structs import replace

from tenfold.compose.policies import placing_decider
from tenfold.engine.loop import Decider
from tenfold.model.actions import Action, ResizeJob, StartJob
from tenfold.model.events import (
    ActionOrdered,
    Event,
    JobBusy,
    JobCancelled,
    JobEnded,
    JobIdled,
    JobResized,
    JobStarted,
    JobSubmitted,
)
from tenfold.model.ids import JobId, NodeId
from tenfold.model.job.job import Slot
from tenfold.model.job.terms import Terms
from tenfold.model.policy.policy import POLICIES, Policy, PolicyName
from tenfold.model.reason import Reason
from tenfold.model.units import MINUTE, Millis
from tenfold.testing.builders import fleet, job, nodes

ELASTIC = replace(job(0, 8, runs_s=600), terms=Terms(least_gpus=2, most_gpus=16))
LARGE = job(1, 16, at_s=1, runs_s=60)
SMALL = job(2, 4, at_s=2, runs_s=60)
SHRINK = ResizeJob(ELASTIC.id, (Slot(NodeId("n0"), 4),), Reason("shrunk", sentence="for others"))
GROW = ResizeJob(
    ELASTIC.id,
    (Slot(NodeId("n0"), 8), Slot(NodeId("n1"), 8)),
    Reason("grown", sentence="there is room"),
)
OLD = [name for name in POLICIES if name != "governed"]


class Heard:
    """A fleet with a policy that has started the elastic job and listens to what follows."""

    def __init__(self, name: PolicyName) -> None:
        self._policy = Policy(name=name)
        self._fleet = fleet(nodes(2), ELASTIC)
        self._warm: Decider = placing_decider(self._policy)
        self._now_ms = 0
        [start] = self._warm.decide(self._fleet, Millis(0), None).actions
        assert start == StartJob(ELASTIC.id, (Slot(NodeId("n0"), 8),))
        self.hear(ActionOrdered(Millis(0), start), JobStarted(Millis(0), ELASTIC.id))

    def hear(self, *events: Event) -> list[Action]:
        """Apply facts and return what the policy does then, which is what a fresh one would."""
        self._now_ms += MINUTE
        now_ms = Millis(self._now_ms)
        self._fleet.apply_all(events)
        actions = list(self._warm.decide(self._fleet, now_ms, events).actions)
        fresh = placing_decider(self._policy).decide(self._fleet, now_ms, None)
        assert actions == list(fresh.actions)
        return actions


@pytest.mark.parametrize("name", OLD)
def test_room_that_a_smaller_job_gave_back_is_used(name: PolicyName):
    heard = Heard(name)
    heard.hear(ActionOrdered(Millis(0), SHRINK), JobResized(Millis(0), ELASTIC.id))
    heard.hear(JobIdled(Millis(0), ELASTIC.id, Millis(0)), JobBusy(Millis(0), ELASTIC.id))
    starts = heard.hear(JobSubmitted(SMALL.submitted_ms, SMALL))
    if name != "slurm":  # It thinks at times of its own.
        assert starts == [StartJob(SMALL.id, (Slot(NodeId("n0"), 4),))]


@pytest.mark.parametrize("name", OLD)
def test_a_job_that_ends_while_it_grows_gives_back_all_that_was_kept_for_it(name: PolicyName):
    heard = Heard(name)
    heard.hear(ActionOrdered(Millis(0), GROW))
    heard.hear(JobSubmitted(LARGE.submitted_ms, LARGE), JobSubmitted(SMALL.submitted_ms, SMALL))
    heard.hear(JobCancelled(Millis(0), SMALL.id))
    starts = heard.hear(JobEnded(Millis(0), ELASTIC.id))
    if name != "slurm":
        assert starts == [StartJob(JobId("job-1"), (Slot(NodeId("n0"), 8), Slot(NodeId("n1"), 8)))]
