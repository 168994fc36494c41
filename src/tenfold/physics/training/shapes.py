"""From the records of the catalogue to the arrays that formulas take."""

from dataclasses import replace

from tenfold.model.facts.shape import ModelShape
from tenfold.model.fleet.hardware import Accelerator as Part
from tenfold.physics.training.arrays import Accelerator, Shape, decoder

# What a part without a measured matmul ceiling reaches of its datasheet peak. Measured ones:
# NVIDIA 0.76-0.87, AMD 0.51-0.63, Intel 0.74-0.97.
DEFAULT_CEILING = {"NVIDIA": 0.78, "AMD": 0.55, "Google": 0.85}
DEFAULT_CEILING_OTHER = 0.75
DEFAULT_FP8_CEILING = 0.72
# Drivers and page tables keep about a hundredth of a device's memory.
MEMORY_SHARE = 0.99
DEFAULT_UNITS = {"tpu": 8, "gpu": 128, "npu": 64, "edge": 16}
FLASH_OVER_MATMUL = 1.25


def training_shape(shape: ModelShape) -> Shape:
    """Return a model's shape as the numbers that kernels see."""
    dense_layers = shape.layers - shape.moe_layers if shape.experts else 0
    mla = shape.mla
    latent = (
        None
        if mla is None
        else (
            float(mla.q_rank or shape.hidden),
            float(mla.kv_rank),
            float(mla.rope_head_dim),
            float(mla.nope_head_dim),
            float(mla.value_head_dim),
        )
    )
    made = decoder(
        layers=shape.layers,
        hidden=shape.hidden,
        heads=shape.heads,
        ffn=shape.ffn,
        vocab=shape.vocab,
        kv_heads=shape.kv_heads,
        head_dim=shape.head_dim,
        gated=shape.gated,
        experts=shape.experts,
        topk=shape.experts_per_token,
        shared_ffn=float(shape.shared_experts * (shape.shared_ffn or shape.ffn)),
        dense_layers=dense_layers,
        dense_ffn=shape.dense_ffn,
        tied=shape.tied,
        mla=latent,
        attention_layers=shape.attention_layers,
        scan_width=float(shape.scan_width),
    )
    return replace(made, qkv_width=float(shape.mixer_width)) if shape.mixer_width else made


def training_part(part: Part) -> Accelerator:
    """Return an accelerator's datasheet and measured ceilings, with defaults where unknown."""
    half = part.training_tflops
    share = DEFAULT_CEILING.get(part.vendor, DEFAULT_CEILING_OTHER)
    ceiling = part.bf16_matmul_tflops or half * share
    fp8 = part.fp8_tflops or half
    fp8_ceiling = part.fp8_matmul_tflops or (fp8 * DEFAULT_FP8_CEILING if fp8 > half else ceiling)
    fp32 = part.fp32_tflops or half / 16
    return Accelerator(
        peak_fp32=fp32 * 1e12,
        peak_tf32=(part.tf32_tflops or fp32) * 1e12,
        peak_bf16=half * 1e12,
        peak_fp8=fp8 * 1e12,
        peak_fp4=(part.fp4_tflops or fp8) * 1e12,
        matmul_ceiling=ceiling * 1e12,
        matmul_ceiling_fp8=fp8_ceiling * 1e12,
        hbm_bytes_s=part.memory_tb_per_s * 1e12,
        memory_bytes=part.memory_bytes * MEMORY_SHARE,
        scaleup_bytes_s=(part.scaleup_gb_per_s or part.pcie_gb_per_s or 16.0) * 1e9,
        sm_count=part.compute_units or DEFAULT_UNITS[part.kind],
        attention_ceiling=ceiling * 1e12 * FLASH_OVER_MATMUL,
        # Parts before fp8 have narrower tensor cores, which small heads fill better.
        attention_narrow=0.74 if part.fp8_tflops else 0.9,
        fixed_heads=float(part.kind == "gpu"),
    )
