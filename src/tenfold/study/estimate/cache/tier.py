"""Where a shared cache lies: a tier of a fleet, or one that is stated."""

from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct

from tenfold.compose.fleet import OwnFacts, open_fleet
from tenfold.model.errors import InputError
from tenfold.model.facts.catalogue import Catalogue
from tenfold.model.fleet.spec import FleetSpec, Pool, Tier
from tenfold.model.plan import Precision
from tenfold.model.units import GIB

GB = 1e9


Positive = Annotated[float, Meta(gt=0, le=1e12)]
ReplicaDegree = Annotated[int, Meta(ge=1, le=10**9, description="Of a replica.")]


class CacheQuestion(Struct, frozen=True, kw_only=True):
    """A replica, and the tier that it may fetch prefixes from."""

    model: Annotated[str, Meta(description="A model of the facts.")]
    fleet: Annotated[Path | None, Meta(description="A fleet file.")] = None
    tier: Annotated[str | None, Meta(description="Which tier of the fleet.")] = None
    tier_gib: Annotated[Positive, Meta(description="GiB of the tier.")] | None = None
    tier_gb_per_s: Annotated[Positive, Meta(description="GB/s that the tier reads.")] | None = None
    accelerator: Annotated[str | None, Meta(description="What replicas run on.")] = None
    tp: ReplicaDegree | None = None
    pp: ReplicaDegree | None = None
    precision: Annotated[Precision, Meta(description="Of the weights.")] = "bf16"
    engine: Annotated[str | None, Meta(description="Serving engine and version.")] = None
    qps: Annotated[Positive, Meta(description="Requests a second on the tier.")] | None = None
    target_percent: (
        Annotated[float, Meta(gt=0, lt=100, description="Hit ratio to size the tier for.")] | None
    ) = None
    facts: OwnFacts = None

    @property
    def target(self) -> float | None:
        """Hit ratio to size the tier for, as a share."""
        return None if self.target_percent is None else self.target_percent / 100


class CachePlace(Struct, frozen=True, kw_only=True):
    """Where the cache lies and what a replica reads from it."""

    accelerator: str
    tier: str
    capacity_bytes: float
    tier_bytes_per_s: float
    node_bytes_per_s: float = float("inf")
    gpus_per_node: int = 1


def cache_place(question: CacheQuestion, catalogue: Catalogue) -> CachePlace:
    """Return the tier of the fleet, with what the question says instead of it."""
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
            "without a fleet the accelerator, and the size and rate of the tier, are not known",
            "name a `--fleet`, or say `--accelerator`, `--tier-gib` and `--tier-gb-per-s`",
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
            "name an accelerator that the fleet has",
        )
    return max(pools, key=lambda pool: pool.gpus)


def _tier(fleet: FleetSpec, pool: Pool, question: CacheQuestion) -> Tier:
    """Return the tier that is named, else the one at the site that answers soonest."""
    near = [tier for tier in fleet.tiers if tier.site == pool.site]
    named = [tier for tier in near if question.tier in (None, tier.id)]
    if not named:
        known = ", ".join(f"`{tier.id}`" for tier in near) or "none"
        raise InputError(
            "unknown-tier",
            f"no tier at site `{pool.site}` is called `{question.tier}`"
            if question.tier
            else f"fleet `{fleet.name}` has no tier at site `{pool.site}`",
            f"known are {known}; or leave the fleet out and say `--tier-gib`, `--tier-gb-per-s`",
            field="--tier",
        )
    return min(named, key=lambda tier: tier.latency_us)
