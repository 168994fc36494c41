"""How gradients are exchanged: compressed or not, hidden behind compute or not."""

from dataclasses import replace

import numpy as np
from msgspec import Struct

from tenfold.physics.training.calibration import Calibration

COMPRESS_BYTES = {32: 0.0, 16: 12.0, 8: 18.0}
"""Memory traffic per gradient: fp32 read and the short form written, then back; 8 bits also read
and write the fp32 error that is carried to the next step. An assumption."""
OVERLAPS = ("tp_overlap", "dp_overlap", "fsdp_overlap", "p2p_overlap", "moe_overlap")


class Exchange(Struct, frozen=True, kw_only=True):
    """How gradients are exchanged, where it differs from the stack's own way."""

    gradient_bits: int | None = None
    compress_bytes: float | None = None
    """Memory traffic per gradient to compress and expand it; None for the default of the bits."""
    overlap: bool = True


AS_IS = Exchange()


def exchanged(calibration: Calibration, exchange: Exchange) -> Calibration:
    """Return a calibration with gradients of other bits, and with or without overlap."""
    profile = calibration.profile
    if exchange.gradient_bits is not None:
        sent = exchange.gradient_bits / 8
        own = float(np.max(profile.grad_bytes))
        cost = exchange.compress_bytes
        if cost is None:
            cost = COMPRESS_BYTES[exchange.gradient_bits] if sent < own else 0.0
        profile = replace(profile, grad_bytes=sent, compress_bytes=cost)
    if not exchange.overlap:
        profile = replace(profile, **dict.fromkeys(OVERLAPS, 0.0))
    return replace(calibration, profile=profile)
