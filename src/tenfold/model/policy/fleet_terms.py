"""Teams and prices of a fleet file in the terms of a governed policy."""

from tenfold.model.fleet.spec import FleetSpec, Team
from tenfold.model.job.job import WHOLE
from tenfold.model.policy.governance import TeamRules
from tenfold.model.units import UsdMicros


def team_terms(team: Team) -> TeamRules:
    """Return the terms of a team of a fleet file, with quotas in thousandths of a GPU."""
    return TeamRules(
        id=team.id,
        parent=team.parent,
        weight=team.weight,
        quota={name: gpus * WHOLE for name, gpus in team.quota_gpus.items()},
        residency=team.residency,
    )


def gpu_prices(spec: FleetSpec) -> dict[str, UsdMicros]:
    """Return the hourly price of each GPU type; where pools differ, the mean over their GPUs."""
    total: dict[str, int] = {}
    gpus: dict[str, int] = {}
    for pool in spec.pools:
        if pool.accelerator is not None and pool.price is not None and pool.gpus:
            hourly = pool.price.usd_micros_per_hour * pool.gpus
            total[pool.accelerator] = total.get(pool.accelerator, 0) + hourly
            gpus[pool.accelerator] = gpus.get(pool.accelerator, 0) + pool.gpus
    return {name: UsdMicros(round(price / gpus[name])) for name, price in total.items()}
