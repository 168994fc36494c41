"""What it costs to buy more or less than planned: idle capacity against delay."""

from collections.abc import Iterable, Sequence

import numpy as np
from msgspec.structs import replace

from tenfold.decide.capacity.buildout.formulate import formulate
from tenfold.decide.capacity.buildout.plan import Decision, Order, decision_of, month_costs
from tenfold.decide.capacity.buildout.problem import BuildOut
from tenfold.decide.capacity.buildout.program import Key, Program, Solve, SolverLimits
from tenfold.study.capacity.answer import CurvePoint

FACTORS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0)


def cost_curve(
    problem: BuildOut, decision: Decision, solve: Solve, factors: Sequence[float] = FACTORS
) -> Iterable[CurvePoint]:
    """Yield the expected cost of multiples of the plan's purchases, used as well as possible."""
    if not decision.orders:
        return
    # More than planned may not fit; the question here is what it would cost.
    free = replace(
        problem,
        limits=(),
        scenarios=tuple(replace(one, budget_usd=()) for one in problem.scenarios),
        own=tuple(replace(one, nodes_most=None) for one in problem.own),
    )
    program = formulate(free)
    for factor in factors:
        orders = [_scaled(problem, order, factor) for order in decision.orders]
        fixed = _with_orders(free, program, [one for one in orders if one.count])
        found = solve(fixed, SolverLimits())
        if found is not None:
            yield _point(free, decision_of(free, fixed, found), factor)


def _scaled(problem: BuildOut, order: Order, factor: float) -> Order:
    unit = _unit(problem, order)
    return replace(order, count=round(order.count * factor / unit) * unit)


def _with_orders(problem: BuildOut, program: Program, orders: Sequence[Order]) -> Program:
    """Return the program with its purchases fixed: only the use of them is free."""
    fixed = {key: 0.0 for key in program.columns if key[0] in ("buy", "reserve")}
    for order in orders:
        fixed[_key(problem, order)] = float(order.count // _unit(problem, order))
    columns = np.array([program.columns[key] for key in fixed], dtype=np.int64)
    values = np.array(list(fixed.values()))
    places = np.arange(len(program.low), len(program.low) + len(columns))
    return replace(
        program,
        at_row=np.concatenate([program.at_row, places]),
        at_column=np.concatenate([program.at_column, columns]),
        coefficient=np.concatenate([program.coefficient, np.ones(len(columns))]),
        low=np.concatenate([program.low, values]),
        high=np.concatenate([program.high, values]),
    )


def _key(problem: BuildOut, order: Order) -> Key:
    options = problem.rent if order.is_reservation else problem.own
    at = next(place for place, one in enumerate(options) if one.name == order.option)
    return "reserve" if order.is_reservation else "buy", at, order.month


def _unit(problem: BuildOut, order: Order) -> int:
    if not order.is_reservation:
        return 1
    return next(one.gpus_per_unit for one in problem.rent if one.name == order.option)


def _point(problem: BuildOut, decision: Decision, factor: float) -> CurvePoint:
    costs = month_costs(problem, decision)
    weighted = [
        (scenario.probability, month)
        for scenario, months in zip(problem.scenarios, costs, strict=True)
        for month in months
    ]
    there = used = 0.0
    for at, scenario in enumerate(problem.scenarios):
        used += scenario.probability * sum(
            use.gpus
            for use in decision.uses
            if use.scenario == at and use.mode in ("own", "reserved")
        )
    lasts = {one.name: one.reserved_months for one in problem.rent}
    for month in range(problem.months):
        new = decision.nodes(problem, month)
        there += sum(
            (option.nodes_without(month) + new[option.name]) * option.gpus_per_node
            for option in problem.own
        )
        there += sum(
            order.count
            for order in decision.orders
            if order.is_reservation and order.month <= month < order.month + lasts[order.option]
        )
    return CurvePoint(
        factor=factor,
        usd_owned=sum(chance * (month.own + month.reserved) for chance, month in weighted),
        usd_rented=sum(chance * (month.on_demand + month.spot) for chance, month in weighted),
        usd_delay=sum(chance * month.delay for chance, month in weighted),
        idle_share=max(0.0, 1 - used / there) if there else 0.0,
    )
