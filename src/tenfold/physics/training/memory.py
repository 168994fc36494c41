"""Peak memory of the fullest rank: weights, gradients, optimizer, activations, logits.

Note: the fullest rank is in the first pipeline stage when activations dominate and in the last
one when logits do, so both are computed. Coefficients were fitted on the H200 rows
and agree with the 34*s*b*h of Korthikanti 2022 for a plain block.
"""

from dataclasses import dataclass

import numpy as np

from tenfold.physics.training.arrays import Accelerator, Flags, Plans, Shape, Values, parameters
from tenfold.physics.training.profile import TrainingProfile

# Saved half-precision vectors of the hidden width a layer, and of the block width per gate.
HIDDEN_SAVED = 8.3
BLOCK_SAVED = 1.95
# Of the hidden ones, those that tensor parallelism does not split without sequence parallelism.
HIDDEN_REPLICATED = 5.0
# Half logits, single-precision copy, its softmax, and the gradient's start.
LOGITS_BYTES = 11.2
SCORE_BYTES = 5.0
CONTEXT_BYTES = 0.25e9
# Share of the device that a run can fill before the allocator gives up.
USABLE_SHARE = 0.985


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes on the fullest rank; `peak_bytes` is what an allocator would report."""

    peak_bytes: Values
    weights_bytes: Values
    gradients_bytes: Values
    optimizer_bytes: Values
    activations_bytes: Values
    logits_bytes: Values


def memory_of(shape: Shape, plans: Plans, profile: TrainingProfile) -> Memory:
    """Return the peak memory of every plan."""
    weights, gradients, optimizer, held = _states(shape, plans, profile)
    tokens = plans.micro_batch * plans.seq / plans.cp
    per_layer = _layer_bytes(shape, plans, profile, tokens)
    first, last = _activations(shape, plans, tokens, per_layer)
    logits = tokens * shape.vocab / plans.tp * LOGITS_BYTES
    alone = plans.pp == 1
    moving = np.where(alone, first + logits, np.maximum(first, last + logits))
    copies = profile.grad_copy_bytes * held
    settled = weights + gradients + optimizer
    # Gradient copies reuse only part of the memory that activations have freed.
    swing = np.sqrt(moving * moving + copies * copies)
    return Memory(
        peak_bytes=settled + swing + CONTEXT_BYTES,
        weights_bytes=weights,
        gradients_bytes=gradients + copies,
        optimizer_bytes=optimizer,
        activations_bytes=np.where(moving > first, moving - logits, first),
        logits_bytes=np.where(moving > first, logits, 0.0),
    )


def fits(memory: Memory, accelerator: Accelerator) -> Flags:
    """Say which plans fit the device."""
    return memory.peak_bytes <= accelerator.memory_bytes * USABLE_SHARE


def _states(
    shape: Shape, plans: Plans, profile: TrainingProfile
) -> tuple[Values, Values, Values, Values]:
    """Return bytes of weights, gradients and optimizer, and the parameters behind the gradients."""
    dense, expert, ends = parameters(shape)
    layers_share = np.ceil(shape.layers / plans.pp) / shape.layers
    own = (dense * layers_share + ends * np.where(plans.pp > 1, 0.5, 1.0)) / plans.tp
    routed = expert * layers_share / plans.ep
    ranks = plans.dp * plans.cp
    routed_ranks = np.maximum(ranks * plans.tp / plans.ep, 1.0)
    shard = np.asarray(plans.shard)
    full = own + routed
    split = own / ranks + routed / routed_ranks
    in_node = np.minimum(ranks, np.maximum(plans.scaleup_ranks / plans.tp, 1.0))
    split = np.where(shard == 4, own / in_node + routed, split)
    # Two gathered layers are whole while their neighbours are in shards; never more than all.
    window = 2.0 * full / np.maximum(shape.layers / plans.pp, 2.0)
    weights = np.where(shard >= 3, np.minimum(split + window, full), full) * 2.0
    held = np.where(shard >= 2, split, full)
    states = np.where(shard >= 1, split, full) * profile.state_bytes
    return weights, held * profile.grad_held_bytes, states, held


def _layer_bytes(shape: Shape, plans: Plans, profile: TrainingProfile, tokens: Values) -> Values:
    """Return activation bytes one layer keeps for one micro-batch, by recompute mode."""
    split = np.where(np.asarray(plans.sequence_parallel) > 0, plans.tp, 1.0)
    narrow = shape.hidden * (
        HIDDEN_REPLICATED / split + (HIDDEN_SAVED - HIDDEN_REPLICATED) / plans.tp
    )
    sparse_share = 1.0 - shape.dense_layers / shape.layers
    routed = shape.topk * (2.0 * shape.hidden + BLOCK_SAVED * shape.gates * shape.ffn)
    shared = BLOCK_SAVED * shape.gates * shape.shared_ffn
    block = BLOCK_SAVED * shape.gates * shape.dense_ffn
    wide = ((1.0 - sparse_share) * block + sparse_share * (routed + shared)) / plans.tp
    kept = 2.0 * tokens * (narrow + wide)
    scores = SCORE_BYTES * shape.heads / plans.tp * tokens * plans.seq
    unfused = (np.asarray(profile.flash) < 1.0) & (np.asarray(plans.recompute) == 0)
    return kept + np.where(unfused, scores, 0.0)


def _activations(
    shape: Shape, plans: Plans, tokens: Values, per_layer: Values
) -> tuple[Values, Values]:
    """Return activation bytes of the first and the last stage."""
    split = np.where(np.asarray(plans.sequence_parallel) > 0, plans.tp, 1.0)
    stage = np.ceil(shape.layers / plans.pp)
    micro_batches = plans.global_batch / (plans.dp * plans.micro_batch)
    spread = 1.0 + (plans.pp - 1.0) / (plans.pp * plans.virtual_stages)
    deep = np.where(plans.virtual_stages > 1, plans.pp * spread, plans.pp)
    in_flight = np.minimum(np.maximum(micro_batches, 1.0), deep)
    boundary = 2.0 * tokens * shape.hidden / split
    full = np.asarray(plans.recompute) == 2
    each = np.where(full, boundary, per_layer) * stage
    working = np.where(full, per_layer, 0.0)
    return each * in_flight + working, each + working
