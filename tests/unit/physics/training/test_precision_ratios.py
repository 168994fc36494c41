"""Matrix multiplies by precision: the model beside rates measured on an H200."""

import json
from pathlib import Path

import pytest

from tenfold.compose.fleet import load_facts
from tenfold.physics.training.arrays import PRECISION_CODES
from tenfold.physics.training.gemm import element_bytes, gemm_s, usable_flops
from tenfold.physics.training.shapes import training_part

MEASURED = Path(__file__).parents[4] / "benchmarks" / "planner" / "h200_gemm.jsonl"
PART = training_part(load_facts(None).accelerators.get("H200"))


def measured(precision: str, size: int) -> float:
    rows = [json.loads(line) for line in MEASURED.read_text().splitlines()]
    return next(
        row["tflops"] for row in rows if (row.get("precision"), row.get("m")) == (precision, size)
    )


def modelled(precision: str, size: int) -> float:
    code = PRECISION_CODES[precision]
    seconds = gemm_s(
        size,
        size,
        size,
        flops_s=usable_flops(PART, code),
        hbm_bytes_s=PART.hbm_bytes_s,
        sm_count=PART.sm_count,
        operand_bytes=element_bytes(code),
    )
    return 2 * size**3 / float(seconds) / 1e12


@pytest.mark.parametrize("size", [4096, 8192])
@pytest.mark.parametrize("precision", ["fp32", "tf32", "fp16", "bf16", "fp8"])
def test_large_multiplies_run_as_measured_in_every_precision(precision: str, size: int):
    assert modelled(precision, size) == pytest.approx(measured(precision, size), rel=0.09)


@pytest.mark.parametrize(("precision", "least"), [("tf32", 7), ("bf16", 14), ("fp8", 27)])
def test_tensor_cores_are_faster_than_fp32_by_the_measured_ratio(precision: str, least: float):
    """R26, R27: the ratio of the model beside the measured one."""
    seen = measured(precision, 8192) / measured("fp32", 8192)
    assert seen > least
    assert modelled(precision, 8192) / modelled("fp32", 8192) == pytest.approx(seen, rel=0.06)
