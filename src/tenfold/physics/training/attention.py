"""Attention core time: fused (flash) kernels by sequence and head size, or the unfused path.

Flash efficiency was fitted on the H200 `attn` timings and is carried to other parts as a share of
their matmul ceiling. The unfused path moves the score matrix through memory: that, not its FLOPs,
is what selective recompute and fusion save.
"""

import numpy as np

from tenfold.physics.training.arrays import Accelerator, Plans, Shape, Values

# Share of the dense bf16 peak that the forward kernel reaches at head size 128 (H200 timings).
FLASH_SHARE = 0.645
BACKWARD_RATIO = 0.85
FORWARD_SEQ_HALF = 100.0
BACKWARD_SEQ_HALF = 600.0
# Bytes moved per score element (fp16): write, mask+softmax, dropout, read back.
UNFUSED_FORWARD_BYTES = 13.0
UNFUSED_BACKWARD_BYTES = 20.0
UNFUSED_SHARE = 0.45


def attention_s(
    shape: Shape, plans: Plans, accelerator: Accelerator, flash: Values, efficiency: Values
) -> tuple[Values, Values]:
    """Return (forward, backward) seconds of one layer's attention core on one rank."""
    pairs = plans.micro_batch * (shape.heads / plans.tp) * plans.seq * plans.seq / plans.cp
    dims = shape.qk_dim + shape.v_dim
    causal = pairs * dims
    head = np.minimum(dims * 0.5, 128.0)
    narrow = accelerator.attention_narrow
    share = np.maximum(narrow + (1.0 - narrow) * (head - 64.0) / 64.0, 0.3) * FLASH_SHARE
    rate = accelerator.attention_ceiling * share * efficiency
    span = plans.seq / plans.cp
    forward = causal * (1.0 + FORWARD_SEQ_HALF / span) / rate
    backward = 2.5 * causal * (1.0 + BACKWARD_SEQ_HALF / span) / (rate * BACKWARD_RATIO)
    if np.all(np.asarray(flash) == 1.0):
        return forward, backward
    flops_s = accelerator.matmul_ceiling * UNFUSED_SHARE * efficiency
    plain_f = 2.0 * causal / flops_s + pairs * UNFUSED_FORWARD_BYTES / accelerator.hbm_bytes_s
    plain_b = 4.0 * causal / flops_s + pairs * UNFUSED_BACKWARD_BYTES / accelerator.hbm_bytes_s
    fused = np.asarray(flash) == 1.0
    return np.where(fused, forward, plain_f), np.where(fused, backward, plain_b)
