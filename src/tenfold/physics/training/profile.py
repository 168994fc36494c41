"""The efficiency profile of a software stack: efficiencies, overlap, launch floor.

Every field is a plain number (or an array over plans while fitting), so a profile is a fact that
can be stored, shown and refined. `calibration.py` refines one from observed runs.
"""

from dataclasses import dataclass

from tenfold.physics.training.arrays import Values


@dataclass(frozen=True, slots=True)
class TrainingProfile:
    """Efficiencies of one framework x version family x accelerator."""

    gemm: Values = 0.95
    gemm_fp8: Values = 0.75
    gemm_fp4: Values = 0.60
    attention: Values = 0.85
    flash: Values = 1.0
    elementwise: Values = 1.0
    launch_s: Values = 150e-6
    micro_s: Values = 0.0
    step_s: Values = 5e-3
    tp_overlap: Values = 0.1
    dp_overlap: Values = 0.5
    fsdp_overlap: Values = 0.9
    p2p_overlap: Values = 0.3
    scatter_gather: Values = 1.0
    nic: Values = 0.8
    grad_bytes: Values = 4.0
    # Memory traffic per gradient to compress it before it is sent and expand it after.
    compress_bytes: Values = 0.0
    optimizer_bytes: Values = 45.0
    # Bytes a parameter: gradients that stay allocated, those new in every step, optimizer states,
    # and copies of gradients that the optimizer makes.
    grad_held_bytes: Values = 4.0
    grad_fresh_bytes: Values = 0.0
    state_bytes: Values = 12.0
    grad_copy_bytes: Values = 0.0
    # What a stack keeps beyond the least: keys and values repeated for every query head, vectors of
    # the block's width, and bytes per logit while full recompute runs.
    kv_repeated: Values = 0.0
    block_extra: Values = 0.0
    logits_extra_bytes: Values = 0.0
    # Log-softmax and its gradient in single precision, the logits and their gradient in half.
    logits_bytes: Values = 12.0
    jitter: Values = 0.007
    slowdown: Values = 0.1
    moe_imbalance: Values = 1.1
    moe_gemm: Values = 0.8
    moe_overlap: Values = 0.0
    moe_launch_s: Values = 100e-6
    expert_launch_s: Values = 40e-6
    zero_bubble: Values = 0.0
    clock: Values = 1.0
    sigma: Values = 0.2
