"""The page that `tenfold grow --html` writes: what is printed, with charts beside it."""

from tenfold.cli.grow_show import factor
from tenfold.report.charts import Point
from tenfold.report.grow_charts import LayerCurve, Reach
from tenfold.report.grow_report import GrowPage, grow_report
from tenfold.study.grow.answer import GrowAnswer, Row
from tenfold.study.grow.question import GrowQuestion

LADDER = ["breaks at", "interval", "layer", "resource", "seen then", "evidence", "relief"]
BOUGHT = ["$/month", "order by", "stands then"]
LAYERS = ["breaks at", "interval", "layer", "resource", "seen then", "evidence"]


def grow_page(answer: GrowAnswer, question: GrowQuestion) -> str:
    """Return the page of an answer."""
    first, upto, limits = answer.first, f"{question.most:g}x", answer.limits
    names = [f"{row.layer} ({row.resource})" for row in answer.layers]
    leading = None if first is None else (first.layer, first.resource)
    return grow_report(
        GrowPage(
            title=f"What breaks first: {answer.fleet}",
            lead=f"{answer.sentence}; {answer.calibration.sentence}.",
            axis=answer.axis,
            most=question.most,
            tiles=_tiles(answer, upto),
            ladder=([*LADDER, *BOUGHT], [_rung(row, upto) for row in answer.rows]),
            top=_top(answer, upto),
            layers=(LAYERS, [_cells(row) for row in answer.layers]),
            curves=[
                LayerCurve(name=f"{one.layer} ({one.resource})", points=one.points)
                for one in answer.curves
            ],
            reaches=[
                Reach(name=name, k=row.k, first=(row.layer, row.resource) == leading)
                for name, row in zip(names, answer.layers, strict=True)
            ],
            breaks={} if first is None or first.k is None else {first.layer: first.k},
            waits=_points(answer, "queue"),
            wait_limit_s=limits.wait_s_p90,
            efficiency=_points(answer, "step-efficiency"),
            efficiency_least=limits.step_efficiency_least,
            limits=_limits(answer),
            unknown=_unknown(answer),
            assumptions=answer.assumptions,
        )
    )


def _tiles(answer: GrowAnswer, upto: str) -> list[tuple[str, str]]:
    first = answer.first
    stands = f">{upto}" if answer.stands is None else factor(answer.stands)
    tiles = [
        ("nothing" if first is None else first.layer, f"breaks first along {answer.axis}"),
        (f">{upto}" if first is None else factor(first.k), "the fleet stands today"),
    ]
    if answer.rows:
        spent = [row.usd for row in answer.rows if row.relief and row.usd is not None]
        unpriced = sum(row.relief is not None and row.usd is None for row in answer.rows)
        more = f", and {unpriced} without a price" if unpriced and spent else ""
        tiles.append((stands, "it stands with all reliefs"))
        cost = f"${sum(spent):,.0f}" if spent or not unpriced else "not known"
        tiles.append((cost, f"a month for reliefs{more}"))
    return tiles


def _rung(row: Row, upto: str) -> list[str]:
    relief = row.relief
    if relief is None:
        return [*_cells(row), row.sentence, "", "", ""]
    cost = "not known" if row.usd is None else "free" if row.usd == 0 else f"{row.usd:,.0f}"
    then = f">{upto}" if row.k_after is None else factor(row.k_after)
    return [*_cells(row), relief.sentence, cost, row.order_by, then]


def _cells(row: Row) -> list[str]:
    k = factor(row.k) if row.status == "breaks" else row.status
    told = row.low is not None or row.high is not None
    interval = f"{factor(row.low)} to {factor(row.high)}" if told else ""
    return [k, interval, row.layer, row.resource, row.symptom, row.grade or ""]


def _top(answer: GrowAnswer, upto: str) -> str:
    if not answer.rows:
        return f"{answer.sentence}."
    stands = f"{upto}, by what could be judged" if answer.stands is None else factor(answer.stands)
    return f"With all of these the fleet stands {stands}."


def _unknown(answer: GrowAnswer) -> list[str]:
    return [
        f"{one.layer}: needs {one.needs}" if one.needs else f"{one.layer}: not judged"
        for one in answer.unknown
    ]


def _points(answer: GrowAnswer, layer: str) -> tuple[Point, ...]:
    """Return the fullest curve of a layer; none where it was not judged."""
    curves = [one.points for one in answer.curves if one.layer == layer and one.points]
    return max(curves, key=lambda points: points[-1][1], default=())


def _limits(answer: GrowAnswer) -> list[tuple[str, str]]:
    limits = answer.limits
    return [
        ("wait, P90", f"{limits.wait_s_p90 / 3_600:g} h"),
        ("step efficiency, least", f"{limits.step_efficiency_least:.0%}"),
        ("time that saves and failures take", f"{limits.lost_share_most:.0%}"),
        ("stall on shared layers", f"{limits.stall_share_most:.0%}"),
        ("GPUs idle where no waiting job fits", f"{limits.stranded_share_most:.0%}"),
        ("evenness among teams, least", f"{limits.fairness_least:g}"),
        ("capacity to stay free", f"{limits.headroom_least:.0%}"),
    ]
