"""Exact bytes of the KV cache and of everything that competes with it for memory.

The memory-starved rows (70B in 8 bit on one 80 GB part) are decided here and nowhere else: a 2 GB
mistake in the weights halves the batch. So the weights are counted per tensor kind, replicated KV
heads are counted as often as they are stored, and what the runtime takes is a stated figure.
"""

from dataclasses import dataclass

import numpy as np

from tenfold.physics.arrays import Floats
from tenfold.physics.serving.shapes import (
    Shapes,
    dense_weights,
    embedding_weights,
    routed_weights,
)

_EMBEDDING_BYTES = 2.0


@dataclass(frozen=True, slots=True)
class ReplicaLayout:
    """How one replica is spread: tensor and pipeline ranks, or attention data parallel with
    experts sharded.
    """

    tp: Floats
    pp: Floats
    attention_dp: Floats
    """Attention replicas that share one set of experts; 1 is plain tensor parallel."""

    @property
    def gpus(self) -> Floats:
        """Accelerators of the replica."""
        return self.tp * self.pp * self.attention_dp


@dataclass(frozen=True, slots=True)
class Widths:
    """Bytes per value, by kind of tensor."""

    dense_bytes: Floats
    expert_bytes: Floats
    kv_bytes: Floats


def weights_bytes_per_gpu(shape: Shapes, widths: Widths, layout: ReplicaLayout) -> Floats:
    """Return the weights on the fullest accelerator of a replica."""
    across_experts = layout.tp * layout.attention_dp
    dense = dense_weights(shape) * widths.dense_bytes / (layout.tp * layout.pp)
    routed = routed_weights(shape) * widths.expert_bytes / (across_experts * layout.pp)
    # First and last stage carry one of the two tables each; one stage alone carries both.
    tables = np.where(layout.pp > 1, 0.5, 1.0) * embedding_weights(shape) * _EMBEDDING_BYTES
    return dense + routed + tables / layout.tp


def kv_bytes_per_token(shape: Shapes, widths: Widths, layout: ReplicaLayout) -> Floats:
    """Return what one cached token takes on one accelerator, all of its layers counted in full."""
    heads = np.ceil(shape.kv_heads / layout.tp)
    grouped = 2.0 * heads * shape.head_dim
    # A latent is one vector for all heads: tensor parallel replicates it instead of splitting it.
    values = np.where(shape.mla_rank > 0, shape.mla_rank, grouped)
    return values * widths.kv_bytes * np.ceil(shape.layers / layout.pp)


def kv_bytes_per_sequence(
    shape: Shapes,
    widths: Widths,
    layout: ReplicaLayout,
    tokens: Floats,
    *,
    window_evicts: bool = True,
) -> Floats:
    """Return what a sequence of `tokens` holds on one accelerator, local layers cut at their
    window.
    """
    full = kv_bytes_per_token(shape, widths, layout)
    if not window_evicts:
        return full * tokens
    local = np.where(shape.window > 0, shape.window_share, 0.0)
    kept = np.where(shape.window > 0, np.minimum(tokens, shape.window), tokens)
    return full * ((1.0 - local) * tokens + local * kept)


def activation_bytes(shape: Shapes, layout: ReplicaLayout, tokens_max: Floats) -> Floats:
    """Return the workspace an engine reserves for its largest step of `tokens_max` tokens."""
    visited = np.where(shape.experts > 0, shape.topk + shape.shared_experts, 1.0)
    width = 4.0 * shape.hidden + (2.0 + shape.gated) * shape.ffn * visited / layout.tp
    return 2.0 * tokens_max * width


def kv_budget_bytes(
    memory_bytes: Floats, weights_bytes: Floats, workspace_bytes: Floats, kv_share: Floats
) -> Floats:
    """Return what is left for the cache on one accelerator, as a share of the free memory."""
    return np.maximum(kv_share * (memory_bytes - weights_bytes - workspace_bytes), 0.0)


def sequences_max(
    shape: Shapes,
    widths: Widths,
    layout: ReplicaLayout,
    budget_bytes: Floats,
    tokens: Floats,
    block_tokens: float = 32.0,
) -> Floats:
    """Return how many sequences of `tokens` a replica holds to their end without evicting one."""
    paged = np.ceil(tokens / block_tokens) * block_tokens
    per_group = np.floor(budget_bytes / kv_bytes_per_sequence(shape, widths, layout, paged))
    return per_group * layout.attention_dp
