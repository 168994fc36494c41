"""Accelerators as arrays, with a fallback for everything a datasheet leaves out.

Peaks mis-rank vendors (an MI300X reaches half of its own peak, an H100 four fifths), so compute is
always counted against the measured matmul ceiling if there is one, and else against a typical
share of the peak.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tenfold.model.fleet.hardware import Accelerator
from tenfold.physics.arrays import Floats

# Marketing GB are GiB on every part whose driver figure is known (80 -> 79.6, 141 -> 140.4 GiB);
# GDDR parts give one sixteenth of it to error correction.
_VISIBLE_SHARE = 0.995
_GDDR_VISIBLE_SHARE = 0.9375
_GDDR_TB_PER_S = 1.1
# Measured ceiling over dense peak: A100 0.87, H100/H200 0.80, B200/GB200 0.75, Gaudi 0.97/0.74.
_CEILING_SHARE_16 = 0.80
_CEILING_SHARE_8 = 0.73
_CEILING_SHARE_4 = 0.65
_PCIE_GB_S = 64.0
_USUAL_W_PER_TFLOP = 0.7


@dataclass(frozen=True, slots=True)
class Devices:
    """Accelerator parameters, one array entry per configuration, in SI units."""

    ceiling_16_flops: Floats
    ceiling_8_flops: Floats
    ceiling_4_flops: Floats
    memory_bytes: Floats
    memory_bytes_per_s: Floats
    link_bytes_per_s: Floats
    """One direction of the scale-up link of one accelerator."""
    tdp_w: Floats
    switched: Floats
    """1 where all ranks meet over a switch or full mesh (NVLink, xGMI, ICI), 0 over PCIe."""
    domain: Floats
    """Accelerators that this link joins; ranks beyond them meet over the network."""
    network_bytes_per_s: Floats
    """One direction of the network of one accelerator."""


@dataclass(frozen=True, slots=True)
class ServingNetwork:
    """How many accelerators a link joins, and the network of each beyond them."""

    domain: float
    bytes_per_s: float


NO_NETWORK = ServingNetwork(float("inf"), float("inf"))
"""Where no replica is wider than a node."""


def serving_devices(
    parts: Sequence[Accelerator], networks: Sequence[ServingNetwork] | None = None
) -> Devices:
    """Return accelerators, and the networks between them, as the arrays that serving takes."""
    known = networks or [NO_NETWORK] * len(parts)
    rows = [
        _row(part) | {"domain": network.domain, "network_bytes_per_s": network.bytes_per_s}
        for part, network in zip(parts, known, strict=True)
    ]
    return Devices(**{name: np.array([row[name] for row in rows]) for name in Devices.__slots__})


def _row(part: Accelerator) -> dict[str, float]:
    peak_16 = part.training_tflops or 1.0
    ceiling_16 = part.bf16_matmul_tflops or _CEILING_SHARE_16 * peak_16
    # A part without an 8-bit or 4-bit unit still serves such weights, at its 16-bit rate.
    ceiling_8 = part.fp8_matmul_tflops or _CEILING_SHARE_8 * (part.fp8_tflops or 0.0)
    ceiling_8 = max(ceiling_8, ceiling_16)
    ceiling_4 = max(_CEILING_SHARE_4 * (part.fp4_tflops or 0.0), ceiling_8)
    pcie = not part.scaleup_link or part.scaleup_link.startswith("PCIe")
    return {
        "ceiling_16_flops": ceiling_16 * 1e12,
        "ceiling_8_flops": ceiling_8 * 1e12,
        "ceiling_4_flops": ceiling_4 * 1e12,
        "memory_bytes": part.memory_bytes * _visible_share(part, pcie),
        "memory_bytes_per_s": part.memory_tb_per_s * 1e12,
        "link_bytes_per_s": (part.scaleup_gb_per_s or part.pcie_gb_per_s or _PCIE_GB_S) * 1e9,
        "tdp_w": part.tdp_w or _USUAL_W_PER_TFLOP * peak_16,
        "switched": 0.0 if pcie else 1.0,
    }


def _visible_share(part: Accelerator, pcie: bool) -> float:
    """Detect GDDR cards by their bus and slow memory; the RTX PRO line keeps all of its memory."""
    gddr = pcie and part.memory_tb_per_s < _GDDR_TB_PER_S
    return _GDDR_VISIBLE_SHARE if gddr else _VISIBLE_SHARE
