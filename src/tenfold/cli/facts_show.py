"""What `tenfold facts list` and `facts show` print."""

from collections.abc import Sequence

import msgspec
from rich.console import Group
from rich.table import Table
from rich.text import Text

from tenfold.cli.output import table
from tenfold.model.facility import FailurePreset, PriceFact
from tenfold.model.fact import Fact
from tenfold.model.hardware import Accelerator, LinkClass, NodeShape
from tenfold.model.shape import ModelPreset, ModelShape
from tenfold.model.storage import TierClass

PROVENANCE = ("name", "source", "date", "evidence", "aliases", "measured", "assumed", "note")
STYLES = {"assumption": "yellow", "measured": "green"}


def listing(facts: Sequence[Fact]) -> Table:
    """Return one line a fact: name, what matters most, evidence, date."""
    rows = [[fact.name, _gist(fact), fact.evidence, fact.date] for fact in facts]
    return table("", ["name", "in short", "evidence", "date"], rows)


def _gist(fact: Fact) -> str:
    match fact:
        case Accelerator():
            peak = f"{fact.training_tflops:,.0f} TFLOP/s"
            per_watt = f", {fact.training_tflops / fact.tdp_w:.2f} per W" if fact.tdp_w else ""
            return f"{peak}, {fact.memory_gib:g} GiB, {fact.memory_tb_per_s:g} TB/s{per_watt}"
        case LinkClass():
            return f"{fact.kind}, {fact.gb_per_s:g} GB/s, {fact.latency_us:g} us"
        case NodeShape():
            parts = f"{fact.gpus} x {fact.accelerator}" if fact.accelerator else "CPU only"
            return f"{parts}, {fact.cpus} CPUs, {fact.memory_gib:,.0f} GiB"
        case TierClass():
            return f"{fact.role}, {fact.read_gb_per_s:g} GB/s, ${fact.usd_per_tb_month:g}/TB-month"
        case FailurePreset():
            return f"{fact.failures_per_1000_node_days:g} per 1,000 node-days"
        case PriceFact():
            return f"${fact.usd_per_gpu_hour:,.2f} per GPU-hour over {fact.offers} offers"
        case ModelPreset():
            return f"{fact.params_b:g} B, {fact.shape.layers} layers of {fact.shape.hidden}"
        case _:
            return ""


def show_fact(fact: Fact) -> Group:
    """Return every figure of a fact with the evidence it rests on."""
    rows: list[list[str | Text]] = []
    for field in fact.__struct_fields__:
        value = getattr(fact, field)
        if field in PROVENANCE or value is None or value in ((), {}, ""):
            continue
        evidence = fact.evidence_of(field)
        rows.append([field, _shown(value), Text(evidence, style=STYLES.get(evidence, ""))])
    lines = [Text(f"{fact.name}"), table("", ["field", "value", "evidence"], rows)]
    lines.append(Text(f"source: {fact.source} ({fact.date})", style="dim"))
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
    """Return a model's shape and what follows from it."""
    rows = [[key, str(value)] for key, value in _parts(shape)]
    rows.append(["parameters", f"{shape.params / 1e9:,.2f} B"])
    rows.append(["active per token", f"{shape.params_active / 1e9:,.2f} B"])
    rows.append(["key-value cache", f"{shape.kv_bytes_per_token:,} bytes per token at 16 bits"])
    return Group(table("", ["field", "value"], rows))
