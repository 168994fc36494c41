"""A policy: which order jobs go in, and how a place is chosen for them."""

from typing import Literal, get_args

from msgspec import Struct

from tenfold.model.policy.governance import GovernanceRules
from tenfold.model.policy.slurm import SlurmPolicy

PolicyName = Literal[
    "tenfold", "fifo", "sjf", "srtf", "srsf", "las", "edf", "fair", "slurm", "governed"
]
Placement = Literal["tenfold", "best-fit", "fgd"]
"""`tenfold` spoils least of what jobs like those of late could use; `best-fit` leaves the
fewest CPUs and GPUs; `fgd` is the published descent of the fragmentation gradient."""

POLICIES: tuple[PolicyName, ...] = get_args(PolicyName)
PLACEMENTS: tuple[Placement, ...] = get_args(Placement)
ORACLES: tuple[PolicyName, ...] = ("sjf", "srtf", "srsf")
"""Policies that read true durations, which only a replay knows."""


class Policy(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What decides about order and place, with its settings."""

    name: PolicyName = "tenfold"
    placement: Placement = "tenfold"
    las_limits_gpu_s: tuple[float, ...] = (3_250, 7_200)
    """Attained service at which a job falls into the next queue of `las`."""
    keep_factor: float = 0.5
    """`tenfold` displaces a job only if its turn is worse by more than 1 / this."""
    slurm: SlurmPolicy | None = None
    """Weights and intervals of `slurm`, as read from a slurm.conf."""
    govern: GovernanceRules | None = None
    """Teams, quotas, promises and preemption; None means one line for all."""
