"""One layer pass on one rank: GEMMs, attention, element-wise work, and its collectives."""

from dataclasses import dataclass

import numpy as np

from tenfold.physics.training import collectives, elementwise
from tenfold.physics.training.arrays import Accelerator, Plans, Shape, Values
from tenfold.physics.training.attention import attention_s
from tenfold.physics.training.gemm import element_bytes, gemm_s, usable_flops
from tenfold.physics.training.profile import TrainingProfile

# Launches of the backward pass against the forward pass.
BACKWARD_LAUNCHES = 1.5


@dataclass(frozen=True, slots=True)
class Context:
    """What all layer kinds of one chunk of plans share; computed once."""

    shape: Shape
    plans: Plans
    accelerator: Accelerator
    profile: TrainingProfile
    fabric: collectives.Fabric
    tokens: Values
    flops_s: Values
    half_flops_s: Values
    operand_bytes: Values
    low_precision: Values


@dataclass(frozen=True, slots=True)
class PassTimes:
    """Seconds of one layer for one micro-batch; recompute is inside `backward_s`."""

    forward_s: Values
    backward_s: Values
    tp_s: Values
    moe_s: Values
    attention_s: Values


def context(
    shape: Shape, plans: Plans, accelerator: Accelerator, profile: TrainingProfile
) -> Context:
    """Hoist what does not depend on the layer kind."""
    # Four-bit recipes keep routed models at eight bits nearly everywhere.
    precision = np.minimum(plans.precision, np.where(np.asarray(shape.experts) > 0, 3.0, 4.0))
    low = precision >= 3
    gain = np.where(precision == 4, profile.gemm_fp4, profile.gemm_fp8)
    efficiency = np.where(low, gain, profile.gemm) if low.ndim else (gain if low else profile.gemm)
    return Context(
        shape=shape,
        plans=plans,
        accelerator=accelerator,
        profile=profile,
        fabric=collectives.Fabric(
            scaleup_bytes_s=accelerator.scaleup_bytes_s,
            nic_bytes_s=plans.nic_bytes_s * profile.nic / plans.oversubscription,
            start_s=np.maximum(collectives.START_S + plans.network_delay_s, 0.0),
            hop_s=np.maximum(collectives.HOP_S + plans.network_delay_s, 0.0),
        ),
        tokens=plans.micro_batch * plans.seq / plans.cp,
        flops_s=usable_flops(accelerator, precision) * efficiency,
        half_flops_s=usable_flops(accelerator, np.minimum(precision, 2)) * profile.gemm,
        operand_bytes=element_bytes(precision),
        low_precision=np.asarray(low, float),
    )


def linear_s(
    at: Context, tokens: Values, n: Values, k: Values, *, half: bool = False, count: Values = 1.0
) -> tuple[Values, Values]:
    """Return (forward, backward) seconds of a linear layer k -> n over `tokens` rows."""
    flops_s = at.half_flops_s if half else at.flops_s
    hbm, sms = at.accelerator.hbm_bytes_s, at.accelerator.sm_count
    width = 2.0 if half else at.operand_bytes
    forward = gemm_s(
        tokens,
        n,
        k,
        flops_s=flops_s,
        hbm_bytes_s=hbm,
        sm_count=sms,
        operand_bytes=width,
        count=count,
    )
    weight = gemm_s(
        n,
        k,
        tokens,
        flops_s=flops_s,
        hbm_bytes_s=hbm,
        sm_count=sms,
        operand_bytes=width,
        count=count,
    )
    return forward, forward + weight


def dense_layer(at: Context, width: Values) -> PassTimes:
    """Time a layer with attention and a dense block of `width`."""
    shape, plans = at.shape, at.plans
    mixer_f, mixer_b, core_f, core_b = _mixer(at)
    up_f, up_b = linear_s(at, at.tokens, width * shape.gates / plans.tp, shape.hidden)
    down_f, down_b = linear_s(at, at.tokens, shape.hidden, width / plans.tp)
    moved = elementwise.layer_bytes(shape, plans, at.tokens, width, at.low_precision)
    other = elementwise.stream_s(moved, at.accelerator) * at.profile.elementwise
    forward = mixer_f + up_f + down_f + other
    backward = mixer_b + up_b + down_b + other * elementwise.BACKWARD_RATIO
    return _finish(at, (forward, backward), core_f, core_b, (0.0, 0.0))


def moe_layer(at: Context) -> PassTimes:
    """Time a layer with attention and routed experts over the expert-parallel group."""
    shape, plans, profile = at.shape, at.plans, at.profile
    mixer_f, mixer_b, core_f, core_b = _mixer(at)
    # Experts are not split by tensor parallelism; its ranks carry separate tokens instead.
    own = at.tokens / plans.tp
    local = np.maximum(shape.experts, 1.0) / plans.ep
    rows = own * shape.topk / local * profile.moe_imbalance
    up_f, up_b = linear_s(at, rows, shape.ffn * shape.gates, shape.hidden, count=local)
    down_f, down_b = linear_s(at, rows, shape.hidden, shape.ffn, count=local)
    experts_f, experts_b = (up_f + down_f) / profile.moe_gemm, (up_b + down_b) / profile.moe_gemm
    if np.any(np.asarray(shape.shared_ffn) > 0):
        width = np.maximum(shape.shared_ffn, 1.0)
        s_up_f, s_up_b = linear_s(at, own, width * shape.gates, shape.hidden)
        s_down_f, s_down_b = linear_s(at, own, shape.hidden, width)
        experts_f = experts_f + np.where(shape.shared_ffn > 0, s_up_f + s_down_f, 0.0)
        experts_b = experts_b + np.where(shape.shared_ffn > 0, s_up_b + s_down_b, 0.0)
    routed = shape.topk * (4.0 * shape.hidden + elementwise.BLOCK_TOUCHES * shape.gates * shape.ffn)
    moved = elementwise.layer_bytes(shape, plans, at.tokens, shape.shared_ffn, at.low_precision)
    moved = moved + own * routed * (2.0 + 1.5 * at.low_precision)
    other = elementwise.stream_s(moved, at.accelerator) * profile.elementwise
    inside = np.minimum(plans.ep, plans.scaleup_ranks)
    sent = own * shape.topk * shape.hidden * 2.0
    spread = collectives.all_to_all_s(at.fabric, sent, plans.ep, inside) * profile.moe_imbalance
    forward = mixer_f + experts_f + other
    backward = mixer_b + experts_b + other * elementwise.BACKWARD_RATIO
    exchange = 2.0 * spread * (1.0 - profile.moe_overlap)
    launch = profile.moe_launch_s + profile.expert_launch_s * local
    return _finish(at, (forward, backward), core_f, core_b, (exchange, launch))


def _mixer(at: Context) -> tuple[Values, Values, Values, Values]:
    """Return (forward, backward) of projections and core, then of the core alone."""
    shape, plans = at.shape, at.plans
    qkv_f, qkv_b = linear_s(at, at.tokens, shape.qkv_width / plans.tp, shape.hidden)
    out_f, out_b = linear_s(at, at.tokens, shape.hidden, shape.out_width / plans.tp)
    core_f, core_b = attention_s(
        shape, plans, at.accelerator, at.profile.flash, at.profile.attention
    )
    share = shape.attention_layers / shape.layers
    if np.any(np.asarray(plans.cp) > 1):
        # The ring passes keys and values while the core computes; only the excess shows.
        inside = np.clip(plans.scaleup_ranks / plans.tp, 1.0, plans.cp)
        ring = at.tokens * shape.kv_width / plans.tp * 2.0 * plans.cp
        swap = collectives.reduce_scatter_s(at.fabric, ring, plans.cp, inside)
        core_f = np.maximum(core_f, swap)
        core_b = np.maximum(core_b, 2.0 * swap)
    core_f, core_b = core_f * share, core_b * share
    return qkv_f + out_f + core_f, qkv_b + out_b + core_b, core_f, core_b


def _finish(
    at: Context,
    passes: tuple[Values, Values],
    core_f: Values,
    core_b: Values,
    routing: tuple[Values, Values],
) -> PassTimes:
    """Add recompute, tensor-parallel exchange and the launch floor.

    `routing` is what experts add: seconds of exchange a pass, and launch time.
    """
    plans, profile = at.plans, at.profile
    (forward, backward), (exchange, extra_launch_s) = passes, routing
    code = np.asarray(plans.recompute)
    # Fused attention already keeps no scores; the norms and activation functions that a stack with
    # it redoes instead are memory-bound and small.
    redo_some = np.where(profile.flash == 1.0, 0.0, core_f)
    whole = np.where(code == 2, plans.recompute_share, 0.0)
    redo = forward * whole + np.where(code == 1, redo_some, 0.0)
    launch = profile.launch_s + extra_launch_s
    forward = _floor(forward, launch)
    backward = _floor(backward + redo, launch * (BACKWARD_LAUNCHES + whole))
    repeats = 2.0 + whole
    inside = np.minimum(plans.tp, plans.scaleup_ranks)
    moved = at.tokens * at.shape.hidden * 2.0
    reduce = collectives.all_reduce_s(at.fabric, moved, plans.tp, inside)
    tp_s = 2.0 * reduce * repeats * (1.0 - profile.tp_overlap)
    return PassTimes(forward, backward, tp_s, exchange * repeats, core_f + core_b)


def _floor(busy: Values, launch: Values) -> Values:
    """Return the soft maximum of GPU work and launch time (eighth-power mean)."""
    a, b = busy * busy, launch * launch
    a, b = a * a, b * b
    return np.sqrt(np.sqrt(np.sqrt(a * a + b * b)))
