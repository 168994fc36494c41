"""Options that commands share which run the same jobs several ways, and what they come to."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter, validators

from tenfold.model.units import SECOND, Millis
from tenfold.sim.world import SimSettings

AT_LEAST_ONE = validators.Number(gte=1, lte=10_000)
NOT_NEGATIVE = validators.Number(gte=0, lte=1e9)
FleetFile = Annotated[Path, Parameter(help="A fleet file.")]
JobsFile = Annotated[Path, Parameter(help="Jobs: CSV or Parquet, or a public trace.")]
Failures = Annotated[
    str, Parameter(help="none, rsc-1, rsc-2, llama-3, infinitehbd, or a trace of faults.")
]
Seed = Annotated[int, Parameter(help="Seed of failures.")]
RestartCost = Annotated[
    float, Parameter(help="Seconds that each resumed run pays first.", validator=NOT_NEGATIVE)
]
Workers = Annotated[
    int | None, Parameter(help="Processes; one a processor.", validator=AT_LEAST_ONE)
]
Facts = Annotated[Path | None, Parameter(help="Folder of your own facts.")]
Json = Annotated[bool, Parameter(name="--json", negative="", help="Print JSON.")]


def world_settings(restart_cost_s: float, seed: int) -> SimSettings:
    """Return how the world behaves in all of the runs."""
    return SimSettings(restart_cost_ms=Millis(round(restart_cost_s * SECOND)), seed=seed)
