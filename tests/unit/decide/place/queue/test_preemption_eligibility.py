"""Who may displace others, and what those wait for who may not."""

import pytest
from msgspec.structs import replace

from tenfold.decide.place.queue.admission import Admission
from tenfold.decide.place.queue.job_class import JobClass, Option
from tenfold.decide.place.queue.preemption_eligibility import PreemptionEligibility
from tenfold.decide.place.quota.allocations import Allocation, Allocations
from tenfold.decide.place.quota.request import Resources
from tenfold.decide.place.quota.team_tree import BlockingLimit, Tree
from tenfold.model.ids import JobId, TeamId
from tenfold.model.job.job import WHOLE, Slot, shape_of
from tenfold.model.job.terms import Terms
from tenfold.model.policy.governance import ANY, GovernanceRules, TeamRules
from tenfold.model.units import Millis
from tenfold.testing.builders import job, nodes

FLEET = {node.id: node for node in nodes(4)}
TEAMS = (
    TeamRules(id=TeamId("lab"), borrow={ANY: 0}),
    TeamRules(id=TeamId("a"), parent=TeamId("lab"), quota={ANY: 8 * WHOLE}),
    TeamRules(id=TeamId("b"), parent=TeamId("lab"), quota={ANY: 8 * WHOLE}),
)


class Lab:
    """Two teams of 8 GPUs each, which may borrow all that the other leaves."""

    def __init__(self) -> None:
        govern = GovernanceRules(teams=TEAMS)
        self.tree = Tree(govern, Resources(govern, FLEET), Millis(0))
        self.allocations = Allocations(govern, self.tree)
        self.eligibility = PreemptionEligibility(self.tree, self.allocations, preempts=True)
        self._count = 0

    def holds(self, team: str, gpus: int, priority: int = 0) -> None:
        self._count += 1
        one = replace(job(self._count, gpus, team=team), priority=priority)
        amounts = self.tree.resources.amounts_for(gpus * WHOLE, "")
        slots = (Slot(next(iter(FLEET)), gpus),)
        self.allocations.add(Allocation(one, slots, 0, self.tree.team(one.team), amounts))

    def waits(self, team: str, gpus: int, priority: int = 0) -> JobClass:
        option = Option("", self.tree.resources.amounts_for(gpus * WHOLE, ""))
        return JobClass(self.tree.team(TeamId(team)), shape_of(gpus), priority, (option,))


@pytest.fixture
def lab() -> Lab:
    return Lab()


def test_within_its_quota_a_team_is_owed_what_another_borrowed(lab: Lab):
    lab.holds("b", 16)
    assert lab.eligibility.is_eligible(lab.waits("a", 8))
    assert lab.eligibility.is_within_quota(lab.waits("a", 8))


def test_beyond_its_quota_it_is_owed_nothing_until_its_parent_has_room(lab: Lab):
    lab.holds("a", 8)
    lab.holds("b", 8)
    number = lab.tree.resources.number[ANY]
    parent = lab.tree.named[TeamId("lab")]
    assert lab.eligibility.blocking_limits(lab.waits("a", 4)) == [
        BlockingLimit(parent, number, 4 * WHOLE)
    ]


def test_own_lower_priorities_lower_the_hurdle_and_are_enough_in_the_end(lab: Lab):
    lab.holds("a", 8)
    lab.holds("b", 5)
    lab.holds("a", 3, priority=-50)
    number = lab.tree.resources.number[ANY]
    parent = lab.tree.named[TeamId("lab")]
    assert lab.eligibility.blocking_limits(lab.waits("a", 4)) == [
        BlockingLimit(parent, number, 1 * WHOLE)
    ]
    assert lab.eligibility.is_eligible(lab.waits("a", 3))


def test_lower_priorities_are_summed_and_forgotten_with_their_jobs(lab: Lab):
    lab.holds("a", 2, priority=-50)
    lab.holds("a", 3, priority=0)
    team, number = lab.tree.team(TeamId("a")), lab.tree.resources.number[ANY]
    assert lab.allocations.below(team, 100, number) == 5 * WHOLE
    assert lab.allocations.below(team, 0, number) == 2 * WHOLE
    lab.allocations.remove(JobId("job-1"))
    assert lab.allocations.below(team, 100, number) == 3 * WHOLE
    assert not lab.allocations.has_lower_priority(team, 0)


@pytest.mark.parametrize(
    ("terms", "is_plain"),
    [
        (None, True),
        (Terms(checkpoint_every_ms=Millis(1)), True),
        (Terms(array="x", array_most=1), False),
        (Terms(least_gpus=1), False),
        (Terms(off_peak=True), False),
    ],
)
def test_a_stopped_job_is_plain_unless_its_terms_count_others_or_hours(
    terms: Terms | None, is_plain: bool
):
    assert Admission(GovernanceRules()).is_plain(replace(job(1, 1), terms=terms)) == is_plain
