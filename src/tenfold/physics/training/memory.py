"""Peak memory of the fullest rank: weights, gradients, optimizer, activations, logits.

What a layer keeps for its backward pass is counted in half-precision vectors per token: the inputs
and outputs of both norms, the projections, the attention output, and every factor of the block.
Pipeline stages measured on an H200 keep what this counts to within 1%.

Note: the peak is reached in one of three phases (the loss, the backward pass of a layer, or the
optimizer), and on one of three stages: the first and second keep the most activations, the
last one the logits.
"""

from dataclasses import dataclass, replace

import numpy as np

from tenfold.physics.training.arrays import (
    RECOMPUTE_CODES,
    Accelerator,
    Flags,
    Plans,
    Shape,
    Values,
    parameters,
)
from tenfold.physics.training.profile import TrainingProfile

# Inputs and outputs of the two norms: sequence parallelism splits them, tensor parallelism not.
# Selective recompute drops the outputs, and the product of the block's factors.
NORM_VECTORS = 4.0
NORM_OUTPUTS = 2.0
# Scales of norms and softmax in single precision, as a share of the hidden width (H200).
SCALE_VECTORS = 0.12
# Around the layers: embedding, and input and output of the last norm.
END_VECTORS = 3.0
# Gathered inputs and gradients of one layer while its backward pass runs, and those of its block.
BACKWARD_HIDDEN_VECTORS = 2.0
BACKWARD_BLOCK_VECTORS = 2.0
SCORE_BYTES = 5.0
CONTEXT_BYTES = 0.1e9
# Share of the device that a run can fill before the allocator gives up, and of its largest block
# that goes unused between smaller ones (H200 runs that ended out of memory).
USABLE_SHARE = 0.985
FRAGMENT_SHARE = 0.4


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes on the fullest rank; `peak_bytes` is the most that is allocated at once.

    `fragment_bytes` is what the allocator loses between blocks, so a run needs both.
    """

    peak_bytes: Values
    weights_bytes: Values
    gradients_bytes: Values
    optimizer_bytes: Values
    activations_bytes: Values
    logits_bytes: Values
    fragment_bytes: Values = 0.0


@dataclass(frozen=True, slots=True)
class _Kept:
    """Activation bytes that wait for their backward pass, and those of one layer in it."""

    first: Values
    second: Values
    """On the stage after the first, which may hold a layer more and no embedding."""
    last: Values
    working: Values


def memory_of(shape: Shape, plans: Plans, profile: TrainingProfile) -> Memory:
    """Return the peak memory of every plan."""
    weights, gradients, optimizer, held = _states(shape, plans, profile)
    tokens = plans.micro_batch * plans.seq / plans.cp
    kept = _activations(shape, plans, profile, tokens)
    extra = np.where(np.asarray(plans.recompute) == 2, profile.logits_extra_bytes, 0.0)
    logits = tokens * shape.vocab / plans.tp * (profile.logits_bytes + extra)
    fresh = profile.grad_fresh_bytes * held
    copies = profile.grad_copy_bytes * held
    # Gradients that are new in every step accumulate from the second micro-batch on.
    before = np.where(_micro_batches(plans) > 1, fresh, 0.0)
    # The largest blocks: one copy of the logits, or of a new gradient in single precision.
    widest = np.where(fresh > 0, 4.0 * shape.hidden * shape.ffn / plans.tp, 0.0)
    alone = np.asarray(plans.pp) == 1
    # The second stage has no embedding, so its states are smaller by that much.
    early = np.maximum(kept.first, kept.second - _embedding_bytes(shape, plans, profile))
    loss = np.where(alone, kept.first, kept.last) + logits + before
    backward = np.maximum(early + kept.working + before, fresh + kept.working)
    phase = np.maximum(np.maximum(loss, backward), fresh + copies)
    in_loss, in_optimizer = phase == loss, phase == fresh + copies
    moving = np.where(in_loss & ~alone, kept.last, early)
    return Memory(
        peak_bytes=weights + gradients + optimizer + phase + CONTEXT_BYTES,
        weights_bytes=weights,
        gradients_bytes=gradients + np.where(in_optimizer, fresh + copies, before),
        optimizer_bytes=optimizer,
        activations_bytes=np.where(
            in_optimizer, 0.0, moving + np.where(in_loss, 0.0, kept.working)
        ),
        logits_bytes=np.where(in_loss, logits, 0.0),
        fragment_bytes=FRAGMENT_SHARE * np.where(in_loss, logits / 3.0, widest),
    )


def fits(memory: Memory, accelerator: Accelerator) -> Flags:
    """Say which plans fit the device."""
    return _needed(memory) <= accelerator.memory_bytes * USABLE_SHARE


def with_least_recompute(
    shape: Shape, plans: Plans, accelerator: Accelerator, profile: TrainingProfile
) -> Plans:
    """Return plans with full recompute in as few layers of a stage as memory allows."""
    full = np.asarray(plans.recompute) == RECOMPUTE_CODES["full"]
    if not full.any():
        return plans
    none, every = (
        _needed(memory_of(shape, replace(plans, recompute_share=share), profile))
        for share in (0.0, 1.0)
    )
    layers = np.asarray(stage_layers_most(shape, plans))
    over = none - np.asarray(accelerator.memory_bytes) * USABLE_SHARE
    missing = np.clip(over / np.maximum(none - every, 1.0), 0.0, 1.0)
    few = np.clip(np.ceil(missing * layers), 1.0, layers)
    return replace(plans, recompute_share=np.where(full, few / layers, 1.0))


def _needed(memory: Memory) -> Values:
    return np.asarray(memory.peak_bytes + memory.fragment_bytes)


def stage_layers_most(shape: Shape, plans: Plans) -> Values:
    """Return the layers of the longest pipeline stage."""
    return np.ceil(shape.layers / plans.pp - 1e-9)


def _states(
    shape: Shape, plans: Plans, profile: TrainingProfile
) -> tuple[Values, Values, Values, Values]:
    """Return bytes of weights, gradients and optimizer, and the parameters behind the gradients."""
    dense, expert, ends = parameters(shape)
    layers_share = stage_layers_most(shape, plans) / shape.layers
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
    return weights, held * _held_bytes(plans, profile), states, held


def _held_bytes(plans: Plans, profile: TrainingProfile) -> Values:
    """Return bytes per gradient that stay allocated; some stacks make them new in every step."""
    stated, own = np.asarray(plans.gradient_bytes), np.asarray(profile.grad_held_bytes)
    return np.where((stated > 0) & (own > 0), stated, own)


def _embedding_bytes(shape: Shape, plans: Plans, profile: TrainingProfile) -> Values:
    """Return the states of half of embedding and head, as an end of a pipeline holds them."""
    _, _, ends = parameters(shape)
    ranks, shard = plans.dp * plans.cp, np.asarray(plans.shard)
    own = 0.5 * ends / plans.tp
    held = np.where(shard >= 2, own / ranks, own) * _held_bytes(plans, profile)
    states = np.where(shard >= 1, own / ranks, own) * profile.state_bytes
    return np.where(plans.pp > 1, own * 2.0 + held + states, 0.0)


def _micro_batches(plans: Plans) -> Values:
    return np.maximum(plans.global_batch / (plans.dp * plans.micro_batch), 1.0)


def _layer_bytes(shape: Shape, plans: Plans, profile: TrainingProfile, tokens: Values) -> Values:
    """Return activation bytes that one layer keeps for one micro-batch."""
    split = np.where(np.asarray(plans.sequence_parallel) > 0, plans.tp, 1.0)
    # Kernels that take grouped heads keep them so; others keep a copy for every query head.
    repeated = shape.heads * (2.0 * shape.qk_dim + shape.v_dim)
    qkv = np.where(np.asarray(profile.kv_repeated) > 0, repeated, _qkv_kept(shape))
    fused = np.asarray(profile.flash) >= 1.0
    cheap = np.where(fused & (np.asarray(plans.recompute) == 1), 1.0, 0.0)
    narrow = (NORM_VECTORS - cheap * NORM_OUTPUTS + SCALE_VECTORS) * shape.hidden / split
    narrow = narrow + (qkv + shape.out_width) / plans.tp
    sparse_share = 1.0 - shape.dense_layers / shape.layers
    factors = shape.gates + 1.0 - cheap + profile.block_extra
    # A routed token is copied to its experts and back.
    routed = shape.topk * (2.0 * shape.hidden + factors * shape.ffn) + factors * shape.shared_ffn
    wide = (1.0 - sparse_share) * factors * shape.dense_ffn + sparse_share * routed
    kept = 2.0 * tokens * (narrow + wide / plans.tp)
    scores = SCORE_BYTES * shape.heads / plans.tp * tokens * plans.seq
    return kept + np.where(~fused & (np.asarray(plans.recompute) == 0), scores, 0.0)


def _qkv_kept(shape: Shape) -> Values:
    """Return the width of queries, keys and values as attention takes them."""
    return shape.heads * shape.qk_dim + shape.kv_width


def _activations(shape: Shape, plans: Plans, profile: TrainingProfile, tokens: Values) -> _Kept:
    """Return what waits for its backward pass on the stages that keep the most."""
    per_layer = _layer_bytes(shape, plans, profile, tokens)
    split = np.where(np.asarray(plans.sequence_parallel) > 0, plans.tp, 1.0)
    boundary = 2.0 * tokens * shape.hidden / split
    share = np.where(np.asarray(plans.recompute) == 2, plans.recompute_share, 0.0)
    each = share * boundary + (1.0 - share) * per_layer
    stage = stage_layers_most(shape, plans)
    ends = END_VECTORS * boundary
    # Where layers do not divide evenly, the stage with the embedding holds one less.
    first = stage - (np.mod(shape.layers, plans.pp) > 0)
    block = (shape.gates * np.maximum(shape.dense_ffn, shape.ffn * shape.topk)) / plans.tp
    gathered = np.where(plans.tp > 1, BACKWARD_HIDDEN_VECTORS, 1.0) * shape.hidden
    gradients = 2.0 * tokens * (gathered + BACKWARD_BLOCK_VECTORS / 2.0 * block)
    working = gradients + np.where(share > 0, per_layer, 0.0)
    return _Kept(
        first=each * first * _in_flight(plans, 0.0) + ends,
        second=np.where(plans.pp > 1, each * stage * _in_flight(plans, 1.0), 0.0),
        last=each * stage + ends,
        working=working,
    )


def _in_flight(plans: Plans, stage: float) -> Values:
    """Return micro-batches of a whole stage that wait for their backward pass.

    One forward, one backward: a stage starts its backward passes when the first micro-batch comes
    back. Interleaved, it has by then passed on its chunks twice per later stage.
    """
    virtual = np.asarray(plans.virtual_stages)
    later = plans.pp - 1.0 - stage
    chunks = np.where(virtual > 1, 2.0 * later + (virtual - 1.0) * plans.pp + 1.0, later + 1.0)
    return np.minimum(_micro_batches(plans), chunks / virtual)
