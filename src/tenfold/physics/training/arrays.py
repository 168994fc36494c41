"""The struct-of-arrays records every formula takes.

A field is one number, or one array over N plans; numpy broadcasting mixes both. A search over
one model passes scalars for the model and arrays for the plan, so per-model work costs nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64] | float
Flags = NDArray[np.bool_] | bool

# Codes, not strings: a plan array is compared a million times.
SHARD_CODES = {"none": 0, "zero1": 1, "zero2": 2, "zero3": 3, "hsdp": 4}
RECOMPUTE_CODES = {"none": 0, "selective": 1, "full": 2}
PRECISION_CODES = {"fp32": 0, "tf32": 1, "fp16": 2, "bf16": 2, "fp8": 3, "fp4": 4}


@dataclass(frozen=True, slots=True)
class Shape:
    """A decoder, reduced to the widths its kernels see.

    `qkv_width` is the output width of one GEMM of the same work, so latent attention (MLA)
    and grouped queries need no branch. `ffn` is per expert; `dense_layers` counts the layers
    with a dense block (all of them when `experts` is 0).
    """

    layers: Values
    hidden: Values
    heads: Values
    qkv_width: Values
    out_width: Values
    kv_width: Values
    qk_dim: Values
    v_dim: Values
    ffn: Values
    gates: Values
    vocab: Values
    experts: Values = 0.0
    topk: Values = 0.0
    shared_ffn: Values = 0.0
    dense_layers: Values = 0.0
    dense_ffn: Values = 0.0
    tied: Values = 0.0
    attention_layers: Values = 0.0
    scan_width: Values = 0.0


@dataclass(frozen=True, slots=True)
class Accelerator:
    """Datasheet and measured ceilings of one part, in plain units (per second, bytes)."""

    peak_fp32: Values
    peak_tf32: Values
    peak_bf16: Values
    peak_fp8: Values
    peak_fp4: Values
    matmul_ceiling: Values
    matmul_ceiling_fp8: Values
    hbm_bytes_s: Values
    memory_bytes: Values
    scaleup_bytes_s: Values
    sm_count: Values
    attention_ceiling: Values
    # Flash efficiency at head size 64 over that at 128: wider tensor cores need wider heads.
    attention_narrow: Values = 0.74
    # 1 where attention runs in kernels that are written for a few head sizes, 0 where a compiler
    # makes one for any.
    fixed_heads: Values = 1.0


@dataclass(frozen=True, slots=True)
class Plans:
    """Configurations to time. Batches count sequences; `nic_bytes_s` is per GPU and direction.

    `recompute_share` is the share of layers with full recompute, where `recompute` is full.
    `gradient_bytes` is 0 where gradients are kept and sent as the stack does by itself.
    """

    seq: Values
    micro_batch: Values
    global_batch: Values
    gpus: Values
    tp: Values
    pp: Values
    dp: Values
    cp: Values
    ep: Values
    virtual_stages: Values
    shard: Values
    recompute: Values
    sequence_parallel: Values
    precision: Values
    scaleup_ranks: Values
    nic_bytes_s: Values
    oversubscription: Values = 1.0
    network_delay_s: Values = 0.0
    recompute_share: Values = 1.0
    gradient_bytes: Values = 0.0


Record = TypeVar("Record", Shape, Accelerator, Plans)


def gather(records: Sequence[Record]) -> Record:
    """Turn records of scalars into one record of arrays."""
    first = records[0]
    names = [field.name for field in fields(first)]
    return type(first)(
        **{name: np.array([getattr(record, name) for record in records], float) for name in names}
    )


def take(record: Any, index: slice | NDArray[Any]) -> Any:
    """Return the rows at `index`; scalar fields stay scalars."""
    names = [field.name for field in fields(record)]
    picked = {name: getattr(record, name) for name in names}
    return type(record)(
        **{
            name: value[index] if isinstance(value, np.ndarray) and value.ndim else value
            for name, value in picked.items()
        }
    )


def decoder(  # noqa: PLR0913 - a model card has that many numbers
    *,
    layers: float,
    hidden: float,
    heads: float,
    ffn: float,
    vocab: float,
    kv_heads: float | None = None,
    head_dim: float | None = None,
    gated: bool = True,
    experts: float = 0,
    topk: float = 0,
    shared_experts: float = 0,
    dense_layers: float = 0,
    dense_ffn: float | None = None,
    tied: bool = False,
    mla: tuple[float, float, float, float, float] | None = None,
    attention_layers: float | None = None,
    shared_ffn: float | None = None,
    scan_width: float = 0,
) -> Shape:
    """Build a shape from the numbers of a model card.

    `mla` is (q_rank, kv_rank, rope_dim, nope_dim, v_dim). `attention_layers` is lower than
    `layers` for hybrids, whose other layers scan in linear time.
    """
    dim = head_dim or hidden / heads
    qkv, out, kv_width, qk_dim, v_dim = _projections(hidden, heads, kv_heads or heads, dim, mla)
    sparse = experts > 1
    return Shape(
        layers=layers,
        hidden=hidden,
        heads=heads,
        qkv_width=qkv,
        out_width=out,
        kv_width=kv_width,
        qk_dim=qk_dim,
        v_dim=v_dim,
        ffn=ffn,
        gates=2.0 if gated else 1.0,
        vocab=vocab,
        experts=experts if sparse else 0.0,
        topk=topk if sparse else 0.0,
        shared_ffn=(shared_experts * ffn if shared_ffn is None else shared_ffn) if sparse else 0.0,
        dense_layers=dense_layers if sparse else layers,
        dense_ffn=(dense_ffn or ffn) if sparse else ffn,
        tied=float(tied),
        attention_layers=layers if attention_layers is None else attention_layers,
        scan_width=scan_width,
    )


def _projections(
    hidden: float,
    heads: float,
    kv_heads: float,
    dim: float,
    mla: tuple[float, float, float, float, float] | None,
) -> tuple[float, float, float, float, float]:
    """Return widths of the joint, output and key-value projections, and both head sizes."""
    if mla is None:
        return (heads + 2 * kv_heads) * dim, heads * dim, 2 * kv_heads * dim, dim, dim
    q_rank, kv_rank, rope, nope, v_dim = mla
    qk_dim = nope + rope
    work = hidden * (q_rank + kv_rank + rope) + q_rank * heads * qk_dim
    qkv = (work + kv_rank * heads * (nope + v_dim)) / hidden
    return qkv, heads * v_dim, heads * (qk_dim + v_dim), qk_dim, v_dim


def parameters(shape: Shape) -> tuple[Values, Values, Values]:
    """Return (dense parameters of all layers, expert parameters, embedding and head)."""
    attention = shape.layers * shape.hidden * (shape.qkv_width + shape.out_width)
    per_width = shape.hidden * (1.0 + shape.gates)
    sparse_layers = shape.layers - shape.dense_layers
    dense = attention + per_width * (
        shape.dense_layers * shape.dense_ffn + sparse_layers * shape.shared_ffn
    )
    dense = dense + 2.0 * shape.layers * shape.hidden + sparse_layers * shape.hidden * shape.experts
    expert = sparse_layers * shape.experts * per_width * shape.ffn
    return dense, expert, (2.0 - shape.tied) * shape.vocab * shape.hidden


def model_flops_per_token(shape: Shape, seq: Values) -> Values:
    """Return forward plus backward FLOPs of one token: causal attention, no recompute."""
    dense, _, _ = parameters(shape)
    sparse_layers = shape.layers - shape.dense_layers
    active = sparse_layers * shape.topk * shape.hidden * (1.0 + shape.gates) * shape.ffn
    weights = dense + active + shape.vocab * shape.hidden
    scores = shape.attention_layers * shape.heads * seq * (shape.qk_dim + shape.v_dim)
    return 6.0 * weights + 3.0 * scores
