"""The tier that holds a shared cache: from the fleet file, or described by options."""

from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct

from tenfold.compose.fleet import OwnFacts, choose_accelerator, open_fleet
from tenfold.model.errors import InputError
from tenfold.model.facts.catalogue import Catalogue
from tenfold.model.fleet.spec import FleetSpec, Pool, Tier
from tenfold.model.plan import Precision
from tenfold.model.units import GIB

GB = 1e9


Positive = Annotated[float, Meta(gt=0, le=1e12)]
Degree = Annotated[int, Meta(ge=1, le=10**9)]


class CacheQuestion(Struct, frozen=True, kw_only=True):
    """The options of `estimate cache`: a replica, and the tier it fetches prefixes from."""

    model: Annotated[str, Meta(description="Name of a known model")]
    fleet: Annotated[Path | None, Meta(description="Fleet file")] = None
    tier: Annotated[
        str | None,
        Meta(
            description="Storage tier that holds the cache (default: the one with the"
            " lowest latency)"
        ),
    ] = None
    tier_gib: (
        Annotated[
            Positive, Meta(description="Size of the tier in GiB (default: from the fleet file)")
        ]
        | None
    ) = None
    tier_gb_per_s: Annotated[Positive, Meta(description="Read rate of the tier in GB/s")] | None = (
        None
    )
    accelerator: Annotated[
        str | None,
        Meta(description="Accelerator of the replica (default: that of the largest pool)"),
    ] = None
    tp: (
        Annotated[Degree, Meta(description="Tensor-parallel degree of a replica (default: 1)")]
        | None
    ) = None
    pp: (
        Annotated[Degree, Meta(description="Pipeline-parallel degree of a replica (default: 1)")]
        | None
    ) = None
    precision: Annotated[
        Precision, Meta(description="Precision of the weights (default: bf16)")
    ] = "bf16"
    engine: Annotated[str | None, Meta(description="Serving engine and version")] = None
    qps: Annotated[Positive, Meta(description="Requests per second that use the tier")] | None = (
        None
    )
    target_percent: (
        Annotated[float, Meta(gt=0, lt=100, description="Hit ratio to size the tier for, in %")]
        | None
    ) = None
    facts: OwnFacts = None

    @property
    def target(self) -> float | None:
        """Target hit ratio, as a share."""
        return None if self.target_percent is None else self.target_percent / 100


class CachePlace(Struct, frozen=True, kw_only=True):
    """The tier that holds the cache, and the rates at which a replica reads it."""

    accelerator: str
    tier: str
    capacity_bytes: float
    tier_bytes_per_s: float
    node_bytes_per_s: float = float("inf")
    gpus_per_node: int = 1


def cache_place(question: CacheQuestion, catalogue: Catalogue) -> CachePlace:
    """Return the tier of the fleet, overridden by what the options give."""
    if question.fleet is None:
        return _stated_place(question, catalogue)
    fleet = open_fleet(question.fleet, question.facts).spec
    pool = _pool(fleet, question, catalogue)
    tier = _tier(fleet, pool, question)
    capacity = float(tier.capacity) if question.tier_gib is None else question.tier_gib * GIB
    rate = question.tier_gb_per_s
    return CachePlace(
        accelerator=pool.accelerator or "",
        tier=tier.id,
        capacity_bytes=capacity,
        tier_bytes_per_s=float(tier.read_bandwidth) if rate is None else rate * GB,
        node_bytes_per_s=float(pool.nics_per_node * pool.nic_bandwidth) or float("inf"),
        gpus_per_node=pool.gpus_per_node,
    )


def _stated_place(question: CacheQuestion, catalogue: Catalogue) -> CachePlace:
    stated = (question.accelerator, question.tier_gib, question.tier_gb_per_s)
    accelerator, gib, rate = stated
    if accelerator is None or gib is None or rate is None:
        raise InputError(
            "tier-not-stated",
            "the accelerator and the tier are not given",
            "set `--fleet`, or `--accelerator`, `--tier-gib` and `--tier-gb-per-s`",
        )
    return CachePlace(
        accelerator=catalogue.accelerators.get(accelerator).name,
        tier="",
        capacity_bytes=gib * GIB,
        tier_bytes_per_s=rate * GB,
    )


def _pool(fleet: FleetSpec, question: CacheQuestion, catalogue: Catalogue) -> Pool:
    named = question.accelerator
    wanted = None if named is None else catalogue.accelerators.get(named).name
    pools = [
        pool
        for pool in fleet.pools
        if pool.gpus and pool.accelerator and wanted in (None, pool.accelerator)
    ]
    if not pools:
        raise InputError(
            "no-accelerators",
            f"fleet `{fleet.name}` has no {wanted or 'accelerators'}",
            choose_accelerator(fleet),
        )
    return max(pools, key=lambda pool: pool.gpus)


def _tier(fleet: FleetSpec, pool: Pool, question: CacheQuestion) -> Tier:
    """Return the named tier, else the one at the site with the lowest latency."""
    near = [tier for tier in fleet.tiers if tier.site == pool.site]
    named = [tier for tier in near if question.tier in (None, tier.id)]
    if not named:
        known = ", ".join(f"`{tier.id}`" for tier in near)
        own = "leave out `--fleet` and set `--tier-gib` and `--tier-gb-per-s`"
        raise InputError(
            "unknown-tier",
            f"unknown tier `{question.tier}` at site `{pool.site}`"
            if question.tier
            else f"fleet `{fleet.name}` has no tier at site `{pool.site}`",
            f"use one of {known}, or {own}" if known else f"add a `[[tier]]` there, or {own}",
            field="--tier",
        )
    return min(named, key=lambda tier: tier.latency_us)
