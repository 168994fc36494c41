"""Answer a capacity plan: solve it, check it, and say what it rests on."""

from collections.abc import Callable, Iterable, Sequence
from math import ceil

import numpy as np
from msgspec.structs import replace

from tenfold.decide.capacity.buildout.check import usable_nodes, violations
from tenfold.decide.capacity.buildout.plan import (
    Decision,
    MonthCost,
    Order,
    decide_build_out,
    month_costs,
)
from tenfold.decide.capacity.buildout.problem import BuildOut, Limit, OwnOption
from tenfold.decide.capacity.buildout.program import Program, Relax, Solve, SolverLimits
from tenfold.model.errors import NoAnswer
from tenfold.model.units import HOURS_PER_MONTH
from tenfold.report.figures import count, share
from tenfold.study.capacity.answer import (
    Binding,
    BreakEven,
    CapacityAnswer,
    CostYear,
    DriverShare,
    MixMonth,
    Phase,
    Rented,
    ScenarioShown,
)
from tenfold.study.capacity.calendar import DAYS_PER_WEEK, day_after, shifted
from tenfold.study.capacity.curve import cost_curve
from tenfold.study.capacity.inputs import CapacityInputs
from tenfold.study.capacity.outlook import Outlook, outlook_of
from tenfold.study.capacity.problem import Prepared, prepared
from tenfold.study.capacity.solver import relax, solve

MONTHS_PER_YEAR = 12
STEPS = (1_000.0, 100.0, 10.0, 1.0)
WORTH_LEAST_USD = 1.0
MISSING_LEAST = 0.005
"""A smaller share of a month's demand is not called missing."""


def plan_capacity(
    inputs: CapacityInputs,
    done: Callable[[int], None] | None = None,
    *,
    solver: tuple[Solve, Relax] = (solve, relax),
    limits: SolverLimits | None = None,
) -> CapacityAnswer:
    """Return what to order by when, what to rent, and what it costs."""
    made = prepared(inputs, done)
    problem = made.problem
    found = decide_build_out(problem, solver[0], limits)
    if found is None:
        raise NoAnswer(
            "no-plan",
            "no plan was found within the limits of the solver",
            "plan fewer months with `months` under `[plan]`, or fewer scenarios",
        )
    program, decision = found
    broken = violations(problem, decision)
    assert not broken, f"the plan breaks its own rules: {broken[0]}"
    outlook = outlook_of(made, decision)
    costs = month_costs(problem, decision)
    years = _years(problem, costs)
    phases = _phases(inputs, made, decision, outlook)
    paid = sum(year.paid for year in years)
    return CapacityAnswer(
        fleet=inputs.grow.fleet.spec.name,
        start=made.start,
        months=problem.months,
        sentence=_sentence(made, decision, phases, paid),
        phases=tuple(phases),
        binding=tuple(_binding(problem, program, decision, solver[1])),
        scenarios=tuple(_scenarios(problem, decision, costs)),
        mix=tuple(_mix(made, decision, outlook)),
        curve=tuple(cost_curve(problem, decision, solver[0])),
        years=tuple(years),
        usd=paid,
        usd_delay=sum(year.delay for year in years),
        break_even=tuple(_break_even(problem, decision)),
        drivers=tuple(_shares(made)),
        stock_out=outlook.any_stock_out,
        optimal_within=_gap(decision),
        rents=tuple(_rented(inputs, made, decision)),
        notes=tuple(dict.fromkeys(made.notes)),
    )


def _gap(decision: Decision) -> float:
    if abs(decision.objective) < 1:
        return 0.0
    return max(0.0, (decision.objective - decision.bound) / abs(decision.objective))


def _phases(
    inputs: CapacityInputs, made: Prepared, decision: Decision, outlook: Outlook
) -> list[Phase]:
    bought = [
        _purchase(made, order, outlook.confidence[place])
        for place, order in enumerate(decision.orders)
        if order.arrives < made.problem.months
    ]
    fixes = [
        replace(one, confidence=outlook.fix_confidence(one, made)) if one.lead_weeks else one
        for one in made.phases
    ]
    every = [*fixes, *bought, *outlook.storage, *_gates(inputs, made, decision)]
    return sorted(every, key=lambda one: (one.needed or "9", one.order_by, one.kind))


def _gates(inputs: CapacityInputs, made: Prepared, decision: Decision) -> Iterable[Phase]:
    """Yield what operations must have ready, by when the fleet has too many nodes without it."""
    problem = made.problem
    today = sum(option.nodes_today for option in problem.own)
    for gate in inputs.plan.gates:
        nodes = [
            today + sum(decision.nodes(problem, month).values()) for month in range(problem.months)
        ]
        month = next((at for at, count in enumerate(nodes) if count > gate.nodes_most), None)
        if month is None and gate.ready_by:
            continue
        day = "" if month is None else day_after(made.start, month)
        closed = "" if gate.ready_by else "; no date is stated, so the fleet stays below"
        yield Phase(
            kind="gate",
            what=f"have ready: {gate.item}",
            reason=f"operations gate at {gate.nodes_most:,} nodes{closed}",
            order_by=day,
            needed=day,
            lead_weeks=None,
            confidence=None,
            usd_per_month=None,
        )


def _purchase(made: Prepared, order: Order, confidence: float | None) -> Phase:
    problem, start = made.problem, made.start
    needed = day_after(start, order.arrives)
    serves = ", ".join(kind.name for kind in problem.classes if order.option in kind.rates)
    if order.is_reservation:
        offer = next(one for one in problem.rent if one.name == order.option)
        usd = (offer.usd_reserved or 0.0) * order.count
        return Phase(
            kind="reserve",
            what=f"reserve {count(order.count, 'GPU')} of {offer.name} for "
            f"{count(offer.reserved_months, 'month')}",
            reason=serves,
            order_by=needed,
            needed=needed,
            lead_weeks=None,
            confidence=None,
            usd_per_month=usd,
        )
    option = next(one for one in problem.own if one.name == order.option)
    order_by = shifted(needed, -round(made.lead_weeks * DAYS_PER_WEEK))
    return Phase(
        kind="buy",
        what=f"buy {count(order.count, 'node')} for pool {option.name} "
        f"({count(order.count * option.gpus_per_node, 'GPU')})",
        reason=serves,
        order_by=order_by,
        needed=needed,
        lead_weeks=round(made.lead_weeks, 1),
        confidence=confidence,
        usd_per_month=option.usd_per_node_month * order.count,
        late=order_by < start,
    )


def _sentence(made: Prepared, decision: Decision, phases: Sequence[Phase], usd: float) -> str:
    """Return the first thing to do, what is missing nonetheless, and what everything costs."""
    total = f"${usd:,.0f} over {count(made.problem.months, 'month')}"
    missing = _missing(made, decision)
    dated = [one for one in phases if one.order_by[:4].isdigit() and one.order_by[4:5] == "-"]
    first = min(dated, key=lambda one: one.order_by, default=None)
    if first is None:
        return f"nothing {'is' if missing else 'has to be'} ordered{missing}; {total}"
    when = f"by {first.order_by} (past)" if first.late else f"by {first.order_by}"
    return f"first order {when}: {first.what}{missing}; {total}"


def _missing(made: Prepared, decision: Decision) -> str:
    """Return from when on a share of mean demand is missed, and how much of it in all."""
    problem = made.problem
    chances = [one.probability for one in problem.scenarios]
    wanted = sum(
        chance * np.sum(one.demand, axis=0)
        for chance, one in zip(chances, problem.scenarios, strict=True)
    )
    missed = np.zeros(problem.months)
    for one in decision.unmet:
        missed[one.month] += chances[one.scenario] * one.gpus
    months = np.flatnonzero(missed > MISSING_LEAST * np.maximum(wanted, 1.0))
    if not len(months):
        return ""
    part = share(float(missed.sum() / np.sum(wanted)))
    return f"; {part} of demand is not met, from {day_after(made.start, int(months[0]))} on"


def _binding(
    problem: BuildOut, program: Program, decision: Decision, relaxed: Relax
) -> Iterable[Binding]:
    """Yield the limits that are worth raising, most valuable first."""
    found = relaxed(program)
    if found is None:
        return
    lines: list[Binding] = []
    for place, limit in enumerate(problem.limits):
        rows = [program.rows["limit", place, month] for month in range(problem.months)]
        worth = float(sum(found.saved_per_unit[row] for row in rows))
        months = sum(found.saved_per_unit[row] > 1e-6 for row in rows)
        if worth > WORTH_LEAST_USD:
            lines.append(_line(limit.name, limit.unit, int(months), worth, _room(limit)))
    budgets = [row for key, row in program.rows.items() if key[0] == "budget"]
    worth = float(sum(found.saved_per_unit[row] for row in budgets))
    if worth > 1e-3:
        months = len(
            {
                key[1]
                for key, row in program.rows.items()
                if key[0] == "budget" and found.saved_per_unit[row] > 1e-9
            }
        )
        lines.append(_line("Monthly budget", "$ a month", months, worth, 10_000.0))
    yield from sorted(lines, key=lambda one: -one.usd_per_unit * one.step)


def _line(name: str, unit: str, months: int, worth: float, room: float) -> Binding:
    step = next((one for one in STEPS if one <= max(1.0, room)), 1.0)
    return Binding(name=name, unit=unit, months=months, usd_per_unit=worth, step=step)


def _room(limit: Limit) -> float:
    each = max([*limit.per_node.values(), 1.0])
    return 10 * each


def _scenarios(
    problem: BuildOut, decision: Decision, costs: Sequence[Sequence[MonthCost]]
) -> Iterable[ScenarioShown]:
    for at, scenario in enumerate(problem.scenarios):
        total = np.sum(scenario.demand, axis=0)
        yield ScenarioShown(
            name=scenario.name,
            probability=scenario.probability,
            gpus_first=float(total[0]),
            gpus_last=float(total[-1]),
            usd=sum(month.paid for month in costs[at]),
            unmet_gpu_months=sum(one.gpus for one in decision.unmet if one.scenario == at),
        )


def _years(problem: BuildOut, costs: Sequence[Sequence[MonthCost]]) -> list[CostYear]:
    """Return expected dollars by year; the last may be a part of one."""
    years: list[CostYear] = []
    for year in range(ceil(problem.months / MONTHS_PER_YEAR)):
        months = range(year * MONTHS_PER_YEAR, min(problem.months, (year + 1) * MONTHS_PER_YEAR))

        def expected(part: str, months: range = months) -> float:
            return sum(
                scenario.probability * sum(getattr(costs[at][month], part) for month in months)
                for at, scenario in enumerate(problem.scenarios)
            )

        years.append(
            CostYear(
                year=year + 1,
                fixed=expected("fixed"),
                own=expected("own"),
                reserved=expected("reserved"),
                on_demand=expected("on_demand"),
                spot=expected("spot"),
                delay=expected("delay"),
            )
        )
    return years


def _mix(made: Prepared, decision: Decision, outlook: Outlook) -> Iterable[MixMonth]:
    problem = made.problem
    total = made.draws.gpus.sum(axis=1)
    low, high = np.percentile(total, 10, axis=0), np.percentile(total, 90, axis=0)
    used = {(use.mode, month): 0.0 for use in decision.uses for month in range(problem.months)}
    for use in decision.uses:
        chance = problem.scenarios[use.scenario].probability
        used[use.mode, use.month] = used.get((use.mode, use.month), 0.0) + chance * use.gpus
    for month in range(problem.months):
        yield MixMonth(
            month=month,
            day=day_after(made.start, month),
            demand=float(total[:, month].mean()),
            demand_low=float(low[month]),
            demand_high=float(high[month]),
            own=own_gpus(problem, decision, month),
            reserved=reserved_gpus(problem, decision, month),
            on_demand=used.get(("on-demand", month), 0.0),
            spot=used.get(("spot", month), 0.0),
            unmet=sum(
                problem.scenarios[one.scenario].probability * one.gpus
                for one in decision.unmet
                if one.month == month
            ),
            stock_out=float(outlook.stock_out[month]),
        )


def own_gpus(problem: BuildOut, decision: Decision, month: int) -> float:
    """Return the usable own GPUs in a month."""
    new = decision.nodes(problem, month)
    return sum(_usable(option, new[option.name], month) for option in problem.own)


def _usable(option: OwnOption, new: int, month: int) -> float:
    nodes = usable_nodes(option, option.nodes_without(month) + new, month)
    return nodes * option.gpus_per_node


def reserved_gpus(problem: BuildOut, decision: Decision, month: int) -> float:
    """Return the reserved GPUs in a month."""
    lasts = {one.name: one.reserved_months for one in problem.rent}
    return float(
        sum(
            order.count
            for order in decision.orders
            if order.is_reservation and order.month <= month < order.month + lasts[order.option]
        )
    )


def _break_even(problem: BuildOut, decision: Decision) -> Iterable[BreakEven]:
    """Yield, by own option, the utilisation above which it beats the cheapest on-demand offer."""
    for option in problem.own:
        offers = [
            one
            for one in problem.rent
            if one.usd_on_demand is not None
            and any(
                option.name in kind.rates and one.name in kind.rates for kind in problem.classes
            )
        ]
        offer = min(offers, key=lambda one: one.usd_on_demand or 0.0, default=None)
        # Without a purchase price there is nothing to compare.
        if offer is None or offer.usd_on_demand is None or not option.usd_per_node_month:
            continue
        owned = option.usd_per_node_month / option.gpus_per_node / HOURS_PER_MONTH
        rented = offer.usd_on_demand / HOURS_PER_MONTH
        even = owned / rented
        there = sum(
            _usable(option, decision.nodes(problem, month)[option.name], month)
            for month in range(problem.months)
        )
        used = sum(
            problem.scenarios[use.scenario].probability * use.gpus
            for use in decision.uses
            if use.mode == "own" and use.option == option.name
        )
        yield BreakEven(
            option=option.name,
            offer=offer.name,
            owned_usd_per_hour=owned,
            rented_usd_per_hour=rented,
            utilisation=even if even <= 1 else None,
            planned=used / there if there else 0.0,
        )


def _shares(made: Prepared) -> Iterable[DriverShare]:
    """Yield what each driver adds: demand with it less demand without it."""
    total = float(made.draws.gpus.sum(axis=1).mean(axis=0).sum())
    for need in made.needs:
        added = made.draws.added.get(need.driver.name)
        if added is None:
            continue
        with_it = made.draws.gpus.sum(axis=1).mean(axis=0)
        without = made.draws.without(need.driver.name).mean(axis=0)
        gone = (with_it - without) * HOURS_PER_MONTH
        yield DriverShare(
            name=need.driver.name,
            group=need.driver.group,
            gpu_hours_first_year=float(gone[:MONTHS_PER_YEAR].sum()),
            gpu_hours=float(gone.sum()),
            share=float(gone.sum()) / (total * HOURS_PER_MONTH) if total else 0.0,
            per_unit=need.per_unit,
        )


def _rented(inputs: CapacityInputs, made: Prepared, decision: Decision) -> Iterable[Rented]:
    """Yield the most that is rented of each offer: on average over scenarios in its peak month."""
    problem = made.problem
    stated = {one.name: one for one in inputs.plan.rent}
    for offer in problem.rent:
        peaks = {
            mode: max(
                (
                    sum(
                        problem.scenarios[use.scenario].probability * use.gpus
                        for use in decision.uses
                        if use.mode == mode and use.option == offer.name and use.month == month
                    )
                    for month in range(problem.months)
                ),
                default=0.0,
            )
            for mode in ("on-demand", "spot")
        }
        reserved = [
            one for one in decision.orders if one.is_reservation and one.option == offer.name
        ]
        most = max(
            (
                sum(
                    one.count
                    for one in reserved
                    if one.month <= month < one.month + offer.reserved_months
                )
                for month in range(problem.months)
            ),
            default=0,
        )
        if not any(peaks.values()) and not most:
            continue
        row = stated.get(offer.name)
        yield Rented(
            offer=offer.name,
            provider=row.provider if row else "",
            region=row.region if row else "",
            instance_type=row.instance_type if row else "",
            gpus_per_instance=offer.gpus_per_unit,
            on_demand_instances=ceil(peaks["on-demand"] / offer.gpus_per_unit - 1e-6),
            spot_instances=ceil(peaks["spot"] / offer.gpus_per_unit - 1e-6),
            reserved_instances=most // offer.gpus_per_unit,
            reserved_from=day_after(made.start, min(one.month for one in reserved))
            if reserved
            else "",
            reserved_months=offer.reserved_months,
        )
