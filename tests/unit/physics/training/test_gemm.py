"""GEMM time by shape and precision: padding, waves, memory floor, and what fewer bits buy."""

import numpy as np
import pytest

from tenfold.physics.training.arrays import PRECISION_CODES
from tenfold.physics.training.gemm import element_bytes, gemm_s, usable_flops
from training_builders import part

H100 = part("H100")
# The on-device ratios that bound R26 and R27: datasheet peaks differ by 2x and by about 15x.
HALF_OVER_TF32 = 2.0


def seconds(m: float, n: float, k: float, precision: str = "bf16", count: float = 1.0) -> float:
    code = PRECISION_CODES[precision]
    return float(
        gemm_s(
            m,
            n,
            k,
            flops_s=usable_flops(H100, code),
            hbm_bytes_s=H100.hbm_bytes_s,
            sm_count=H100.sm_count,
            operand_bytes=element_bytes(code),
            count=count,
        )
    )


def share_of_peak(m: float, n: float = 8192, k: float = 8192) -> float:
    return 2 * m * n * k / seconds(m, n, k) / float(H100.peak_bf16)


def test_a_large_gemm_reaches_the_measured_ceiling_and_never_passes_it():
    ceiling = float(H100.matmul_ceiling) / float(H100.peak_bf16)
    assert 0.9 * ceiling < share_of_peak(16384) <= ceiling


def test_efficiency_falls_with_few_rows_as_measured():
    """H100 timings: 16% of peak at 64 rows, 59% at 256, about 80% at 8,192."""
    assert share_of_peak(64) == pytest.approx(0.16, abs=0.05)
    assert share_of_peak(256) == pytest.approx(0.59, abs=0.10)
    assert share_of_peak(8192) == pytest.approx(0.80, abs=0.06)


def test_a_ragged_tile_costs_as_much_as_a_whole_one():
    assert seconds(129, 8192, 8192) == pytest.approx(seconds(256, 8192, 8192), rel=0.06)
    assert seconds(257, 4096, 16384) > seconds(256, 4096, 16384)


def test_a_thin_gemm_waits_for_its_weights():
    weights_s = 2.0 * 8192 * 8192 / float(H100.hbm_bytes_s)
    assert seconds(1, 8192, 8192) > weights_s
    assert seconds(1, 8192, 8192) < 2 * weights_s


def test_equal_gemms_in_one_group_share_their_waves():
    assert seconds(128, 512, 2048, count=64) < 64 * seconds(128, 512, 2048)


def test_half_precision_doubles_tf32_and_tensor_cores_beat_fp32_tenfold():
    big = 8192, 8192, 8192
    assert seconds(*big, "tf32") / seconds(*big) == pytest.approx(HALF_OVER_TF32, rel=0.1)
    assert seconds(*big, "fp32") / seconds(*big) > 10
    assert seconds(*big, "fp16") == seconds(*big)


def test_fp8_is_faster_than_bf16_by_less_than_its_peak_says():
    gain = seconds(8192, 8192, 8192) / seconds(8192, 8192, 8192, "fp8")
    assert 1.3 < gain <= 2.0


def test_scalar_and_array_precisions_agree():
    codes = np.arange(5)
    many = np.asarray(usable_flops(H100, codes))
    assert many.tolist() == [float(usable_flops(H100, int(code))) for code in codes]


def test_a_part_without_fp8_runs_it_at_half_precision():
    old = part("A100-80G-SXM")
    assert usable_flops(old, PRECISION_CODES["fp8"]) == usable_flops(old, PRECISION_CODES["bf16"])
