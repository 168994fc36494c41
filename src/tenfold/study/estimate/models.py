"""Look up the model of an estimate row."""

from tenfold.model.estimate import ShapeRow
from tenfold.model.facts.catalogue import Catalogue
from tenfold.model.facts.shape import ModelShape

DEFAULT_VOCAB = 50_304
"""For rows without a vocabulary size: GPT-2's, padded; an assumption."""


def shape_of(model: str | ShapeRow, catalogue: Catalogue) -> ModelShape:
    """Return the shape of a preset's name or of a row of widths."""
    if isinstance(model, str):
        return catalogue.models.get(model).shape
    experts = model.experts or 0
    gated = bool(model.gated)
    default_ffn = 4 * model.hidden if not gated else 8 * model.hidden // 3
    ffn = model.ffn or default_ffn
    topk = (model.topk or 0) if experts else 0
    visited = topk + (model.shared_experts or 0)
    return ModelShape(
        layers=model.layers,
        hidden=model.hidden,
        heads=model.heads,
        kv_heads=model.kv_heads or model.heads,
        head_dim=model.head_dim or max(1, model.hidden // model.heads),
        ffn=ffn,
        vocab=model.vocab or DEFAULT_VOCAB,
        gated=gated,
        tied=bool(model.tied),
        experts=experts,
        experts_per_token=topk,
        shared_experts=model.shared_experts or 0,
        dense_layers=min(model.dense_layers or 0, model.layers) if experts else 0,
        # Dense layers among experts are as wide as what a token visits elsewhere.
        dense_ffn=ffn * visited if experts and model.dense_layers else None,
        context=0,
    )
