"""Attention core time: fused (flash) kernels by sequence and head size, or the unfused path.

Flash efficiency was fitted on H200 timings and is carried to other parts as a share of their
matmul ceiling. GPUs have kernels for a few head sizes; others are padded to the next, and heads
wider than the widest fall back to a kernel that is many times slower. Where a compiler makes the
kernel (TPUs), any head that fills the matrix unit runs at the full rate. The unfused path moves the
score matrix through memory: that, not its FLOPs, is what selective recompute and fusion save.
"""

import numpy as np

from tenfold.physics.training.arrays import Accelerator, Plans, Shape, Values

# Share of the dense bf16 peak that the forward kernel reaches at head size 128 (H200 timings).
FLASH_SHARE = 0.645
BACKWARD_RATIO = 0.85
FORWARD_SEQ_HALF = 370.0
BACKWARD_SEQ_HALF = 950.0
# Head sizes that have a kernel, and their rates over that of 128 on Hopper (H200 timings).
HEAD_SIZES = np.array([64.0, 96.0, 128.0, 192.0, 256.0])
FORWARD_RATES = np.array([0.745, 0.82, 1.0, 1.05, 0.97])
BACKWARD_RATES = np.array([0.79, 0.80, 1.0, 0.70, 0.82])
HOPPER_NARROW = 0.74
# Beyond the widest kernel (head sizes 320 to 512, whole steps on an H200).
FALLBACK_FORWARD_RATE = 0.25
FALLBACK_BACKWARD_RATE = 0.09
# Where a compiler makes the kernel: heads this wide fill the matrix unit, narrower ones in part.
FULL_HEAD, NARROW_HEAD, LEAST_RATE = 128.0, 64.0, 0.3
# Bytes moved per score element (fp16): write, mask+softmax, dropout, read back.
UNFUSED_FORWARD_BYTES = 13.0
UNFUSED_BACKWARD_BYTES = 20.0
UNFUSED_SHARE = 0.45


def attention_s(
    shape: Shape, plans: Plans, accelerator: Accelerator, flash: Values, efficiency: Values
) -> tuple[Values, Values]:
    """Return (forward, backward) seconds of one layer's attention core on one rank."""
    pairs = plans.micro_batch * (shape.heads / plans.tp) * plans.seq * plans.seq / plans.cp
    causal = pairs * (shape.qk_dim + shape.v_dim)
    padding, forward_rate, backward_rate = _head_rates(shape, accelerator)
    rate = accelerator.attention_ceiling * FLASH_SHARE * efficiency
    span = plans.seq / plans.cp
    work = causal * padding / rate
    forward = work * (1.0 + FORWARD_SEQ_HALF / span) / forward_rate
    backward = 2.5 * work * (1.0 + BACKWARD_SEQ_HALF / span) / (backward_rate * BACKWARD_RATIO)
    if np.all(np.asarray(flash) == 1.0):
        return forward, backward
    flops_s = accelerator.matmul_ceiling * UNFUSED_SHARE * efficiency
    plain_f = 2.0 * causal / flops_s + pairs * UNFUSED_FORWARD_BYTES / accelerator.hbm_bytes_s
    plain_b = 4.0 * causal / flops_s + pairs * UNFUSED_BACKWARD_BYTES / accelerator.hbm_bytes_s
    fused = np.asarray(flash) == 1.0
    return np.where(fused, forward, plain_f), np.where(fused, backward, plain_b)


def _head_rates(shape: Shape, accelerator: Accelerator) -> tuple[Values, Values, Values]:
    """Return the padding of heads to a kernel's size, and rates over those of size 128.

    Heads whose keys and values differ in size (latent attention) have kernels of their own; they
    count as wide as their values.
    """
    head = np.asarray(np.minimum(shape.qk_dim, shape.v_dim))
    place = np.minimum(np.searchsorted(HEAD_SIZES, head), len(HEAD_SIZES) - 1)
    wide = head > HEAD_SIZES[-1]
    padding = np.where(wide, 1.0, np.maximum(HEAD_SIZES[place] / head, 1.0))
    # Older tensor cores are narrower, so narrow heads cost them less.
    narrow = np.asarray(accelerator.attention_narrow)
    unlike = (1.0 - narrow) / (1.0 - HOPPER_NARROW)
    forward = 1.0 - (1.0 - FORWARD_RATES[place]) * unlike
    backward = 1.0 - (1.0 - BACKWARD_RATES[place]) * unlike
    forward = np.where(wide, FALLBACK_FORWARD_RATE, forward)
    backward = np.where(wide, FALLBACK_BACKWARD_RATE, backward)
    fixed = np.asarray(accelerator.fixed_heads) > 0
    if np.all(fixed):
        return padding, forward, backward
    filled = (np.minimum(head, FULL_HEAD) - NARROW_HEAD) / (FULL_HEAD - NARROW_HEAD)
    made = np.maximum(narrow + (1.0 - narrow) * filled, LEAST_RATE)
    return (
        np.where(fixed, padding, 1.0),
        np.where(fixed, forward, made),
        np.where(fixed, backward, made),
    )
