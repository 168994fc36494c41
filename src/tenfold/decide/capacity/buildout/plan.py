"""The decision that a solution of the program stands for, in the words of the problem."""

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from tenfold.decide.capacity.buildout.formulate import arrived, formulate, reserved_in
from tenfold.decide.capacity.buildout.problem import BuildOut, check_problem
from tenfold.decide.capacity.buildout.program import Program, Solution, Solve, SolverLimits

ROUNDING = 1e-7
Mode = Literal["own", "reserved", "on-demand", "spot"]


class Order(Struct, frozen=True, kw_only=True):
    """Nodes to order, or GPUs to reserve, in one month."""

    option: str
    month: int
    count: int
    """Nodes, or GPUs of a reservation."""
    arrives: int
    """The month from which they are of use."""
    is_reservation: bool = False


class Use(Struct, frozen=True, kw_only=True):
    """GPUs that one class uses in one month of one scenario."""

    scenario: int
    month: int
    kind: int
    """The class, by position."""
    option: str
    mode: Mode
    gpus: float


class Unmet(Struct, frozen=True, kw_only=True):
    """Reference GPUs that one class misses in one month of one scenario."""

    scenario: int
    month: int
    kind: int
    gpus: float


class Decision(Struct, frozen=True, kw_only=True):
    """What to order, and what each scenario then uses and misses."""

    orders: tuple[Order, ...]
    uses: tuple[Use, ...]
    unmet: tuple[Unmet, ...]
    objective: float
    """Cost as minimised, without what today's fleet costs."""
    bound: float
    is_optimal: bool

    def nodes(self, problem: BuildOut, month: int) -> dict[str, int]:
        """Return the new nodes of each option in use in a month."""
        found = {option.name: 0 for option in problem.own}
        for order in self.orders:
            if not order.is_reservation and order.arrives <= month:
                found[order.option] += order.count
        return found


def decide_build_out(
    problem: BuildOut, solve: Solve, limits: SolverLimits | None = None
) -> tuple[Program, Decision] | None:
    """Return the cheapest plan for a problem with its program; None if there is none."""
    program = formulate(check_problem(problem))
    found = solve(program, limits or SolverLimits())
    return None if found is None else (program, decision_of(problem, program, found))


def decision_of(problem: BuildOut, program: Program, solution: Solution) -> Decision:
    """Return what a solution stands for."""
    orders: list[Order] = []
    uses: list[Use] = []
    unmet: list[Unmet] = []
    modes: dict[str, Mode] = {
        "own": "own",
        "reserved-use": "reserved",
        "on-demand": "on-demand",
        "spot": "spot",
    }
    for key, column in program.columns.items():
        value = float(solution.values[column])
        if value <= ROUNDING:
            continue
        what = str(key[0])
        at = [int(one) for one in key[1:]]
        if what in ("buy", "reserve"):
            order = _order(problem, what == "reserve", at, round(value))
            orders += [order] if order.count else []
        elif what in modes:
            options = problem.own if what == "own" else problem.rent
            uses.append(
                Use(
                    kind=at[0],
                    option=options[at[1]].name,
                    month=at[2],
                    scenario=at[3],
                    mode=modes[what],
                    gpus=value,
                )
            )
        elif what == "unmet":
            unmet.append(Unmet(kind=at[0], month=at[1], scenario=at[2], gpus=value))
    return Decision(
        orders=tuple(sorted(orders, key=lambda one: (one.month, one.option))),
        uses=tuple(uses),
        unmet=tuple(unmet),
        objective=solution.objective,
        bound=solution.bound,
        is_optimal=solution.is_optimal,
    )


def _order(problem: BuildOut, is_reservation: bool, at: Sequence[int], count: int) -> Order:
    if is_reservation:
        rent = problem.rent[at[0]]
        return Order(
            option=rent.name,
            month=at[1],
            count=count * rent.gpus_per_unit,
            arrives=at[1],
            is_reservation=True,
        )
    own = problem.own[at[0]]
    return Order(option=own.name, month=at[1], count=count, arrives=at[1] + own.lead_months)


class MonthCost(Struct, frozen=True, kw_only=True):
    """What one month of one scenario costs, by kind of capacity."""

    fixed: float
    own: float
    reserved: float
    on_demand: float
    spot: float
    delay: float

    @property
    def paid(self) -> float:
        """What is paid; a delay costs, but not the budget."""
        return self.fixed + self.own + self.reserved + self.on_demand + self.spot

    @property
    def total(self) -> float:
        """Everything, delays included."""
        return self.paid + self.delay


def month_costs(problem: BuildOut, decision: Decision) -> list[list[MonthCost]]:
    """Return what every month of every scenario costs under a decision."""
    own = {one.name: one for one in problem.own}
    rent = {one.name: one for one in problem.rent}
    shared = [
        (
            sum(
                order.count * own[order.option].usd_per_node_month
                for order in decision.orders
                if not order.is_reservation and order.month in arrived(own[order.option], month)
            ),
            sum(
                order.count * (rent[order.option].usd_reserved or 0.0)
                for order in decision.orders
                if order.is_reservation and order.month in reserved_in(rent[order.option], month)
            ),
        )
        for month in range(problem.months)
    ]
    hourly: dict[tuple[int, int, Mode], float] = {}
    for use in decision.uses:
        if use.mode in ("on-demand", "spot"):
            option = rent[use.option]
            price = option.usd_on_demand if use.mode == "on-demand" else option.usd_spot
            key = (use.scenario, use.month, use.mode)
            hourly[key] = hourly.get(key, 0.0) + use.gpus * (price or 0.0)
    delays: dict[tuple[int, int], float] = {}
    for one in decision.unmet:
        place = (one.scenario, one.month)
        delays[place] = delays.get(place, 0.0) + one.gpus * problem.classes[one.kind].delay_usd
    return [
        [
            MonthCost(
                fixed=problem.fixed(month),
                own=shared[month][0],
                reserved=shared[month][1],
                on_demand=hourly.get((scenario, month, "on-demand"), 0.0),
                spot=hourly.get((scenario, month, "spot"), 0.0),
                delay=delays.get((scenario, month), 0.0),
            )
            for month in range(problem.months)
        ]
        for scenario in range(len(problem.scenarios))
    ]


def cost_as_minimised(problem: BuildOut, decision: Decision) -> float:
    """Return what the program minimises, worked out from the decision alone."""
    totals = [
        sum(month.total - month.fixed for month in months)
        for months in month_costs(problem, decision)
    ]
    chances = [one.probability for one in problem.scenarios]
    expected = sum(chance * cost for chance, cost in zip(chances, totals, strict=True))
    if not problem.cvar_weight or len(totals) < 2:
        return expected
    return (1 - problem.cvar_weight) * expected + problem.cvar_weight * worst_mean(
        totals, chances, problem.cvar_tail
    )


def worst_mean(costs: Sequence[float], chances: Sequence[float], tail: float) -> float:
    """Return the mean of the highest costs that together have a probability of `tail`."""
    left, total = tail, 0.0
    for cost, chance in sorted(zip(costs, chances, strict=True), reverse=True):
        part = min(left, chance)
        total += part * cost
        left -= part
    return total / tail
