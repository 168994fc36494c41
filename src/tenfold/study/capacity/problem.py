"""The build-out problem of a fleet: options, classes, scenarios and limits, as values."""

from collections.abc import Callable, Sequence
from math import inf

import numpy as np
from msgspec import Struct

from tenfold.decide.capacity.buildout.problem import BuildOut, Limit, OwnOption, Scenario
from tenfold.model.capacity.plan_file import ClassTable
from tenfold.model.errors import InputError
from tenfold.physics.operations.lead_time import LeadDistribution, total_of
from tenfold.study.capacity.answer import Phase
from tenfold.study.capacity.baseline import baseline_of
from tenfold.study.capacity.calendar import months_until
from tenfold.study.capacity.drivers import DriverNeed, driver_needs
from tenfold.study.capacity.inputs import CapacityInputs
from tenfold.study.capacity.ladder import (
    Ladder,
    analyse_ladder,
    factor_asked,
    fixes_usd,
    limits_of,
    reached_by_pace,
    reached_by_path,
)
from tenfold.study.capacity.options import (
    bought_pools,
    classes_of,
    demand_classes,
    gpus_today,
    is_owned,
    node_lead,
    own_options,
    planned_weeks,
    rent_options,
)
from tenfold.study.capacity.scenarios import Course, Draws, draw_demand, reduced
from tenfold.study.capacity.spares import spares_line
from tenfold.study.estimate.money import fleet_bill
from tenfold.study.grow.cost.monthly import month_of
from tenfold.study.grow.question import GrowQuestion

FACTOR_HIGH = 95
"""Percentile of demand that limits are worked out for."""


class Prepared(Struct, frozen=True, kw_only=True):
    """A problem, and what it was made from."""

    problem: BuildOut
    phases: list[Phase]
    """Fixes of `grow`."""
    ladder: Ladder
    draws: Draws
    courses: list[Course]
    needs: list[DriverNeed]
    lead: LeadDistribution
    lead_weeks: float
    start: str
    notes: list[str]


def prepared(inputs: CapacityInputs, done: Callable[[int], None] | None = None) -> Prepared:
    """Return the problem of a capacity plan."""
    _check_growth(inputs)
    notes = [*inputs.notes]
    start, months = inputs.start, inputs.horizon.months
    kinds = _classes(inputs, notes)
    _check_history(inputs, kinds, notes)
    today = [gpus_today(inputs, kind) for kind in kinds]
    parts = {kind.name: kind.accelerator for kind in kinds}
    needs = driver_needs(inputs.drivers, inputs.grow.fleet, parts, start, months)
    baselines = [
        baseline_of(inputs, kind.name, kind.series or kind.name, gpus, notes)
        for kind, gpus in zip(kinds, today, strict=True)
    ]
    draws = draw_demand(baselines, needs, inputs.horizon.draws, inputs.horizon.seed)
    ladder, phases = _ladder_of(inputs, draws, sum(today), start, done)
    lead = total_of(node_lead(ladder.today, notes).values())
    weeks = planned_weeks(ladder.today, lead.quantile(0.9))
    most = float(np.percentile(draws.gpus.sum(axis=1).max(axis=1), FACTOR_HIGH))
    spares = spares_line(ladder.today, most / max(1.0, sum(today)), notes)
    own = own_options(inputs, ladder, spares, weeks, notes)
    courses = reduced(draws, inputs.horizon.scenarios)
    problem = _problem(inputs, ladder, own, courses, notes)
    return Prepared(
        problem=problem,
        phases=phases,
        ladder=ladder,
        draws=draws,
        courses=courses,
        needs=needs,
        lead=lead,
        lead_weeks=weeks,
        start=start,
        notes=[*notes, *ladder.analysis.answer.assumptions],
    )


def _problem(
    inputs: CapacityInputs,
    ladder: Ladder,
    own: Sequence[OwnOption],
    courses: Sequence[Course],
    notes: list[str],
) -> BuildOut:
    months = inputs.horizon.months
    rent = rent_options(inputs, notes)
    states = [ladder.state(month) for month in range(months)]
    building = limits_of(states, bought_pools(inputs), count_assumed=inputs.count_assumed)
    return BuildOut(
        months=months,
        own=tuple(own),
        rent=tuple(rent),
        classes=tuple(demand_classes(inputs, own, rent, notes)),
        scenarios=tuple(_scenario(ladder, one, months) for one in courses),
        limits=(*building, *gate_limits(inputs, inputs.start, months)),
        fixed_usd=tuple(_fixed_usd(ladder, months)),
        order_every=inputs.horizon.order_every_months,
        cvar_weight=inputs.horizon.cvar_weight,
        cvar_tail=inputs.horizon.cvar_tail,
    )


def _classes(inputs: CapacityInputs, notes: list[str]) -> list[ClassTable]:
    """Return the classes of demand, or raise if nothing is asked."""
    kinds = classes_of(inputs)
    if not kinds:
        raise InputError(
            "no-gpus",
            "the fleet has no GPUs and no class of demand is stated",
            "add a pool with GPUs to the fleet file, or `[[demand]]` to the plan file",
        )
    if not inputs.plan.demand and not inputs.history:
        notes.append("today's GPUs are assumed to be fully used; set `gpus` under `[[demand]]`")
    return kinds


def _check_growth(inputs: CapacityInputs) -> None:
    if inputs.grow.grow.pace is None and not inputs.history and not inputs.drivers:
        raise InputError(
            "missing-demand",
            "no growth rate given",
            "add `[pace]` to the grow file, a history with `--history`, or `--drivers`",
        )


def _check_history(inputs: CapacityInputs, kinds: Sequence[ClassTable], notes: list[str]) -> None:
    """Refuse a history that no class follows, and say what of it is left out."""
    if not inputs.history:
        return
    followed = [kind.series or kind.name for kind in kinds]
    left = [name for name in inputs.history if name not in followed]
    if len(left) == len(inputs.history):
        names = ", ".join(f"`{name}`" for name in left[:4])
        raise InputError(
            "unknown-series",
            f"no class of demand follows a series of the history: {names}",
            f"name series {', '.join(f'`{name}`' for name in followed)}, or set `series` under "
            "`[[demand]]`",
            field="series",
        )
    if left:
        notes.append(f"not in the plan: series {', '.join(left)} of the history")
    without = [kind.name for kind in kinds if (kind.series or kind.name) not in inputs.history]
    if without:
        notes.append(f"no series in the history for {', '.join(without)}: today's GPUs are held")


def _ladder_of(
    inputs: CapacityInputs,
    draws: Draws,
    today: float,
    start: str,
    done: Callable[[int], None] | None,
) -> tuple[Ladder, list[Phase]]:
    """Return what `grow` says up to where the median of demand leads."""
    pace = inputs.grow.grow.pace
    by_pace = pace is not None and not inputs.history and not inputs.adds_demand
    path = np.median(draws.gpus.sum(axis=1), axis=0) / max(1.0, today)
    if by_pace and pace is not None:
        most = 2 ** (inputs.horizon.months / pace.doubles_in_months)
        reached = reached_by_pace(pace.doubles_in_months)
    else:
        most, reached = float(path.max()), reached_by_path(path.tolist())
    question = GrowQuestion(
        axis=inputs.axis,
        to=(factor_asked(most),),
        seed=inputs.horizon.seed,
        failures=inputs.failures,
        count_assumed=inputs.count_assumed,
    )
    return analyse_ladder(inputs.grow, question, reached, start, by_pace=by_pace, done=done)


def _scenario(ladder: Ladder, course: Course, months: int) -> Scenario:
    limits = [ladder.state(month).grow.limits.usd_per_month_most for month in range(months)]
    stated = np.array([inf if one is None else one for one in limits])
    if course.budget_usd is not None:
        stated = np.minimum(stated, course.budget_usd)
    return Scenario(
        name=course.name,
        probability=course.probability,
        demand=tuple(tuple(float(value) for value in row) for row in course.gpus),
        budget_usd=tuple(stated.tolist()) if np.isfinite(stated).any() else (),
    )


def gate_limits(inputs: CapacityInputs, start: str, months: int) -> list[Limit]:
    """Return a limit on nodes until operations have what the gate asks for."""
    found: list[Limit] = []
    pools = bought_pools(inputs)
    nodes = sum(pool.nodes for pool in inputs.grow.fleet.spec.pools if is_owned(pool))
    for gate in inputs.plan.gates:
        opens = max(0.0, months_until(start, gate.ready_by)) if gate.ready_by else inf
        left = max(0.0, float(gate.nodes_most - nodes))
        found.append(
            Limit(
                name=f"Operations gate, {gate.item}",
                unit="nodes",
                room=tuple(left if month < opens else inf for month in range(months)),
                per_node={str(pool.id): 1.0 for pool in pools},
            )
        )
    return found


def _fixed_usd(ladder: Ladder, months: int) -> list[float]:
    """Return what today's fleet and the fixes of `grow` cost; rented pools follow demand."""
    spec = ladder.today.spec
    rented = tuple(pool for pool in spec.pools if pool.price is not None and not is_owned(pool))
    ids = [pool.id for pool in rented]
    bill = sum(line.usd for line in fleet_bill(spec) if line.kind == "pool" and line.part in ids)
    today = month_of(ladder.today).today.usd - bill
    return [today + fixes for fixes in fixes_usd(ladder, months)]
