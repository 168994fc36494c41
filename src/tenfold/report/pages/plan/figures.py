"""The charts of a plan: scaling, time and memory breakdowns, and alternatives."""

from collections.abc import Mapping, Sequence

import numpy as np

from tenfold.decide.layout.outcome import Outcome
from tenfold.decide.layout.scaling import ScalePoint, ScalingCurve
from tenfold.decide.layout.serve import ServePlan, ServeRequest
from tenfold.model.units import GIB
from tenfold.physics.training.memory import CONTEXT_BYTES, Memory
from tenfold.report.charts.axes import Axis, Label, percent, plain, si, thousands, unit, usd
from tenfold.report.charts.bars import Bar, Limit, stacked_bars
from tenfold.report.charts.points import Dot, Rule, Series, line_chart, scatter_chart
from tenfold.report.charts.svg import ACCENT, IDEAL, WARN, Card
from tenfold.report.figures import share
from tenfold.report.pages.plan.words import SECONDS_PER_DAY, part_name, seconds, serve_layout

MONEY_TITLE = "dollars per million output tokens"
KNEE = "#b45309"
HALF, WHOLE = 487, 990
LOG_SPAN = 12.0
"""Values that span more than this are easier to read on a log axis."""
PART_COLOURS = {
    "compute": "#2563eb",
    "tensor-parallel comm": "#f59e0b",
    "expert all-to-all": "#b45309",
    "pipeline bubbles": "#ef4444",
    "pipeline sends": "#ec4899",
    "data-parallel comm": "#8b5cf6",
    "optimizer update": "#10b981",
    "launch and step overhead": "#64748b",
    "jitter": "#94a3b8",
}
MEMORY_COLOURS = {
    "weights": "#2563eb",
    "gradients": "#8b5cf6",
    "optimizer states": "#10b981",
    "activations": "#f59e0b",
    "logits": "#ec4899",
    "runtime": "#64748b",
}


def scaling_figures(curve: ScalingCurve, chosen: int) -> list[str]:
    """Return throughput and per-GPU efficiency over GPUs, with the knee and the ideal line."""
    points = curve.points
    if not points:
        return []
    sizes = tuple(float(point.gpus) for point in points)
    gpus = Axis(title="GPUs", log=True, label=thousands, ticks=sizes)
    rules = _rules(curve, chosen)
    rates = Series(
        name="this model",
        colour=ACCENT,
        points=tuple((float(point.gpus), point.tokens_per_s) for point in points),
        hints=tuple(_point_hint(point) for point in points),
    )
    best = max(point.tokens_per_s / point.gpus for point in points)
    ideal = Series(
        name="linear scaling",
        colour=IDEAL,
        points=tuple((size, size * best) for size in sizes),
        dashed=True,
        dots=False,
    )
    efficiency = Series(
        name="efficiency",
        colour=ACCENT,
        points=tuple((float(point.gpus), point.efficiency) for point in points),
        hints=rates.hints,
    )
    rate = Axis(title="tokens/s", log=True, label=si)
    level = Axis(
        title="per GPU, relative to the best size", from_zero=True, most=1.0, label=percent
    )
    return [
        line_chart(Card(title="Throughput", width=HALF), [ideal, rates], gpus, rate, rules),
        line_chart(Card(title="Efficiency", width=HALF), [efficiency], gpus, level, rules),
    ]


def _rules(curve: ScalingCurve, chosen: int) -> list[Rule]:
    """Return the marked sizes; marks at the same size share a label."""
    words: dict[int, list[str]] = {}
    for size, word in (
        (chosen, "chosen"),
        (None if curve.scales_throughout else curve.knee, "knee"),
        (curve.slower_from, "slower"),
    ):
        if size is not None:
            words.setdefault(size, []).append(word)
    return [
        Rule(
            at=float(size),
            label=f"{' and '.join(named)}, {size:,}",
            colour=WARN if "slower" in named else ACCENT if "chosen" in named else KNEE,
        )
        for size, named in words.items()
    ]


def _point_hint(point: ScalePoint) -> str:
    return (
        f"{point.gpus:,} GPUs: {si(point.tokens_per_s)} tokens/s, step {seconds(point.step_s)}, "
        f"efficiency {share(point.efficiency)}"
    )


def time_figure(outcome: Outcome) -> str:
    """Return the time of one step by part."""
    parts = {part_name(part): value for part, value in outcome.breakdown_s.items()}
    card = Card(title="Step time", width=WHOLE)
    bar = Bar(label="recommended", parts=parts, total=seconds(outcome.step_s))
    return stacked_bars(card, [bar], Axis(title="", label=seconds), colours=PART_COLOURS)


def sizes_figure(curve: ScalingCurve, chosen: int) -> str:
    """Return the time of one step by part, for each number of GPUs."""
    card = Card(title="Step time by number of GPUs", width=WHOLE)
    bars = [
        Bar(
            label=f"{point.gpus:,} GPUs",
            parts={
                part_name(part): value / point.step_s for part, value in point.breakdown_s.items()
            },
            total=seconds(point.step_s),
            bold=point.gpus == chosen,
        )
        for point in curve.points
    ]
    axis = Axis(title="share of a step", label=share, most=1.0)
    return stacked_bars(card, bars, axis, colours=PART_COLOURS)


def memory_parts(memory: Memory, place: int = 0) -> dict[str, float]:
    """Return the bytes of one plan by part; they add up to its peak.

    Gradient copies reuse memory that activations have freed, so the parts of the estimate
    overlap; the overlap is subtracted from the gradients.
    """

    def one(values: object) -> float:
        numbers = np.atleast_1d(np.asarray(values, float))
        return float(numbers[min(place, len(numbers) - 1)])

    parts = {
        "weights": one(memory.weights_bytes),
        "gradients": 0.0,
        "optimizer states": one(memory.optimizer_bytes),
        "activations": one(memory.activations_bytes),
        "logits": one(memory.logits_bytes),
        "runtime": CONTEXT_BYTES,
    }
    parts["gradients"] = max(0.0, one(memory.peak_bytes) - sum(parts.values()))
    return parts


def memory_figure(parts_bytes: Mapping[str, float], capacity_bytes: float) -> str:
    """Return the memory of the fullest GPU by part, with its usable capacity."""
    parts = {name: value / GIB for name, value in parts_bytes.items()}
    whole = sum(parts.values())
    bar = Bar(label="fullest GPU", parts=parts, total=f"{whole:.1f} GiB")
    capacity = capacity_bytes / GIB
    return stacked_bars(
        Card(title="Memory on the fullest GPU", width=WHOLE),
        [bar],
        Axis(title="GiB", label=_gib),
        Limit(at=capacity, label=f"usable {capacity:.1f} GiB"),
        MEMORY_COLOURS,
    )


def _gib(value: float) -> str:
    return f"{value:.3g}"


def front_figure(front: Sequence[Outcome], chosen: Outcome) -> str:
    """Return time against cost of the Pareto-optimal plans; larger dots use more GPUs."""
    runs = all(one.run is not None for one in front)
    dots = [
        Dot(
            x=one.run.days if runs and one.run else one.step_s / one.effective_share,
            y=one.run.usd if runs and one.run else one.usd_per_step,
            size=float(one.plan.gpus),
            label=f"{one.plan.gpus:,} GPUs",
            hint=_front_hint(one),
            chosen=one.plan == chosen.plan,
        )
        for one in front
    ]
    days = Axis(title="days for the run", label=plain)
    steps = Axis(title="seconds per step, failures included", label=plain)
    money = Axis(title="dollars for the run" if runs else "dollars per step", label=usd)
    return scatter_chart(
        Card(
            title="Pareto-optimal plans",
            subtitle="further left is faster, lower is cheaper; larger dots use more GPUs",
            width=WHOLE,
            height=400,
        ),
        dots,
        _suited(days if runs else steps, [one.x for one in dots]),
        _suited(money, [one.y for one in dots]),
    )


def _front_hint(one: Outcome) -> str:
    cost = usd(one.run.usd) if one.run else f"{usd(one.usd_per_step)} per step"
    cost = cost if one.usd_per_step else "no price known"
    span = seconds(one.run.days * SECONDS_PER_DAY if one.run else one.step_s)
    return f"{one.plan.gpus:,} GPUs: {span}, {cost}"


def _suited(axis: Axis, values: Sequence[float]) -> Axis:
    """Return the axis, on a log scale if the values span a wide range."""
    good = [value for value in values if value > 0]
    wide = len(good) == len(values) and len(good) > 1 and max(good) / min(good) > LOG_SPAN
    return Axis(title=axis.title, label=axis.label, log=wide)


def serve_cost_figure(plans: Sequence[ServePlan], *, priced: bool) -> str:
    """Return the cost of each candidate, or its GPUs if no price is known."""
    bars = [
        Bar(
            label=f"{plan.replicas} x ({serve_layout(plan)})",
            parts={"cost": plan.usd_per_million_tokens if priced else float(plan.gpus)},
            total=usd(plan.usd_per_million_tokens) if priced else f"{plan.gpus:,}",
            bold=place == 0,
        )
        for place, plan in enumerate(plans)
    ]
    title = MONEY_TITLE.capitalize() if priced else "GPUs needed"
    label: Label = usd if priced else thousands
    card = Card(title=title, width=WHOLE)
    return stacked_bars(card, bars, Axis(title="", label=label), colours={"cost": ACCENT})


def serve_front_figure(plans: Sequence[ServePlan], request: ServeRequest, *, priced: bool) -> str:
    """Return TPOT against cost, or against GPUs if no price is known."""
    dots = [
        Dot(
            x=plan.tpot_s * 1000,
            y=plan.usd_per_million_tokens if priced else float(plan.gpus),
            size=float(plan.gpus),
            label=f"{plan.gpus_per_replica} x {plan.accelerator}",
            hint=f"{serve_layout(plan)}: TPOT {seconds(plan.tpot_s)}, {plan.gpus:,} GPUs",
            chosen=place == 0,
        )
        for place, plan in enumerate(plans)
    ]
    return scatter_chart(
        Card(
            title="TPOT against " + ("cost" if priced else "GPUs"),
            subtitle=f"TPOT target {seconds(request.service.tpot_s)}; larger dots use more GPUs",
            width=WHOLE,
            height=380,
        ),
        dots,
        Axis(title="TPOT", label=unit("ms")),
        Axis(title=MONEY_TITLE if priced else "GPUs", label=usd if priced else thousands),
    )
