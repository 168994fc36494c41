"""Estimates of training and serving: the input rows and the output.

A field that is None gets a default, which is listed in the notes of the estimate. The
structs are read from and written to JSON Lines as they are.
"""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from tenfold.model.plan import Precision, Recompute, Shard, TrainPlan

Whole = Annotated[int, Meta(ge=1, le=10**12)]
MaybeWhole = Annotated[int, Meta(ge=0, le=10**12)] | None
"""0 means the same as null: the default is used."""
RowId = str | int | float
GradientPrecision = Literal["fp32", "bf16"]
ServeMode = Literal["max-throughput", "static-batch", "first-token", "online"]


class ShapeRow(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
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


class TrainRow(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One training configuration; `step_s` only where a run was observed."""

    id: RowId
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
    recompute_layers: MaybeWhole = None
    sequence_parallel: bool | None = None
    precision: Precision | None = None
    gradient_precision: GradientPrecision | None = None
    stack: str | None = None
    nic_gbps_per_gpu: Annotated[float, Meta(gt=0, le=100_000)] | None = None
    step_s: Annotated[float, Meta(gt=0)] | None = None
    memory_gib: Annotated[float, Meta(gt=0)] | None = None


class ServeRow(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One serving configuration of a single replica.

    `output_tokens_per_s`, `ttft_s` and `tpot_s` only where a run was observed.
    """

    id: RowId
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
    requests: MaybeWhole = None
    length_cv: Annotated[float, Meta(ge=0, le=10)] | None = None
    output_tokens_per_s: Annotated[float, Meta(gt=0)] | None = None
    ttft_s: Annotated[float, Meta(gt=0)] | None = None
    tpot_s: Annotated[float, Meta(gt=0)] | None = None


TrainConfig = TrainRow | TrainPlan
"""The input of a step estimate: a partial configuration, or a complete plan."""


class TrainEstimate(Struct, frozen=True, kw_only=True):
    """The estimate of a training step; the interval holds in 80% of cases."""

    id: RowId
    notes: tuple[str, ...]
    step_s: float
    interval_s: tuple[float, float]
    tokens_per_s_per_gpu: float
    model_tflops_per_gpu: float
    mfu: float
    memory_gib: float
    fits: bool
    bottleneck: str
    breakdown_s: dict[str, float]


class ServeEstimate(Struct, frozen=True, kw_only=True):
    """The estimate of one serving replica; the interval holds in 80% of cases."""

    id: RowId
    notes: tuple[str, ...]
    output_tokens_per_s: float
    interval_tokens_per_s: tuple[float, float]
    ttft_s: float | None
    """None if the replica is overloaded and the queue grows without bound."""
    tpot_s: float
    batch: int
    gpus: int
    memory_gib: float
    fits: bool
    under_load: "LoadEstimate | None" = None
    """None in modes other than `online`."""


class LoadEstimate(Struct, frozen=True, kw_only=True):
    """How one replica takes a load of requests. What grows without bound is None."""

    offered_qps: float | None
    """None if all requests are sent at once."""
    served_qps: float
    capacity_qps: float
    utilisation: float | None
    overloaded: bool
    in_system: float | None
    queued: float | None
    ttft_s_p50: float | None
    ttft_s_p90: float | None
    ttft_s_p99: float | None
    tpot_s_p50: float
    tpot_s_p90: float
    tpot_s_p99: float


class NoEstimate(Struct, frozen=True, kw_only=True):
    """Why a configuration has no estimate."""

    id: RowId
    error: str
