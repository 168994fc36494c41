"""What holds under governed placement, in every world: quotas, stops and promises."""

from random import Random

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tenfold.decide.place.governed import GovernedPlacer
from tenfold.decide.place.quota.request import Resources
from tenfold.decide.place.quota.team_tree import Tree
from tenfold.engine.loop import Decider, run
from tenfold.fleet.fleet import Fleet
from tenfold.model.actions import ReserveStart, StartJob
from tenfold.model.decision import Decision
from tenfold.model.events import (
    ActionOrdered,
    Event,
    JobEnded,
    JobStarted,
    JobSubmitted,
    NodeCordoned,
    NodeLost,
)
from tenfold.model.ids import JobId, TeamId
from tenfold.model.job.job import WHOLE, Job, shape_of
from tenfold.model.policy.governance import ANY, GovernanceRules, TeamRules
from tenfold.model.units import HOUR, MINUTE, Millis
from tenfold.testing.builders import nodes
from tests.rigs.chance_world import ChanceWorld
from tests.rigs.governed.laws import Governing
from tests.rigs.governed.quota import Quotas, add_to
from tests.rigs.governed.worlds import calm
from tests.rigs.laws import Sound
from tests.rigs.ledger import Ledger
from tests.rigs.soak import run_world, simulated, state, watched_decider
from tests.rigs.worlds import SmallWorld, drawn_world

seeds = st.integers(0, 1 << 32)
many = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))


def governed_world(seed: int, *, jobs: tuple[int, int] = (20, 30), faults: int = 3) -> SmallWorld:
    return drawn_world(Random(seed), jobs=jobs, faults=(0, faults), governed=True)


@many
@given(seeds)
def test_every_law_holds_in_every_simulated_world(seed: int):
    run_world(governed_world(seed), "governed")


@many
@given(dice=st.randoms(use_true_random=False))
def test_every_law_holds_whatever_happens(dice: Random):
    drawn = drawn_world(dice, jobs=(1, 14), faults=(0, 0), governed=True)
    ledger, fleet = Ledger(), Fleet()
    world = ChanceWorld(dice, drawn.nodes, drawn.jobs, turns=60)
    decider = Governing(watched_decider(drawn, "governed"), drawn.govern or GovernanceRules())
    run(world, fleet, [decider], journal=ledger, witnesses=[Sound(ledger)])
    ledger.close()
    again = Fleet()
    again.apply_all(ledger.events)
    assert state(again) == state(fleet)


amounts = st.integers(0, 8).map(lambda gpus: gpus * WHOLE)
limits = st.just({}) | amounts.map(lambda amount: {ANY: amount})


@st.composite
def trees(draw: st.DrawFn) -> GovernanceRules:
    """Teams under each other in any way, with any quotas and limits."""
    teams: list[TeamRules] = []
    for number in range(draw(st.integers(1, 6))):
        teams.append(
            TeamRules(
                id=TeamId(f"t{number}"),
                parent=draw(st.sampled_from([None, *(team.id for team in teams)])),
                quota={ANY: draw(amounts)},
                borrow=draw(limits),
                lend=draw(limits),
            )
        )
    return GovernanceRules(teams=tuple(teams))


@settings(max_examples=300, deadline=None)
@given(trees(), st.lists(st.tuples(st.integers(0, 6), st.integers(1, 6)), max_size=12))
def test_limits_kept_up_to_date_are_those_worked_out_from_the_terms(
    govern: GovernanceRules, asks: list[tuple[int, int]]
):
    members = {node.id: node for node in nodes(3)}
    tree = Tree(govern, Resources(govern, members), Millis(0))
    quotas = Quotas(govern, members, Millis(0))
    held: dict[TeamId, dict[str, int]] = {}
    for number, gpus in asks:
        team = TeamId(f"t{number}")
        asked = tree.resources.amounts_for(gpus * WHOLE, "")
        before = quotas.excess(held)
        add_to(held, team, {ANY: gpus * WHOLE})
        after = quotas.excess(held)
        fits = all(amount <= before.get(key, 0) for key, amount in after.items())
        assert (tree.obstacle(tree.team(team), asked) is None) == fits, (team, gpus, after)
        if fits:
            tree.add(tree.team(team), asked, 1)
        else:
            add_to(held, team, {ANY: gpus * WHOLE}, -1)


class ReservedStarts:
    """A witness of reserved starts: no gang starts later than its first reserved start.

    Equivalent gangs may swap reservations, so that the first submitted starts first: of
    them, the first start is not later than the first reserved start, and so on.
    """

    def __init__(self) -> None:
        self._told: dict[JobId, int] = {}
        self._due: dict[object, list[int]] = {}
        self.made = 0

    def cycle(self, fleet: Fleet, now_ms: Millis, decider: Decider, decision: Decision) -> None:
        for action in decision.actions:
            job_id = action.job_id
            if isinstance(action, ReserveStart) and not action.slots:
                self._passed_on(fleet, job_id, decision)
            elif isinstance(action, ReserveStart) and job_id in fleet.pending:
                self.made += 1
                if job_id not in self._told:
                    self._told[job_id] = action.start_ms
                    self._due.setdefault(_alike(fleet.pending[job_id]), []).append(action.start_ms)
            elif isinstance(action, StartJob) and self._told.pop(job_id, None) is not None:
                self._started(fleet, job_id, now_ms)
        for alike, due in self._due.items():
            assert not due or now_ms <= min(due), f"{alike} still wait, and were promised {due} ms"

    def _passed_on(self, fleet: Fleet, job_id: JobId, decision: Decision) -> None:
        """What is taken back goes to another alike, in the same decision."""
        others = [
            one
            for one in decision.actions
            if isinstance(one, ReserveStart) and one.slots and one.job_id != job_id
        ]
        jobs = {
            **{one: order.job for one, order in fleet.orders.items()},
            **{one: run.job for one, run in fleet.running.items()},
            **fleet.pending,
        }
        alike = _alike(jobs[job_id])
        heirs = [
            one.job_id
            for one in others
            if _alike(jobs[one.job_id]) == alike and one.job_id not in self._told
        ]
        assert heirs, f"`{job_id}` was promised a start, and nobody has it"
        self._told[heirs[0]] = self._told.pop(job_id)

    def _started(self, fleet: Fleet, job_id: JobId, now_ms: Millis) -> None:
        held = fleet.running.get(job_id) or fleet.orders.get(job_id)
        assert held is not None, f"`{job_id}` was told to start"
        due = self._due[_alike(held.job)]
        assert now_ms <= min(due), f"`{job_id}` was promised {min(due)} ms"
        due.remove(min(due))


def _alike(job: Job) -> object:
    return job.shape.key, job.team, job.priority


def kept_promises(seed: int) -> int:
    """Run a calm world: limits are true, nothing fails, quotas stay. Return promises made."""
    drawn = governed_world(seed, faults=0)
    drawn_rules = drawn.govern or GovernanceRules()
    govern = replace(
        drawn_rules,
        teams=tuple(replace(team, hours=()) for team in drawn_rules.teams),
        reservations=4,
        reserve_after_ms=Millis(0),
        off_peak=(),
        windows=(),
    )
    world = replace(
        drawn,
        jobs=calm(drawn.jobs),
        govern=govern,
        restart_cost_ms=Millis(0),
        start_delay_ms=Millis(0),
        stop_delay_ms=Millis(0),
        start_failure_share=0.0,
    )
    witness = ReservedStarts()
    run(simulated(world), Fleet(), [GovernedPlacer(govern)], witnesses=[witness])
    return witness.made


@many
@given(seeds)
@example(71464)  # Three equivalent gangs are due at once, and swap their reservations.
@example(6160)  # A dependency ends, and the member of an array that waited for it may start,
@example(1075)  # while another member of the array has the reserved start.
@example(2035)  # A gang gives its reservation to an earlier one and starts in the same cycle.
def test_a_promised_start_is_never_later_than_it_was_first_told(seed: int):
    kept_promises(seed)


def test_calm_worlds_are_full_of_promises():
    assert sum(kept_promises(seed) for seed in range(40)) > 30


def moment(seed: int) -> tuple[list[Event], GovernanceRules, list[Event]]:
    """The facts of a fleet up to some way into its work, and more that come at one moment."""
    dice = Random(seed)
    drawn = drawn_world(dice, jobs=(16, 24), faults=(0, 0), governed=True)
    govern, ledger = drawn.govern or GovernanceRules(), Ledger()
    first, later = drawn.jobs[:-6], drawn.jobs[-6:]
    acted = simulated(replace(drawn, jobs=first))
    run(acted, Fleet(), [GovernedPlacer(govern)], journal=ledger)
    now = dice.choice(ledger.events).at_ms
    past = [event for event in ledger.events if event.at_ms <= now]
    fleet = Fleet()
    fleet.apply_all(past)
    facts: list[Event] = [JobSubmitted(now, replace(job, submitted_ms=now)) for job in later]
    runs = [job_id for job_id, one in fleet.running.items() if not one.stopping]
    over = dice.sample(runs, min(len(runs), dice.randint(0, 3)))
    facts += [JobEnded(now, job_id) for job_id in over]
    held = (*fleet.running.values(), *fleet.orders.values())
    busy = {slot.node for one in held for slot in one.slots}
    if idle := [name for name in fleet.nodes if name not in busy]:
        facts.append(dice.choice((NodeLost, NodeCordoned))(now, dice.choice(idle)))
    return past, govern, facts


@many
@given(seeds)
def test_the_order_of_facts_of_one_moment_does_not_matter(seed: int):
    past, govern, facts = moment(seed)
    now = facts[0].at_ms
    decisions: list[tuple[list[str], Millis | None]] = []
    for turn in range(4):
        fleet, warm = Fleet(), GovernedPlacer(govern)
        fleet.apply_all(past)
        decided = warm.decide(fleet, now, None)
        orders = [ActionOrdered(now, action) for action in decided.actions]
        fleet.apply_all(orders)
        shuffled = list(facts)
        if turn:
            Random(seed + turn).shuffle(shuffled)
        over = {one.job_id for one in decided.actions}
        shuffled = [one for one in shuffled if getattr(one, "job_id", None) not in over]
        fleet.apply_all(shuffled)
        decided = warm.decide(fleet, now, [*orders, *shuffled])
        fresh = GovernedPlacer(govern).decide(fleet, now, None)
        for one in (decided, fresh):
            decisions.append((sorted(map(repr, one.actions)), one.wake_at_ms))
    assert all(one == decisions[0] for one in decisions)


def lender_world(seed: int) -> tuple[SmallWorld, int]:
    """Guests fill a fleet for days; then its owners come, for no more than their quota.

    Return it with how long an owner may have to wait.
    """
    dice = Random(seed)
    count, gpus = dice.randint(2, 6), dice.choice((2, 4, 8))
    stop_ms, delay_ms = dice.choice((0, MINUTE)), dice.choice((0, MINUTE))
    least_ms = dice.choice((0, MINUTE, 10 * MINUTE))
    came_ms = dice.choice((1, MINUTE, HOUR))
    guests = [_asked(number, dice.randint(1, gpus), "guests") for number in range(count * gpus)]
    size = dice.choice([one for one in (1, 2, 4, 8) if one <= gpus])
    wanted = dice.randint(1, count * gpus // size)
    owners = [
        replace(_asked(len(guests) + number, size, "owners"), submitted_ms=Millis(came_ms))
        for number in range(wanted)
    ]
    govern = GovernanceRules(
        teams=(TeamRules(id=TeamId("owners"), quota={ANY: wanted * size * WHOLE}),),
        min_run_ms=Millis(least_ms),
        delay_ms=Millis(delay_ms),
        reservations=0,
    )
    world = SmallWorld(
        nodes=tuple(nodes(count, gpus=gpus)),
        jobs=(*guests, *owners),
        stop_delay_ms=Millis(stop_ms),
        govern=govern,
    )
    return world, came_ms + least_ms + delay_ms + stop_ms


def _asked(number: int, gpus: int, team: str) -> Job:
    return Job(
        id=JobId(f"job-{number}"),
        shape=shape_of(gpus),
        submitted_ms=Millis(0),
        seq=number,
        team=TeamId(team),
        duration_ms=Millis(72 * HOUR),
    )


@many
@given(seeds)
def test_lent_room_is_back_within_the_least_run_the_delay_and_the_stop(seed: int):
    world, due_ms = lender_world(seed)
    govern, ledger = world.govern or GovernanceRules(), Ledger()
    run(simulated(world), Fleet(), [Governing(GovernedPlacer(govern), govern)], journal=ledger)
    owners = {job.id for job in world.jobs if job.team == "owners"}
    starts = [one for one in ledger.events if isinstance(one, JobStarted) and one.job_id in owners]
    assert len(starts) == len(owners)
    assert max(one.at_ms for one in starts) <= due_ms


def test_governed_worlds_are_worth_watching():
    """Stops, promises, holes and refusals are common in what is drawn."""
    kinds: dict[str, int] = {}
    for seed in range(12):
        drawn, ledger = governed_world(seed, jobs=(50, 60)), Ledger()
        govern = drawn.govern or GovernanceRules()
        run(simulated(drawn), Fleet(), [GovernedPlacer(govern)], journal=ledger)
        for event in ledger.events:
            if isinstance(event, ActionOrdered):
                name = type(event.action).__name__
                kinds[name] = kinds.get(name, 0) + 1
    assert {"StartJob", "StopJob", "ReserveStart", "RefuseJob"} <= kinds.keys()
