"""A job with a deadline that may run on spot or on-demand capacity."""

from typing import Literal

from msgspec import Struct

WAIT, SPOT, ON_DEMAND = 0, 1, 2
"""Where such a job is, or goes next."""

SpotPolicyName = Literal["tenfold", "on-demand", "greedy", "uniform-progress"]


class SpotTask(Struct, frozen=True, kw_only=True):
    """Work with a deadline. Prices are per hour, in any one currency."""

    work_s: float
    deadline_s: float
    changeover_s: float
    """Time until a started job makes progress: provisioning, and loading its checkpoint."""
    ondemand_price: float
    spot_price: float
