"""Turn a catalogue of cloud offers into price facts: one median per thing one can rent.

The catalogue is the public one of SkyPilot, flattened to one table. Its accelerator names
are not normalised and some of its prices are placeholders, so most of the work is in what
is left out; `PriceNotes` accounts for every offer that was.
"""

from pathlib import Path
from typing import cast

import polars as pl
from msgspec import Struct

from tenfold.files.price_rules import offers_of, sift_named, sift_offers
from tenfold.files.price_tables import read_table
from tenfold.model.catalogue import Shelf
from tenfold.model.facility import PriceFact, PriceKind
from tenfold.model.hardware import Accelerator

_TEXT = ("cloud", "region", "zone", "instance", "accelerator")
_NUMBERS = ("accelerator_count", "ondemand_usd_h", "spot_usd_h")
_HOST_TEXT = ("InstanceType", "Region")
_HOST_NUMBERS = ("Price", "SpotPrice")
_DECIMALS = 4


class PriceNotes(Struct, frozen=True, kw_only=True):
    """What became of every offer: used + dropped by rule + unresolved = read."""

    offers_read: int
    offers_used: int
    dropped: dict[str, int]
    """Offers dropped by each rule of `price_rules`, in the order of the rules."""
    unresolved: dict[str, int]
    """Offers by accelerator spelling that no fact is known under, in order of name."""


def read_price_catalogue(
    path: Path,
    accelerators: Shelf[Accelerator],
    *,
    source: str,
    date: str,
    hosts: Path | None = None,
) -> tuple[list[PriceFact], PriceNotes]:
    """Return price facts in order of name, and what was left out of them.

    `hosts` is a table of GCP machine types: GCP lists accelerators without their host, and
    such offers are dropped where no host is found.
    """
    offers = offers_of(read_table(path, _TEXT, _NUMBERS))
    host_table = None if hosts is None else read_table(hosts, _HOST_TEXT, _HOST_NUMBERS)
    priced, dropped = sift_offers(offers, host_table)
    named, unresolved = _resolve(priced, accelerators)
    used, dropped_named = sift_named(named)
    notes = PriceNotes(
        offers_read=offers.height,
        offers_used=used.height,
        dropped={**dropped, **dropped_named},
        unresolved=unresolved,
    )
    return _facts(used, source, date), notes


def _resolve(
    offers: pl.DataFrame, accelerators: Shelf[Accelerator]
) -> tuple[pl.DataFrame, dict[str, int]]:
    spellings = cast(list[str], offers["spelling"].unique().sort().to_list())
    found = {spelling: accelerators.find(spelling) for spelling in spellings}
    names = {spelling: fact.name for spelling, fact in found.items() if fact is not None}
    known = pl.col("spelling").is_in(list(names))
    lost = offers.filter(~known).group_by("spelling").len().sort("spelling")
    resolved = offers.filter(known).with_columns(
        accelerator=pl.col("spelling").replace_strict(names, return_dtype=pl.String)
    )
    return resolved, dict(cast(list[tuple[str, int]], lost.rows()))


def _facts(offers: pl.DataFrame, source: str, date: str) -> list[PriceFact]:
    price = pl.col("usd_per_gpu_hour")
    table = (
        offers.group_by("provider", "accelerator", "kind")
        .agg(
            price.median().alias("middle"),
            price.min().alias("least"),
            price.max().alias("most"),
            pl.len().alias("offers"),
            pl.col("region").n_unique().alias("regions"),
        )
        .sort("provider", "accelerator", "kind")
    )
    rows = cast(list[tuple[str, str, PriceKind, float, float, float, int, int]], table.rows())
    return [
        PriceFact(
            name=f"{provider}/{accelerator}/{kind}",
            provider=provider,
            accelerator=accelerator,
            kind=kind,
            usd_per_gpu_hour=round(middle, _DECIMALS),
            usd_per_gpu_hour_min=round(least, _DECIMALS),
            usd_per_gpu_hour_max=round(most, _DECIMALS),
            offers=offer_count,
            regions=regions,
            source=source,
            date=date,
            evidence="published",
        )
        for provider, accelerator, kind, middle, least, most, offer_count, regions in rows
    ]
