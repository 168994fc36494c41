"""Teams and prices of a fleet file in the terms of a governed policy."""

from collections.abc import Iterable

from msgspec import UNSET, UnsetType

from tenfold.model.fleet.spec import FleetSpec, Pool, Team
from tenfold.model.job.job import WHOLE
from tenfold.model.policy.governance import TeamRules
from tenfold.model.policy.site_costs import DataPlace, SiteCosts, SiteRoute
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


def site_costs(spec: FleetSpec) -> SiteCosts | UnsetType:
    """Return what each site with nodes costs; unset if the fleet has one, or none has a price."""
    by_site: dict[str, list[Pool]] = {}
    for pool in spec.pools:
        by_site.setdefault(pool.site, []).append(pool)
    prices = {site: gpu_prices(pools) for site, pools in by_site.items()}
    if len(by_site) < 2 or not any(prices.values()):
        return UNSET
    return SiteCosts(
        usd_micros_per_gpu_hour=prices,
        routes=tuple(
            SiteRoute(link.a, link.b, link.bandwidth, link.egress_usd_micros_per_gb)
            for link in spec.links
        ),
        data={one.name: DataPlace(one.bytes, one.sites) for one in spec.data},
    )


def gpu_prices(pools: Iterable[Pool]) -> dict[str, UsdMicros]:
    """Return the hourly price of each GPU type; where pools differ, the mean over their GPUs."""
    total: dict[str, int] = {}
    gpus: dict[str, int] = {}
    for pool in pools:
        if pool.accelerator is not None and pool.price is not None and pool.gpus:
            hourly = pool.price.usd_micros_per_hour * pool.gpus
            total[pool.accelerator] = total.get(pool.accelerator, 0) + hourly
            gpus[pool.accelerator] = gpus.get(pool.accelerator, 0) + pool.gpus
    return {name: UsdMicros(round(price / gpus[name])) for name, price in total.items()}
