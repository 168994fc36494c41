"""`tenfold fleet ceiling`: how far a design grows, and which layer stops it."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter, validators
from rich.text import Text

from tenfold.cli.output import print_json, show, table
from tenfold.compose.fleet import open_fleet
from tenfold.report.figures import rate_bytes
from tenfold.study.ceiling.ceiling import CeilingAnswer, CeilingQuestion, ceiling
from tenfold.study.ceiling.layers import LayerCeiling

POSITIVE = validators.Number(gt=0)
Facts = Annotated[Path | None, Parameter(help="Folder of your own facts, over the shipped ones.")]
Json = Annotated[bool, Parameter(name="--json", negative="", help="Print JSON.")]


def ceiling_command(
    file: Annotated[Path, Parameter(help="A fleet file.")],
    *,
    model: Annotated[
        str | None, Parameter(help="Model to train, if not the one that the fleet expects.")
    ] = None,
    feed_mb_per_s_per_gpu: Annotated[
        float | None, Parameter(help="Data that one GPU reads, in MB/s.", validator=POSITIVE)
    ] = None,
    streams_per_gpu: Annotated[
        float | None, Parameter(help="Concurrent reads of one GPU.", validator=POSITIVE)
    ] = None,
    tier: Annotated[str | None, Parameter(help="Tier that jobs read from.")] = None,
    facts: Facts = None,
    as_json: Json = False,
) -> None:
    """Show the largest job that each layer of a fleet carries, and which layer binds first."""
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
    """Print the layers as a table, lowest ceiling first, then what else the design carries."""
    job = f"training {answer.model}" if answer.model else "no model named"
    show(
        Text(
            f"{answer.fleet}: {answer.gpus_today:,} x {answer.accelerator} in "
            f"{', '.join(answer.pools)}; {job}"
        ),
        Text(answer.sentence, style="bold"),
        "",
        table("", ["layer", ">GPUs", ">headroom", "evidence", "why"], _rows(answer)),
        "",
    )
    for line in _carried(answer):
        show(line)
    if answer.gpus_expected is not None:
        show(_expected(answer))


def _rows(answer: CeilingAnswer) -> list[list[str]]:
    return [
        [one.layer, _gpus(one), _headroom(one), one.evidence or "", one.sentence]
        for one in answer.layers
    ]


def _gpus(one: LayerCeiling) -> str:
    return one.status if one.gpus is None else f"{one.gpus:,}"


def _headroom(one: LayerCeiling) -> str:
    if one.headroom is None:
        return ""
    return f"{one.headroom:,.2f} x" if one.headroom < 10 else f"{one.headroom:,.0f} x"


def _carried(answer: CeilingAnswer) -> list[str]:
    carried = answer.capacity_summary
    lines: list[str] = []
    if carried.model_trained_largest:
        lines.append(
            f"largest model that trains here: {carried.model_trained_largest} "
            f"({carried.model_trained_params_b:g}B)"
        )
    if carried.model_served_by_node_largest:
        lines.append(
            f"largest model that one node serves: {carried.model_served_by_node_largest} "
            f"({carried.model_served_by_node_params_b:g}B)"
        )
    if carried.replicas is not None:
        lines.append(
            f"replicas of {answer.model}: {carried.replicas:,} of {carried.gpus_per_replica} GPUs"
        )
    if carried.data_bytes_per_s is not None:
        need = carried.data_bytes_per_s_needed
        wanted = "" if need is None else f"; {rate_bytes(need)} needed"
        lines.append(
            f"data for all GPUs at once: {rate_bytes(carried.data_bytes_per_s)} from tier "
            f"{carried.tier}{wanted}"
        )
    return lines


def _expected(answer: CeilingAnswer) -> str:
    short = ", ".join(one.layer for one in answer.short_of_expected)
    wanted = f"{answer.gpus_expected:,} GPUs are expected"
    return (
        f"{wanted}: {short} will bind first" if short else f"{wanted}, and every layer carries them"
    )
