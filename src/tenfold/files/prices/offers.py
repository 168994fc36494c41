"""Read price catalogues as offers: normalised, priced with their host, and placed in a country."""

import re
from collections.abc import Sequence
from pathlib import Path

from tenfold.files.prices.layouts import ListedCatalogue, read_listed_prices
from tenfold.files.prices.rules import ListedPrice
from tenfold.files.prices.skypilot import PriceNotes, normalise
from tenfold.model.facts.catalogue import FactTable
from tenfold.model.fleet.hardware import Accelerator
from tenfold.model.market.offer import Offer, ProviderTerms
from tenfold.model.units import usd_micros


class OfferNotes(PriceNotes, frozen=True, kw_only=True):
    """What was read, and what was left out."""

    files: dict[str, str]
    """The layout of each file."""


def read_offers(
    paths: Sequence[Path],
    accelerators: FactTable[Accelerator],
    providers: FactTable[ProviderTerms],
    *,
    hosts: Path | None = None,
    provider: str | None = None,
) -> tuple[list[Offer], OfferNotes]:
    """Return the offers of catalogues, and counts of the rows left out.

    `provider` names the provider of catalogues that hold one and do not say which.
    """
    catalogues = [read_listed_prices(path, accelerators, provider) for path in paths]
    listed = [one for catalogue in catalogues for one in catalogue.prices]
    used, notes = normalise(listed, accelerators, hosts)
    return [_offer(one, providers) for one in used], _notes(notes, catalogues)


def _notes(notes: PriceNotes, catalogues: Sequence[ListedCatalogue]) -> OfferNotes:
    return OfferNotes(
        offers_read=notes.offers_read,
        offers_used=notes.offers_used,
        dropped=notes.dropped,
        unresolved=notes.unresolved,
        files={one.file: one.layout for one in catalogues},
    )


def _offer(one: ListedPrice, providers: FactTable[ProviderTerms]) -> Offer:
    terms = one.own_terms
    return Offer(
        provider=one.provider,
        accelerator=one.accelerator,
        gpus=one.count,
        any_size=terms.any_size,
        kind=one.kind,
        usd_micros_per_hour=usd_micros(one.usd_per_gpu_hour * one.count),
        region=one.region,
        zone=one.zone,
        instance=one.instance,
        country=terms.country or country_of(one.provider, one.region, providers),
        trust=terms.trust,
        egress_usd_per_gb=terms.egress_usd_per_gb,
        startup_s=terms.startup_s,
        availability=terms.availability,
    )


_CODE = re.compile(r"(?:^|, )([A-Z]{2})(?=, |-|$)")
"""`FR`; `France, FR, EU`; `US-1`."""
_COUNTRY_WORDS = {
    "australia": "AU",
    "canada": "CA",
    "finland": "FI",
    "france": "FR",
    "germany": "DE",
    "india": "IN",
    "israel": "IL",
    "japan": "JP",
    "korea": "KR",
    "netherlands": "NL",
    "norway": "NO",
    "poland": "PL",
    "singapore": "SG",
    "usa": "US",
}


def country_of(provider: str, region: str, providers: FactTable[ProviderTerms]) -> str:
    """Return the ISO code of a region's country, or nothing where it is not known.

    A provider's own regions come first: `eu-west-2` of AWS is in the United Kingdom. Names that
    only say a continent (`eu-`, `ap-`) say no country.
    """
    terms = providers.find(provider)
    known = terms.regions.get(region) if terms is not None else None
    if known is not None:
        return known
    code = _CODE.search(region)
    if code is not None:
        return code[1]
    words = re.split(r"[^a-z]+", region.casefold())
    found = next((_COUNTRY_WORDS[word] for word in words if word in _COUNTRY_WORDS), "")
    return found or ("US" if words[0] in ("us", "usa") else "")
