"""Compose a training step from layer passes, schedule, data parallelism and optimizer."""

from dataclasses import dataclass, replace

import numpy as np

from tenfold.physics.training import collectives, elementwise, layer, pipeline
from tenfold.physics.training.arrays import Accelerator, Plans, Shape, Values, parameters, take
from tenfold.physics.training.profile import TrainingProfile

# Rows of a chunk: a few hundred live arrays of this many doubles stay in the second-level cache.
CHUNK_ROWS = 4096


@dataclass(frozen=True, slots=True)
class StepTimes:
    """Seconds of a step and where they go; parts sum to `step_s`."""

    step_s: Values
    compute_s: Values
    tp_s: Values
    moe_s: Values
    bubble_s: Values
    p2p_s: Values
    dp_s: Values
    optimizer_s: Values
    other_s: Values
    jitter_s: Values


def time_plans(
    shape: Shape, plans: Plans, accelerator: Accelerator, profile: TrainingProfile
) -> StepTimes:
    """Time every plan. Arrays of any length; scalars are shared by all plans."""
    size = np.size(plans.gpus)
    if size <= CHUNK_ROWS:
        return _time_chunk(shape, plans, accelerator, profile)
    names = StepTimes.__slots__
    out = {name: np.empty(size) for name in names}
    for start in range(0, size, CHUNK_ROWS):
        rows = slice(start, min(start + CHUNK_ROWS, size))
        part = _time_chunk(*(take(item, rows) for item in (shape, plans, accelerator, profile)))
        for name in names:
            out[name][rows] = getattr(part, name)
    return StepTimes(**out)


def _time_chunk(
    shape: Shape, plans: Plans, accelerator: Accelerator, profile: TrainingProfile
) -> StepTimes:
    at = layer.context(shape, plans, accelerator, profile)
    micro_batches = plans.global_batch / (plans.dp * plans.micro_batch)
    layer_s, backward_share, tp_share, moe_share = _mean_layer(at)
    head_s = _head_s(at)
    full, last = pipeline.stage_layers(shape.layers, plans.pp, plans.virtual_stages)
    slowest = np.maximum(full * layer_s, last * layer_s + head_s) + profile.micro_s
    # On one stage this is the slowest stage itself, so there is no bubble to add.
    path = shape.layers * layer_s + head_s + profile.micro_s * plans.pp
    busy, bubble = pipeline.pass_s(
        micro_batches, plans.virtual_stages, slowest, path, profile.zero_bubble
    )
    p2p = _p2p_s(at, micro_batches)
    window = slowest * backward_share
    dp_s = _data_parallel_s(at, micro_batches, slowest, window)
    optimizer = _optimizer_s(at)
    total = busy + bubble + p2p + dp_s + optimizer + profile.step_s
    jitter = total * profile.jitter * straggling(plans.gpus)
    layers_s = busy - micro_batches * profile.micro_s
    tp_s, moe_s = layers_s * tp_share, layers_s * moe_share
    return StepTimes(
        step_s=total + jitter,
        compute_s=layers_s - tp_s - moe_s,
        tp_s=tp_s,
        moe_s=moe_s,
        bubble_s=bubble,
        p2p_s=p2p,
        dp_s=dp_s,
        optimizer_s=optimizer,
        other_s=profile.step_s + micro_batches * profile.micro_s,
        jitter_s=jitter,
    )


def straggling(gpus: Values) -> Values:
    """Return how much waiting for the slowest grows with scale: (nodes^1/4 - 1) x 4.

    Between a logarithm and a root: published series lose little up to 100 nodes and more with each
    doubling beyond. Nodes count by eight GPUs whatever the scale-up domain.
    """
    nodes = np.maximum(gpus / 8.0, 1.0)
    return 4.0 * (np.sqrt(np.sqrt(nodes)) - 1.0)


def _mean_layer(at: layer.Context) -> tuple[Values, Values, Values, Values]:
    """Return the mean layer's seconds per micro-batch and its backward, tp and expert shares."""
    shape = at.shape
    sparse = np.asarray(shape.experts) > 0
    if not np.any(sparse):
        return _shares(layer.dense_layer(at, shape.dense_ffn))
    routed = _shares(layer.moe_layer(at))
    if np.all(sparse) and not np.any(np.asarray(shape.dense_layers) > 0):
        return routed
    plain = _shares(layer.dense_layer(at, shape.dense_ffn))
    weight = np.where(sparse, 1.0 - shape.dense_layers / shape.layers, 0.0)
    total = weight * routed[0] + (1.0 - weight) * plain[0]
    parts = [
        (weight * r * routed[0] + (1.0 - weight) * p * plain[0]) / total
        for r, p in zip(routed[1:], plain[1:], strict=True)
    ]
    return total, parts[0], parts[1], parts[2]


def _shares(times: layer.PassTimes) -> tuple[Values, Values, Values, Values]:
    total = times.forward_s + times.backward_s + times.tp_s + times.moe_s
    return total, times.backward_s / total, times.tp_s / total, times.moe_s / total


def _head_s(at: layer.Context) -> Values:
    """Return seconds of logits and loss for one micro-batch, forward and backward."""
    forward, backward = layer.linear_s(
        at, at.tokens, at.shape.vocab / at.plans.tp, at.shape.hidden, half=True
    )
    moved = elementwise.logits_bytes(at.shape, at.plans, at.tokens, at.profile.logits_bytes)
    return forward + backward + elementwise.stream_s(moved, at.accelerator)


def _p2p_s(at: layer.Context, micro_batches: Values) -> Values:
    """Return exposed sends between stages over the step."""
    plans, profile = at.plans, at.profile
    split = np.where(profile.scatter_gather > 0, plans.tp, 1.0)
    sent = at.tokens * at.shape.hidden * 2.0 / split
    inner = plans.tp * plans.cp * plans.dp
    once = collectives.send_s(at.fabric, sent, inner * plans.pp > plans.scaleup_ranks)
    sends = 2.0 * plans.virtual_stages * micro_batches + 2.0 * (plans.pp - 1.0)
    return np.where(plans.pp > 1, once * sends * (1.0 - profile.p2p_overlap), 0.0)


def _rank_parameters(at: layer.Context) -> tuple[Values, Values]:
    """Return (dense, expert) parameters held by one rank before data-parallel sharding."""
    dense, expert, ends = parameters(at.shape)
    plans = at.plans
    held = (dense / plans.pp + ends * np.where(plans.pp > 1, 0.5, 1.0)) / plans.tp
    return held, expert / (plans.pp * plans.ep)


def _data_parallel_s(
    at: layer.Context, micro_batches: Values, slowest: Values, window: Values
) -> Values:
    """Return exposed gradient and weight traffic of the step."""
    plans, profile = at.plans, at.profile
    group = _gradient_groups(at)
    # Replicas all-reduce gradients; sharded optimizers scatter them and gather weights back.
    reduced = _scatter_s(at, group, _sent_bytes(at))
    shard = np.asarray(plans.shard)
    gathered = _scatter_s(at, group, 2.0)
    once = reduced + np.where(shard == 0, reduced, gathered)
    plain = _exposed(once, window * profile.dp_overlap, profile.slowdown)
    packing = _compression_s(at, group)
    plain = plain + packing
    # Pipelines keep gathered weights over the step: gathering for each micro-batch never pays.
    alone = np.asarray(plans.pp) == 1
    full, hybrid = (shard == 3) & alone, (shard == 4) & alone
    if np.any(full):
        # Fully sharded weights are gathered for each pass, gradients scattered each micro-batch.
        each = 2.0 * gathered + reduced
        hidden = np.minimum(each * 0.98, slowest * profile.fsdp_overlap)
        each = _exposed(each, hidden, profile.slowdown) + packing
        plain = np.where(full, each * micro_batches, plain)
    if np.any(hybrid):
        plain = np.where(hybrid, _hybrid_s(at, group, (micro_batches, slowest, window)), plain)
    return plain


def _hybrid_s(at: layer.Context, group: "_Groups", timing: tuple[Values, Values, Values]) -> Values:
    """Return exposed traffic when weights are sharded in the node and replicated across."""
    micro_batches, slowest, window = timing
    profile = at.profile
    local = replace(
        group,
        ranks=group.inside,
        expert_ranks=group.expert_inside,
    )
    each = 2.0 * _scatter_s(at, local, 2.0) + _scatter_s(at, local, _sent_bytes(at))
    each = _exposed(each, slowest * profile.fsdp_overlap, profile.slowdown)
    nodes = np.maximum(group.ranks / group.inside, 1.0)
    share = (group.dense + group.expert) / group.inside * _sent_bytes(at)
    across = collectives.all_reduce_s(at.fabric, share, nodes, np.ones_like(nodes))
    across = _exposed(across, window * profile.dp_overlap, profile.slowdown)
    across = across + _compression_s(at, group)
    return each * micro_batches + np.where(nodes > 1, across, 0.0)


def _sent_bytes(at: layer.Context) -> Values:
    """Return bytes per gradient that are reduced over the data-parallel ranks."""
    stated = np.asarray(at.plans.gradient_bytes)
    return np.where(stated > 0, stated, at.profile.grad_bytes)


def _compression_s(at: layer.Context, group: "_Groups") -> Values:
    """Return the time to compress gradients: kernels bound by memory, which nothing hides."""
    shared = np.where(group.ranks > 1, group.dense, 0.0)
    shared = shared + np.where(group.expert_ranks > 1, group.expert, 0.0)
    return elementwise.stream_s(shared * at.profile.compress_bytes, at.accelerator)


@dataclass(frozen=True, slots=True)
class _Groups:
    """Parameters of a rank and the ranks that share their gradients."""

    dense: Values
    expert: Values
    ranks: Values
    inside: Values
    expert_ranks: Values
    expert_inside: Values


def _gradient_groups(at: layer.Context) -> _Groups:
    plans = at.plans
    dense, expert = _rank_parameters(at)
    ranks = plans.dp * plans.cp
    expert_ranks = np.maximum(ranks * plans.tp / plans.ep, 1.0)
    return _Groups(
        dense=dense,
        expert=expert,
        ranks=ranks,
        inside=np.clip(plans.scaleup_ranks / plans.tp, 1.0, ranks),
        expert_ranks=expert_ranks,
        expert_inside=np.clip(plans.scaleup_ranks / plans.ep, 1.0, expert_ranks),
    )


def _scatter_s(at: layer.Context, group: _Groups, width: Values) -> Values:
    """Return a reduce-scatter (or gather) of all parameters at `width` bytes each."""
    fabric = at.fabric
    moved = collectives.reduce_scatter_s(fabric, group.dense * width, group.ranks, group.inside)
    sparse = np.asarray(group.expert) > 0
    if not np.any(sparse):
        return moved
    routed = collectives.reduce_scatter_s(
        fabric, group.expert * width, group.expert_ranks, group.expert_inside
    )
    # A dense model among routed ones has no second exchange to start.
    return moved + np.where(sparse, routed, 0.0)


def _exposed(traffic: Values, cover: Values, slowdown: Values) -> Values:
    """Return what shows of traffic under compute, which it slows while both run."""
    hidden = np.minimum(traffic, cover)
    return traffic - hidden + slowdown * hidden


def _optimizer_s(at: layer.Context) -> Values:
    """Return the update time: pure memory traffic, divided where states are sharded."""
    group = _gradient_groups(at)
    shard = np.asarray(at.plans.shard)
    whole = group.dense + group.expert
    split = group.dense / group.ranks + group.expert / group.expert_ranks
    owned = np.where(shard >= 1, split, whole)
    owned = np.where(shard == 4, whole / group.inside, owned)
    return elementwise.stream_s(owned * at.profile.optimizer_bytes, at.accelerator)
