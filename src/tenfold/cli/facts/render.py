"""What `tenfold facts list` and `facts show` print."""

from collections.abc import Sequence
from functools import singledispatch
from typing import Literal

import msgspec
from msgspec import Struct
from rich.console import Group
from rich.table import Table

from tenfold.cli.output import table
from tenfold.cli.screen import Text
from tenfold.model.facts.fact import Fact
from tenfold.model.facts.profiles import EngineProfile, StackCorrection, StackProfile
from tenfold.model.facts.shape import ModelPreset, ModelShape
from tenfold.model.fleet.facility import (
    CoolingClass,
    EnergyDefaults,
    FailurePreset,
    PriceFact,
    UnitPrice,
)
from tenfold.model.fleet.hardware import Accelerator, LinkClass, NodeShape
from tenfold.model.fleet.storage import Medium, TierClass
from tenfold.model.job.workload import WorkloadMix
from tenfold.report.figures import count

PROVENANCE = (
    "name",
    "source",
    "date",
    "evidence",
    "aliases",
    "measured",
    "assumed",
    "note",
    "changed",
)
STYLES = {"assumption": "yellow", "measured": "green"}


def listing(facts: Sequence[Fact]) -> Table:
    """Return one line per fact: name, summary, evidence, date."""
    rows = [[fact.name, _summary(fact), fact.evidence, fact.date] for fact in facts]
    return table("", ["name", "summary", "evidence", "date"], rows)


SortKey = Literal["flops-per-watt", "flops", "memory", "memory-bandwidth"]


class RankedAccelerator(Struct, frozen=True, kw_only=True):
    """The figures by which accelerators are ranked; dense, without sparsity."""

    name: str
    tflops: float
    tdp_w: float | None
    tflops_per_w: float | None
    memory_gib: float
    memory_tb_per_s: float
    evidence: str


def ranked_accelerators(parts: Sequence[Accelerator], sort: SortKey) -> list[RankedAccelerator]:
    """Return accelerators by one figure, highest first, and those without it last."""
    rows = [
        RankedAccelerator(
            name=part.name,
            tflops=part.training_tflops,
            tdp_w=part.tdp_w,
            tflops_per_w=part.training_tflops / part.tdp_w if part.tdp_w else None,
            memory_gib=part.memory_gib,
            memory_tb_per_s=part.memory_tb_per_s,
            evidence=part.evidence,
        )
        for part in parts
    ]
    keys: dict[SortKey, str] = {
        "flops-per-watt": "tflops_per_w",
        "flops": "tflops",
        "memory": "memory_gib",
        "memory-bandwidth": "memory_tb_per_s",
    }
    return sorted(rows, key=lambda row: (-(getattr(row, keys[sort]) or 0.0), row.name))


def ranking(rows: Sequence[RankedAccelerator]) -> Table:
    """Return ranked accelerators as a table; a figure that is not known is `-`."""
    cells = [
        [
            f"{place:,}",
            row.name,
            f"{row.tflops_per_w:.2f}" if row.tflops_per_w else "-",
            f"{row.tflops:,.0f}",
            f"{row.tdp_w:,.0f}" if row.tdp_w else "-",
            f"{row.memory_gib:g}",
            f"{row.memory_tb_per_s:g}",
            row.evidence,
        ]
        for place, row in enumerate(rows, start=1)
    ]
    columns = [">", "name", ">TFLOP/s per W", ">TFLOP/s", ">W", ">GiB", ">TB/s", "evidence"]
    return table("", columns, cells)


@singledispatch
def _summary(fact: Fact) -> str:
    """Return a one-line summary of a fact, by kind."""
    return fact.note


@_summary.register
def _(fact: Accelerator) -> str:
    per_watt = f", {fact.training_tflops / fact.tdp_w:.2f} TFLOP/s per W" if fact.tdp_w else ""
    return (
        f"{fact.training_tflops:,.0f} TFLOP/s, {fact.memory_gib:g} GiB, "
        f"{fact.memory_tb_per_s:g} TB/s{per_watt}"
    )


@_summary.register
def _(fact: LinkClass) -> str:
    return f"{fact.kind}, {fact.gb_per_s:g} GB/s, {fact.latency_us:g} us"


@_summary.register
def _(fact: NodeShape) -> str:
    parts = f"{fact.gpus} x {fact.accelerator or 'any GPU'}" if fact.gpus else "CPU only"
    return f"{parts}, {fact.cpus} CPUs, {fact.memory_gib:,.0f} GiB"


@_summary.register
def _(fact: Medium) -> str:
    return f"{fact.capacity_tb:g} TB, {fact.read_gb_per_s:g} GB/s"


@_summary.register
def _(fact: TierClass) -> str:
    return f"{fact.role}, {fact.read_gb_per_s:g} GB/s per shelf"


@_summary.register
def _(fact: CoolingClass) -> str:
    return f"{fact.rack_kw_max:g} kW per rack, PUE {fact.pue:g}"


@_summary.register
def _(fact: EnergyDefaults) -> str:
    return f"${fact.usd_per_kwh:.3g}/kWh, {fact.co2_g_per_kwh:g} g CO2/kWh"


@_summary.register
def _(fact: FailurePreset) -> str:
    return f"{fact.failures_per_1000_node_days:g} failures per 1,000 node-days"


@_summary.register
def _(fact: PriceFact) -> str:
    return f"${fact.usd_per_gpu_hour:,.2f} per GPU-hour, {count(fact.offers, 'offer')}"


@_summary.register
def _(fact: UnitPrice) -> str:
    spread = f"${fact.usd:,.0f} ({fact.usd_min:,.0f}-{fact.usd_max:,.0f})"
    return f"{spread} over {fact.months:g} months" if fact.months > 1 else f"{spread} per month"


@_summary.register
def _(fact: ModelPreset) -> str:
    shape = fact.shape
    return f"{_params(fact.params_b)} parameters, {shape.layers} layers, width {shape.hidden}"


def _params(billions: float) -> str:
    return f"{billions:g}B" if billions >= 1 else f"{1_000 * billions:.3g}M"


@_summary.register
def _(fact: StackProfile) -> str:
    return f"{count(fact.rows, 'run')}, {fact.residual:.0%} residual error"


@_summary.register
def _(fact: StackCorrection) -> str:
    return count(len(fact.points), "run")


@_summary.register
def _(fact: EngineProfile) -> str:
    return f"{fact.scope}, {count(fact.rows, 'run')}" if fact.rows else fact.scope


@_summary.register
def _(fact: WorkloadMix) -> str:
    whole = sum(size.part for size in fact.sizes)
    mean = sum(size.part * size.gpus for size in fact.sizes) / (whole or 1.0)
    return f"{count(len(fact.sizes), 'job size')}, mean {mean:.2g} {'GPU' if mean == 1 else 'GPUs'}"


def show_fact(fact: Fact) -> Group:
    """Return every figure of a fact with its evidence."""
    rows: list[list[str | Text]] = []
    for field in fact.__struct_fields__:
        value = getattr(fact, field)
        if field in PROVENANCE or value is None or value in ((), {}, ""):
            continue
        evidence = fact.evidence_of(field)
        rows.append([field, _shown(value), Text(evidence, style=STYLES.get(evidence, ""))])
    lines = [Text(f"{fact.name}"), table("", ["field", "value", "evidence"], rows)]
    lines.append(Text(f"source: {fact.source} ({fact.date})", style="dim"))
    sources = {f"{one.source} ({one.date})": None for one in fact.changed.values()}
    for provenance in sources:
        fields = [
            key for key, one in fact.changed.items() if f"{one.source} ({one.date})" == provenance
        ]
        lines.append(Text(f"source of {', '.join(fields)}: {provenance}", style="dim"))
    if fact.note:
        lines.append(Text(f"note: {fact.note}", style="dim"))
    if fact.aliases:
        lines.append(Text(f"also called: {', '.join(fact.aliases)}", style="dim"))
    return Group(*lines)


def _shown(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,g}"
    if isinstance(value, ModelShape):
        return ", ".join(f"{key} {part}" for key, part in _parts(value))
    if isinstance(value, tuple | dict):
        return msgspec.json.encode(value).decode()
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _parts(shape: ModelShape) -> list[tuple[str, object]]:
    return [
        (field, getattr(shape, field))
        for field in shape.__struct_fields__
        if getattr(shape, field) not in (None, False, 0)
    ]


def show_shape(shape: ModelShape) -> Group:
    """Return a model's shape and derived figures."""
    rows = [[key, str(value)] for key, value in _parts(shape)]
    rows.append(["parameters", f"{shape.params / 1e9:,.2f}B"])
    rows.append(["active per token", f"{shape.params_active / 1e9:,.2f}B"])
    rows.append(["KV cache", f"{shape.kv_bytes_per_token:,} bytes per token at 16 bits"])
    return Group(table("", ["field", "value"], rows))
