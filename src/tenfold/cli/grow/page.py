"""The page that `tenfold grow --html` writes: the printed result, with charts."""

from tenfold.cli.grow.bill import Bill, Stage, bill_of, cost_cell, order_day, stages
from tenfold.cli.grow.render import (
    EVALUATED,
    factor,
    fix_of,
    interval,
    needs_lines,
    then,
    with_fixes,
)
from tenfold.report.charts.growth import LayerCurve, LayerHeadroom
from tenfold.report.charts.points import Point
from tenfold.report.pages.grow import GrowPage, grow_report
from tenfold.study.grow.answer import GrowAnswer, Row
from tenfold.study.grow.layers.compute.step_efficiency import StepEfficiency
from tenfold.study.grow.layers.jobs.queue import Queue
from tenfold.study.grow.question import GrowQuestion
from tenfold.study.grow.registry import LAYERS
from tenfold.study.grow.runs.layer import SimulatedLayer

BOTTLENECK_COLUMNS = ["breaks at", "range", "layer", "symptom", "based on", "fix"]
ORDERS = ["fix", "for", "$/month", "total $/month", "order by", "OK up to"]
STAGES = ["factor", "fixes", "$/month", "first order by", "reached"]
OF_RUNS = [layer.name for layer in LAYERS if isinstance(layer, SimulatedLayer)]
"""Simulated layers, of which nothing is known beyond the runs that were made."""
LAYER_COLUMNS = ["breaks at", "range", "layer", "symptom", "based on"]


def grow_page(answer: GrowAnswer, question: GrowQuestion) -> str:
    """Return the page of an answer."""
    first, upto, limits = answer.first, f"{question.most:g}x", answer.limits
    over = {(row.layer, row.resource) for row in answer.over}
    leading = None if first is None else (first.layer, first.resource)
    return grow_report(
        GrowPage(
            title=f"What breaks first: {answer.fleet}",
            lead=_lead(answer, upto),
            axis=answer.axis,
            most=question.most,
            month=_month(answer),
            bottlenecks=(BOTTLENECK_COLUMNS, [_bottleneck_row(row) for row in answer.rows]),
            top=_top(answer, upto),
            stages=(STAGES, [_stage(one) for one in stages(answer)] if answer.rows else []),
            orders=(ORDERS, _orders(answer, upto)),
            layers=(LAYER_COLUMNS, [_layer(row) for row in answer.layers]),
            curves=[
                LayerCurve(
                    name=one.label,
                    points=_looked_at(one.points) if one.layer in OF_RUNS else one.points,
                )
                for one in answer.curves
            ],
            headrooms=[
                LayerHeadroom(
                    name=name_of(row),
                    k=row.k,
                    low=row.low,
                    high=row.high,
                    first=(row.layer, row.resource) == leading,
                    assumed=row.grade == "assumed",
                    over=(row.layer, row.resource) in over,
                )
                for row in answer.layers
                if row.status != "constant"
            ],
            breaks={} if first is None or first.k is None else {first.title: first.k},
            waits=_looked_at(_points(answer, Queue.name)),
            wait_limit_s=limits.wait_s_p90,
            efficiency=_points(answer, StepEfficiency.name),
            efficiency_least=limits.step_efficiency_least,
            limits=_limits(answer),
            unknown=needs_lines(answer),
            assumptions=(_capital(answer.calibration.sentence), *answer.assumptions),
        )
    )


def name_of(row: Row) -> str:
    """Return the layer and its resource by their names on screen."""
    return row.label or row.layer


def _lead(answer: GrowAnswer, upto: str) -> str:
    """Return the answer in one sentence: what breaks, how far fixes reach, and their cost."""
    said = _capital(answer.sentence)
    bill = bill_of(answer.rows)
    if not answer.rows or not (bill.reliefs or bill.raises_budget):
        return f"{said}."
    reached = upto if answer.ok_up_to is None else factor(answer.ok_up_to)
    return f"{said}; {with_fixes(answer)} OK up to {reached}; fixes: {bill.sentence}."


def _month(answer: GrowAnswer) -> tuple[list[str], list[list[str]]]:
    """Return what a month costs, today and with all fixes; the total is last."""
    month = answer.month
    if not month.usd_today:
        return [], []
    then = f"{month.factor:.3g}x, {with_fixes(answer)}"
    lines = [(line.name, line.usd_today, line.usd_then) for line in month.lines]
    unpriced = f" (without {', '.join(month.unpriced)}: no price)" if month.unpriced else ""
    total = (f"total{unpriced}", month.usd_today, month.usd_then)
    rows = [[name, f"{old:,.0f}", f"{new:,.0f}"] for name, old, new in (*lines, total)]
    return ["$/month", "today", then], rows


def _bottleneck_row(row: Row) -> list[str]:
    others = [
        f"or: {one.relief.sentence} (OK up to {factor(one.k_after)})"
        if one.k_after is not None
        else f"or: {one.relief.sentence}"
        for one in row.alternatives
    ]
    fix = "; ".join([fix_of(row), *others])
    return [factor(row.k), interval(row), name_of(row), row.symptom, row.grade or "", fix]


def _orders(answer: GrowAnswer, upto: str) -> list[list[str]]:
    """Return one line for each fix, with the running total."""
    lines: list[list[str]] = []
    for place, row in enumerate(answer.rows):
        if row.relief is None:
            continue
        so_far = bill_of(answer.rows[: place + 1])
        then = f">{upto}" if row.k_after is None else factor(row.k_after)
        lines.append(
            [
                row.relief.sentence,
                row.title,
                cost_cell(row.relief),
                _sum(so_far),
                order_day(row),
                then,
            ]
        )
    return lines


def _sum(bill: Bill) -> str:
    if bill.unpriced and bill.unpriced == bill.reliefs:
        return "unknown"
    about = "~" if bill.assumed else ""
    more = f" + {bill.unpriced} unpriced" if bill.unpriced else ""
    return f"{about}{bill.usd_per_month:,.0f}{more}"


def _stage(one: Stage) -> list[str]:
    gets_there = f"no: no fix found for {one.blocked_by}" if one.blocked_by else "yes"
    if one.next_label:
        gets_there = f"not with these fixes: next is {one.next_label}"
    return [
        f"{one.factor:g}x",
        str(one.fixes),
        _sum(one.bill),
        one.order_first or "-",
        gets_there,
    ]


def _layer(row: Row) -> list[str]:
    k = factor(row.k) if row.status == "breaks" else _unbroken(row)
    return [k, interval(row), name_of(row), row.symptom, row.grade or ""]


def _unbroken(row: Row) -> str:
    return "not changed" if row.status == "constant" else "OK"


def _top(answer: GrowAnswer, upto: str) -> str:
    if not answer.rows:
        return f"{_capital(answer.sentence)}."
    bill = bill_of(answer.rows)
    if not bill.reliefs and answer.ok_up_to is not None:
        return f"OK up to {factor(answer.ok_up_to)}; {answer.rows[-1].sentence}."
    reached = f"{upto} ({EVALUATED})" if answer.ok_up_to is None else factor(answer.ok_up_to)
    done = f"{_capital(with_fixes(answer))}: OK up to {reached}"
    return f"{done}; fixes: {bill.sentence}{then(answer)}."


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _points(answer: GrowAnswer, layer: str) -> tuple[Point, ...]:
    """Return the fullest curve of a layer; none if it was not evaluated."""
    curves = [one.points for one in answer.curves if one.layer == layer and one.points]
    return max(curves, key=lambda points: points[-1][1], default=())


def _looked_at(points: tuple[Point, ...]) -> tuple[Point, ...]:
    """Return points up to where runs were made: beyond, the last figure is repeated."""
    last = len(points)
    while last > 1 and points[last - 2][1] == points[-1][1] > 0:
        last -= 1
    return points[:last]


def _limits(answer: GrowAnswer) -> list[tuple[str, str]]:
    limits = answer.limits
    stated = [
        ("cost, $/month", limits.usd_per_month_most, "{:,.0f}"),
        ("total power, kW", limits.kw_most, "{:,.0f}"),
    ]
    return [
        ("queue wait, P90", f"{limits.wait_s_p90 / 3_600:g} h"),
        ("scaling efficiency, minimum", f"{limits.step_efficiency_least:.0%}"),
        ("time lost to checkpoints and failures", f"{limits.lost_share_most:.0%}"),
        ("time lost to contention", f"{limits.stall_share_most:.0%}"),
        ("GPUs idle because no waiting job fits", f"{limits.stranded_share_most:.0%}"),
        ("fairness between teams, minimum", f"{limits.fairness_least:g}"),
        ("headroom to keep", f"{limits.headroom_least:.0%}"),
        *((name, form.format(value)) for name, value, form in stated if value is not None),
    ]
