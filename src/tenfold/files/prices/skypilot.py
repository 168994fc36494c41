"""Turn SkyPilot's catalogue of cloud offers into price facts: one median per instance type.

The catalogue is the public one of SkyPilot, flattened to one table. Its accelerator names
are not normalised and some of its prices are placeholders, so most of the work is in what
is left out; `PriceNotes` accounts for every offer that was.
"""

from collections import Counter
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from tenfold.files.prices.layouts import read_listed_prices
from tenfold.files.prices.rules import (
    ListedPrice,
    filter_named,
    filter_offers,
    median_usd,
)
from tenfold.files.prices.tables import read_table
from tenfold.model.facts.catalogue import FactTable
from tenfold.model.fleet.facility import PriceFact, PriceKind
from tenfold.model.fleet.hardware import Accelerator

_HOST_TEXT = ("InstanceType", "Region")
_HOST_NUMBERS = ("Price", "SpotPrice")
_DECIMALS = 4


class PriceNotes(Struct, frozen=True, kw_only=True):
    """Counts of offers: used + dropped by rule + unresolved = read."""

    offers_read: int
    offers_used: int
    dropped: dict[str, int]
    """Offers dropped by each rule of `rules`, in the order of the rules."""
    unresolved: dict[str, int]
    """Offers by accelerator name that matches no fact, sorted by name."""


def read_price_catalogue(
    path: Path,
    accelerators: FactTable[Accelerator],
    *,
    source: str,
    date: str,
    hosts: Path | None = None,
) -> tuple[list[PriceFact], PriceNotes]:
    """Return price facts sorted by name, and counts of the offers left out.

    `hosts` is a table of GCP machine types: GCP lists accelerators without their host, and
    such offers are dropped where no host is found.
    """
    listed = read_listed_prices(path, accelerators).prices
    used, notes = normalise(listed, accelerators, hosts)
    return _facts(used, source, date), notes


def normalise(
    listed: list[ListedPrice], accelerators: FactTable[Accelerator], hosts: Path | None = None
) -> tuple[list[ListedPrice], PriceNotes]:
    """Return the offers that pass every rule, per accelerator and by the name of its fact."""
    host_table = None if hosts is None else read_table(hosts, _HOST_TEXT, _HOST_NUMBERS)
    priced, dropped = filter_offers(listed, host_table)
    named, unresolved = _resolve(priced, accelerators)
    used, dropped_named = filter_named(named)
    notes = PriceNotes(
        offers_read=len(listed),
        offers_used=len(used),
        dropped={**dropped, **dropped_named},
        unresolved=unresolved,
    )
    return used, notes


def _resolve(
    offers: list[ListedPrice], accelerators: FactTable[Accelerator]
) -> tuple[list[ListedPrice], dict[str, int]]:
    """Return offers by the name of their fact, and counts of names that match no fact."""
    spellings = Counter(one.spelling for one in offers)
    found = {spelling: accelerators.find(spelling) for spelling in sorted(spellings)}
    names = {spelling: fact.name for spelling, fact in found.items() if fact is not None}
    resolved = [
        replace(one, accelerator=names[one.spelling]) for one in offers if one.spelling in names
    ]
    return resolved, {name: spellings[name] for name in found if name not in names}


def _facts(offers: list[ListedPrice], source: str, date: str) -> list[PriceFact]:
    groups: dict[tuple[str, str, PriceKind], list[ListedPrice]] = {}
    for one in offers:
        groups.setdefault((one.provider, one.accelerator, one.kind), []).append(one)
    facts: list[PriceFact] = []
    for (provider, accelerator, kind), alike in sorted(groups.items()):
        prices = [one.usd_per_gpu_hour for one in alike]
        facts.append(
            PriceFact(
                name=f"{provider}/{accelerator}/{kind}",
                provider=provider,
                accelerator=accelerator,
                kind=kind,
                usd_per_gpu_hour=round(median_usd(prices), _DECIMALS),
                usd_per_gpu_hour_min=round(min(prices), _DECIMALS),
                usd_per_gpu_hour_max=round(max(prices), _DECIMALS),
                offers=len(alike),
                regions=len(dict.fromkeys(one.region for one in alike)),
                source=source,
                date=date,
                evidence="published",
            )
        )
    return facts
