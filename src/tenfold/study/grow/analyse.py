"""Find the first bottleneck, apply its cheapest relief, and repeat up to the factor requested.

Each row is one purchase. A relief counts only if the whole fleet goes further with it, all other
constraints evaluated again: what relieves one layer may load the next.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace as with_fields
from datetime import date, timedelta
from math import inf, log2
from typing import NamedTuple

from msgspec.structs import replace

from tenfold.model.growth.growth import Axis, Pace
from tenfold.physics.growth.breaking import BreakStatus, is_constant
from tenfold.study.grow.answer import (
    AlternativeShown,
    CostLine,
    GrowAnswer,
    Missing,
    MonthlyBill,
    ReliefShown,
    Row,
    UtilisationCurve,
)
from tenfold.study.grow.attribute import Attribution, attribute
from tenfold.study.grow.constraint_set import ConstraintSet, assumed
from tenfold.study.grow.cost.monthly import month_of
from tenfold.study.grow.cost.prices import assumed_prices, unit_cost
from tenfold.study.grow.coverage import covered
from tenfold.study.grow.fixes.choose import Choice, Chooser
from tenfold.study.grow.inputs import GrowInputs
from tenfold.study.grow.layer import ComputedLayer, Constraint, DerivedLayer, Layer, relax
from tenfold.study.grow.layers.jobs.queue import Queue
from tenfold.study.grow.question import GrowQuestion, check_question
from tenfold.study.grow.recorded import RecordedWaits, recorded_waits
from tenfold.study.grow.registry import LAYERS
from tenfold.study.grow.relief import Relief
from tenfold.study.grow.search import Evaluated, evaluate, find_bottleneck, rank
from tenfold.study.grow.state import State, planned_state

DAYS_PER_MONTH = 365.25 / 12
DAYS_PER_WEEK = 7


def order_by(pace: Pace | None, factor: float, weeks: float | None) -> str:
    """Return the last day to order, or how long before the factor if no pace is stated.

    The system clock is not used: the same question has the same answer tomorrow.
    """
    if weeks is None:
        return ""
    if pace is None:
        return f"{weeks:g} weeks before {factor:.2g}x" if weeks else ""
    reached = pace.doubles_in_months * log2(max(factor, 1.0)) * DAYS_PER_MONTH
    days = int(reached - weeks * DAYS_PER_WEEK)
    return (date.fromisoformat(pace.today) + timedelta(days=days)).isoformat()


def is_late(pace: Pace | None, day: str) -> bool:
    """Return whether a day to order by is before `today` of `[pace]`."""
    return pace is not None and bool(day) and day < pace.today


ROWS_MOST = 8
FACTOR_SHOWN_MOST = 64.0
"""Computed constraints are cheap, so they are followed past the factor requested."""
CURVE_POINTS = 9
AXIS_WORDS: dict[Axis, str] = {
    "jobs": "jobs",
    "job-size": "job size",
    "data": "data",
    "traffic": "traffic",
    "teams": "teams",
    "nodes": "nodes",
    "all": "overall growth",
}
"""What grows, in words that follow a factor."""


def analyse(
    inputs: GrowInputs,
    question: GrowQuestion,
    done: Callable[[int], None] | None = None,
    layers: Sequence[Layer] = LAYERS,
) -> GrowAnswer:
    """Return what breaks first, what fixes it, and what breaks next.

    `done` is called with the number of finished runs; the total is not known in advance.
    """
    return analyse_growth(inputs, question, done, layers).answer


class Analysis(NamedTuple):
    """An answer, and the fleet before and after each of its fixes."""

    answer: GrowAnswer
    states: tuple[State, ...]


def analyse_growth(
    inputs: GrowInputs,
    question: GrowQuestion,
    done: Callable[[int], None] | None = None,
    layers: Sequence[Layer] = LAYERS,
) -> Analysis:
    """Return the answer of `analyse` with the fleets that its fixes lead to."""
    check_question(question)
    inputs = covered(inputs)
    recorded = recorded_waits(inputs) if inputs.jobs else None
    today, constraint_set = (
        planned_state(inputs, question.failures),
        ConstraintSet(inputs, question, done, layers),
    )
    start, over = _over_today(today, constraint_set)
    rows, states, ok_up_to, next_label = _bottlenecks(start, constraint_set)
    constraints = constraint_set.all(start)
    evaluated = rank(constraints, max(question.most, FACTOR_SHOWN_MOST))
    first = rows[0] if rows else None
    over_rows = tuple(_over_row(one, question) for one in _demand(over))
    answer = GrowAnswer(
        fleet=start.spec.name,
        axis=question.axis,
        to=question.to,
        calibration=constraint_set.shown(constraints),
        first=first,
        rows=tuple(rows),
        over=over_rows,
        ok_up_to=ok_up_to,
        next_label=next_label,
        layers=(
            *over_rows,
            *(
                _layer_row(one, question.axis, question.most)
                for one in evaluated
                if not one.constraint.needs
            ),
        ),
        unknown=_missing(constraints, question.axis, layers, evaluated=[*constraints, *over]),
        curves=tuple(
            _curve(one.constraint, question.most) for one in evaluated if not one.constraint.needs
        ),
        month=_month(start, (start, *states)[-1], question, ok_up_to),
        limits=start.grow.limits,
        assumptions=(
            *(_over(constraint) for constraint in over),
            *assumed(constraints),
            *constraint_set.layer_notes(constraints),
            *_assumed_prices(start, rows),
            *inputs.notes,
            *constraint_set.notes,
        ),
        sentence=_with_recorded(_sentence(rows, question, evaluated, over), first, recorded),
    )
    return Analysis(answer, (start, *states))


def _over_today(state: State, constraint_set: ConstraintSet) -> tuple[State, list[Constraint]]:
    """Return layers that are over their limit today and do not grow, and the state without them.

    They are reported, but they do not answer what breaks as the axis grows. Causes come first: a
    layer that is within its limit once they are removed is only an effect of theirs.
    """
    most, found = constraint_set.question.most, list[Constraint]()
    while True:
        over = [
            one
            for one in constraint_set.all(state)
            if one.utilisation(1.0) > 1 and is_constant(one.utilisation, most)
        ]
        if not over:
            return state, found
        first = min(one.cause_rank for one in over)
        causes = [one for one in over if one.cause_rank == first]
        found += causes
        state = relax(state, *(_without_runs(one) for one in causes))


def _without_runs(constraint: Constraint) -> Constraint:
    """Return a constraint that leaves runs as they are if it rests on an assumption."""
    return with_fields(constraint, unlimited=None) if constraint.grade == "assumed" else constraint


def _over_row(constraint: Constraint, question: GrowQuestion) -> Row:
    """Return a layer over its limit that does not grow, with the first fix that it knows."""
    row = _layer_row(evaluate(constraint, question.most), question.axis, 1.0)
    fix = next(iter(constraint.reliefs(1.0)), None)
    if fix is None:
        return replace(row, sentence="no known fix")
    return replace(row, relief=_shown(fix), usd=rounded(fix.usd_per_month))


def _over(constraint: Constraint) -> str:
    symptom = constraint.symptom(1.0)
    return f"already over its limit: {constraint.label} ({symptom})"


def _month(
    start: State, fixed: State, question: GrowQuestion, ok_up_to: float | None
) -> MonthlyBill:
    """Return the cost of a month today, and with all fixes at the factor that they reach."""
    factor = question.most if ok_up_to is None else max(1.0, ok_up_to)
    today = start.once(month_of).today
    then = fixed.once(month_of).at(question.axis, factor)
    names = dict.fromkeys(name for name, _ in (*today.lines, *then.lines))
    old, new = dict(today.lines), dict(then.lines)
    return MonthlyBill(
        factor=factor,
        lines=tuple(
            CostLine(name=name, usd_today=old.get(name, 0.0), usd_then=new.get(name, 0.0))
            for name in names
        ),
        usd_today=today.usd,
        usd_then=then.usd,
        unpriced=today.unpriced,
    )


def _assumed_prices(state: State, rows: Sequence[Row]) -> list[str]:
    """Return the prices that the costs of fixes rest on without a word of the user's."""
    used = [item for row in rows if row.relief for item in row.relief.assumed_prices]
    if state.grow.operations.crew and unit_cost(state, "technician").assumed:
        used.append("technician")
    return assumed_prices(used, state.inputs.fleet.catalogue.unit_prices)


class _Ladder(NamedTuple):
    """What breaks, in order, the fleet after each fix, and how far it goes with all of them."""

    rows: list[Row]
    states: list[State]
    ok_up_to: float | None
    next_label: str = ""
    """What breaks next, if the list ended because it is full."""


def _bottlenecks(state: State, constraint_set: ConstraintSet) -> _Ladder:
    """Return what breaks, in order, and the factor up to which the fleet is OK with all fixes."""
    most = constraint_set.question.most
    rows, states = list[Row](), list[State]()
    now = find_bottleneck(constraint_set.rankable(state), most)
    while now.k is not None and now.constraint is not None and len(rows) < ROWS_MOST:
        cause = attribute(state, constraint_set.rankable, now, most)
        choice = Chooser(state, constraint_set, cause, now.k).choose()
        rows.append(_row(state, cause, now.k, most, choice))
        if choice.step is None:
            break
        state, now = choice.step.state, choice.step.then
        states.append(state)
    else:
        if now.k is not None and now.constraint is not None:
            return _Ladder(rows, states, now.k, now.constraint.label)
    return _Ladder(rows, states, now.k)


def _row(state: State, cause: Attribution, k: float, most: float, choice: Choice) -> Row:
    evaluated = [
        evaluate(constraint, max(most, FACTOR_SHOWN_MOST)) for constraint in cause.constraints
    ]
    worst = min(evaluated, key=lambda one: inf if one.broken.k is None else one.broken.k)
    step = choice.step
    relief = step.relief if step else None
    # A cause that shows through its effect breaks before its own constraint says so.
    low = k if worst.broken.low is None else min(k, worst.broken.low)
    # A setting is changed, not ordered.
    weeks = (relief.weeks or None) if relief else None
    day = order_by(state.grow.pace, k, weeks)
    return Row(
        layer=" and ".join(dict.fromkeys(constraint.layer for constraint in cause.constraints)),
        resource=" and ".join(
            dict.fromkeys(constraint.resource for constraint in cause.constraints)
        ),
        title=" and ".join(dict.fromkeys(one.of.label("") for one in cause.constraints)),
        label=" and ".join(dict.fromkeys(constraint.label for constraint in cause.constraints)),
        k=rounded(k),
        low=rounded(low),
        high=rounded(worst.broken.high),
        status="breaks",
        grade=worst.constraint.grade,
        symptom="; ".join(
            filter(None, (constraint.symptom(max(k, 1.0)) for constraint in cause.constraints))
        ),
        relief=relief and _shown(relief),
        usd=None if relief is None else rounded(relief.usd_per_month),
        order_by=day,
        late=is_late(state.grow.pace, day),
        k_after=rounded(step.then.k) if step else rounded(k),
        alternatives=tuple(
            AlternativeShown(relief=_shown(one.relief), k_after=rounded(one.then.k))
            for one in choice.alternatives
        ),
        sentence=choice.said,
    )


def _shown(relief: Relief) -> ReliefShown:
    return ReliefShown(
        code=relief.code,
        sentence=relief.sentence,
        usd_per_month=rounded(relief.usd_per_month),
        weeks=relief.weeks,
        usd_low=rounded(relief.usd_range[0]) if relief.usd_range else None,
        usd_high=rounded(relief.usd_range[1]) if relief.usd_range else None,
        assumed_prices=relief.assumed,
        unpriced=relief.unpriced,
    )


def _layer_row(one: Evaluated, axis: Axis, most: float) -> Row:
    k = one.broken.k
    return Row(
        layer=one.constraint.layer,
        resource=one.constraint.resource,
        title=one.constraint.of.label(""),
        label=one.constraint.label,
        k=rounded(k),
        low=rounded(one.broken.low),
        high=rounded(one.broken.high),
        status=_status(one, axis),
        grade=one.constraint.grade,
        symptom=one.constraint.symptom(most if k is None else max(k, 1.0)),
    )


def _status(one: Evaluated, axis: Axis) -> BreakStatus:
    """Return the status of a layer; runs that showed nothing do not prove that nothing grows."""
    layer = one.constraint.of
    proved = isinstance(layer, ComputedLayer) or layer.growth(axis) != "demand"
    if one.broken.status == "constant" and (not proved or isinstance(layer, DerivedLayer)):
        return "free"
    return one.broken.status


def _missing(
    constraints: Sequence[Constraint],
    axis: Axis,
    layers: Sequence[Layer],
    evaluated: Sequence[Constraint],
) -> tuple[Missing, ...]:
    here = [
        Missing(
            layer=one.layer,
            resource=one.resource,
            title=one.of.label(""),
            needs=one.needs,
            could_break=one.of.could_break_unseen(one.needs, axis),
        )
        for one in constraints
    ]
    listed = {constraint.layer for constraint in evaluated}
    beyond = [
        Missing(layer=one.name, resource="", title=one.label(""), needs="")
        for one in layers
        if one.always_listed and one.name not in listed
    ]
    return (*(one for one in here if one.needs), *beyond)


def _curve(constraint: Constraint, most: float) -> UtilisationCurve:
    factors = [most ** (place / (CURVE_POINTS - 1)) for place in range(CURVE_POINTS)]
    points = tuple(
        (float(f"{factor:.6g}"), float(f"{min(constraint.utilisation(factor), 1e9):.6g}"))
        for factor in factors
    )
    return UtilisationCurve(
        layer=constraint.layer,
        resource=constraint.resource,
        label=constraint.label,
        points=points,
    )


def rounded(value: float | None) -> float | None:
    """Return a figure to six digits: the rest is search noise."""
    return None if value is None else float(f"{value:.6g}")


def _sentence(
    rows: Sequence[Row],
    question: GrowQuestion,
    evaluated: Sequence[Evaluated],
    over: Sequence[Constraint],
) -> str:
    first = rows[0] if rows else None
    said = _first_break(first, question, evaluated) + _also_over(rows, evaluated)
    if first is not None:
        over = [one for one in _demand(over) if one.grade != "assumed"]
    if not over:
        return said
    whose = "its limit" if len(over) == 1 else "their limits"
    said = said.replace("none of the limits checked", "no other limit checked")
    return f"already over {whose}: {', '.join(_enclosed(one) for one in over)}; {said}"


def _also_over(rows: Sequence[Row], evaluated: Sequence[Evaluated]) -> str:
    """Name what else is over its limit today: before any fix, and still after those above it."""
    today = {
        (one.constraint.layer, one.constraint.resource)
        for one in evaluated
        if one.broken.k is not None and one.broken.k < 1
    }
    names = dict.fromkeys(
        row.label
        for row in rows[1:]
        if row.k is not None and row.k < 1 and (row.layer, row.resource) in today
    )
    more = [name for name in names if name != rows[0].label]
    return f"; also over today: {', '.join(_in_list(name) for name in more)}" if more else ""


def _with_recorded(said: str, first: Row | None, recorded: RecordedWaits | None) -> str:
    """Return the first line; waits that broke their limit when they were recorded come first."""
    if recorded is None or not recorded.over:
        return said
    if first is not None and first.layer == Queue.name and first.k is not None and first.k <= 1:
        said = f"OK only up to {first.k:.2f}x today's load"
    return f"over its limit today: {Queue.title}, {recorded.sentence}; {said}"


def _demand(over: Sequence[Constraint]) -> list[Constraint]:
    """Return those over their limit by what they carry, and not by the time to fix another."""
    return [one for one in over if not isinstance(one.of, DerivedLayer)]


def _enclosed(constraint: Constraint) -> str:
    return _in_list(constraint.label)


def _in_list(label: str) -> str:
    """Return a label with its resource in parentheses, for use in a list."""
    title, comma, resource = label.partition(", ")
    return f"{title} ({resource})" if comma else title


def _first_break(first: Row | None, question: GrowQuestion, evaluated: Sequence[Evaluated]) -> str:
    axis = AXIS_WORDS[question.axis]
    if first is None:
        k, label = next(((one.broken.k, one.constraint.label) for one in evaluated), (None, ""))
        if k is None or k > question.most:
            return f"none of the limits checked is reached at up to {question.most:g}x {axis}"
        if k <= 1:
            return f"over its limit today, based on assumed values: {label}"
        return f"first to break, based on assumed values: {label}, at {k:.2f}x {axis}"
    if first.k is not None and first.k <= 1:
        return f"over its limit today: {first.label} (OK only up to {first.k:.2f}x today's load)"
    return f"first to break: {first.label}, at {first.k:.2f}x {axis}"
