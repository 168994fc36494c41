"""The page that `tenfold grow --html` writes: what is printed, with charts beside it."""

from tenfold.cli.grow.bill import Bill, Stage, bill_of, order_day, stages
from tenfold.cli.grow.render import factor, interval, needs_lines
from tenfold.report.charts.growth import LayerCurve, LayerHeadroom
from tenfold.report.charts.points import Point
from tenfold.report.pages.grow import GrowPage, grow_report
from tenfold.study.grow.answer import GrowAnswer, Row
from tenfold.study.grow.layers.compute.step_efficiency import StepEfficiency
from tenfold.study.grow.layers.jobs.queue import Queue
from tenfold.study.grow.question import GrowQuestion
from tenfold.study.grow.registry import LAYERS
from tenfold.study.grow.runs.layer import SimulatedLayer

BOTTLENECK_COLUMNS = ["breaks at", "layer", "seen then", "evidence", "relief"]
ORDERS = ["what", "for", "$/month", "in all", "order by", "stands then"]
STAGES = ["to stand", "reliefs", "$/month", "without a price", "first order by", "gets there"]
OF_RUNS = [layer.name for layer in LAYERS if isinstance(layer, SimulatedLayer)]
"""Layers of which nothing is known beyond the runs that were made."""
LAYER_COLUMNS = ["breaks at", "interval", "layer", "seen then", "evidence"]


def grow_page(answer: GrowAnswer, question: GrowQuestion) -> str:
    """Return the page of an answer."""
    first, upto, limits = answer.first, f"{question.most:g}x", answer.limits
    leading = None if first is None else (first.layer, first.resource)
    return grow_report(
        GrowPage(
            title=f"What breaks first: {answer.fleet}",
            lead=f"{answer.sentence}; {answer.calibration.sentence}.",
            axis=answer.axis,
            most=question.most,
            tiles=_tiles(answer, upto),
            bottlenecks=(BOTTLENECK_COLUMNS, [_bottleneck_row(row) for row in answer.rows]),
            top=_top(answer, upto),
            stages=(STAGES, [_stage(one) for one in stages(answer)] if answer.rows else []),
            orders=(ORDERS, _orders(answer, upto)),
            layers=(LAYER_COLUMNS, [_layer(row) for row in answer.layers]),
            curves=[
                LayerCurve(
                    name=f"{one.layer} ({one.resource})",
                    points=_looked_at(one.points) if one.layer in OF_RUNS else one.points,
                )
                for one in answer.curves
            ],
            headrooms=[
                LayerHeadroom(
                    name=name_of(row), k=row.k, first=(row.layer, row.resource) == leading
                )
                for row in answer.layers
            ],
            breaks={} if first is None or first.k is None else {first.layer: first.k},
            waits=_looked_at(_points(answer, Queue.name)),
            wait_limit_s=limits.wait_s_p90,
            efficiency=_points(answer, StepEfficiency.name),
            efficiency_least=limits.step_efficiency_least,
            limits=_limits(answer),
            unknown=needs_lines(answer),
            assumptions=answer.assumptions,
        )
    )


def name_of(row: Row) -> str:
    """Return a layer with the resource that it is about."""
    return f"{row.layer} ({row.resource})" if row.resource else row.layer


def _tiles(answer: GrowAnswer, upto: str) -> list[tuple[str, str]]:
    first = answer.first
    tiles = [
        ("nothing" if first is None else first.layer, f"breaks first along {answer.axis}"),
        (f">{upto}" if first is None else factor(first.k), "the fleet stands today"),
    ]
    if not answer.rows:
        return tiles
    bill = bill_of(answer.rows)
    stands = f">{upto}" if answer.ok_up_to is None else factor(answer.ok_up_to)
    tiles.append((stands, "it stands with all reliefs"))
    known = bill.unpriced < bill.reliefs or not bill.reliefs
    more = f", and {bill.unpriced} without a price" if bill.unpriced and known else ""
    tiles.append(
        (f"${bill.usd_per_month:,.0f}" if known else "not known", f"a month for reliefs{more}")
    )
    return tiles


def _bottleneck_row(row: Row) -> list[str]:
    relief = row.sentence if row.relief is None else row.relief.sentence
    return [f"{factor(row.k)} {interval(row)}", name_of(row), row.symptom, row.grade or "", relief]


def _orders(answer: GrowAnswer, upto: str) -> list[list[str]]:
    """Return one line for each relief, with what all so far come to."""
    lines: list[list[str]] = []
    for place, row in enumerate(answer.rows):
        if row.relief is None:
            continue
        so_far = bill_of(answer.rows[: place + 1])
        then = f">{upto}" if row.k_after is None else factor(row.k_after)
        lines.append(
            [row.relief.sentence, row.layer, _cost(row), _sum(so_far), order_day(row), then]
        )
    return lines


def _cost(row: Row) -> str:
    return "not known" if row.usd is None else "free" if row.usd == 0 else f"{row.usd:,.0f}"


def _sum(bill: Bill) -> str:
    if bill.unpriced and bill.unpriced == bill.reliefs:
        return "not known"
    return f"{bill.usd_per_month:,.0f}" + (" and more" if bill.unpriced else "")


def _stage(one: Stage) -> list[str]:
    gets_there = f"no: {one.blocked_by} has no relief" if one.blocked_by else "yes"
    return [
        f"{one.factor:g}x",
        str(one.bill.reliefs),
        _sum(one.bill),
        str(one.bill.unpriced),
        one.order_first or "-",
        gets_there,
    ]


def _layer(row: Row) -> list[str]:
    k = factor(row.k) if row.status == "breaks" else row.status
    return [k, interval(row), name_of(row), row.symptom, row.grade or ""]


def _top(answer: GrowAnswer, upto: str) -> str:
    if not answer.rows:
        return f"{answer.sentence}."
    bill = bill_of(answer.rows)
    if not bill.reliefs and answer.ok_up_to is not None:
        return f"The fleet stands {factor(answer.ok_up_to)}, and no relief is known."
    stands = (
        f"{upto}, by what could be judged" if answer.ok_up_to is None else factor(answer.ok_up_to)
    )
    return f"With all of these the fleet stands {stands}: {bill.sentence}."


def _points(answer: GrowAnswer, layer: str) -> tuple[Point, ...]:
    """Return the fullest curve of a layer; none where it was not judged."""
    curves = [one.points for one in answer.curves if one.layer == layer and one.points]
    return max(curves, key=lambda points: points[-1][1], default=())


def _looked_at(points: tuple[Point, ...]) -> tuple[Point, ...]:
    """Return points up to where runs were made: beyond, the last figure merely goes on."""
    last = len(points)
    while last > 1 and points[last - 2][1] == points[-1][1] > 0:
        last -= 1
    return points[:last]


def _limits(answer: GrowAnswer) -> list[tuple[str, str]]:
    limits = answer.limits
    stated = [
        ("dollars a month", limits.usd_per_month_most, "{:,.0f}"),
        ("kW of all sites", limits.kw_most, "{:,.0f}"),
    ]
    return [
        ("wait, P90", f"{limits.wait_s_p90 / 3_600:g} h"),
        ("step efficiency, least", f"{limits.step_efficiency_least:.0%}"),
        ("time that saves and failures take", f"{limits.lost_share_most:.0%}"),
        ("stall on shared layers", f"{limits.stall_share_most:.0%}"),
        ("GPUs idle where no waiting job fits", f"{limits.stranded_share_most:.0%}"),
        ("evenness among teams, least", f"{limits.fairness_least:g}"),
        ("capacity to stay free", f"{limits.headroom_least:.0%}"),
        *((name, form.format(value)) for name, value, form in stated if value is not None),
    ]
