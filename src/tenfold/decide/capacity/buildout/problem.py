"""A build-out problem: what may be bought and rented, demand by scenario, and the limits.

Capacity is counted in GPUs and demand in reference GPUs, both held for a month; an option states
how many reference GPUs of a class one of its GPUs replaces. A purchase is decided once for all
scenarios; what is rented by the hour follows each scenario.
"""

from collections.abc import Mapping

from msgspec import Struct

from tenfold.model.errors import InputError

PROBABILITY_ROUNDING = 1e-6


class OwnOption(Struct, frozen=True, kw_only=True):
    """Nodes that can be bought: more of one pool."""

    name: str
    accelerator: str = ""
    site: str = ""
    gpus_per_node: int
    nodes_today: int
    nodes_planned: tuple[int, ...] = ()
    """Nodes by month that are added whatever is decided here; empty: none."""
    usd_per_node_month: float
    """What a node costs a month from delivery on: depreciation, energy and running costs."""
    lead_months: int
    """Whole months from order to use, at the planned quantile of the lead time."""
    nodes_most: int | None = None
    """Most nodes that may be bought; None: no limit besides the others."""
    spares_fixed: float = 0.0
    spares_per_node: float = 0.0
    """Nodes that stand by for failed ones: a straight line above the simulated quantile."""
    spares_ready: tuple[float, ...] = ()
    """Spare nodes by month that are not part of the pool; empty: none."""

    def nodes_without(self, month: int) -> int:
        """Return the nodes in a month if none are bought."""
        return self.nodes_today + (self.nodes_planned[month] if self.nodes_planned else 0)


class RentOption(Struct, frozen=True, kw_only=True):
    """GPUs that can be rented from one provider and region; None: not offered that way."""

    name: str
    accelerator: str = ""
    usd_on_demand: float | None = None
    """Dollars per GPU and month."""
    usd_spot: float | None = None
    spot_goodput: float = 1.0
    """Share of spot hours that is not lost to preemption."""
    usd_reserved: float | None = None
    reserved_months: int = 12
    gpus_per_unit: int = 8
    """Reservations are made in instances of this many GPUs."""
    gpus_most: int | None = None
    """Most GPUs rented at once, reserved ones included."""


class DemandClass(Struct, frozen=True, kw_only=True):
    """Work of one kind: where it may run, how fast, and what a delay costs."""

    name: str
    rates: Mapping[str, float]
    """Reference GPUs that one GPU of an option replaces; the class runs on no other option."""
    spot_share: float = 0.0
    """Share of its demand that may run on spot capacity."""
    delay_usd: float
    """What a reference GPU that is missing for a month costs."""


class Limit(Struct, frozen=True, kw_only=True):
    """A limit on what bought nodes use together, by month: power, ports, rack positions."""

    name: str
    unit: str
    room: tuple[float, ...]
    """What is left for new nodes in each month."""
    per_node: Mapping[str, float]
    """What a new node of each option uses."""
    per_unit: Mapping[str, float] = {}
    """New nodes of an option that share one whole unit, such as a rack; used up unit by unit."""
    free: Mapping[str, float] = {}
    """New nodes of an option that need no further unit."""


class Scenario(Struct, frozen=True, kw_only=True):
    """One course of demand, with its probability."""

    name: str
    probability: float
    demand: tuple[tuple[float, ...], ...]
    """Reference GPUs by class and month."""
    budget_usd: tuple[float, ...] = ()
    """The most that a month may cost; empty: no budget."""


class BuildOut(Struct, frozen=True, kw_only=True):
    """Everything that a build-out is decided from."""

    months: int
    own: tuple[OwnOption, ...]
    rent: tuple[RentOption, ...]
    classes: tuple[DemandClass, ...]
    scenarios: tuple[Scenario, ...]
    limits: tuple[Limit, ...] = ()
    fixed_usd: tuple[float, ...] = ()
    """What today's fleet costs by month whatever is decided; empty: nothing."""
    order_every: int = 1
    """Months between the months in which anything is ordered."""
    cvar_weight: float = 0.0
    """Weight of the mean cost of the worst scenarios; the rest is expected cost."""
    cvar_tail: float = 0.2
    """Probability of the worst scenarios that are averaged."""

    def fixed(self, month: int) -> float:
        """Return what today's fleet costs in a month."""
        return self.fixed_usd[month] if self.fixed_usd else 0.0


def check_problem(problem: BuildOut) -> BuildOut:
    """Return the problem, or raise an error if its parts do not fit together."""
    months, classes = problem.months, len(problem.classes)
    names = [one.name for one in (*problem.own, *problem.rent)]
    unknown = [option for one in problem.classes for option in one.rates if option not in names]
    total = sum(one.probability for one in problem.scenarios)
    wrong = {
        "a scenario's demand does not cover every class and month": any(
            len(one.demand) != classes or any(len(row) != months for row in one.demand)
            for one in problem.scenarios
        ),
        "a budget does not cover every month": any(
            one.budget_usd and len(one.budget_usd) != months for one in problem.scenarios
        ),
        "a limit does not cover every month": any(
            len(one.room) != months for one in problem.limits
        ),
        "an option needs more spares than it has nodes": any(
            one.spares_fixed + one.spares_per_node * one.nodes_today > one.nodes_today
            for one in problem.own
        ),
        "two options have the same name": len(names) != len(dict.fromkeys(names)),
        f"a class runs on an unknown option: {', '.join(unknown)}": bool(unknown),
        "the probabilities of the scenarios do not add up to 1": abs(total - 1)
        > PROBABILITY_ROUNDING,
    }
    found = next((said for said, is_so in wrong.items() if is_so), None)
    if found is not None:
        raise InputError("wrong-value", f"build-out: {found}", "fix the plan file")
    return problem
