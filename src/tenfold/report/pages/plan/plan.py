"""A plan as an HTML report: inputs, recommendation, reasons and cost."""

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

FOOT = "Estimated by Tenfold from published and measured runs. Not a quote."
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

    `memory_bytes` is the memory of the best plan by part (`figures.memory_parts`);
    `assumptions` are extra rows, such as the price basis and the failure preset, and `more`
    extra sections.
    """
    title = f"Training plan: {request.job.model}"
    if not answer.plans:
        return page(title, [_why(answer.why)], lead="No plan found.", foot=FOOT)
    best, priced = answer.plans[0], target.usd_per_gpu_hour > 0
    sections = [
        Section("Request", pairs_html(train_inputs(request, target))),
        Section("Recommended plan", pairs_html([*layout_pairs(best.plan), *_expected(best)])),
        _why(answer.why),
        _scaling(answer.curve, best),
        _time(answer.curve, best),
        _memory(best, target, memory_bytes),
        _choices(answer.front, best, priced=priced),
        _plans(answer, priced=priced),
        *more,
        Section("Assumptions", pairs_html([*_assumed(target, best), *assumptions])),
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
        ("Step", f"{seconds(best.step_s)}; the largest part is {part_name(best.bottleneck)}"),
        (
            "Throughput",
            f"{best.tokens_per_s_per_gpu:,.0f} tokens/s and {best.model_tflops_per_gpu:,.0f} "
            f"TFLOP/s per GPU, {share(best.mfu)} MFU",
        ),
        (
            "Failures",
            f"{best.failures_per_day:.2g} expected per day; with a checkpoint every "
            f"{seconds(best.checkpoint_interval_s)}, {share(best.effective_share)} of the time "
            "goes to training",
        ),
    ]


def _why(reasons: Sequence[Reason]) -> Section:
    return Section("Why", list_html([_sentence(render(reason)) for reason in reasons]))


def _sentence(text: str) -> str:
    """Return a reason as a complete sentence."""
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
        "Scaling", prose_html(_knee_words(curve)) + charts + table + prose_html(LAYOUT_KEY)
    )


def _knee_words(curve: ScalingCurve) -> str:
    if curve.knee is None:
        return "The job does not fit at any size."
    largest = curve.points[-1].gpus
    knee = (
        f"Throughput still scales at {count(curve.knee, 'GPU')}, the largest size tried."
        if curve.knee == largest
        else f"The knee is at {count(curve.knee, 'GPU')}: beyond it, throughput grows much more "
        "slowly than the number of GPUs."
    )
    if curve.slower_from is None:
        return knee
    return f"{knee} From {count(curve.slower_from, 'GPU')}, adding GPUs makes the job slower."


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
        used = f"{best.memory_gib:.1f} GiB of {capacity / 2**30:.1f} GiB usable"
        return Section("Memory", prose_html(f"The fullest GPU uses {used}."))
    return Section("Memory", charts_html(memory_figure(memory_bytes, capacity)))


def _choices(front: Sequence[Outcome], best: Outcome, *, priced: bool) -> Section:
    if not front:
        return Section("Alternatives", "")
    intro = prose_html(
        "Each of these is the best in some respect: time, cost, GPUs or failure rate."
    )
    chart = charts_html(front_figure(front, best)) if priced else ""
    ordered = sorted(front, key=lambda one: (one.plan.gpus, one.step_s))
    marked = next((place for place, one in enumerate(ordered) if one.plan == best.plan), None)
    return Section("Alternatives", intro + chart + outcomes_table(ordered, marked, priced=priced))


def _plans(answer: TrainAnswer, *, priced: bool) -> Section:
    intro = prose_html(
        f"The best layouts at the chosen size; {answer.searched:,} layouts tried over all sizes."
    )
    return Section("Best layouts", intro + outcomes_table(answer.plans, 0, priced=priced))


def _assumed(target: PlanningTarget, best: Outcome) -> list[tuple[str, str]]:
    price = target.usd_per_gpu_hour
    per_day = float(np.max(np.asarray(target.reliability.failures_per_node_day)))
    restart = float(np.max(np.asarray(target.reliability.restart_s)))
    notice = float(np.max(np.asarray(target.reliability.detection_s)))
    return [
        ("Software", f"`{target.stack}`" if target.stack else "default stack"),
        ("Price", f"${price:,.2f} per GPU-hour" if price > 0 else "no price known"),
        (
            "Network",
            f"{best.plan.nic_gbps_per_gpu:,.0f} Gbit/s per GPU, "
            f"scale-up domains of {target.scaleup_gpus} GPUs",
        ),
        (
            "Failures",
            f"{per_day * 1000:.3g} per 1,000 node-days; {seconds(notice)} to detect, "
            f"{seconds(restart)} to restart",
        ),
        ("Checkpoints", f"written at {rate_bytes(target.checkpoint_bytes_per_s)} in total"),
    ]


def serve_report(
    answer: ServeAnswer,
    request: ServeRequest,
    *,
    assumptions: Pairs = (),
    more: Sequence[Section] = (),
) -> str:
    """Return the page of a serving plan; `assumptions` are rows added to the engine."""
    title = f"Serving plan: {request.service.model}"
    if not answer.plans:
        return page(title, [_why(answer.why)], lead="No plan found.", foot=FOOT)
    best = answer.plans[0]
    priced = best.usd_per_hour > 0
    intro = prose_html(
        f"The cheapest of {answer.searched:,} candidates that meet the latency targets."
    )
    figures = [serve_cost_figure(answer.plans, priced=priced)]
    figures += (
        [serve_front_figure(answer.plans, request, priced=priced)] if len(answer.plans) > 1 else []
    )
    charts = "".join(charts_html(figure) for figure in figures)
    sections = [
        Section("Request", pairs_html(serve_inputs(request))),
        Section("Recommended plan", pairs_html(_serve_pairs(best, request, priced=priced))),
        _why(answer.why),
        Section("Candidates", intro + charts + candidates_table(answer.plans, priced=priced)),
        *more,
        Section("Assumptions", pairs_html([("Engine", f"`{best.engine}`"), *assumptions])),
    ]
    return page(
        title,
        [one for one in sections if one.body_html],
        lead=serve_sentence(request, best, priced=priced),
        top_html=tiles_html(_serve_tiles(best, priced=priced)),
        foot=FOOT,
    )


def _serve_pairs(best: ServePlan, request: ServeRequest, *, priced: bool) -> list[tuple[str, str]]:
    cost = f"{usd(best.usd_per_hour)}/h, {usd(best.usd_per_million_tokens)} per million tokens"
    return [
        ("Replica", serve_layout(best)),
        (
            "Replicas",
            f"{best.replicas:,} in pool `{best.pool}`, {best.spare_replicas:,} of them spare, "
            f"{count(best.gpus, 'GPU')} in total",
        ),
        (
            "Load",
            f"up to {best.qps_per_replica_max:.3g} requests/s per replica within the targets; "
            f"{best.concurrent:,.0f} requests in flight, {best.utilisation:.0%} of the capacity "
            "used",
        ),
        (
            "TTFT",
            f"{_tail(best.ttft_s, best.ttft_s_attained, request)}, "
            f"target {seconds(request.service.ttft_s)}",
        ),
        (
            "TPOT",
            f"{_tail(best.tpot_s, best.tpot_s_attained, request)}, "
            f"target {seconds(request.service.tpot_s)}",
        ),
        ("Memory", f"{best.memory_gib:.1f} GiB per GPU"),
        *([("Cost", cost)] if priced else []),
    ]


def _tail(mean_s: float, attained_s: float, request: ServeRequest) -> str:
    share = f"{100 * request.service.attainment:g}%"
    return (
        f"{seconds(mean_s)} on average, within {seconds(attained_s)} for {share} of requests "
        "without the spare replicas"
    )


def _serve_tiles(best: ServePlan, *, priced: bool) -> list[tuple[str, str]]:
    return [
        (
            f"{best.replicas:,}",
            f"{'replica' if best.replicas == 1 else 'replicas'} of "
            f"{count(best.gpus_per_replica, 'GPU')}",
        ),
        (f"{best.gpus:,}", f"{'GPU' if best.gpus == 1 else 'GPUs'} ({best.accelerator})"),
        (seconds(best.ttft_s), "TTFT"),
        (seconds(best.tpot_s), "TPOT"),
        *([(usd(best.usd_per_million_tokens), "per million output tokens")] if priced else []),
        *([(usd(best.usd_per_hour), "per hour")] if priced else []),
    ]
