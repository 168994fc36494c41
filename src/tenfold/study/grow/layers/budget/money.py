"""Money: what a month of the fleet costs against what it may cost.

Nodes more are paid for as those there are, with their energy where they are owned. Tiers cost
what they hold; shelves that a relief adds are in the fleet by then, and so in its bill.
"""

from collections.abc import Iterable

from msgspec.structs import replace

from tenfold.model.growth.growth import Axis, grown_by
from tenfold.physics.growth.breaking import DEFAULTED, STATED
from tenfold.study.estimate.money import fleet_bill
from tenfold.study.grow.layer import ComputedLayer, Constraint
from tenfold.study.grow.relief import Relief, round_up_to, with_relief
from tenfold.study.grow.state import State

RESOURCE = "a month of the fleet"
BUDGET = "budget"
"""Code of a relief that is granted, not paid: what it is spent on has prices of its own."""
BUDGET_STEP = 1_000


class Money(ComputedLayer):
    """Money is spent on all other layers, and so comes last of what breaks together."""

    name = "money"
    breaks = "a month of the fleet costs more than `usd_per_month_most`"
    cause_rank = 90
    grows_with = ("nodes",)
    needs = "`usd_per_month_most` under `[limits]` of the grow file"
    fixed_by = "a larger budget"
    always_listed = True

    def constraints(self, state: State, axis: Axis) -> Iterable[Constraint]:
        """Return the law of the monthly bill, where a budget and prices are stated."""
        budget = state.grow.limits.usd_per_month_most
        if budget is None:
            return [self.unknown(RESOURCE)]
        unpriced = next((pool.id for pool in state.spec.pools if pool.price is None), None)
        if unpriced is not None:
            return [self.unknown(RESOURCE, f"`price` of pool `{unpriced}`")]
        return [self._month(state, axis, budget)]

    def _month(self, state: State, axis: Axis, budget: float) -> Constraint:
        lines = fleet_bill(state.spec)
        nodes = sum(line.usd for line in lines if line.kind != "tier")
        others = sum(line.usd for line in lines) - nodes

        def spent(factor: float) -> float:
            return nodes * grown_by(axis, "nodes", factor) + others

        def symptom(factor: float) -> str:
            return f"a month costs ${spent(factor):,.0f} of ${budget:,.0f}"

        def relieve(multiple: float) -> list[Relief]:
            return [_more_budget(budget, multiple)]

        evidence = DEFAULTED if _defaulted(state) else STATED
        return self.constraint(RESOURCE, spent, budget, evidence, symptom, relieve)


def _defaulted(state: State) -> bool:
    """Return whether a price or the power that is paid for comes from facts, not from the file."""
    fields = ("price", "power_kw_per_node")
    return any(name in pool.defaulted for pool in state.spec.pools for name in fields)


def _more_budget(budget: float, multiple: float) -> Relief:
    """A budget is not paid but granted; what it grows by is what a month then costs more."""
    wanted = round_up_to(budget * multiple, BUDGET_STEP)

    def apply(now: State) -> State:
        limits = replace(now.grow.limits, usd_per_month_most=float(wanted))
        return replace(with_relief(now, BUDGET), grow=replace(now.grow, limits=limits))

    text = f"a budget of ${wanted:,} a month, ${budget:,.0f} today"
    return Relief(BUDGET, text, wanted - budget, None, apply)
