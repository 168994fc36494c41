"""The fitted coefficients of a profile: transform, default and prior width at each level.

A coefficient is in log space (a factor) or logit space (a share). Widths are standard deviations of
the default, of a family around it, of an accelerator generation inside a family, and of one stack.
"""

import numpy as np
from numpy.typing import NDArray

from tenfold.physics.training.profile import TrainingProfile

Floats = NDArray[np.float64]

TABLE: dict[str, tuple[float, str, float, float, float, float]] = {
    "gemm": (0.93, "log", 0.08, 0.07, 0.05, 0.03),
    "gemm_fp8": (0.88, "log", 0.10, 0.08, 0.06, 0.03),
    "gemm_fp4": (0.65, "log", 0.20, 0.08, 0.06, 0.03),
    "attention": (0.78, "log", 0.12, 0.22, 0.22, 0.08),
    "elementwise": (1.2, "log", 0.25, 0.25, 0.12, 0.04),
    "launch_s": (200e-6, "log", 0.8, 0.8, 0.5, 0.2),
    "micro_s": (0.5e-3, "log", 1.0, 0.8, 0.3, 0.1),
    "step_s": (5e-3, "log", 1.0, 0.8, 0.3, 0.1),
    "tp_overlap": (0.15, "logit", 0.5, 0.7, 0.3, 0.1),
    "dp_overlap": (0.5, "logit", 1.0, 1.0, 0.3, 0.1),
    "fsdp_overlap": (0.8, "logit", 1.0, 1.0, 0.3, 0.1),
    "p2p_overlap": (0.3, "logit", 1.0, 1.0, 0.3, 0.1),
    "nic": (0.75, "logit", 0.5, 0.5, 0.3, 0.1),
    "jitter": (0.006, "log", 0.5, 0.5, 0.3, 0.2),
    "slowdown": (0.1, "log", 0.5, 0.3, 0.2, 0.1),
    "moe_gemm": (0.75, "log", 0.25, 0.15, 0.10, 0.20),
    "moe_overlap": (0.2, "logit", 1.0, 0.5, 0.3, 0.3),
    "moe_launch_s": (500e-6, "log", 1.0, 0.5, 0.5, 0.8),
    "expert_launch_s": (40e-6, "log", 1.0, 0.5, 0.3, 0.6),
}
NAMES = tuple(TABLE)
_SHARE = np.array([TABLE[name][1] == "logit" for name in NAMES])
WIDTHS = np.array([[TABLE[name][2 + level] for name in NAMES] for level in range(4)])


def coefficients_of(values: Floats) -> Floats:
    """Return coefficients of profile values (last axis in `NAMES` order)."""
    # A share of exactly zero or one has no finite position.
    share = np.clip(np.where(_SHARE, values, 0.5), 0.002, 0.998)
    return np.where(_SHARE, np.log(share / (1.0 - share)), np.log(np.maximum(values, 1e-12)))


def values_of(coefficients: Floats) -> Floats:
    """Return profile values of coefficients (last axis in `NAMES` order)."""
    return np.where(
        _SHARE, 1.0 / (1.0 + np.exp(-coefficients)), np.exp(np.where(_SHARE, 0.0, coefficients))
    )


CENTRE = coefficients_of(np.array([TABLE[name][0] for name in NAMES]))


def with_coefficients(profile: TrainingProfile, coefficients: Floats) -> TrainingProfile:
    """Return the profile with the given coefficients."""
    values = values_of(coefficients)
    fields = {name: getattr(profile, name) for name in TrainingProfile.__slots__}
    fields.update({name: values[..., i] for i, name in enumerate(NAMES)})
    return TrainingProfile(**fields)
