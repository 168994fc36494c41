"""A policy: the order of jobs, and how nodes are chosen for them."""

from typing import Literal, get_args

from msgspec import UNSET, Struct, UnsetType

from tenfold.model.policy.governance import GovernanceRules
from tenfold.model.policy.site_costs import SiteCosts
from tenfold.model.policy.slurm import SlurmPolicy

PolicyName = Literal[
    "tenfold", "fifo", "sjf", "srtf", "srsf", "las", "edf", "fair", "slurm", "governed"
]
Placement = Literal["tenfold", "best-fit", "fgd"]
"""`tenfold` fragments capacity least for recent kinds of jobs; `best-fit` leaves the fewest CPUs
and GPUs; `fgd` is the published fragmentation gradient descent."""

POLICIES: tuple[PolicyName, ...] = get_args(PolicyName)
PLACEMENTS: tuple[Placement, ...] = get_args(Placement)
ORACLES: tuple[PolicyName, ...] = ("sjf", "srtf", "srsf")
"""Policies that read true durations, which only a replay has."""


class Policy(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Queue order and placement, with their settings."""

    name: PolicyName = "tenfold"
    placement: Placement = "tenfold"
    las_limits_gpu_s: tuple[float, ...] = (3_250, 7_200)
    """Attained service at which a job drops to the next queue of `las`."""
    keep_factor: float = 0.5
    """`tenfold` preempts a job only if its rank is worse by more than 1 / this."""
    slurm: SlurmPolicy | None = None
    """Weights and intervals of `slurm`, as read from a slurm.conf."""
    govern: GovernanceRules | None = None
    """Teams, quotas, reservations and preemption; None means one queue for all."""
    sites: SiteCosts | UnsetType = UNSET
    """What each site of the fleet costs; unset where it has one site."""
