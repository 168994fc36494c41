"""Find the first bottleneck, apply its cheapest relief, and repeat up to the factor requested.

Each row is one purchase. A relief counts only if the whole fleet goes further with it, all other
constraints evaluated again: what relieves one layer may load the next.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace as with_fields
from datetime import date, timedelta
from math import inf, log2

from msgspec.structs import replace

from tenfold.model.growth.growth import Axis, Pace
from tenfold.physics.growth.breaking import BreakStatus, is_constant
from tenfold.study.grow.answer import (
    GrowAnswer,
    Missing,
    ReliefShown,
    Row,
    UtilisationCurve,
)
from tenfold.study.grow.attribute import RAISED, Attribution, attribute
from tenfold.study.grow.constraint_set import ConstraintSet, assumed
from tenfold.study.grow.coverage import covered
from tenfold.study.grow.inputs import GrowInputs
from tenfold.study.grow.layer import ComputedLayer, Constraint, DerivedLayer, Layer, relax
from tenfold.study.grow.layers.jobs.queue import Queue
from tenfold.study.grow.question import GrowQuestion, check_question
from tenfold.study.grow.recorded import RecordedWaits, recorded_waits
from tenfold.study.grow.registry import LAYERS
from tenfold.study.grow.relief import Relief, combined
from tenfold.study.grow.search import Bottleneck, Evaluated, evaluate, find_bottleneck, rank
from tenfold.study.grow.state import State, state_of

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
HELPS = 1.02
"""A relief must raise the factor by at least this, unless another break is as close."""
PAST = 1.001
"""How far past the next break a relief is sized, so that rounding does not stop short of it."""
FACTOR_SHOWN_MOST = 64.0
"""Computed constraints are cheap, so they are followed past the factor requested."""
CLEARLY = 1.05
COMPANIONS_MOST = 3
"""New nodes may need power, ports and floor at once; a relief that needs more is rejected."""
SPENT = "no further fix tried: the simulation budget is used up"
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
    check_question(question)
    inputs = covered(inputs)
    recorded = recorded_waits(inputs) if inputs.jobs else None
    today, constraint_set = (
        state_of(inputs, question.failures),
        ConstraintSet(inputs, question, done, layers),
    )
    start, over = _over_today(today, constraint_set)
    rows, ok_up_to = _bottlenecks(start, constraint_set)
    constraints = constraint_set.all(start)
    evaluated = rank(constraints, max(question.most, FACTOR_SHOWN_MOST))
    first = rows[0] if rows else None
    return GrowAnswer(
        fleet=start.spec.name,
        axis=question.axis,
        to=question.to,
        calibration=constraint_set.shown(constraints),
        first=first,
        rows=tuple(rows),
        over=tuple(
            _layer_row(evaluate(one, question.most), question.axis, 1.0) for one in _demand(over)
        ),
        ok_up_to=ok_up_to,
        layers=tuple(
            _layer_row(one, question.axis, question.most)
            for one in evaluated
            if not one.constraint.needs
        ),
        unknown=_missing(constraints, layers, evaluated=[*constraints, *over]),
        curves=tuple(
            _curve(one.constraint, question.most) for one in evaluated if not one.constraint.needs
        ),
        limits=start.grow.limits,
        assumptions=(
            *(_over(constraint) for constraint in over),
            *assumed(constraints),
            *constraint_set.layer_notes(constraints),
            *inputs.notes,
            *constraint_set.notes,
        ),
        sentence=_with_recorded(_sentence(first, question, evaluated, over), first, recorded),
    )


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


def _over(constraint: Constraint) -> str:
    symptom = constraint.symptom(1.0)
    return f"already over its limit: {constraint.label} ({symptom})"


def _bottlenecks(state: State, constraint_set: ConstraintSet) -> tuple[list[Row], float | None]:
    """Return what breaks, in order, and the factor up to which the fleet is OK with all fixes."""
    most = constraint_set.question.most
    rows: list[Row] = []
    now = find_bottleneck(constraint_set.rankable(state), most)
    while now.k is not None and now.constraint is not None and len(rows) < ROWS_MOST:
        cause = attribute(state, constraint_set.rankable, now, most)
        step = _cheapest(state, constraint_set, cause, now.k)
        row = _row(state, cause, now.k, most, step)
        rows.append(replace(row, sentence=SPENT) if step is None and constraint_set.spent else row)
        if step is None:
            break
        state, now = step[1], step[2]
    return rows, now.k


Step = tuple[Relief, State, Bottleneck]


def _cheapest(
    state: State, constraint_set: ConstraintSet, cause: Attribution, k: float
) -> Step | None:
    """Return the first relief, cheapest first, with which the fleet goes further.

    One that overloads other layers is combined with the reliefs of those.
    """
    target = _target(constraint_set.question, cause)
    for relief in _reliefs(cause.constraints, target):
        if constraint_set.spent:
            break
        step = _taken(state, constraint_set, relief)
        for _ in range(COMPANIONS_MOST):
            if constraint_set.spent or _helps(k, step[2].k, cause.k_without):
                break
            found = _joined(state, constraint_set, step, target)
            if found is None:
                break
            step = found
        if _helps(k, step[2].k, cause.k_without):
            return step
    return None


def _joined(state: State, constraint_set: ConstraintSet, step: Step, target: float) -> Step | None:
    """Return a step combined with a relief of the layer that it overloads; None without one.

    Of several reliefs, the first after which that layer is no longer the bottleneck.
    """
    relief, _, now = step
    overloaded = now.constraint
    if overloaded is None:
        return None
    for more in overloaded.reliefs(target):
        both = _taken(state, constraint_set, combined([relief, more]))
        then = both[2]
        if (
            then.constraint is None
            or then.constraint.key != overloaded.key
            or (then.k or 0) > (now.k or 0)
        ):
            return both
    return None


def _taken(state: State, constraint_set: ConstraintSet, relief: Relief) -> Step:
    relieved = relief.apply(state)
    return (
        relief,
        relieved,
        find_bottleneck(constraint_set.rankable(relieved), constraint_set.question.most),
    )


def _target(question: GrowQuestion, cause: Attribution) -> float:
    """Return the factor to size a relief for: a requested factor clearly past the next break.

    A relief sized for the next break alone would have to be bought again right after it.
    """
    rival = question.most if cause.k_without is None else cause.k_without
    required = [factor for factor in question.to if factor > rival * CLEARLY]
    return min(required, default=question.most) * PAST


def _helps(k: float, then: float | None, relaxed: float | None) -> bool:
    """Return whether the fleet goes further, or as far as it would without the layer at all."""
    if then is None or then > k * HELPS:
        return True
    return relaxed is not None and then > k * RAISED and then * HELPS > relaxed


def _reliefs(constraints: Sequence[Constraint], target: float) -> list[Relief]:
    """Return the reliefs of one constraint, or for several the cheapest of each combined."""
    found = [constraint.reliefs(target) for constraint in constraints]
    if len(found) == 1:
        return found[0]
    return [combined([some[0] for some in found])] if all(found) else []


def _row(state: State, cause: Attribution, k: float, most: float, step: Step | None) -> Row:
    evaluated = [
        evaluate(constraint, max(most, FACTOR_SHOWN_MOST)) for constraint in cause.constraints
    ]
    worst = min(evaluated, key=lambda one: inf if one.broken.k is None else one.broken.k)
    relief = step[0] if step else None
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
        k_after=rounded(step[2].k) if step else rounded(k),
        sentence="" if relief else "no known fix",
    )


def _shown(relief: Relief) -> ReliefShown:
    return ReliefShown(
        code=relief.code,
        sentence=relief.sentence,
        usd_per_month=rounded(relief.usd_per_month),
        weeks=relief.weeks,
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
    constraints: Sequence[Constraint], layers: Sequence[Layer], evaluated: Sequence[Constraint]
) -> tuple[Missing, ...]:
    here = [
        Missing(layer=one.layer, resource=one.resource, title=one.of.label(""), needs=one.needs)
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
    first: Row | None,
    question: GrowQuestion,
    evaluated: Sequence[Evaluated],
    over: Sequence[Constraint],
) -> str:
    said = _first_break(first, question, evaluated)
    if first is not None:
        over = [one for one in _demand(over) if one.grade != "assumed"]
    if not over:
        return said
    whose = "its limit" if len(over) == 1 else "their limits"
    said = said.replace("none of the limits checked", "no other limit checked")
    return f"already over {whose}: {', '.join(_enclosed(one) for one in over)}; {said}"


def _with_recorded(said: str, first: Row | None, recorded: RecordedWaits | None) -> str:
    """Return the first line; waits that broke their limit when they were recorded come first."""
    if recorded is None or recorded.wait_s <= recorded.limit_s:
        return said
    if first is not None and first.layer == Queue.name and first.k is not None and first.k <= 1:
        said = f"OK only up to {first.k:.2f}x today's load"
    return f"over its limit today: {Queue.title}, {recorded.sentence}; {said}"


def _demand(over: Sequence[Constraint]) -> list[Constraint]:
    """Return those over their limit by what they carry, and not by the time to fix another."""
    return [one for one in over if not isinstance(one.of, DerivedLayer)]


def _enclosed(constraint: Constraint) -> str:
    """Return a label with its resource in parentheses, for use in a list."""
    title, comma, resource = constraint.label.partition(", ")
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
