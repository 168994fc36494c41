"""Nobody has to be looked at whose turn has not come, and nobody is forgotten."""

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tenfold.decide.place.queue.pending_queues import Class, Lines, Option
from tenfold.decide.place.queue.preemption_eligibility import Owing
from tenfold.decide.place.quota.allocations import Holding, Holdings
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
        self.holdings = Holdings(govern, self.tree)
        self.owing = Owing(self.tree, self.holdings, preempts=preempts)
        self.lines = Lines(self.tree, self.owing)

    def submit(self, one: Job) -> None:
        team = self.tree.team(one.team)
        cls = self.lines.get(team, one.priority, one.shape)
        if cls is None:
            asked = self.tree.resources.ask(one.shape.gpus * WHOLE, "")
            cls = Class(team, one.shape, one.priority, (Option("", asked),))
            self.lines.enter(cls)
        self.lines.add(cls, one)

    def end(self, place: int) -> None:
        held = list(self.holdings.held)
        if held:
            holding = self.holdings.remove(held[place % len(held)])
            self.lines.gave_back(holding.team)

    def serve(self) -> None:
        """Let all start who may, in order of turn."""
        while (cls := self.lines.best()) is not None:
            met = self.tree.obstacle(cls.team, cls.amounts)
            if met is None:
                assert cls is self.first(self.tree.root)
                one = self.lines.leave(cls)
                slots = (Slot(NODE, one.shape.gpus),)
                self.holdings.add(Holding(one, slots, 0, cls.team, cls.amounts))
                self.lines.touch(cls.team)
            else:
                if self.owing.is_on and self.owing.is_owed(cls):
                    self.lines.wanting[cls] = None
                else:
                    self.lines.wanting.pop(cls)
                self.lines.set_aside(cls, [met], no_room=False)

    def passing(self, node: Team) -> list[Class]:
        """Return all below a team whom no limit stops, by looking at everybody."""
        found = [cls for child in node.children for cls in self.passing(child)]
        own: list[Class] = list(node.classes.values())
        return found + [c for c in own if self.tree.obstacle(c.team, c.amounts) is None]

    def head(self, node: Team) -> Class | None:
        if not node.children:
            own: list[Class] = list(node.classes.values())
            return min(own, key=_order, default=None)
        below = [child for child in node.children if self.head(child) is not None]
        return self.head(min(below, key=self.place)) if below else None

    def place(self, node: Team) -> tuple[object, ...]:
        head = self.head(node)
        assert head is not None
        return *self.tree.turn_of(node, head.amounts), *_order(head)

    def first(self, node: Team) -> Class:
        """Return whose turn it is, by looking at everybody."""
        if not node.children:
            return min(self.passing(node), key=_order)
        return self.first(min(filter(self.passing, node.children), key=self.place))


def _order(cls: Class) -> tuple[int, int, int]:
    return -cls.priority, *cls.line[0][:2]


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
            owed = [cls for cls in desk.lines if desk.owing.is_on and desk.owing.is_owed(cls)]
            assert sorted(map(_order, desk.lines.wanting)) == sorted(map(_order, owed))
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
        (team, desk.tree.resources.ask(gpus * WHOLE, ""))
        for team in desk.tree.teams.values()
        for gpus in (1, 6)
    ]
    before = [desk.tree.obstacle(*ask) is not None for ask in asks]
    for team, amounts in asks[::2]:
        desk.tree.add(team, amounts, 1)
    assert [desk.tree.is_beyond(*ask) for ask in asks] == before
