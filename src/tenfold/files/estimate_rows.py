"""The rows that `tenfold estimate` reads: one configuration a line.

A key that is null or left out is not known, and the usual is chosen for it; what was
chosen stands in the notes of the answer.
"""

from typing import Annotated, Literal

from msgspec import Meta

from tenfold.files.fleet_rows import Row

Whole = Annotated[int, Meta(ge=1, le=10**12)]
MaybeWhole = Annotated[int, Meta(ge=0, le=10**12)] | None
"""0 says no more than null does: the usual is chosen."""
Precision = Literal["fp32", "tf32", "fp16", "bf16", "fp8", "fp4"]
Shard = Literal["none", "zero1", "zero2", "zero3"]
Recompute = Literal["none", "selective", "full"]
ServeMode = Literal["max-throughput", "static-batch", "first-token", "online"]


class ShapeRow(Row, frozen=True, kw_only=True):
    """A model by its widths. `ffn` is per expert."""

    layers: Whole
    hidden: Whole
    heads: Whole
    kv_heads: MaybeWhole = None
    ffn: MaybeWhole = None
    gated: bool | None = None
    vocab: MaybeWhole = None
    experts: Annotated[int, Meta(ge=0, le=10**6)] | None = None
    topk: Annotated[int, Meta(ge=0, le=10**6)] | None = None
    head_dim: MaybeWhole = None
    shared_experts: Annotated[int, Meta(ge=0, le=10**6)] | None = None
    dense_layers: Annotated[int, Meta(ge=0, le=10**6)] | None = None
    tied: bool | None = None


class TrainRow(Row, frozen=True, kw_only=True):
    """One training configuration; `step_s` only where a run was observed."""

    id: str | int | float
    model: str | ShapeRow
    accelerator: str
    gpus: Whole
    seq: MaybeWhole = None
    micro_batch: MaybeWhole = None
    global_batch: MaybeWhole = None
    gpus_per_node: MaybeWhole = None
    tp: MaybeWhole = None
    pp: MaybeWhole = None
    dp: MaybeWhole = None
    cp: MaybeWhole = None
    ep: MaybeWhole = None
    virtual_stages: MaybeWhole = None
    shard: Shard | None = None
    recompute: Recompute | None = None
    sequence_parallel: bool | None = None
    precision: Precision | None = None
    stack: str | None = None
    nic_gbps_per_gpu: Annotated[float, Meta(gt=0, le=100_000)] | None = None
    step_s: Annotated[float, Meta(gt=0)] | None = None
    memory_gib: Annotated[float, Meta(gt=0)] | None = None


class ServeRow(Row, frozen=True, kw_only=True):
    """One serving configuration of a single replica.

    `output_tokens_per_s`, `ttft_s` and `tpot_s` only where a run was observed.
    """

    id: str | int | float
    model: str | ShapeRow
    accelerator: str
    tp: MaybeWhole = None
    pp: MaybeWhole = None
    precision: Precision | None = None
    engine: str | None = None
    input_tokens: Whole
    output_tokens: Annotated[int, Meta(ge=0, le=10**9)] | None = None
    mode: ServeMode | None = None
    batch: MaybeWhole = None
    qps: Annotated[float, Meta(gt=0, le=1e9)] | None = None
    output_tokens_per_s: Annotated[float, Meta(gt=0)] | None = None
    ttft_s: Annotated[float, Meta(gt=0)] | None = None
    tpot_s: Annotated[float, Meta(gt=0)] | None = None
