"""The terms of a provider with nothing left open: its own, else the default ones, marked so."""

from collections.abc import Sequence
from statistics import median
from typing import TypeVar

from tenfold.decide.provision.rank import Terms
from tenfold.model.errors import InputError
from tenfold.model.facts.catalogue import Catalogue, FactTable
from tenfold.model.market.offer import Offer, ProviderTerms
from tenfold.model.market.quote import AREAS
from tenfold.model.units import usd_micros

DEFAULT = "default"
V = TypeVar("V")


class TermsTable:
    """Looks up the terms of offers."""

    def __init__(self, providers: FactTable[ProviderTerms]) -> None:
        self._providers = providers
        self._default = providers.get(DEFAULT)

    def of(self, offer: Offer) -> Terms:
        """Return the terms of an offer: those it states, its provider's, or the default ones."""
        own = self._providers.find(offer.provider)
        assumed: list[str] = []

        def pick(field: str, stated: V | None = None) -> V:
            if stated is not None:
                return stated
            value: V | None = getattr(own, field) if own is not None else None
            row = own if own is not None and value is not None else self._default
            if row.evidence_of(field) == "assumption":
                assumed.append(field)
            found: V | None = getattr(row, field)
            if found is None:
                raise InputError(
                    "missing-key",
                    f"the default terms of providers have no `{field}`",
                    f"add `{field}` to the provider `{DEFAULT}` in your facts",
                )
            return found

        return Terms(
            trust=pick("trust", offer.trust),
            egress_usd_per_gb=pick("egress_usd_per_gb", offer.egress_usd_per_gb),
            startup_s=pick("startup_s", offer.startup_s),
            failures_per_1000_node_days=pick("failures_per_1000_node_days"),
            spot_up_h=pick("spot_up_h"),
            spot_down_h=pick("spot_down_h"),
            availability=pick("availability", offer.availability),
            assumed=tuple(assumed),
        )


def offers_of_facts(catalogue: Catalogue) -> list[Offer]:
    """Return the median price of each provider and accelerator as an offer, without a region."""
    return [
        Offer(
            provider=fact.provider,
            accelerator=fact.accelerator,
            gpus=1.0,
            any_size=True,
            kind=fact.kind,
            usd_micros_per_hour=usd_micros(fact.usd_per_gpu_hour),
        )
        for fact in catalogue.prices
    ]


def countries_of(named: Sequence[str]) -> tuple[str, ...]:
    """Return the ISO codes of countries and areas, as a residency rule names them."""
    found: list[str] = []
    for name in named:
        code = name.strip().upper()
        if len(code) != 2 and code not in AREAS:
            raise InputError(
                "unknown-country",
                f"`{name}` is not a country or an area",
                f"use ISO codes such as DE or US, or one of {', '.join(AREAS)}",
                field="--residency",
            )
        found.extend(AREAS.get(code, (code,)))
    return tuple(dict.fromkeys(found))


def medians_usd(offers: Sequence[Offer]) -> dict[tuple[str, str, str], tuple[float, int]]:
    """Return the median price of a GPU-hour, and the offers, by accelerator, kind and provider."""
    groups: dict[tuple[str, str, str], list[float]] = {}
    for one in offers:
        key = (one.accelerator, one.kind, one.provider)
        groups.setdefault(key, []).append(one.usd_per_gpu_hour)
    return {key: (float(median(prices)), len(prices)) for key, prices in groups.items()}
