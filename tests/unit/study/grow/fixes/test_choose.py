"""Which fix is taken: one that is enough before several, and a switch of scheduler apart."""

from collections.abc import Iterable, Sequence

import pytest
from msgspec.structs import replace

import growth_builders as made
from tenfold.model.growth.growth import Axis, GrowSpec, GrowthLimits
from tenfold.model.ids import TeamId
from tenfold.model.policy.governance import ANY, GovernanceRules, TeamRules
from tenfold.model.policy.policy import Policy
from tenfold.physics.growth.breaking import STATED
from tenfold.study.grow import constraint_set
from tenfold.study.grow.analyse import analyse
from tenfold.study.grow.answer import GrowAnswer
from tenfold.study.grow.fixes.choose import NO_FIX, SPENT
from tenfold.study.grow.inputs import GrowInputs
from tenfold.study.grow.layer import ComputedLayer, Constraint
from tenfold.study.grow.layers.jobs.team_limits import raised_team_limits
from tenfold.study.grow.question import GrowQuestion
from tenfold.study.grow.relief import Relief, with_relief
from tenfold.study.grow.state import State, scale_capacity, state_of
from tenfold.testing.builders import job

HOUR = 3_600


class Hopper(ComputedLayer):
    """A layer that breaks at 2x, or where another that it is fixed by breaks."""

    breaks = "it is full"
    cause_rank = 1
    grows_with = ("nodes",)
    needs = "nothing"
    fixed_by = "more of it"

    def __init__(self, name: str, at: float, reliefs: Sequence[Relief] = ()) -> None:
        self.name = name
        self.at = at
        self.own = reliefs

    def constraints(self, state: State, axis: Axis) -> Iterable[Constraint]:
        capacity = self.at * state.capacity_scale(self.key("it"))
        yield self.constraint(
            "it", lambda factor: factor, capacity, STATED, lambda _: "full", lambda _: self.own
        )


def scaled(code: str, usd: float | None, scheduler: bool = False, **times: float) -> Relief:
    """Return a relief that multiplies the capacities of some hoppers."""

    def apply(now: State) -> State:
        now = with_relief(now, code)
        for name, by in times.items():
            now = scale_capacity(now, Hopper(name, 1.0).key("it"), by)
        return now

    return Relief(code, f"do {code}", usd, None, apply, scheduler=scheduler)


def answer(*layers: Hopper) -> GrowAnswer:
    question = GrowQuestion(axis="nodes", to=(4.0,))
    return analyse(made.given(made.fleet()), question, layers=layers)


def test_a_single_fix_that_is_enough_beats_a_bundle_that_costs_more():
    # The cheaper one overloads `b`, whose own fix is dear.
    first = scaled("first", 10.0, a=10.0, b=0.4)
    single = scaled("single", 50.0, a=10.0)
    found = answer(
        Hopper("a", 2.0, [first, single]), Hopper("b", 4.0, [scaled("dear", 900.0, b=10.0)])
    )
    assert found.rows[0].relief is not None
    assert (found.rows[0].relief.code, found.ok_up_to) == ("single", None)


def test_a_bundle_that_costs_less_beats_a_single_fix():
    first = scaled("first", 10.0, a=10.0, b=0.4)
    single = scaled("single", 50.0, a=10.0)
    found = answer(
        Hopper("a", 2.0, [first, single]), Hopper("b", 4.0, [scaled("cheap", 5.0, b=10.0)])
    )
    assert found.rows[0].relief is not None
    assert (found.rows[0].relief.code, found.rows[0].usd) == ("first+cheap", 15.0)


def test_a_switch_of_scheduler_is_an_alternative_and_never_part_of_a_purchase():
    switch = scaled("policy", 0.0, scheduler=True, a=1.2)
    found = answer(Hopper("a", 2.0, [switch, scaled("buy", 50.0, a=2.0)]))
    row = found.rows[0]
    assert row.relief is not None
    assert (row.relief.code, row.k_after) == ("buy", None)
    assert [(one.relief.code, one.k_after) for one in row.alternatives] == [("policy", 2.4)]


def test_a_switch_of_scheduler_is_the_fix_where_there_is_no_other():
    found = answer(Hopper("a", 2.0, [scaled("policy", 0.0, scheduler=True, a=2.0)]))
    assert [row.relief and row.relief.code for row in found.rows] == ["policy"]


def test_no_known_fix_is_said_only_where_none_is_known():
    assert [row.sentence for row in answer(Hopper("a", 2.0)).rows] == [NO_FIX]
    found = answer(Hopper("a", 2.0, [scaled("weak", 5.0, a=1.001)]))
    assert [row.sentence for row in found.rows] == ["no fix is enough; tried: do weak"]


def test_a_purchase_that_was_not_tried_is_named_before_a_switch_of_scheduler(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(constraint_set, "JOBS_SIMULATED_MAX", -1)
    switch = scaled("policy", 0.0, scheduler=True, a=1.2)
    found = answer(Hopper("a", 2.0, [switch, scaled("buy", 50.0, a=2.0)]))
    assert found.rows[0].sentence == f"{SPENT}; next candidate, untested: do buy"


def test_a_fix_with_a_price_of_nothing_is_taken_before_one_that_is_enough():
    free, paid = scaled("free", 0.0, a=1.5), scaled("paid", 9.0, a=2.0)
    codes = [row.relief and row.relief.code for row in answer(Hopper("a", 2.0, [free, paid])).rows]
    assert codes[0] == "free"


def test_limits_on_borrowing_and_quotas_are_reliefs_of_waits():
    teams = (
        TeamRules(id=TeamId("a"), quota={ANY: 8_000}, borrow={ANY: 0}),
        TeamRules(id=TeamId("b"), quota={ANY: 8_000}, lend={ANY: 0}),
    )
    inputs = GrowInputs(
        fleet=made.fleet(nodes=4),
        jobs=[job(1, 8, team="a", runs_s=HOUR), job(2, 8, team="b", runs_s=HOUR)],
        policy=Policy(name="governed", govern=GovernanceRules(teams=teams)),
        grow=GrowSpec(limits=GrowthLimits(wait_s_p90=HOUR)),
    )
    state = state_of(inputs)
    borrowing, quota = raised_team_limits(state)
    assert borrowing.sentence == "lift the limits on borrowing and lending of teams a, b"
    lifted = borrowing.apply(state).policy.govern
    assert lifted is not None
    assert all(not team.borrow and not team.lend for team in lifted.teams)
    govern = quota.apply(state).policy.govern
    assert govern is not None
    assert [team.quota[ANY] for team in govern.teams] == [16_000, 16_000]
    assert not raised_team_limits(replace(state, policy=Policy(name="fifo")))
