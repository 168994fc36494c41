"""The sites of a federated job from a fleet file: accelerators, step times, network paths."""

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from tenfold.compose.fleet import OpenFleet
from tenfold.model.errors import InputError
from tenfold.model.estimate import NoEstimate, TrainRow
from tenfold.model.fleet.spec import FleetSpec, Pool
from tenfold.model.ids import SiteId
from tenfold.model.units import USD
from tenfold.physics.site_routes import Route, quickest_route, shared_rates
from tenfold.study.estimate.train import estimate_train


class LocalWork(Struct, frozen=True, kw_only=True):
    """The accelerators of one site, and its step time."""

    site: str
    pool: str
    accelerator: str
    gpus: int
    step_s: float
    step_basis: str
    """`stated`, or `estimated` from the accelerators of the fleet file."""
    fits: bool
    notes: tuple[str, ...] = ()


class CoordinatorPath(Struct, frozen=True, kw_only=True):
    """The network path from a site to the coordinator; no rate if it is the same site."""

    bytes_per_s: float | None
    latency_s: float = 0.0
    usd_per_gb: float = 0.0
    over: tuple[str, ...] = ()
    """The links, as `a - b`; `assumed` where the file has none."""


def chosen_sites(spec: FleetSpec, named: Sequence[str]) -> list[SiteId]:
    """Return the sites of a job: those named, else all that have accelerators."""
    known = [site.id for site in spec.sites]
    for name in named:
        if name not in known:
            raise InputError(
                "unknown-site",
                f"fleet `{spec.name}` has no site `{name}`",
                f"sites: {', '.join(known)}",
                field="--site",
            )
    if named:
        return [SiteId(name) for name in dict.fromkeys(named)]
    return [site for site in known if any(pool.gpus and pool.site == site for pool in spec.pools)]


def most_linked(spec: FleetSpec) -> SiteId:
    """Return the site with the most links, the first of them in the file."""
    return max(
        (site.id for site in spec.sites),
        key=lambda site: sum(site in (link.a, link.b) for link in spec.links),
    )


def pool_of(spec: FleetSpec, site: SiteId) -> Pool:
    """Return the pool of a site with the most accelerators: one job trains on one kind."""
    pools = [pool for pool in spec.pools if pool.site == site and pool.gpus]
    if not pools:
        raise InputError(
            "no-accelerators",
            f"site `{site}` of fleet `{spec.name}` has no accelerators",
            "choose sites that have accelerators with `--site`",
            field="--site",
        )
    return max(pools, key=lambda pool: pool.gpus)


def local_work(
    fleet: OpenFleet, sites: Sequence[SiteId], row: TrainRow | None, stated: Mapping[str, float]
) -> list[LocalWork]:
    """Return the accelerators and step time of each site; estimated unless measured.

    `row` holds what is the same at every site: the model and its batch.
    """
    pools = [pool_of(fleet.spec, site) for site in sites]
    works: list[LocalWork] = []
    for site, pool in zip(sites, pools, strict=True):
        if site in stated:
            works.append(_work(site, pool, stated[site], "stated"))
            continue
        if row is None:
            raise InputError(
                "missing-step-time",
                f"the step time of `{site}` cannot be estimated without a model",
                f"set `--model`, or measure it: `--step-s {site}=0.5`",
                field="--step-s",
            )
        works.append(_estimated(fleet, site, pool, row))
    return works


def _estimated(fleet: OpenFleet, site: SiteId, pool: Pool, row: TrainRow) -> LocalWork:
    own = replace(
        row,
        id=site,
        accelerator=pool.accelerator or "",
        gpus=pool.gpus,
        gpus_per_node=pool.gpus_per_node,
        nic_gbps_per_gpu=pool.nics_per_node * pool.nic_bandwidth * 8 / 1e9 / pool.gpus_per_node,
    )
    [answer] = estimate_train([own], fleet.catalogue)
    if isinstance(answer, NoEstimate):
        raise InputError(
            "not-whole", f"site `{site}`: {answer.error}", "change the batch or the model"
        )
    return _work(site, pool, answer.step_s, "estimated", answer.fits, answer.notes)


def _work(
    site: SiteId,
    pool: Pool,
    step_s: float,
    basis: str,
    fits: bool = True,
    notes: tuple[str, ...] = (),
) -> LocalWork:
    return LocalWork(
        site=site,
        pool=pool.id,
        accelerator=pool.accelerator or "",
        gpus=pool.gpus,
        step_s=step_s,
        step_basis=basis,
        fits=fits,
        notes=notes,
    )


def ways(
    spec: FleetSpec,
    sites: Sequence[SiteId],
    coordinator: SiteId,
    payload_bytes: float,
    *,
    share: float,
    assumed: tuple[float, float] | None,
) -> dict[SiteId, CoordinatorPath]:
    """Return each site's path to the coordinator.

    `share` is the share of every link that the job gets; `assumed` is a rate and a latency
    for sites that have no link in the fleet file.
    """
    routes: dict[SiteId, Route] = {}
    found: dict[SiteId, CoordinatorPath] = {}
    for site in sites:
        if site == coordinator:
            found[site] = CoordinatorPath(bytes_per_s=None)
            continue
        route = quickest_route(spec.links, site, coordinator, payload_bytes)
        if route is not None:
            routes[site] = route
        elif assumed is not None:
            found[site] = CoordinatorPath(
                bytes_per_s=assumed[0], latency_s=assumed[1], over=("assumed",)
            )
        else:
            raise InputError(
                "no-route",
                f"fleet `{spec.name}` has no link between `{site}` and `{coordinator}`",
                "add a `[[link]]` to the fleet file, or assume a rate with `--wan-gbps`",
            )
    for site, rate in shared_rates(routes).items():
        pool, route = pool_of(spec, site), routes[site]
        # One node sends for the whole site.
        port = float(pool.nics_per_node * pool.nic_bandwidth)
        found[site] = CoordinatorPath(
            bytes_per_s=min(rate * share, port),
            latency_s=route.latency_s,
            usd_per_gb=route.usd_micros_per_gb / USD,
            over=tuple(f"{link.a} - {link.b}" for link in route.links),
        )
    return found
