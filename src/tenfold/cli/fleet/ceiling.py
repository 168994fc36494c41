"""`tenfold fleet ceiling`: the largest job a fleet supports, and which layer limits it."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter, validators

from tenfold.cli.arguments import Facts, Json
from tenfold.cli.output import print_json, show, table
from tenfold.cli.screen import Text
from tenfold.compose.fleet import open_fleet
from tenfold.report.figures import rate_bytes
from tenfold.study.ceiling.ceiling import CeilingAnswer, CeilingQuestion, ceiling
from tenfold.study.ceiling.layers import COMPARISONS, GRADE_WORDS, LayerCeiling

POSITIVE = validators.Number(gt=0)


def ceiling_command(
    file: Annotated[Path, Parameter(help="Fleet file")],
    *,
    model: Annotated[
        str | None, Parameter(help="Model to train (default: `model` under `[expects]`)")
    ] = None,
    feed_mb_per_s_per_gpu: Annotated[
        float | None,
        Parameter(help="Read rate per GPU, in MB/s (default: from the model)", validator=POSITIVE),
    ] = None,
    streams_per_gpu: Annotated[
        float | None, Parameter(help="Concurrent reads per GPU (default: 1)", validator=POSITIVE)
    ] = None,
    tier: Annotated[
        str | None, Parameter(help="Storage tier that jobs read from (default: the fastest)")
    ] = None,
    facts: Facts = None,
    as_json: Json = False,
) -> None:
    """Show the largest job that network, storage and power support, and the first bottleneck."""
    question = CeilingQuestion(
        model=model,
        feed_bytes_per_s_per_gpu=_bytes(feed_mb_per_s_per_gpu),
        streams_per_gpu=streams_per_gpu,
        tier=tier,
    )
    answer = ceiling(open_fleet(file, facts), question)
    if as_json:
        print_json(answer)
    else:
        show_ceiling(answer)


def _bytes(mb: float | None) -> float | None:
    return None if mb is None else mb * 1e6


def show_ceiling(answer: CeilingAnswer) -> None:
    """Print the layers, lowest ceiling first, then what else fits."""
    job = f"training {answer.model}" if answer.model else "no model given"
    show(
        Text(
            f"{answer.fleet}: {answer.gpus_today:,} x {answer.accelerator} in "
            f"{', '.join(answer.pools)}; {job}"
        ),
        Text(answer.sentence, style="bold"),
        "",
        table("", ["layer", ">max GPUs", ">headroom", "based on", "why"], _rows(answer)),
        "",
    )
    for line in _also_fits(answer):
        show(line)
    if answer.gpus_expected is not None:
        show(_expected(answer))


def _rows(answer: CeilingAnswer) -> list[list[str]]:
    # Limits first, then where a faster design would pay.
    layers = sorted(answer.layers, key=lambda one: one.layer in COMPARISONS)
    return [[one.title, _gpus(one), _headroom(one), _evidence(one), one.sentence] for one in layers]


def _gpus(one: LayerCeiling) -> str:
    if one.gpus is not None:
        return f"{one.gpus:,}"
    return "no limit" if one.status == "free" else one.status


def _evidence(one: LayerCeiling) -> str:
    return "" if one.evidence is None else GRADE_WORDS[one.evidence]


def _headroom(one: LayerCeiling) -> str:
    if one.headroom is None:
        return ""
    return f"{one.headroom:,.2f}x" if one.headroom < 10 else f"{one.headroom:,.0f}x"


def _also_fits(answer: CeilingAnswer) -> list[str]:
    fits = answer.capacity_summary
    lines: list[str] = []
    if fits.model_trained_largest:
        lines.append(
            "largest model that can be trained: "
            + _with_size(fits.model_trained_largest, fits.model_trained_params_b)
        )
    if fits.model_served_by_node_largest:
        lines.append(
            "largest model that one node can serve: "
            + _with_size(fits.model_served_by_node_largest, fits.model_served_by_node_params_b)
            + f" in {fits.model_served_by_node_precision}"
        )
    if fits.replicas is not None:
        lines.append(
            f"replicas of {answer.model} in bf16: {fits.replicas:,}, {fits.gpus_per_replica} "
            f"{'GPU' if fits.gpus_per_replica == 1 else 'GPUs'} each"
        )
    if fits.data_bytes_per_s is not None:
        need = fits.data_bytes_per_s_needed
        needed = "" if need is None else f"; {rate_bytes(need)} needed"
        lines.append(
            f"read rate for all GPUs: {rate_bytes(fits.data_bytes_per_s)} from tier "
            f"{fits.tier}{needed}"
        )
    return lines


def _with_size(model: str, params_b: float | None) -> str:
    """Return a model with its size, unless its name says it."""
    size = f"{params_b or 0.0:,.4g}B"
    return model if size in model else f"{model} ({size})"


def _expected(answer: CeilingAnswer) -> str:
    short = ", ".join(one.title for one in answer.short_of_expected)
    size = f"planned size of {answer.gpus_expected:,} GPUs"
    return f"{size}: limited by {short}" if short else f"{size}: every layer is large enough"
