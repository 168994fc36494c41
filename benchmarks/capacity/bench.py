"""Capacity plans: speed, orders against the optimum in hindsight, and other ways to order."""

import time
from math import ceil
from typing import NamedTuple

import numpy as np

from benchmarks.capacity.policies import (
    DELAY_USD,
    LEAD,
    OWN_USD,
    RENT_SHARE,
    RENT_USD,
    Floats,
    Order,
    Tenfold,
    buffered,
    problem_of,
    reactive,
    threshold,
)
from benchmarks.capacity.series import LEVEL, SHARED, Course, gpu_courses, m4_courses
from benchmarks.verdict import Verdict
from tenfold.decide.capacity.buildout.check import violations
from tenfold.decide.capacity.buildout.plan import decide_build_out
from tenfold.decide.capacity.buildout.problem import (
    BuildOut,
    DemandClass,
    Limit,
    OwnOption,
    RentOption,
    Scenario,
)
from tenfold.study.capacity.solver import solve

POLICIES: dict[str, type[Tenfold] | Order] = {
    "reactive": reactive,
    "20% buffer": buffered,
    "threshold": threshold,
    "tenfold": Tenfold,
}
DAYS_PER_PERIOD = 30.4
STOCK_OUT = 0.005


class Outcome(NamedTuple):
    """What one policy came to on one series."""

    usd: float
    delay_days: float
    """Mean share of demand that was missed, in days."""
    stock_outs: int


def run(thresholds: dict[str, float]) -> list[Verdict]:
    verdicts = [_speed(thresholds)]
    if not SHARED.exists():
        print(f"skipped: {SHARED.name} is not here")
        return verdicts
    for label, courses in (("GPU series", gpu_courses()), ("M4 weekly", m4_courses())):
        regrets = _compared(label, courses)
        key = label.split()[0].lower()
        name = f"capacity: median regret, {label}"
        verdicts.append(Verdict(name, regrets["tenfold"], thresholds[f"regret_{key}"]))
    return verdicts


def _compared(label: str, courses: list[Course]) -> dict[str, float]:
    """Print and return the median regret of each policy; a period stands for a month."""
    found: dict[str, list[tuple[float, Outcome]]] = {name: [] for name in POLICIES}
    for course in courses:
        future = course.values[course.known :]
        rentable = RENT_SHARE * LEVEL
        best = _hindsight(future, rentable)
        for name, policy in POLICIES.items():
            order = policy() if isinstance(policy, type) else policy
            outcome = execute(course, order, rentable)
            found[name].append((outcome.usd / best - 1, outcome))
    print(f"\n{label}: {len(courses)} series; regret is cost over the optimum in hindsight")
    print("policy       regret: median   P25    P75   delay-days   stock-outs (periods)")
    medians: dict[str, float] = {}
    for name, results in found.items():
        regrets = np.array([one[0] for one in results])
        low, medians[name], high = (float(one) for one in np.percentile(regrets, [25, 50, 75]))
        delay = float(np.mean([one[1].delay_days for one in results]))
        outs = float(np.mean([one[1].stock_outs for one in results]))
        print(
            f"{name:12s} {medians[name]:14.1%} {low:6.1%} {high:6.1%} {delay:11.1f} {outs:12.1f}",
            flush=True,
        )
    return medians


def execute(course: Course, order: Order | Tenfold, rentable: float) -> Outcome:
    """Return what a policy costs: it sees the past, orders, and what came is served."""
    values, start = course.values, course.known
    there = float(round(values[start - 1]))
    arrives = np.zeros(len(values) + LEAD + 1)
    on_order = 0.0
    usd = missed_days = 0.0
    outs = 0
    for period in range(start, len(values)):
        there += arrives[period]
        on_order -= arrives[period]
        ordered = order(values[:period], there + on_order, rentable)
        arrives[period + LEAD] += ordered
        on_order += ordered
        short = max(0.0, values[period] - there)
        rented = min(short, rentable)
        missed = short - rented
        usd += (there - round(values[start - 1])) * OWN_USD + rented * RENT_USD
        usd += missed * DELAY_USD
        missed_days += missed / max(1e-9, values[period]) * DAYS_PER_PERIOD
        outs += missed > STOCK_OUT * values[period]
    base = round(values[start - 1]) * OWN_USD * (len(values) - start)
    return Outcome(usd + base, missed_days, outs)


def _hindsight(future: Floats, rentable: float) -> float:
    """Return the least cost if all that came had been known at the first decision."""
    now = float(round(LEVEL))
    found = decide_build_out(problem_of([(1.0, future)], now, ceil(rentable)), solve)
    assert found is not None, "demand may be missed"
    return found[1].objective + now * OWN_USD * len(future)


def _speed(thresholds: dict[str, float]) -> Verdict:
    """Solve 36 months, 3 accelerators and 5 scenarios with 3 classes, limits and spares."""
    problem = large_problem()
    started = time.process_time()
    found = decide_build_out(problem, solve)
    took = time.process_time() - started
    assert found is not None, "demand may be missed"
    program, decision = found
    gap = (decision.objective - decision.bound) / decision.objective
    broken = violations(problem, decision)
    print(
        f"36 months, 3 accelerators, 5 scenarios: {len(program.cost):,} columns, "
        f"{len(program.low):,} rows, {took:.1f} s of CPU, gap {gap:.2%}, "
        f"{len(broken)} violations"
    )
    return Verdict(
        "capacity: CPU for 36 months, 3 accelerators, 5 scenarios",
        took if not broken else float("inf"),
        thresholds["cpu_seconds"],
        " s",
    )


def large_problem(months: int = 36, courses: int = 5) -> BuildOut:
    """Return three accelerators and three classes under limits on power, racks and ports."""
    draw = np.random.default_rng(0)
    rates = {"h100": 1.0, "h200": 1.25, "b200": 2.2}
    owned = {"h100": (7_900.0, 3, 10.2), "h200": (8_600.0, 4, 10.2), "b200": (13_000.0, 8, 14.3)}
    hourly = {"h100": 3.25, "h200": 4.47, "b200": 6.4}
    both = {**rates, **{f"{name} rented": rate for name, rate in rates.items()}}
    ahead = np.arange(months)
    base = (40 + 4 * ahead + 10 * np.sin(ahead / 12 * 2 * np.pi)) * 8
    kinds = (("train", 0.5, 0.4, 20.0), ("serve", 0.3, 0.0, 30.0), ("dev", 0.2, 0.8, 10.0))
    return BuildOut(
        months=months,
        own=tuple(
            OwnOption(
                name=name,
                gpus_per_node=8,
                nodes_today=40 if name == "h100" else 0,
                usd_per_node_month=usd,
                lead_months=lead,
                spares_per_node=0.04,
            )
            for name, (usd, lead, _) in owned.items()
        ),
        rent=tuple(
            RentOption(
                name=f"{name} rented",
                usd_on_demand=usd * 730,
                usd_spot=usd * 0.55 * 730,
                spot_goodput=0.85,
                usd_reserved=usd * 0.65 * 730,
            )
            for name, usd in hourly.items()
        ),
        classes=tuple(
            DemandClass(name=name, rates=both, spot_share=spot, delay_usd=usd * 730)
            for name, _, spot, usd in kinds
        ),
        scenarios=tuple(
            Scenario(
                name=str(number),
                probability=1 / courses,
                demand=tuple(
                    tuple((base * part * draw.lognormal(0, 0.12 + 0.01 * ahead)).tolist())
                    for _, part, _, _ in kinds
                ),
                budget_usd=(9e6,) * months,
            )
            for number in range(courses)
        ),
        limits=(
            Limit(
                name="power",
                unit="kW",
                room=(400.0,) * 12 + (800.0,) * (months - 12),
                per_node={name: kw * 1.25 for name, (_, _, kw) in owned.items()},
            ),
            Limit(
                name="racks",
                unit="racks",
                room=(20.0,) * months,
                per_node={},
                per_unit=dict.fromkeys(owned, 4.0),
            ),
            Limit(
                name="ports",
                unit="ports",
                room=(600.0,) * months,
                per_node=dict.fromkeys(owned, 9.0),
            ),
        ),
        cvar_weight=0.2,
    )
