"""What a job costs at each site: its GPUs, the egress of its data, and the wait for staging.

The GPUs are held while data is staged, so that time is paid for like the run. The run is as long
as the time limit of the job, less what is saved; without a limit an hour is assumed for all sites.
Sets of data are staged one after the other, each from the site where that costs least.
"""

from math import ceil

from msgspec import Struct

from tenfold.model.job.job import WHOLE, Job
from tenfold.model.policy.site_costs import DataPlace, SiteCosts, SiteRoute
from tenfold.model.units import HOUR, SECOND

RUN_MS_ASSUMED = HOUR
"""Run time of a job without a time limit. An assumption; set `time_limit` to replace it."""
BYTES_PER_GB = 1_000_000_000


class SiteCost(Struct, frozen=True, kw_only=True, gc=False):
    """What one job costs at one site, in micro-USD."""

    site: str
    run: int
    staging: int = 0
    """GPUs held until the data is there."""
    egress: int = 0
    staging_ms: int = 0
    is_reachable: bool = True
    """Whether a link leads to all of its data."""

    @property
    def total(self) -> int:
        """Everything together."""
        return self.run + self.staging + self.egress

    @property
    def rank(self) -> tuple[bool, int]:
        """Smaller is better; a site without a way to the data comes last."""
        return not self.is_reachable, self.total


def site_costs(
    job: Job, accelerator: str, costs: SiteCosts, progress_ms: int = 0
) -> dict[str, SiteCost]:
    """Return what a job costs at each site that has a price for this accelerator."""
    found: dict[str, SiteCost] = {}
    for site, prices in costs.usd_micros_per_gpu_hour.items():
        hourly = prices.get(accelerator)
        if hourly is not None:
            found[site] = _at(site, job, hourly, costs, progress_ms)
    return found


def _at(site: str, job: Job, hourly: int, costs: SiteCosts, progress_ms: int) -> SiteCost:
    limit_ms = RUN_MS_ASSUMED if job.limit_ms is None else job.limit_ms
    milli = job.shape.gpus * WHOLE + job.shape.milli
    staging_ms = egress = 0
    is_reachable = True
    for name in _data_of(job):
        place = costs.data.get(name)
        if place is None or site in place.sites:
            continue
        ways = [_way(place, route, milli, hourly) for route in _routes(site, place, costs)]
        if not ways:
            is_reachable = False
            continue
        _, one_ms, one_egress = min(ways)
        staging_ms, egress = staging_ms + one_ms, egress + one_egress
    return SiteCost(
        site=site,
        run=_held(milli, hourly, max(limit_ms - progress_ms, 0)),
        staging=_held(milli, hourly, staging_ms),
        egress=egress,
        staging_ms=staging_ms,
        is_reachable=is_reachable,
    )


def _data_of(job: Job) -> tuple[str, ...]:
    data = None if job.terms is None else job.terms.data
    return data if isinstance(data, tuple) else ()


def _routes(site: str, place: DataPlace, costs: SiteCosts) -> list[SiteRoute]:
    ends = [(site, holder) for holder in place.sites]
    return [one for one in costs.routes if (one.a, one.b) in ends or (one.b, one.a) in ends]


def _way(place: DataPlace, route: SiteRoute, milli: int, hourly: int) -> tuple[int, int, int]:
    """Return what a route costs in all, how long it takes, and its egress."""
    staging_ms = ceil(place.bytes / route.bytes_per_s * SECOND)
    egress = place.bytes * route.usd_micros_per_gb // BYTES_PER_GB
    return _held(milli, hourly, staging_ms) + egress, staging_ms, egress


def _held(milli: int, hourly: int, ms: int) -> int:
    return milli * hourly * ms // (WHOLE * HOUR)
