"""Memory-bound work between the GEMMs: norms, rotary, activations, casts, and the optimizer."""

import numpy as np

from tenfold.physics.training.arrays import Accelerator, Plans, Shape, Values

HBM_SHARE = 0.85
# Reads and writes of a token's hidden vector around two norms and two residual adds.
NORM_TOUCHES = 10.0
# Rotary, bias and layout passes over the projections; gate times up over the block.
QKV_TOUCHES = 3.0
BLOCK_TOUCHES = 2.0
BACKWARD_RATIO = 1.9
# A state-space scan passes over its inner width this often (convolution, chunk states, gate).
SCAN_TOUCHES = 70.0
# Times that each byte of the logits and their copies passes through memory (H200 steps).
LOGITS_TOUCHES = 3.4
# A low-precision GEMM input is read in 2 bytes and written in 1, twice (row and column scaled).
CAST_BYTES = 5.0


def layer_bytes(
    shape: Shape, plans: Plans, tokens: Values, block_width: Values, cast: Values
) -> Values:
    """Return bytes moved by the element-wise work of one forward layer pass on one rank."""
    split = np.where(np.asarray(plans.sequence_parallel) > 0, plans.tp, 1.0)
    hidden = shape.hidden / split
    wide = QKV_TOUCHES * shape.qkv_width + BLOCK_TOUCHES * shape.gates * block_width
    wide = (wide + SCAN_TOUCHES * shape.scan_width) / plans.tp
    inputs = 2.0 * hidden + (shape.out_width + block_width) / plans.tp
    return tokens * (2.0 * (NORM_TOUCHES * hidden + wide) + cast * CAST_BYTES * inputs)


def logits_bytes(shape: Shape, plans: Plans, tokens: Values, held_bytes: Values) -> Values:
    """Return bytes moved by the loss: what is held per logit is written and read, both ways."""
    return tokens * shape.vocab / plans.tp * held_bytes * LOGITS_TOUCHES


def stream_s(traffic_bytes: Values, accelerator: Accelerator) -> Values:
    """Return the time to move bytes through device memory."""
    return traffic_bytes / (accelerator.hbm_bytes_s * HBM_SHARE)
