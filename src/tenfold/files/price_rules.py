"""Rules that keep an offer out of the price facts, and the price of a GCP host.

An offer is one price of one row: a row with an on-demand and a spot price makes two.
Every dropped offer is counted once, under the first of these rules that it breaks:

no-accelerator        no accelerator is named, or its count is not above zero
duplicate             the same offer stands in the catalogue twice
bid-floor             the provider lists the lowest bid it takes, not what one pays
not-a-price           the price is zero, negative, infinite or not a number
spot-above-on-demand  spot costs more than on-demand beyond rounding
flat-price            three sizes or more in a region at one price: it stands for no price
host-unknown          a GCP row prices the accelerator alone and no host fits it
no-spot-discount      no spot price of this provider and accelerator is below on-demand:
                      the provider sells no spot and the column repeats the other
implausible           ten times above or below the accelerator's median over providers
"""

from typing import NamedTuple

import polars as pl

BID_FLOOR_PROVIDERS = ("mithril",)
SPOT_ROUNDING = 1.001
FLAT_SIZES = 3
PLAUSIBLE_FACTOR = 10.0

_OFFER = ("provider", "region", "zone", "instance", "spelling", "count", "kind", "usd_h")

# GCP sells these only with one machine type per count; L4 takes the smallest that it fits.
_GCP_HOSTS: dict[tuple[str, int], str] = {
    **{("A100", count): f"a2-highgpu-{count}g" for count in (1, 2, 4, 8)},
    ("A100", 16): "a2-megagpu-16g",
    **{("A100-80GB", count): f"a2-ultragpu-{count}g" for count in (1, 2, 4, 8)},
    **{("H100", count): f"a3-highgpu-{count}g" for count in (1, 2, 4, 8)},
    ("H100-MEGA", 8): "a3-megagpu-8g",
    ("H200", 8): "a3-ultragpu-8g",
    ("B200", 8): "a4-highgpu-8g",
    **{("L4", count): f"g2-standard-{cpus}" for count, cpus in ((1, 4), (2, 24), (4, 48), (8, 96))},
    **{("RTXPRO6000", count): f"g4-standard-{48 * count}" for count in (1, 2, 4, 8)},
}

# What the catalogue means by a name that people use more loosely.
_MEANT = {"A100": "A100-40GB"}
_MEANT_BY_NEBIUS = {"RTX6000": "RTX-PRO-6000"}

# A TPU slice is named by its cores; these generations have two of them on a chip.
_TPU_TWO_CORES = ("v2", "v3", "v4", "v5p")
_TPU_SLICE = r"^(tpu-v\w+)-([1-9]\d*)$"


class Sifted(NamedTuple):
    """Offers that passed, and how many each rule dropped."""

    offers: pl.DataFrame
    dropped: dict[str, int]


def offers_of(rows: pl.DataFrame) -> pl.DataFrame:
    """Return one line per priced offer: a row may hold one, two or none."""
    named = rows.select(
        "region",
        "zone",
        "instance",
        "ondemand_usd_h",
        "spot_usd_h",
        provider=pl.col("cloud"),
        spelling=pl.col("accelerator"),
        count=pl.col("accelerator_count"),
    )
    kinds = (("on-demand", "ondemand_usd_h"), ("spot", "spot_usd_h"))
    offers = pl.concat(
        named.with_columns(kind=pl.lit(kind), usd_h=pl.col(column)) for kind, column in kinds
    )
    return offers.filter(pl.col("usd_h").is_not_null())


def sift_offers(offers: pl.DataFrame, hosts: pl.DataFrame | None) -> Sifted:
    """Apply the rules that need no name, then price offers per accelerator."""
    countable = pl.col("count").is_finite() & (pl.col("count") > 0)
    rules = {
        "no-accelerator": (pl.col("spelling") == "") | ~countable.fill_null(False),
        "duplicate": ~pl.struct(_OFFER).is_first_distinct(),
        "bid-floor": pl.col("provider").is_in(BID_FLOOR_PROVIDERS),
        "not-a-price": ~pl.col("usd_h").is_finite() | (pl.col("usd_h") <= 0),
        "spot-above-on-demand": (pl.col("kind") == "spot")
        & (pl.col("usd_h") > SPOT_ROUNDING * pl.col("ondemand_usd_h")).fill_null(False),
    }
    kept, dropped = _drop(offers, rules)
    sizes = pl.col("count").n_unique().over("provider", "region", "spelling", "kind", "usd_h")
    kept, flat = _drop(_per_chip(kept), {"flat-price": sizes >= FLAT_SIZES})
    kept, unhoused = _drop(
        _with_host(kept, hosts), {"host-unknown": pl.col("host_usd_h").is_null()}
    )
    priced = kept.with_columns(
        spelling=_meant(),
        usd_per_gpu_hour=(pl.col("usd_h") + pl.col("host_usd_h")) / pl.col("count"),
    )
    return Sifted(priced, {**dropped, **flat, **unhoused})


def sift_named(offers: pl.DataFrame) -> Sifted:
    """Apply the rules that compare offers of one accelerator with each other."""
    spot = pl.col("kind") == "spot"
    full_price = (pl.col("usd_h") * SPOT_ROUNDING >= pl.col("ondemand_usd_h")).fill_null(False)
    kept, dropped = _drop(
        offers,
        {"no-spot-discount": spot & full_price.all().over("provider", "accelerator", "kind")},
    )
    group = ["accelerator", "kind"]
    middle = (
        kept.group_by(*group, "provider")
        .agg(pl.col("usd_per_gpu_hour").median())
        .group_by(group)
        .agg(middle=pl.col("usd_per_gpu_hour").median())
    )
    ratio = pl.col("usd_per_gpu_hour") / pl.col("middle")
    plausible = ratio.is_between(1 / PLAUSIBLE_FACTOR, PLAUSIBLE_FACTOR)
    kept, odd = _drop(kept.join(middle, on=group), {"implausible": ~plausible})
    return Sifted(kept, {**dropped, **odd})


def _drop(offers: pl.DataFrame, rules: dict[str, pl.Expr]) -> Sifted:
    dropped: dict[str, int] = {}
    for rule, broken in rules.items():
        kept = offers.filter(~broken)
        dropped[rule] = offers.height - kept.height
        offers = kept
    return Sifted(offers, dropped)


def _meant() -> pl.Expr:
    spelling = pl.col("spelling")
    return (
        pl.when(pl.col("provider") == "nebius")
        .then(spelling.replace({**_MEANT, **_MEANT_BY_NEBIUS}))
        .otherwise(spelling.replace(_MEANT))
    )


def _per_chip(offers: pl.DataFrame) -> pl.DataFrame:
    """Turn TPU slices into a generation and a number of chips."""
    generation = pl.col("spelling").str.extract(_TPU_SLICE, 1)
    cores = pl.col("spelling").str.extract(_TPU_SLICE, 2).cast(pl.Float64)
    cores_per_chip = (
        pl.when(generation.str.strip_prefix("tpu-").is_in(_TPU_TWO_CORES)).then(2.0).otherwise(1.0)
    )
    return offers.with_columns(
        spelling=pl.coalesce(generation, pl.col("spelling")),
        count=pl.col("count") * (cores / cores_per_chip).fill_null(1.0),
    )


def _with_host(offers: pl.DataFrame, hosts: pl.DataFrame | None) -> pl.DataFrame:
    """Add `host_usd_h`: zero where the price has the host in it, null where none is known."""
    # A TPU slice comes with its host; every other GCP row without an instance does not.
    alone = (
        (pl.col("provider") == "gcp")
        & (pl.col("instance") == "")
        & ~pl.col("spelling").str.starts_with("tpu-")
    )
    if hosts is None:
        host_usd_h = pl.lit(None, dtype=pl.Float64)
    else:
        offers = offers.join(_host_prices(hosts), on=["spelling", "count", "region"], how="left")
        host_usd_h = pl.when(pl.col("kind") == "spot").then("host_spot").otherwise("host_ondemand")
    return offers.with_columns(host_usd_h=pl.when(alone).then(host_usd_h).otherwise(0.0))


def _host_prices(hosts: pl.DataFrame) -> pl.DataFrame:
    machines = pl.DataFrame(
        [(spelling, float(count), host) for (spelling, count), host in _GCP_HOSTS.items()],
        schema={"spelling": pl.String, "count": pl.Float64, "InstanceType": pl.String},
        orient="row",
    )
    # A host at zero is no mistake: GCP bills an A4 machine on its accelerators alone.
    sane = [
        pl.when(pl.col(column).is_finite() & (pl.col(column) >= 0)).then(column)
        for column in ("Price", "SpotPrice")
    ]
    by_region = (
        hosts.with_columns(*sane)
        .group_by("InstanceType", region=pl.col("Region"))
        .agg(host_ondemand=pl.col("Price").median(), host_spot=pl.col("SpotPrice").median())
    )
    return machines.join(by_region, on="InstanceType").drop("InstanceType")
