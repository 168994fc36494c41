"""What `tenfold facts list` and `facts show` print."""

from collections.abc import Callable, Sequence

import msgspec
from rich.console import Group
from rich.table import Table
from rich.text import Text

from tenfold.cli.output import table
from tenfold.model.facility import CoolingClass, EnergyDefaults, FailurePreset, PriceFact
from tenfold.model.fact import Fact
from tenfold.model.hardware import Accelerator, LinkClass, NodeShape
from tenfold.model.shape import ModelPreset, ModelShape
from tenfold.model.storage import Medium, TierClass
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
    """Return one line a fact: name, what matters most, evidence, date."""
    rows = [[fact.name, _gist(fact), fact.evidence, fact.date] for fact in facts]
    return table("", ["name", "in short", "evidence", "date"], rows)


def _gist(fact: Fact) -> str:
    return next((say(fact) for kind, say in _GISTS if isinstance(fact, kind)), "")


def _accelerator(fact: Accelerator) -> str:
    per_watt = f", {fact.training_tflops / fact.tdp_w:.2f} per W" if fact.tdp_w else ""
    return (
        f"{fact.training_tflops:,.0f} TFLOP/s, {fact.memory_gib:g} GiB, "
        f"{fact.memory_tb_per_s:g} TB/s{per_watt}"
    )


def _node(fact: NodeShape) -> str:
    parts = f"{fact.gpus} x {fact.accelerator or 'any GPU'}" if fact.gpus else "CPU only"
    return f"{parts}, {fact.cpus} CPUs, {fact.memory_gib:,.0f} GiB"


_GISTS: tuple[tuple[type[Fact], Callable[..., str]], ...] = (
    (Accelerator, _accelerator),
    (LinkClass, lambda one: f"{one.kind}, {one.gb_per_s:g} GB/s, {one.latency_us:g} us"),
    (NodeShape, _node),
    (Medium, lambda one: f"{one.capacity_tb:g} TB, {one.read_gb_per_s:g} GB/s"),
    (
        TierClass,
        lambda one: f"{one.role}, {one.read_gb_per_s:g} GB/s, ${one.usd_per_tb_month:g}/TB",
    ),
    (CoolingClass, lambda one: f"{one.rack_kw_max:g} kW a rack, PUE {one.pue:g}"),
    (EnergyDefaults, lambda one: f"${one.usd_per_kwh:g} and {one.co2_g_per_kwh:g} g CO2 a kWh"),
    (FailurePreset, lambda one: f"{one.failures_per_1000_node_days:g} per 1,000 node-days"),
    (
        PriceFact,
        lambda one: f"${one.usd_per_gpu_hour:,.2f} per GPU-hour, {count(one.offers, 'offer')}",
    ),
    (
        ModelPreset,
        lambda one: f"{one.params_b:g} B, {one.shape.layers} layers of {one.shape.hidden}",
    ),
)


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
    grounds = {f"{one.source} ({one.date})": None for one in fact.changed.values()}
    for ground in grounds:
        fields = [
            key for key, one in fact.changed.items() if f"{one.source} ({one.date})" == ground
        ]
        lines.append(Text(f"source of {', '.join(fields)}: {ground}", style="dim"))
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
