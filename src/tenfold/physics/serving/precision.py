"""What a precision means for bytes and for multiply width, by kind of tensor.

Engines keep embeddings and the head in 16 bit, and they quantise the cache only when the
checkpoint carries scales for it: converted 8-bit and 4-bit checkpoints do, natively quantised
ones (GPT-OSS, DeepSeek in 8 bit) do not.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tenfold.physics.arrays import Floats
from tenfold.physics.serving.kv_cache import Widths
from tenfold.physics.serving.shapes import Shapes

# A 4-bit value plus an 8-bit scale per 16 (NVFP4) or per 32 values (MXFP4).
_NVFP4_BYTES = 0.5 + 1.0 / 16.0
_MXFP4_BYTES = 0.5 + 1.0 / 32.0
_BITS = {
    "fp32": 32.0,
    "tf32": 32.0,
    "fp16": 16.0,
    "bf16": 16.0,
    "fp8": 8.0,
    "int8": 8.0,
    "fp4": 4.0,
    "nvfp4": 4.0,
    "mxfp4": 4.0,
    "mxfp8": 8.0,
    "int4": 4.0,
}


@dataclass(frozen=True, slots=True)
class PrecisionWidths:
    """Bytes and multiply widths of every configuration."""

    widths: Widths
    math_bits: Floats
    expert_math_bits: Floats


def precision_widths(precisions: Sequence[str], shape: Shapes) -> PrecisionWidths:
    """Return bytes and multiply widths for each precision name; unknown names raise `KeyError`."""
    bits = np.array([_BITS[name.lower()] for name in precisions])
    plain = np.where(bits == 4, _NVFP4_BYTES, bits / 8.0)
    native = shape.native_4bit_experts > 0
    unscaled = native | (shape.mla_rank > 0)
    kv = np.where(bits >= 16, bits / 8.0, np.where(unscaled & (bits == 8), 2.0, 1.0))
    widths = Widths(
        dense_bytes=np.where(native, 2.0, plain),
        expert_bytes=np.where(native, _MXFP4_BYTES, plain),
        kv_bytes=kv,
    )
    # Hopper has no 4-bit unit: GPT-OSS experts are widened to 16 bit there and to 8 bit on
    # Blackwell.
    return PrecisionWidths(
        widths,
        math_bits=np.where(native, 16.0, bits),
        expert_math_bits=np.where(native, np.where(bits >= 8, 16.0, 8.0), bits),
    )
