"""Budget: what the fleet and its fixes cost a month against the limit.

Nodes, their energy, spares, technicians, storage, egress and what earlier fixes bought are one
sum. Added nodes cost the same as the existing ones, with energy if they are owned.
"""

from collections.abc import Iterable

from msgspec.structs import replace

from tenfold.model.growth.growth import Axis, grows_along
from tenfold.model.ids import PoolId
from tenfold.physics.growth.breaking import DEFAULTED, STATED, Evidence
from tenfold.study.estimate.money import fleet_bill
from tenfold.study.grow.cost.monthly import month_of
from tenfold.study.grow.layer import ComputedLayer, Constraint
from tenfold.study.grow.relief import Relief, round_up_to, with_relief
from tenfold.study.grow.state import State

RESOURCE = "a month of the fleet"
BUDGET = "budget"
"""Code of the relief that raises the budget; it is not a cost, what it buys is."""
BUDGET_STEP = 1_000


class Money(ComputedLayer):
    """Monthly cost. All other layers cost money, so this ranks last of what breaks together."""

    name = "money"
    title = "Budget"
    labels = ((RESOURCE, "Monthly budget"),)
    breaks = "the monthly cost of the fleet exceeds `usd_per_month_most`"
    cause_rank = 90
    grows_with = ("nodes", "jobs", "data")
    grows_by = (
        "cost of nodes, their energy and egress; storage, spares, staff and fixes stay the same"
    )
    needs = "`usd_per_month_most` under `[limits]` in the grow file"
    fixed_by = "a larger budget"
    always_listed = True
    only_if_stated = True

    def reports_missing(self, axis: Axis) -> bool:
        """Return whether nodes grow: without a budget, the rest is not worth a line."""
        return grows_along(axis, "nodes")

    def constraints(self, state: State, axis: Axis) -> Iterable[Constraint]:
        """Return the constraint on monthly cost, if a budget and prices are stated."""
        budget = state.grow.limits.usd_per_month_most
        if budget is None:
            return [self.unknown(RESOURCE)]
        unpriced = next((pool.id for pool in state.spec.pools if pool.price is None), None)
        if unpriced is not None:
            return [self.unknown(RESOURCE, f"`price` for pool `{unpriced}`")]
        return [self._month(state, axis, budget)]

    def _month(self, state: State, axis: Axis, budget: float) -> Constraint:
        month = state.once(month_of)

        def spent(factor: float) -> float:
            return month.at(axis, factor).usd

        def symptom(factor: float) -> str:
            return f"cost: ${spent(factor):,.0f} of ${budget:,.0f} a month"

        def relieve(multiple: float) -> list[Relief]:
            return [_more_budget(budget, multiple)]

        defaulted = _defaulted_share(state, month.today.usd)
        spread = STATED.spread + (DEFAULTED.spread - STATED.spread) * defaulted
        evidence = Evidence(STATED.grade, spread)
        return self.constraint(RESOURCE, spent, budget, evidence, symptom, relieve)


def _defaulted_share(state: State, whole_usd: float) -> float:
    """Return the share of the cost that comes from defaults, not from the fleet file.

    A pool's power only costs money if its energy is paid, and then no more than that.
    """
    field = {"pool": "price", "energy": "power_kw_per_node"}
    pools = {pool.id: pool for pool in state.spec.pools}
    usd = sum(
        line.usd
        for line in fleet_bill(state.spec)
        if line.kind in field and field[line.kind] in pools[PoolId(line.part)].defaulted
    )
    return min(1.0, usd / whole_usd) if whole_usd else 0.0


def _more_budget(budget: float, multiple: float) -> Relief:
    """Raise the budget; this costs nothing by itself, and what it pays for has its own price."""
    required = round_up_to(budget * multiple, BUDGET_STEP)

    def apply(now: State) -> State:
        limits = replace(now.grow.limits, usd_per_month_most=float(required))
        return replace(with_relief(now, BUDGET), grow=replace(now.grow, limits=limits))

    text = f"raise the budget to ${required:,} a month (up from ${budget:,.0f})"
    return Relief(BUDGET, text, 0.0, None, apply)
