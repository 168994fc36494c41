"""Rules that exclude offers from the price facts, and the price of a GCP host.

An offer is one price of one row: a row with an on-demand and a spot price makes two.
Every dropped offer is counted once, under the first of these rules that it breaks:

no-accelerator        no accelerator is named, or its count is not above zero
duplicate             the same offer appears twice in the catalogue
bid-floor             the provider lists the lowest bid it accepts, not what you pay
not-a-price           the price is zero, negative, infinite or not a number
spot-above-on-demand  spot costs more than on-demand beyond rounding
flat-price            three or more sizes in a region at one price: a placeholder
host-unknown          a GCP row prices the accelerator alone and no host fits it
no-spot-discount      no spot price of this provider and accelerator is below on-demand:
                      the provider sells no spot and the column repeats the other
per-gpu-price         the price of an instance of several GPUs is that of one: divided by its
                      GPUs it is below 20% of the median, undivided it is near the median
implausible           ten times above or below the accelerator's median over providers
"""

import re
from collections.abc import Callable, Sequence
from math import isfinite
from typing import NamedTuple, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from tenfold.files.prices.tables import PriceTable
from tenfold.model.fleet.facility import PriceKind
from tenfold.model.market.offer import Trust

BID_FLOOR_PROVIDERS = ("mithril",)
SPOT_ROUNDING = 1.001
FLAT_SIZES = 3
PLAUSIBLE_FACTOR = 10.0
PER_GPU_COUNT = 4
PER_GPU_BELOW = 0.2
PER_GPU_NEAR = 2.0

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
_CANONICAL = {"A100": "A100-40GB"}
_CANONICAL_BY_NEBIUS = {"RTX6000": "RTX-PRO-6000"}

# A TPU slice is named by its cores; these generations have two of them on a chip.
_TPU_TWO_CORES = ("v2", "v3", "v4", "v5p")
_TPU_SLICE = re.compile(r"(tpu-v\w+)-([1-9]\d*)")


_Key = TypeVar("_Key")
_Value = TypeVar("_Value")
_HostPrices = dict[tuple[str, str, str], float]
"""By machine type, region and column."""


class OwnTerms(Struct, frozen=True, kw_only=True):
    """What a row says that is otherwise a term of its provider, or of its size."""

    any_size: bool = False

    country: str = ""
    trust: Trust | None = None
    egress_usd_per_gb: float | None = None
    startup_s: float | None = None
    availability: float | None = None


NO_TERMS = OwnTerms()


class ListedPrice(Struct, frozen=True, kw_only=True, gc=False):
    """One price of one row of the catalogue."""

    provider: str
    region: str
    zone: str
    instance: str
    spelling: str
    count: float
    """0 where the catalogue gives none."""
    kind: PriceKind
    usd_h: float
    ondemand_usd_h: float | None
    """The on-demand price of the same row."""
    accelerator: str = ""
    """The name of its fact, once that is found."""
    usd_per_gpu_hour: float = 0.0
    """The host included."""
    own_terms: OwnTerms = NO_TERMS


class FilteredOffers(NamedTuple):
    """Offers that passed, and how many each rule dropped."""

    offers: list[ListedPrice]
    dropped: dict[str, int]


def listed_prices(rows: PriceTable) -> list[ListedPrice]:
    """Return the prices of a table: a row may hold one, two or none."""
    columns = ("cloud", "region", "zone", "instance", "accelerator")
    texts = list(zip(*(rows.texts[name] for name in columns), strict=True))
    counts = rows.numbers["accelerator_count"]
    ondemand, spot = rows.numbers["ondemand_usd_h"], rows.numbers["spot_usd_h"]
    kinds: tuple[tuple[PriceKind, list[float | None]], ...] = (
        ("on-demand", ondemand),
        ("spot", spot),
    )
    return [
        ListedPrice(
            provider=provider,
            region=region,
            zone=zone,
            instance=instance,
            spelling=spelling,
            count=count or 0.0,
            kind=kind,
            usd_h=usd_h,
            ondemand_usd_h=full,
        )
        for kind, prices in kinds
        for (provider, region, zone, instance, spelling), count, usd_h, full in zip(
            texts, counts, prices, ondemand, strict=True
        )
        if usd_h is not None
    ]


def filter_offers(offers: list[ListedPrice], hosts: PriceTable | None) -> FilteredOffers:
    """Apply the rules that need no name, then price offers per accelerator."""
    offer_filter = _OfferFilter(offers)
    offer_filter.drop("no-accelerator", lambda one: not one.spelling or not _is_amount(one.count))
    offer_filter.drop_all_but_first("duplicate", _offer_key)
    offer_filter.drop("bid-floor", lambda one: one.provider in BID_FLOOR_PROVIDERS)
    offer_filter.drop("not-a-price", lambda one: not _is_amount(one.usd_h))
    offer_filter.drop(
        "spot-above-on-demand",
        lambda one: (
            one.kind == "spot"
            and one.ondemand_usd_h is not None
            and one.usd_h > SPOT_ROUNDING * one.ondemand_usd_h
        ),
    )
    offer_filter.offers = [_per_chip(one) for one in offer_filter.offers]
    sizes = _grouped(offer_filter.offers, _flat_key, lambda one: one.count)
    offer_filter.drop(
        "flat-price", lambda one: len(dict.fromkeys(sizes[_flat_key(one)])) >= FLAT_SIZES
    )
    prices = {} if hosts is None else _host_prices(hosts)
    offer_filter.drop("host-unknown", lambda one: _host_usd_h(one, prices) is None)
    priced = [
        replace(
            one,
            spelling=_canonical_spelling(one),
            usd_per_gpu_hour=(one.usd_h + (_host_usd_h(one, prices) or 0.0)) / one.count,
        )
        for one in offer_filter.offers
    ]
    return FilteredOffers(priced, offer_filter.dropped)


def filter_named(offers: list[ListedPrice]) -> FilteredOffers:
    """Apply the rules that compare offers of one accelerator with each other."""
    offer_filter = _OfferFilter(offers)
    full = _grouped(offers, _sold_by, _is_full_price)
    offer_filter.drop(
        "no-spot-discount", lambda one: one.kind == "spot" and all(full[_sold_by(one)])
    )
    by_provider = _grouped(offer_filter.offers, _sold_by, lambda one: one.usd_per_gpu_hour)
    middles: dict[tuple[str, str], list[float]] = {}
    for (_, accelerator, kind), prices in by_provider.items():
        middles.setdefault((accelerator, kind), []).append(median_usd(prices))
    middle = {key: median_usd(values) for key, values in middles.items()}
    offer_filter.drop(
        "per-gpu-price", lambda one: _is_of_one_gpu(one, middle[one.accelerator, one.kind])
    )
    offer_filter.drop(
        "implausible",
        lambda one: (
            not 1 / PLAUSIBLE_FACTOR
            <= one.usd_per_gpu_hour / middle[one.accelerator, one.kind]
            <= PLAUSIBLE_FACTOR
        ),
    )
    return FilteredOffers(offer_filter.offers, offer_filter.dropped)


def _is_of_one_gpu(one: ListedPrice, middle: float) -> bool:
    """Return whether the price of an instance looks like that of one of its GPUs."""
    # Spot prices do fall that low.
    if one.kind == "spot" or one.count < PER_GPU_COUNT:
        return False
    if one.usd_per_gpu_hour >= PER_GPU_BELOW * middle:
        return False
    undivided = one.usd_per_gpu_hour * one.count
    return middle / PER_GPU_NEAR <= undivided <= PER_GPU_NEAR * middle


class _OfferFilter:
    """The remaining offers, and how many each rule has dropped so far."""

    def __init__(self, offers: list[ListedPrice]) -> None:
        self.offers = offers
        self.dropped: dict[str, int] = {}

    def drop(self, rule: str, breaks: Callable[[ListedPrice], bool]) -> None:
        self._keep(rule, [one for one in self.offers if not breaks(one)])

    def drop_all_but_first(self, rule: str, key: Callable[[ListedPrice], object]) -> None:
        first: dict[object, ListedPrice] = {}
        for one in self.offers:
            first.setdefault(key(one), one)
        self._keep(rule, list(first.values()))

    def _keep(self, rule: str, kept: list[ListedPrice]) -> None:
        self.dropped[rule] = len(self.offers) - len(kept)
        self.offers = kept


def _grouped(
    offers: Sequence[ListedPrice],
    key: Callable[[ListedPrice], _Key],
    value: Callable[[ListedPrice], _Value],
) -> dict[_Key, list[_Value]]:
    groups: dict[_Key, list[_Value]] = {}
    for one in offers:
        groups.setdefault(key(one), []).append(value(one))
    return groups


def median_usd(prices: Sequence[float]) -> float:
    """Return the median; of an even number, the point halfway from the lower middle price."""
    ordered = sorted(prices)
    low, high = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
    # Written so, and not as a mean, because shipped facts were rounded from this form.
    return low + (high - low) * 0.5


def _offer_key(one: ListedPrice) -> tuple[object, ...]:
    # Text of the price, for a price that is not a number is unlike itself.
    place = (one.provider, one.region, one.zone, one.instance)
    return *place, one.spelling, one.count, one.kind, str(one.usd_h)


def _is_amount(value: float) -> bool:
    return isfinite(value) and value > 0


def _is_full_price(one: ListedPrice) -> bool:
    return one.ondemand_usd_h is not None and one.usd_h * SPOT_ROUNDING >= one.ondemand_usd_h


def _flat_key(one: ListedPrice) -> tuple[str, str, str, str, float]:
    return one.provider, one.region, one.spelling, one.kind, one.usd_h


def _sold_by(one: ListedPrice) -> tuple[str, str, str]:
    return one.provider, one.accelerator, one.kind


def _canonical_spelling(one: ListedPrice) -> str:
    meant = {**_CANONICAL, **_CANONICAL_BY_NEBIUS} if one.provider == "nebius" else _CANONICAL
    return meant.get(one.spelling, one.spelling)


def _per_chip(one: ListedPrice) -> ListedPrice:
    """Turn a TPU slice into a generation and a number of chips."""
    found = _TPU_SLICE.fullmatch(one.spelling)
    if found is None:
        return one
    generation, cores = found[1], float(found[2])
    two = generation.removeprefix("tpu-") in _TPU_TWO_CORES
    return replace(one, spelling=generation, count=one.count * (cores / (2.0 if two else 1.0)))


def _host_usd_h(one: ListedPrice, hosts: _HostPrices) -> float | None:
    """Return the price of the host: zero if the offer includes it, None if unknown."""
    # A TPU slice comes with its host; every other GCP row without an instance does not.
    if one.provider != "gcp" or one.instance or one.spelling.startswith("tpu-"):
        return 0.0
    machine = _GCP_HOSTS.get((one.spelling, int(one.count))) if one.count.is_integer() else None
    column = "SpotPrice" if one.kind == "spot" else "Price"
    return None if machine is None else hosts.get((machine, one.region, column))


def _host_prices(hosts: PriceTable) -> _HostPrices:
    """Return the median price by machine type, region and column."""
    places = list(zip(hosts.texts["InstanceType"], hosts.texts["Region"], strict=True))
    found: dict[tuple[str, str, str], list[float]] = {}
    for column in ("Price", "SpotPrice"):
        for (machine, region), usd_h in zip(places, hosts.numbers[column], strict=True):
            # A host at zero is no mistake: GCP bills an A4 machine on its accelerators alone.
            if usd_h is not None and isfinite(usd_h) and usd_h >= 0:
                found.setdefault((machine, region, column), []).append(usd_h)
    return {key: median_usd(values) for key, values in found.items()}
