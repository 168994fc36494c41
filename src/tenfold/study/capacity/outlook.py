"""How sure a plan is: over draws of demand and of lead times, does capacity come in time?"""

from math import inf

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tenfold.decide.capacity.buildout.check import usable_nodes
from tenfold.decide.capacity.buildout.plan import Decision
from tenfold.decide.capacity.buildout.problem import BuildOut
from tenfold.model.growth.growth import BYTES_PER_TB
from tenfold.physics.arrays import Floats
from tenfold.physics.operations.lead_time import total_of
from tenfold.sim.faults.outages import generator_of
from tenfold.study.capacity.answer import Phase
from tenfold.study.capacity.calendar import (
    DAYS_PER_WEEK,
    day_after,
    months_of,
    months_until,
    shifted,
)
from tenfold.study.capacity.problem import Prepared
from tenfold.study.grow.cost.prices import unit_cost
from tenfold.study.grow.relief import lead_weeks

TRACE = 0.005
"""A smaller share of demand that is missed is not called a stock-out."""
STORED_SHARE = 0.9
"""Percentile of stored data that a tier is bought for."""


class Outlook(Struct, frozen=True, kw_only=True):
    """Probabilities over draws of demand and lead times."""

    stock_out: Floats
    """By month: what is there and what can be rented together do not suffice."""
    any_stock_out: float
    confidence: tuple[float | None, ...]
    """By order: it is of use before the demand that it was bought for."""
    storage: tuple[Phase, ...]

    def fix_confidence(self, phase: Phase, made: Prepared) -> float | None:
        """Return the probability that a fix arrives in time if it is ordered by its day."""
        day = phase.order_by
        if not phase.needed or not phase.lead_weeks or day[4:5] != "-":
            return None
        thing = next(
            (one for one in made.ladder.today.grow.lead_times if one.weeks_p90 == phase.lead_weeks),
            None,
        )
        if thing is None:
            return None
        stages = thing.stages.values() or [(thing.weeks_p50, thing.weeks_p90)]
        ordered = max(day, made.start)
        weeks = months_until(ordered, phase.needed) * months_of(1.0) ** -1
        return total_of(stages).within(max(0.0, weeks))


def outlook_of(made: Prepared, decision: Decision) -> Outlook:
    """Return how sure a plan is."""
    problem = made.problem
    draws = made.draws.gpus.shape[0]
    generator = generator_of("lead", draws, made.start)
    orders = decision.orders
    # What can be rented by the hour does not run out unless an offer says so.
    rentable = sum(
        inf if one.gpus_most is None else one.gpus_most
        for one in problem.rent
        if one.usd_on_demand is not None
    )
    demand = made.draws.gpus.sum(axis=1)
    weeks = made.lead.quantiles(generator.random((draws, len(orders))))
    ordered = np.array([float(order.month) for order in orders])
    bought = np.array([not order.is_reservation for order in orders], dtype=bool)
    arrives = ordered + np.where(bought, weeks * months_of(1.0), 0.0)
    short = np.zeros((draws, problem.months), dtype=bool)
    for month in range(problem.months):
        there = _base(problem, month) + _arrived(problem, decision, arrives, month)
        short[:, month] = demand[:, month] > there + rentable
    by_scenario = _missed(problem, decision)
    chances = np.array([one.probability for one in problem.scenarios])
    return Outlook(
        # Draws know lead times, scenarios what budgets and offers leave.
        stock_out=np.maximum(short.mean(axis=0), chances @ by_scenario),
        any_stock_out=max(
            float(short.any(axis=1).mean()), float(chances @ by_scenario.any(axis=1))
        ),
        confidence=tuple(_in_time(made, decision, arrives, demand)),
        storage=tuple(_storage(made)),
    )


def _missed(problem: BuildOut, decision: Decision) -> NDArray[np.bool_]:
    """Return, by scenario and month, whether more than a trace of demand is missed."""
    total = np.array([np.sum(one.demand, axis=0) for one in problem.scenarios])
    missed = np.zeros_like(total)
    for one in decision.unmet:
        missed[one.scenario, one.month] += one.gpus
    return missed > TRACE * np.maximum(total, 1.0)


def _base(problem: BuildOut, month: int) -> float:
    return sum(
        usable_nodes(one, one.nodes_without(month), month) * one.gpus_per_node
        for one in problem.own
    )


def _arrived(problem: BuildOut, decision: Decision, arrives: Floats, month: int) -> Floats:
    each = {one.name: one.gpus_per_node * (1 - one.spares_per_node) for one in problem.own}
    lasts = {one.name: one.reserved_months for one in problem.rent}
    total = np.zeros(len(arrives))
    for at, order in enumerate(decision.orders):
        if order.is_reservation:
            total += order.count * float(order.month <= month < order.month + lasts[order.option])
        else:
            total += order.count * each[order.option] * (arrives[:, at] <= month)
    return total


def _in_time(
    made: Prepared, decision: Decision, arrives: Floats, demand: Floats
) -> list[float | None]:
    """Return, by order, how often it arrives before demand exceeds what was there without it."""
    problem = made.problem
    each = {one.name: one.gpus_per_node * (1 - one.spares_per_node) for one in problem.own}
    found: list[float | None] = []
    before = 0.0
    for at, order in enumerate(decision.orders):
        if order.is_reservation:
            found.append(None)
            continue
        there = np.array([_base(problem, month) + before for month in range(problem.months)])
        over = demand > there
        first = np.where(over.any(axis=1), over.argmax(axis=1), problem.months)
        # Capacity that demand never asks for is in time; a purchase is not blamed for the past.
        first = np.maximum(first, order.arrives)
        found.append(float((arrives[:, at] <= first).mean()))
        before += order.count * each[order.option]
    return found


def _storage(made: Prepared) -> list[Phase]:
    """Return what data that drivers add takes: a larger tier, by when."""
    found: list[Phase] = []
    state = made.ladder.today
    for name, tb in made.draws.stored_tb.items():
        tier = next(one for one in state.spec.tiers if one.id == name)
        stored = sum(one.tb for one in state.grow.datasets if one.tier == name)
        room = tier.capacity / BYTES_PER_TB - stored
        level = np.quantile(tb, STORED_SHARE, axis=0)
        read = np.quantile(made.draws.read_gb_per_s[name], STORED_SHARE, axis=0)
        faster = read[-1] - tier.read_bandwidth / 1e9
        over = np.flatnonzero(level > room)
        if len(over):
            month, more = int(over[0]), float(level[-1] - room)
            one = unit_cost(state, "storage-tb").usd
            usd = tier.usd_micros_per_tb_month / 1e6 or one
            what = f"add {more:,.0f} TB to tier {name}"
            found.append(_storage_phase(made, what, month, usd * more, "stored data"))
        if faster > 0:
            month = int(np.flatnonzero(read > tier.read_bandwidth / 1e9)[0])
            what = f"add {faster:,.1f} GB/s of reads to tier {name}"
            found.append(_storage_phase(made, what, month, None, "reads of new data"))
    return found


def _storage_phase(made: Prepared, what: str, month: int, usd: float | None, reason: str) -> Phase:
    weeks = lead_weeks(made.ladder.today, "storage")
    needed = day_after(made.start, month)
    order_by = "" if weeks is None else shifted(needed, -round(weeks * DAYS_PER_WEEK))
    return Phase(
        kind="storage",
        what=what,
        reason=reason,
        order_by=order_by,
        needed=needed,
        lead_weeks=weeks,
        confidence=None,
        usd_per_month=usd,
        late=bool(order_by) and order_by < made.start,
    )
