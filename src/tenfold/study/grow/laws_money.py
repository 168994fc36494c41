"""The law of money: what a month of the fleet costs against what it may cost.

Nodes more are paid for as those there are, with their energy where they are owned. Tiers cost
what they hold; shelves that a relief adds are in the fleet by then, and so in its bill.
"""

from tenfold.compose.money import fleet_lines
from tenfold.model.growth import Axis, grown_by, moves
from tenfold.physics.growth.law import STATED, SUPPOSED, Law, Named
from tenfold.study.grow.state import State

MONEY = 90
NAME = Named("money", "a month of the fleet", MONEY)
"""Money is spent on all other layers, and so comes last of what breaks together."""
_OF_NODES = ("pool ", "energy ")


def money_laws(state: State, axis: Axis) -> list[Law]:
    """Return the law of the monthly bill, where a budget and prices are stated."""
    budget = state.grow.limits.usd_per_month_most
    if budget is None:
        wanted = NAME.unknown("`usd_per_month_most` under `[limits]` of the grow file")
        return [wanted] if moves(axis, "nodes") else []
    unpriced = next((pool.id for pool in state.spec.pools if pool.price is None), None)
    if unpriced is not None:
        return [NAME.unknown(f"`price` of pool `{unpriced}`")]
    lines = fleet_lines(state.spec, [])
    nodes = sum(usd for name, usd in lines.items() if name.startswith(_OF_NODES))
    others = sum(lines.values()) - nodes

    def spent(factor: float) -> float:
        return nodes * grown_by(axis, "nodes", factor) + others

    def seen(factor: float) -> str:
        return f"a month costs ${spent(factor):,.0f} of ${budget:,.0f}"

    return [NAME.law(spent, budget, SUPPOSED if _supposed(state) else STATED, seen)]


def _supposed(state: State) -> bool:
    """Return whether a price or the power that is paid for comes from facts, not from the file."""
    fields = ("price", "power_kw_per_node")
    return any(name in pool.defaulted for pool in state.spec.pools for name in fields)
