"""Options shared by commands that run the same jobs several times."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter, validators

from tenfold.model.units import SECOND, Millis
from tenfold.sim.world import SimSettings

AT_LEAST_ONE = validators.Number(gte=1, lte=10_000)
NOT_NEGATIVE = validators.Number(gte=0, lte=1e9)
FleetFile = Annotated[Path, Parameter(help="Fleet file")]
JobsFile = Annotated[Path, Parameter(help="Job table (CSV or Parquet) or public trace")]
Failures = Annotated[
    str,
    Parameter(
        help="Failure preset (`tenfold facts list --kind failure`) or fault trace (default: none)"
    ),
]
Seed = Annotated[int, Parameter(help="Random seed for failures (default: 0)")]
ASSUMED_RESTART_S = 300.0
"""An assumption without a published source: what the policy `governed` reckons with by default."""
RestartCost = Annotated[
    float | None,
    Parameter(
        help="Seconds lost on each restart, after a preemption or failure (default: 300, assumed)",
        validator=NOT_NEGATIVE,
    ),
]
Workers = Annotated[
    int | None, Parameter(help="Worker processes (default: one per CPU)", validator=AT_LEAST_ONE)
]


def world_settings(restart_cost_s: float | None, seed: int) -> SimSettings:
    """Return the simulator settings of all runs."""
    cost_s = ASSUMED_RESTART_S if restart_cost_s is None else restart_cost_s
    return SimSettings(restart_cost_ms=Millis(round(cost_s * SECOND)), seed=seed)


def restart_assumption(restart_cost_s: float | None) -> str:
    """Return what is assumed about restarts; empty if the user set their cost."""
    if restart_cost_s is not None:
        return ""
    return f"assumed: a job loses {ASSUMED_RESTART_S:g} s on each restart (--restart-cost-s)"
