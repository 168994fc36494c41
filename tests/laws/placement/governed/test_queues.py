"""Nobody has to be looked at whose turn has not come, and nobody is forgotten."""

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tenfold.decide.place.queue.pending_queues import JobClass, Option, PendingQueues
from tenfold.decide.place.queue.preemption_eligibility import PreemptionEligibility
from tenfold.decide.place.quota.allocations import Allocation, Allocations
from tenfold.decide.place.quota.request import Resources
from tenfold.decide.place.quota.team_tree import Team, Tree
from tenfold.model.ids import TeamId
from tenfold.model.job.job import WHOLE, Job, Slot
from tenfold.model.policy.governance import ANY, GovernanceRules, TeamRules
from tenfold.model.units import Millis
from tenfold.testing.builders import job, nodes

TEAMS = 5
STEPS = 80
FLEET = {node.id: node for node in nodes(3)}
NODE = next(iter(FLEET))
worlds = st.integers(0, 1 << 32).map(Random)
many = settings(max_examples=300, deadline=None)


def rules(dice: Random) -> GovernanceRules:
    """Return teams under each other in any way, with limits of every kind."""
    teams: list[TeamRules] = []
    for number in range(TEAMS):
        terms = TeamRules(
            id=TeamId(f"t{number}"),
            parent=dice.choice([None, *(team.id for team in teams), *(team.id for team in teams)]),
            quota={ANY: dice.randrange(9) * WHOLE},
            borrow=dice.choice([{}, {ANY: dice.randrange(9) * WHOLE}]),
            lend=dice.choice([{}, {}, {ANY: dice.randrange(5) * WHOLE}]),
        )
        teams.append(terms)
    return GovernanceRules(teams=tuple(teams))


class Desk:
    """Lines with limits and no nodes: who may pass starts, whoever is owed room waits."""

    def __init__(self, govern: GovernanceRules, *, preempts: bool) -> None:
        self.tree = Tree(govern, Resources(govern, FLEET), Millis(0))
        self.allocations = Allocations(govern, self.tree)
        self.eligibility = PreemptionEligibility(self.tree, self.allocations, preempts=preempts)
        self.queues = PendingQueues(self.tree, self.eligibility)

    def submit(self, one: Job) -> None:
        team = self.tree.team(one.team)
        job_class = self.queues.get(team, one.priority, one.shape)
        if job_class is None:
            asked = self.tree.resources.amounts_for(one.shape.gpus * WHOLE, "")
            job_class = JobClass(team, one.shape, one.priority, (Option("", asked),))
            self.queues.add_class(job_class)
        self.queues.add(job_class, one)

    def end(self, place: int) -> None:
        held = list(self.allocations.held)
        if held:
            allocation = self.allocations.remove(held[place % len(held)])
            self.queues.usage_dropped(allocation.team)

    def serve(self) -> None:
        """Let all start who may, in order of turn."""
        while (job_class := self.queues.best()) is not None:
            met = self.tree.obstacle(job_class.team, job_class.amounts)
            if met is None:
                assert job_class is self.first(self.tree.root)
                one = self.queues.dequeue(job_class)
                slots = (Slot(NODE, one.shape.gpus),)
                self.allocations.add(Allocation(one, slots, 0, job_class.team, job_class.amounts))
                self.queues.usage_changed(job_class.team)
            else:
                if self.eligibility.is_on and self.eligibility.is_eligible(job_class):
                    self.queues.blocked_preemptors[job_class] = None
                else:
                    self.queues.blocked_preemptors.pop(job_class)
                self.queues.set_aside(job_class, [met], no_capacity=False)

    def passing(self, node: Team) -> list[JobClass]:
        """Return all below a team whom no limit stops, by looking at everybody."""
        found = [job_class for child in node.children for job_class in self.passing(child)]
        own: list[JobClass] = list(node.classes.values())
        return found + [c for c in own if self.tree.obstacle(c.team, c.amounts) is None]

    def head(self, node: Team) -> JobClass | None:
        if not node.children:
            own: list[JobClass] = list(node.classes.values())
            return min(own, key=_order, default=None)
        below = [child for child in node.children if self.head(child) is not None]
        return self.head(min(below, key=self.place)) if below else None

    def place(self, node: Team) -> tuple[object, ...]:
        head = self.head(node)
        assert head is not None
        return *self.tree.fair_share_key(node, head.amounts), *_order(head)

    def first(self, node: Team) -> JobClass:
        """Return whose turn it is, by looking at everybody."""
        if not node.children:
            return min(self.passing(node), key=_order)
        return self.first(min(filter(self.passing, node.children), key=self.place))


def _order(job_class: JobClass) -> tuple[int, int, int]:
    return -job_class.priority, *job_class.queue[0][:2]


def _run(desk: Desk, dice: Random) -> None:
    for number in range(STEPS):
        if dice.random() < 0.4:
            desk.end(dice.randrange(STEPS))
        else:
            one = job(number, dice.randint(1, 6), team=f"t{dice.randrange(TEAMS)}")
            desk.submit(replace(one, priority=dice.choice((0, 50, 100))))
        if dice.random() < 0.4:
            desk.serve()
            assert not desk.passing(desk.tree.root)
            owed = [
                job_class
                for job_class in desk.queues
                if desk.eligibility.is_on and desk.eligibility.is_eligible(job_class)
            ]
            assert sorted(map(_order, desk.queues.blocked_preemptors)) == sorted(map(_order, owed))
    desk.serve()


@many
@given(worlds)
def test_whoever_may_pass_is_served_in_turn_and_whoever_is_owed_room_is_known(dice: Random):
    _run(Desk(rules(dice), preempts=dice.random() < 0.8), dice)


@many
@given(worlds)
def test_what_is_really_taken_is_what_holdings_take_whatever_is_spoken_for(dice: Random):
    desk = Desk(rules(dice), preempts=True)
    _run(desk, dice)
    asks = [
        (team, desk.tree.resources.amounts_for(gpus * WHOLE, ""))
        for team in desk.tree.teams.values()
        for gpus in (1, 6)
    ]
    before = [desk.tree.obstacle(*ask) is not None for ask in asks]
    for team, amounts in asks[::2]:
        desk.tree.add(team, amounts, 1)
    assert [desk.tree.is_beyond(*ask) for ask in asks] == before
