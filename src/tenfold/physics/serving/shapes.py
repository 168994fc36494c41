"""Decoder shapes as arrays: one entry per configuration, so one call covers a thousand plans."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tenfold.model.facts.shape import ModelShape
from tenfold.physics.arrays import Floats


@dataclass(frozen=True, slots=True)
class Shapes:
    """Model shapes; zero means that the feature is absent."""

    layers: Floats
    hidden: Floats
    heads: Floats
    kv_heads: Floats
    head_dim: Floats
    ffn: Floats
    """Of one expert."""
    gated: Floats
    vocab: Floats
    experts: Floats
    topk: Floats
    shared_experts: Floats
    """In experts of the routed width."""
    dense_layers: Floats
    dense_ffn: Floats
    attention_params: Floats
    """Of the projections of one layer."""
    mla_rank: Floats
    """Cached latent width per token and layer; 0 for grouped-query attention."""
    window: Floats
    window_share: Floats
    """Share of the layers that attend only to the window."""
    tied: Floats
    native_4bit_experts: Floats
    parallel_block: Floats

    def take(self, index: NDArray[np.int64]) -> "Shapes":
        """Return the entries at `index`, repeated or reordered as asked."""
        return Shapes(**{name: getattr(self, name)[index] for name in Shapes.__slots__})

    @property
    def moe_layers(self) -> Floats:
        """Layers whose feed-forward part is a mixture of experts."""
        return np.where(self.experts > 0, self.layers - self.dense_layers, 0.0)


def serving_shapes(shapes: Sequence[ModelShape]) -> Shapes:
    """Return models as the arrays that serving takes."""
    rows = [_row(shape) for shape in shapes]
    return Shapes(**{name: np.array([row[name] for row in rows]) for name in Shapes.__slots__})


def _row(shape: ModelShape) -> dict[str, float]:
    mla = shape.mla
    shared = shape.shared_experts * (shape.shared_ffn or shape.ffn) / shape.ffn
    return {
        "layers": float(shape.layers),
        "hidden": float(shape.hidden),
        "heads": float(shape.heads),
        "kv_heads": float(shape.kv_heads),
        "head_dim": float(shape.head_dim if mla is None else mla.value_head_dim),
        "ffn": float(shape.ffn),
        "gated": float(shape.gated),
        "vocab": float(shape.vocab),
        "experts": float(shape.experts),
        "topk": float(shape.experts_per_token),
        "shared_experts": shared,
        "dense_layers": float(shape.layers - shape.moe_layers) if shape.experts else 0.0,
        "dense_ffn": float(shape.dense_ffn or shape.ffn),
        "attention_params": float(shape.attention_params),
        "mla_rank": 0.0 if mla is None else float(mla.kv_rank + mla.rope_head_dim),
        "window": float(shape.window),
        "window_share": shape.window_layers / shape.layers,
        "tied": float(shape.tied),
        "native_4bit_experts": float(shape.native_4bit_experts),
        "parallel_block": float(shape.parallel_block),
    }


def expert_weights(shape: Shapes) -> Floats:
    """Parameters of one expert, or of the only feed-forward block of a dense layer."""
    return (2.0 + shape.gated) * shape.hidden * shape.ffn


def dense_weights(shape: Shapes) -> Floats:
    """Parameters every token passes in all layers: attention, dense and shared feed-forward."""
    mats = (2.0 + shape.gated) * shape.hidden
    dense = (shape.layers - shape.moe_layers) * mats * shape.dense_ffn
    shared = shape.moe_layers * shape.shared_experts * mats * shape.ffn
    return shape.layers * shape.attention_params + dense + shared


def routed_weights(shape: Shapes) -> Floats:
    """Parameters of all routed experts of all layers."""
    return shape.moe_layers * shape.experts * expert_weights(shape)


def embedding_weights(shape: Shapes) -> Floats:
    """Parameters of the embedding and of the head, which engines keep in 16 bit."""
    return (2.0 - shape.tied) * shape.vocab * shape.hidden


def parameters(shape: Shapes) -> Floats:
    """All parameters, norms and routers left out (below 0.1% of any decoder worth serving)."""
    return dense_weights(shape) + routed_weights(shape) + embedding_weights(shape)
