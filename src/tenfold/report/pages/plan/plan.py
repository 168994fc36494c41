"""A plan as a page to hand on: what was asked, what is recommended, why, and at what cost."""

from collections.abc import Mapping, Sequence

import numpy as np

from tenfold.decide.layout.outcome import Outcome
from tenfold.decide.layout.request import PlanningTarget, TrainRequest
from tenfold.decide.layout.scaling import ScalingCurve
from tenfold.decide.layout.serve import ServeAnswer, ServePlan, ServeRequest
from tenfold.decide.layout.train import TrainAnswer
from tenfold.model.reason import Reason
from tenfold.physics.training.memory import USABLE_SHARE
from tenfold.report.charts.axes import si, usd
from tenfold.report.figures import count, rate_bytes, share
from tenfold.report.pages.html import (
    Section,
    charts_html,
    list_html,
    page,
    pairs_html,
    prose_html,
    table_html,
    tiles_html,
)
from tenfold.report.pages.plan.figures import (
    front_figure,
    memory_figure,
    scaling_figures,
    serve_cost_figure,
    serve_front_figure,
    sizes_figure,
    time_figure,
)
from tenfold.report.pages.plan.tables import LAYOUT_KEY, candidates_table, outcomes_table
from tenfold.report.pages.plan.words import (
    layout_code,
    layout_pairs,
    part_name,
    seconds,
    serve_inputs,
    serve_layout,
    serve_sentence,
    train_inputs,
    train_sentence,
    train_tiles,
)
from tenfold.report.reasons.render import render

FOOT = "Estimates of Tenfold from published and measured runs; a plan is not a quote."
Pairs = Sequence[tuple[str, str]]


def train_report(
    answer: TrainAnswer,
    request: TrainRequest,
    target: PlanningTarget,
    *,
    memory_bytes: Mapping[str, float] | None = None,
    assumptions: Pairs = (),
    more: Sequence[Section] = (),
) -> str:
    """Return the page of a training plan.

    `memory_bytes` are the parts of the best plan (`plan_figures.memory_parts`); `assumptions`
    are further rows, such as the basis of the price and the failure preset, and `more` further
    sections.
    """
    title = f"Training plan: {request.job.model}"
    if not answer.plans:
        return page(title, [_why(answer.why)], lead="No plan was found.", foot=FOOT)
    best, priced = answer.plans[0], target.usd_per_gpu_hour > 0
    sections = [
        Section("What was asked", pairs_html(train_inputs(request, target))),
        Section("The recommended plan", pairs_html([*layout_pairs(best.plan), *_expected(best)])),
        _why(answer.why),
        _scaling(answer.curve, best),
        _time(answer.curve, best),
        _memory(best, target, memory_bytes),
        _choices(answer.front, best, priced=priced),
        _plans(answer, priced=priced),
        *more,
        Section("What was assumed", pairs_html([*_assumed(target, best), *assumptions])),
    ]
    return page(
        title,
        [one for one in sections if one.body_html],
        lead=train_sentence(request, best, priced=priced),
        top_html=tiles_html(train_tiles(best, priced=priced)),
        foot=FOOT,
    )


def _expected(best: Outcome) -> list[tuple[str, str]]:
    return [
        ("Step", f"{seconds(best.step_s)}; most of it goes to {part_name(best.bottleneck)}"),
        (
            "Throughput",
            f"{best.tokens_per_s_per_gpu:,.0f} tokens/s and {best.model_tflops_per_gpu:,.0f} "
            f"TFLOP/s a GPU, {share(best.mfu)} of its peak",
        ),
        (
            "Failures",
            f"{best.failures_per_day:.2g} a day expected; with a checkpoint every "
            f"{seconds(best.checkpoint_interval_s)}, {share(best.effective_share)} of the time "
            "is spent training",
        ),
    ]


def _why(reasons: Sequence[Reason]) -> Section:
    return Section("Why", list_html([_sentence(render(reason)) for reason in reasons]))


def _sentence(text: str) -> str:
    """Return a reason as a sentence that stands alone."""
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith('.') else '.'}"


def _scaling(curve: ScalingCurve, best: Outcome) -> Section:
    rows = [
        (
            point.gpus,
            seconds(point.step_s),
            si(point.tokens_per_s),
            share(point.efficiency),
            layout_code(point.plan),
        )
        for point in curve.points
    ]
    sizes = [point.gpus for point in curve.points]
    chosen = sizes.index(best.plan.gpus) if best.plan.gpus in sizes else None
    table = table_html(("GPUs", "step", "tokens/s", "efficiency", "best layout"), rows, best=chosen)
    charts = charts_html(*scaling_figures(curve, best.plan.gpus))
    return Section(
        "How it scales", prose_html(_knee_words(curve)) + charts + table + prose_html(LAYOUT_KEY)
    )


def _knee_words(curve: ScalingCurve) -> str:
    if curve.knee is None:
        return "No size was found at which the job fits."
    largest = curve.points[-1].gpus
    knee = (
        f"Up to {count(curve.knee, 'GPU')}, the largest size tried, each step up still pays."
        if curve.knee == largest
        else f"Up to {count(curve.knee, 'GPU')} each step up still pays; beyond that, added GPUs "
        "return less than they should."
    )
    if curve.slower_from is None:
        return knee
    return f"{knee} At {count(curve.slower_from, 'GPU')} the job becomes slower than with fewer."


def _time(curve: ScalingCurve, best: Outcome) -> Section:
    figures = [time_figure(best)]
    if len(curve.points) > 1:
        figures.append(sizes_figure(curve, best.plan.gpus))
    return Section("Where the time goes", "".join(charts_html(figure) for figure in figures))


def _memory(
    best: Outcome, target: PlanningTarget, memory_bytes: Mapping[str, float] | None
) -> Section:
    capacity = float(np.max(np.asarray(target.part.memory_bytes))) * USABLE_SHARE
    if memory_bytes is None:
        room = f"{best.memory_gib:.1f} GiB of {capacity / 2**30:.1f} GiB usable"
        return Section("Memory", prose_html(f"The fullest GPU takes {room}."))
    return Section("Memory", charts_html(memory_figure(memory_bytes, capacity)))


def _choices(front: Sequence[Outcome], best: Outcome, *, priced: bool) -> Section:
    if not front:
        return Section("Other choices", "")
    said = prose_html(
        "Each of these is the best at something: time, money, GPUs, or how seldom it fails."
    )
    chart = charts_html(front_figure(front, best)) if priced else ""
    ordered = sorted(front, key=lambda one: (one.plan.gpus, one.step_s))
    marked = next((place for place, one in enumerate(ordered) if one.plan == best.plan), None)
    return Section("Other choices", said + chart + outcomes_table(ordered, marked, priced=priced))


def _plans(answer: TrainAnswer, *, priced: bool) -> Section:
    said = prose_html(
        f"The best at the chosen size; {answer.searched:,} layouts were tried over all sizes."
    )
    return Section("The best layouts", said + outcomes_table(answer.plans, 0, priced=priced))


def _assumed(target: PlanningTarget, best: Outcome) -> list[tuple[str, str]]:
    price = target.usd_per_gpu_hour
    per_day = float(np.max(np.asarray(target.reliability.failures_per_node_day)))
    restart = float(np.max(np.asarray(target.reliability.restart_s)))
    notice = float(np.max(np.asarray(target.reliability.detection_s)))
    return [
        ("Software", f"`{target.stack}`" if target.stack else "the usual stack"),
        ("Price", f"${price:,.2f} a GPU-hour" if price > 0 else "no price is known"),
        (
            "Network",
            f"{best.plan.nic_gbps_per_gpu:,.0f} Gbit/s a GPU, "
            f"{target.scaleup_gpus} GPUs in a scale-up domain",
        ),
        (
            "Failures",
            f"{per_day * 1000:.3g} a thousand node-days; {seconds(notice)} to notice, "
            f"{seconds(restart)} to restart",
        ),
        ("Checkpoints", f"written at {rate_bytes(target.checkpoint_bytes_per_s)} in all"),
    ]


def serve_report(
    answer: ServeAnswer,
    request: ServeRequest,
    *,
    assumptions: Pairs = (),
    more: Sequence[Section] = (),
) -> str:
    """Return the page of a serving plan; `assumptions` are rows on top of the engine."""
    title = f"Serving plan: {request.service.model}"
    if not answer.plans:
        return page(title, [_why(answer.why)], lead="No plan was found.", foot=FOOT)
    best = answer.plans[0]
    priced = best.usd_per_hour > 0
    said = prose_html(f"The cheapest that meet the objectives, of {answer.searched:,} candidates.")
    figures = [serve_cost_figure(answer.plans, priced=priced)]
    figures += (
        [serve_front_figure(answer.plans, request, priced=priced)] if len(answer.plans) > 1 else []
    )
    charts = "".join(charts_html(figure) for figure in figures)
    sections = [
        Section("What was asked", pairs_html(serve_inputs(request))),
        Section("The recommended plan", pairs_html(_serve_pairs(best, request, priced=priced))),
        _why(answer.why),
        Section("Candidates", said + charts + candidates_table(answer.plans, priced=priced)),
        *more,
        Section("What was assumed", pairs_html([("Engine", f"`{best.engine}`"), *assumptions])),
    ]
    return page(
        title,
        [one for one in sections if one.body_html],
        lead=serve_sentence(request, best, priced=priced),
        top_html=tiles_html(_serve_tiles(best, priced=priced)),
        foot=FOOT,
    )


def _serve_pairs(best: ServePlan, request: ServeRequest, *, priced: bool) -> list[tuple[str, str]]:
    cost = f"{usd(best.usd_per_hour)} an hour, {usd(best.usd_per_million_tokens)} a million tokens"
    return [
        ("Replica", serve_layout(best)),
        ("Replicas", f"{best.replicas:,} in pool `{best.pool}`, {count(best.gpus, 'GPU')} in all"),
        (
            "Load",
            f"each carries up to {best.qps_per_replica_max:.3g} requests a second within the "
            f"objectives; {best.concurrent:,.0f} requests run at once",
        ),
        (
            "First token",
            f"after {seconds(best.ttft_s)}, of {seconds(request.service.ttft_s)} allowed",
        ),
        (
            "Each further token",
            f"{seconds(best.tpot_s)}, of {seconds(request.service.tpot_s)} allowed",
        ),
        ("Memory", f"{best.memory_gib:.1f} GiB a GPU"),
        *([("Cost", cost)] if priced else []),
    ]


def _serve_tiles(best: ServePlan, *, priced: bool) -> list[tuple[str, str]]:
    return [
        (f"{best.replicas:,}", f"replicas of {count(best.gpus_per_replica, 'GPU')}"),
        (f"{best.gpus:,}", f"GPUs ({best.accelerator})"),
        (seconds(best.ttft_s), "to the first token"),
        (seconds(best.tpot_s), "a further token"),
        *([(usd(best.usd_per_million_tokens), "a million output tokens")] if priced else []),
        *([(usd(best.usd_per_hour), "an hour")] if priced else []),
    ]
