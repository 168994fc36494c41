"""The text of a plan's HTML report: inputs, recommendation and figures."""

from math import floor, log10

from tenfold.decide.layout.outcome import Outcome
from tenfold.decide.layout.request import PlanningTarget, TrainRequest
from tenfold.decide.layout.serve import ServePlan, ServeRequest
from tenfold.model.plan import TrainPlan
from tenfold.report.charts.axes import short, si, usd
from tenfold.report.figures import count, share

SECONDS_PER_DAY = 86_400.0
PART_NAMES = {
    "compute": "compute",
    "tp": "tensor-parallel comm",
    "moe": "expert all-to-all",
    "bubble": "pipeline bubbles",
    "p2p": "pipeline sends",
    "dp": "data-parallel comm",
    "optimizer": "optimizer update",
    "other": "launch and step overhead",
    "jitter": "jitter",
}
RECOMPUTE_WORDS = {"none": "no", "selective": "selective", "full": "full"}
SHARD_WORDS = {
    "none": "nothing sharded",
    "zero1": "optimizer states sharded (ZeRO 1)",
    "zero2": "optimizer states and gradients sharded (ZeRO 2)",
    "zero3": "optimizer states, gradients and weights sharded (ZeRO 3)",
}
Pairs = list[tuple[str, str]]


def part_name(part: str) -> str:
    """Return the display name of a part of a step."""
    short = part.removesuffix("_s")
    return PART_NAMES.get(short, short.replace("_", " "))


def seconds(value: float) -> str:
    """Return a duration in a readable unit."""
    if value == 0:
        return "0 s"
    if value < 1:
        return f"{value * 1000:.3g} ms"
    if value < 120:
        return f"{_rounded(value)} s"
    if value < 2 * 3600:
        return f"{_rounded(value / 60)} min"
    if value < 2 * SECONDS_PER_DAY:
        return f"{_rounded(value / 3600)} h"
    return f"{_rounded(value / SECONDS_PER_DAY)} days"


def _rounded(value: float, figures: int = 3) -> str:
    """Return a number with three significant figures, without an exponent."""
    places = max(0, figures - 1 - floor(log10(value))) if value > 0 else 0
    whole = f"{value:,.{places}f}"
    return whole.rstrip("0").rstrip(".") if "." in whole else whole


def layout_words(plan: TrainPlan) -> str:
    """Return the degrees of a layout that are not one: `tensor 8 x pipeline 4 x data 16`."""
    degrees = (
        ("tensor", plan.tp),
        ("pipeline", plan.pp),
        ("context", plan.cp),
        ("data", plan.dp),
    )
    named = " x ".join(f"{name} {degree}" for name, degree in degrees if degree > 1)
    experts = f", experts over {plan.ep}" if plan.ep > 1 else ""
    return f"{named or 'one GPU, no parallelism'}{experts}"


def layout_code(plan: TrainPlan) -> str:
    """Return a layout in short form: `tp 4, pp 8 (v 10), dp 8`."""
    stages = f"{plan.pp} (v {plan.virtual_stages})" if plan.virtual_stages > 1 else str(plan.pp)
    degrees = (
        ("tp", plan.tp, str(plan.tp)),
        ("pp", plan.pp, stages),
        ("cp", plan.cp, str(plan.cp)),
        ("dp", plan.dp, str(plan.dp)),
        ("ep", plan.ep, str(plan.ep)),
    )
    return ", ".join(f"{name} {text}" for name, degree, text in degrees if degree > 1) or "dp 1"


def layout_pairs(plan: TrainPlan) -> Pairs:
    """Return a layout as rows, one for each setting."""
    interleaved = f", {plan.virtual_stages} virtual stages each" if plan.virtual_stages > 1 else ""
    rows = [
        ("Accelerators", f"{count(plan.gpus, 'GPU')} ({plan.accelerator}) on {_nodes(plan)}"),
        ("Layout", layout_words(plan)),
        ("Stages", f"{count(plan.pp, 'pipeline stage')}{interleaved}"),
        (
            "Batch",
            f"{plan.global_batch:,} sequences of {plan.seq:,} tokens per step: "
            f"micro-batches of {plan.micro_batch}, {plan.micro_batches:,} per rank",
        ),
        (
            "Memory savings",
            f"{SHARD_WORDS[plan.shard]}; {RECOMPUTE_WORDS[plan.recompute]} recompute"
            + (f" of {_some_layers(plan)}" if plan.recompute_layers else ""),
        ),
        ("Precision", plan.precision),
    ]
    return rows


def recompute_text(plan: TrainPlan) -> str:
    """Return the kind of recompute, with the layers of a stage it covers if not all."""
    return (
        f"{plan.recompute_layers}/{plan.stage_layers}" if plan.recompute_layers else plan.recompute
    )


def _some_layers(plan: TrainPlan) -> str:
    where = "each stage" if plan.pp > 1 else "the model"
    return f"{plan.recompute_layers} of {plan.stage_layers} layers of {where}"


def _nodes(plan: TrainPlan) -> str:
    return count(plan.nodes, "node")


def _gpus(number: int) -> str:
    return "GPU" if number == 1 else "GPUs"


def train_sentence(request: TrainRequest, best: Outcome, *, priced: bool) -> str:
    """Return the recommendation as one sentence."""
    plan = best.plan
    start = (
        f"Train {request.job.model} on {count(plan.gpus, 'GPU')} "
        f"({plan.accelerator}, {_nodes(plan)}), layout {layout_words(plan)}: "
    )
    if best.run is None:
        rate = si(best.tokens_per_s_per_gpu * plan.gpus)
        cost = f" for {usd(best.usd_per_million_tokens)} per million tokens" if priced else ""
        return f"{start}a step takes {seconds(best.step_s)}, {rate} tokens/s{cost}."
    cost = f" and cost {usd(best.run.usd)}" if priced else ""
    span = seconds(best.run.days * SECONDS_PER_DAY)
    return (
        f"{start}{short(best.run.tokens)} tokens take {span}{cost}, "
        "failures and checkpoints included."
    )


def train_inputs(request: TrainRequest, target: PlanningTarget) -> Pairs:
    """Return the inputs that were given."""
    limits = (
        ("Length", f"{short(request.job.tokens)} tokens" if request.job.tokens else ""),
        ("Deadline", seconds(request.job.deadline_s) if request.job.deadline_s else ""),
        ("Budget", usd(request.job.budget_usd) if request.job.budget_usd else ""),
        ("GPUs", f"exactly {request.job.gpus:,}" if request.job.gpus else ""),
        ("Fixed layout", _fixed(request)),
    )
    return [
        ("Model", f"{request.job.model}, {short(float(request.shape.params))} parameters"),
        ("Batch", f"{request.global_batch:,} sequences of {request.seq:,} tokens per step"),
        ("Precision", request.job.precision),
        *((name, value) for name, value in limits if value),
        ("Fleet", f"{target.gpus:,} x {target.accelerator}, {target.gpus_per_node} per node"),
    ]


def _fixed(request: TrainRequest) -> str:
    names = ("tp", "pp", "cp", "ep", "micro_batch", "shard", "recompute")
    given = [(name, getattr(request.job, name)) for name in names]
    return ", ".join(f"{name} {value}" for name, value in given if value is not None)


def train_tiles(best: Outcome, *, priced: bool) -> Pairs:
    """Return the headline figures of the report."""
    tiles = [(f"{best.plan.gpus:,}", f"{_gpus(best.plan.gpus)} ({best.plan.accelerator})")]
    if best.run is not None:
        tiles.append((seconds(best.run.days * SECONDS_PER_DAY), "for the whole run"))
        tiles += [(usd(best.run.usd), "for the whole run")] if priced else []
    elif priced:
        tiles.append((usd(best.usd_per_million_tokens), "per million tokens"))
    return [
        *tiles,
        (seconds(best.step_s), "per step"),
        (share(best.mfu), "MFU"),
        (share(best.effective_share), "of the time spent training"),
    ]


def serve_inputs(request: ServeRequest) -> Pairs:
    """Return the inputs of a serving plan."""
    return [
        ("Model", f"{request.service.model}, {short(float(request.shape.params))} parameters"),
        ("Load", f"{_rounded(request.service.qps)} requests/s"),
        (
            "Request",
            f"{request.service.input_tokens:,} tokens in, "
            f"{request.service.output_tokens:,} tokens out",
        ),
        ("TTFT target", seconds(request.service.ttft_s)),
        ("TPOT target", seconds(request.service.tpot_s)),
        ("Precisions", ", ".join(request.service.precisions)),
    ]


def serve_layout(plan: ServePlan) -> str:
    """Return a replica's layout: `4 x h100-sxm, fp8, tensor 4`."""
    degrees = (("tensor", plan.tp), ("pipeline", plan.pp))
    named = " x ".join(f"{name} {degree}" for name, degree in degrees if degree > 1)
    split = f", {named}" if named else ""
    return f"{plan.gpus_per_replica} x {plan.accelerator}, {plan.precision}{split}"


def serve_sentence(request: ServeRequest, best: ServePlan, *, priced: bool) -> str:
    """Return the recommendation as one sentence."""
    cost = (
        f", for {usd(best.usd_per_hour)}/h or "
        f"{usd(best.usd_per_million_tokens)} per million output tokens"
        if priced
        else ""
    )
    return (
        f"Serve {request.service.model} with {count(best.replicas, 'replica')} of "
        f"{serve_layout(best)} in pool `{best.pool}` ({count(best.gpus, 'GPU')}): "
        f"TTFT {seconds(best.ttft_s)}, TPOT {seconds(best.tpot_s)}{cost}."
    )
