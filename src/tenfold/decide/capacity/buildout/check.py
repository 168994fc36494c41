"""Check a decision against its problem, without the program that it was found with.

Each rule is worked out again from the problem in plain arithmetic. A mistake in the rows of the
program then shows as a violation, and not as a plan that cannot be carried out.
"""

from collections.abc import Iterator
from math import ceil

from tenfold.decide.capacity.buildout.plan import Decision, Mode, month_costs
from tenfold.decide.capacity.buildout.problem import BuildOut, Limit, OwnOption

TOLERANCE = 1e-5
"""Relative to the size of what is compared; solvers keep rows to about 1e-6."""


def violations(problem: BuildOut, decision: Decision) -> list[str]:
    """Return every rule of the problem that a decision breaks, in words."""
    return [
        *_orders(problem, decision),
        *_demand(problem, decision),
        *_own(problem, decision),
        *_rented(problem, decision),
        *_limits(problem, decision),
        *_budgets(problem, decision),
    ]


def _over(used: float, there: float) -> bool:
    return used > there + TOLERANCE * max(1.0, abs(used), abs(there))


def _orders(problem: BuildOut, decision: Decision) -> Iterator[str]:
    own = {one.name: one for one in problem.own}
    rent = {one.name: one for one in problem.rent}
    for order in decision.orders:
        if order.count < 1 or not 0 <= order.month < problem.months:
            yield f"an order of {order.count} in month {order.month}"
        if order.is_reservation and order.count % rent[order.option].gpus_per_unit:
            yield f"{order.option}: {order.count} GPUs are not whole instances"
        if order.month % problem.order_every:
            yield f"{order.option}: ordered in month {order.month}, not every {problem.order_every}"
        lead = 0 if order.is_reservation else own[order.option].lead_months
        if order.arrives != order.month + lead:
            yield f"{order.option}: ordered in month {order.month}, arrives in {order.arrives}"
    for option in problem.own:
        total = sum(
            one.count
            for one in decision.orders
            if one.option == option.name and not one.is_reservation
        )
        if option.nodes_most is not None and total > option.nodes_most:
            yield f"{option.name}: {total} of {option.nodes_most} nodes"


def _demand(problem: BuildOut, decision: Decision) -> Iterator[str]:
    goodput = {one.name: one.spot_goodput for one in problem.rent}
    served: dict[tuple[int, int, int], float] = {}
    spot: dict[tuple[int, int, int], float] = {}
    for use in decision.uses:
        kind = problem.classes[use.kind]
        if use.option not in kind.rates:
            yield f"{kind.name} runs on {use.option}, which it may not"
            continue
        key = (use.scenario, use.kind, use.month)
        done = use.gpus * kind.rates[use.option]
        if use.mode == "spot":
            done *= goodput[use.option]
            spot[key] = spot.get(key, 0.0) + done
        served[key] = served.get(key, 0.0) + done
    for one in decision.unmet:
        key = (one.scenario, one.kind, one.month)
        served[key] = served.get(key, 0.0) + one.gpus
    for at, scenario in enumerate(problem.scenarios):
        for number, kind in enumerate(problem.classes):
            for month, wanted in enumerate(scenario.demand[number]):
                key = (at, number, month)
                done = served.get(key, 0.0)
                if _over(wanted, done) or _over(done, wanted):
                    yield f"{kind.name}, month {month}: {done:g} of {wanted:g}"
                if _over(spot.get(key, 0.0), kind.spot_share * wanted):
                    yield f"{kind.name}, month {month}: too much on spot capacity"


def _used(decision: Decision, modes: tuple[Mode, ...]) -> dict[tuple[str, int, int], float]:
    found: dict[tuple[str, int, int], float] = {}
    for use in decision.uses:
        if use.mode in modes:
            key = (use.option, use.month, use.scenario)
            found[key] = found.get(key, 0.0) + use.gpus
    return found


def usable_nodes(option: OwnOption, nodes: int, month: int) -> float:
    """Return the nodes of an option that can hold work, without those that stand by."""
    ready = option.spares_ready[month] if option.spares_ready else 0.0
    required = option.spares_fixed + option.spares_per_node * nodes
    return max(0.0, nodes - max(0.0, required - ready))


def _own(problem: BuildOut, decision: Decision) -> Iterator[str]:
    used = _used(decision, ("own",))
    options = {one.name: one for one in problem.own}
    for (name, month, _), gpus in used.items():
        option = options[name]
        nodes = option.nodes_without(month) + decision.nodes(problem, month)[name]
        there = usable_nodes(option, nodes, month) * option.gpus_per_node
        if _over(gpus, there):
            yield f"{name}, month {month}: {gpus:g} of {there:g} GPUs"


def _rented(problem: BuildOut, decision: Decision) -> Iterator[str]:
    reserved, hourly = _used(decision, ("reserved",)), _used(decision, ("on-demand", "spot"))
    for option in problem.rent:
        for month in range(problem.months):
            bought = sum(
                order.count
                for order in decision.orders
                if order.is_reservation
                and order.option == option.name
                and order.month <= month < order.month + option.reserved_months
            )
            for scenario in range(len(problem.scenarios)):
                key = (option.name, month, scenario)
                if _over(reserved.get(key, 0.0), bought):
                    yield f"{option.name}, month {month}: uses more than the {bought} reserved"
                total = bought + hourly.get(key, 0.0)
                if option.gpus_most is not None and _over(total, option.gpus_most):
                    yield f"{option.name}, month {month}: {total:g} of {option.gpus_most} GPUs"


def used_of_limit(limit: Limit, nodes: dict[str, int]) -> float:
    """Return what new nodes use of a limit, whole units rounded up."""
    used = sum(count * limit.per_node.get(name, 0.0) for name, count in nodes.items())
    for name, per_unit in limit.per_unit.items():
        loose = max(0.0, nodes.get(name, 0) - limit.free.get(name, 0.0))
        used += ceil(loose / per_unit - TOLERANCE)
    return used


def _limits(problem: BuildOut, decision: Decision) -> Iterator[str]:
    for limit in problem.limits:
        for month, room in enumerate(limit.room):
            used = used_of_limit(limit, decision.nodes(problem, month))
            if _over(used, max(0.0, room)):
                yield f"{limit.name}, month {month}: {used:g} of {room:g} {limit.unit}"


def _budgets(problem: BuildOut, decision: Decision) -> Iterator[str]:
    for scenario, months in zip(problem.scenarios, month_costs(problem, decision), strict=True):
        for month, cost in enumerate(months):
            if not scenario.budget_usd:
                break
            # Today's fleet may already cost more; then nothing may be added to it.
            most = max(scenario.budget_usd[month], cost.fixed)
            if _over(cost.paid, most):
                yield f"{scenario.name}, month {month}: ${cost.paid:,.0f} of ${most:,.0f}"
