"""GEMM time by shape: tile padding, wave quantisation, memory floor.

The form was fitted on 101,010 H100 and 27,384 A100 timings (median 3.7-4.2% for m,n,k >= 1024).
Launch cost is not here: kernels queue behind each other, so the floor belongs to a layer pass.
"""

import numpy as np

from tenfold.physics.training.arrays import Accelerator, Values

TILE_M, TILE_N = 128.0, 128.0
# Prologue and epilogue of a tile cost as much as this many steps of the reduction.
K_OVERHEAD = 120.0
# Split-K and smaller tiles win back most of a ragged last wave; this share stays lost.
WAVE_LOSS = 0.2
HBM_SHARE = 0.82
KERNEL_S = 3.0e-6


def usable_flops(accelerator: Accelerator, precision: Values) -> Values:
    """Return the FLOP/s a large GEMM reaches: the measured ceiling, by precision code."""
    half = accelerator.matmul_ceiling
    share = half / accelerator.peak_bf16
    code = np.asarray(precision)
    if code.ndim == 0:
        table = (
            accelerator.peak_fp32 * share,
            accelerator.peak_tf32 * share,
            half,
            accelerator.matmul_ceiling_fp8,
            accelerator.peak_fp4 * accelerator.matmul_ceiling_fp8 / accelerator.peak_fp8,
        )
        return table[int(code)]
    low = np.where(code == 3, accelerator.matmul_ceiling_fp8, half)
    fp4 = accelerator.peak_fp4 * accelerator.matmul_ceiling_fp8 / accelerator.peak_fp8
    low = np.where(code == 4, fp4, low)
    low = np.where(code == 1, accelerator.peak_tf32 * share, low)
    return np.where(code == 0, accelerator.peak_fp32 * share, low)


def element_bytes(precision: Values) -> Values:
    """Return bytes of one GEMM operand by precision code."""
    return np.select([np.asarray(precision) <= 1, np.asarray(precision) == 2], [4.0, 2.0], 1.0)


def gemm_s(  # noqa: PLR0913 - a kernel has that many numbers
    m: Values,
    n: Values,
    k: Values,
    *,
    flops_s: Values,
    hbm_bytes_s: Values,
    sm_count: Values,
    operand_bytes: Values,
    count: Values = 1.0,
) -> Values:
    """Return the time of `count` equal GEMMs run as one group: (m x k) times (k x n)."""
    tiles = np.ceil(m * (1.0 / TILE_M)) * np.ceil(n * (1.0 / TILE_N)) * count
    waves = tiles / sm_count
    waves = waves + WAVE_LOSS * (np.ceil(waves) - waves)
    compute = waves * (k + K_OVERHEAD) * (2.0 * TILE_M * TILE_N * sm_count / flops_s)
    traffic = (operand_bytes * k * (m + n) + 2.0 * m * n) * (count / (hbm_bytes_s * HBM_SHARE))
    # The fourth-power mean stays near the larger of both, as kernels overlap them.
    square_c, square_t = compute * compute, traffic * traffic
    return KERNEL_S + np.sqrt(np.sqrt(square_c * square_c + square_t * square_t))
