"""Answer `estimate month` and `estimate own-or-rent`: bills and break-evens in dollars."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Annotated, Literal

import numpy as np
from msgspec import Meta, Struct

from tenfold.compose.fleet import OwnFacts, load_facts, open_fleet
from tenfold.model.errors import InputError
from tenfold.model.facts.catalogue import Catalogue
from tenfold.model.fleet.hardware import Accelerator
from tenfold.model.fleet.spec import FleetSpec, Pool
from tenfold.model.units import HOURS_PER_MONTH, usd
from tenfold.physics.arrays import Floats
from tenfold.physics.operations.money import (
    Ownership,
    break_even_utilisation,
    month,
    owned_usd_per_hour,
    payback_months,
    utilisation_gain,
)

TB = 1e12
MONTHS_PER_YEAR = 12
SHARES = (0.25, 0.5, 0.75, 1.0)
DEFAULT_LIFE_YEARS = 4.0
"""As in fleet files."""


class BillLine(Struct, frozen=True, kw_only=True):
    """One line of a bill."""

    name: str
    usd: float


class MonthAnswer(Struct, frozen=True, kw_only=True):
    """A month's bill, and what the same fleet better used is worth."""

    lines: tuple[BillLine, ...]
    total_usd: float
    gain: float | None
    same_work_saved_usd: float | None
    extra_work_usd: float | None
    notes: tuple[str, ...]


def estimate_month(
    stated_usd: Mapping[str, float],
    *,
    fleet: Path | None = None,
    gain: float | None = None,
    facts: Path | None = None,
) -> MonthAnswer:
    """Return a month's bill: what a fleet file says, and lines stated over it."""
    lines: dict[str, float] = {}
    notes: list[str] = []
    if fleet is not None:
        spec = open_fleet(fleet, facts).spec
        stated = fleet_bill(spec)
        lines = {f"{line.kind} {line.part}": line.usd for line in stated}
        notes = _fleet_notes(spec, stated)
    bill = month({**lines, **stated_usd})
    if not bill.lines_usd_micros:
        raise InputError(
            "empty-bill",
            "the month has no line to pay",
            "name a `--fleet` with prices, or say lines such as `--line gpus=35000`",
        )
    better = None if gain is None else utilisation_gain(bill, gain)
    return MonthAnswer(
        lines=tuple(
            BillLine(name=name, usd=usd(micros)) for name, micros in bill.lines_usd_micros.items()
        ),
        total_usd=usd(bill.total_usd_micros),
        gain=gain,
        same_work_saved_usd=usd(better.same_work_saved_usd_micros) if better else None,
        extra_work_usd=usd(better.extra_work_usd_micros) if better else None,
        notes=tuple(notes),
    )


class FleetLine(Struct, frozen=True, kw_only=True):
    """What a month of one part of a fleet costs."""

    kind: Literal["pool", "energy", "tier"]
    part: str
    usd: float


def fleet_bill(fleet: FleetSpec) -> list[FleetLine]:
    """Return what a month of a fleet costs, every hour paid for; energy where it is owned."""
    lines: list[FleetLine] = []
    sites = {site.id: site for site in fleet.sites}
    for pool in fleet.pools:
        if pool.price is None:
            continue
        hourly = usd(pool.price.usd_micros_per_hour) * (pool.gpus or pool.nodes)
        lines.append(FleetLine(kind="pool", part=pool.id, usd=hourly * HOURS_PER_MONTH))
        if pool.price.kind == "owned":
            site = sites[pool.site]
            energy = _energy_usd(pool, site.pue, site.usd_per_kwh)
            lines.append(FleetLine(kind="energy", part=pool.id, usd=energy))
    for tier in fleet.tiers:
        monthly = usd(tier.usd_micros_per_tb_month) * tier.capacity / TB
        lines.append(FleetLine(kind="tier", part=tier.id, usd=monthly))
    return lines


def _fleet_notes(fleet: FleetSpec, lines: Sequence[FleetLine]) -> list[str]:
    notes = [
        f"pool `{pool.id}` has no price and is left out"
        for pool in fleet.pools
        if pool.price is None
    ]
    if any(line.kind == "energy" for line in lines):
        notes.append("energy of owned pools is counted at full load")
    return [*notes, "network, people and tools are not in a fleet file; add them as --line"]


def _energy_usd(pool: Pool, pue: float, usd_per_kwh: float) -> float:
    return pool.nodes * pool.power_w_per_node / 1000 * pue * HOURS_PER_MONTH * usd_per_kwh


Positive = Annotated[float, Meta(gt=0, le=1e12)]
NotNegative = Annotated[float, Meta(ge=0, le=1e12)]
BelowAll = Annotated[float, Meta(ge=0, lt=100)]


class OwnQuestion(Struct, frozen=True, kw_only=True):
    """An accelerator to buy or to rent; what is None is taken from the facts."""

    accelerator: Annotated[str, Meta(description="An accelerator of the facts.")]
    capital_usd: Annotated[
        Positive, Meta(description="Price of one with its share of server and room.")
    ]
    life_years: Annotated[Positive, Meta(description="Years until it is written off.")] = (
        DEFAULT_LIFE_YEARS
    )
    salvage_percent: Annotated[BelowAll, Meta(description="Of the price, got back in the end.")] = (
        0.0
    )
    interest_percent: Annotated[BelowAll, Meta(description="Yearly cost of money.")] = 0.0
    running_usd_per_year: Annotated[
        NotNegative, Meta(description="Space, staff, support and spares of one.")
    ] = 0.0
    power_kw: (
        Annotated[Positive, Meta(description="Draw of one under load, cooling in.")] | None
    ) = None
    usd_per_kwh: Annotated[NotNegative, Meta(description="Price of energy.")] | None = None
    rent_usd_per_hour: (
        Annotated[Positive, Meta(description="Rent of one, if not the median.")] | None
    ) = None
    busy_percent: Annotated[
        float, Meta(gt=0, le=100, description="Share of hours that it works.")
    ] = 100.0
    facts: OwnFacts = None

    @property
    def busy(self) -> float:
        """Share of hours that it works."""
        return self.busy_percent / 100

    @property
    def salvage(self) -> float:
        """Share of the price that is got back in the end."""
        return self.salvage_percent / 100

    @property
    def interest(self) -> float:
        """Yearly cost of money, as a share."""
        return self.interest_percent / 100


class OwnAt(Struct, frozen=True, kw_only=True):
    """What a useful hour of one GPU costs at some busy share; no months where never in its life."""

    busy: float
    owned_usd_per_hour: float
    payback_months: float | None


class OwnAnswer(Struct, frozen=True, kw_only=True):
    """Where owning begins to beat renting; dollars are of one GPU."""

    accelerator: str
    rent_usd_per_hour: float
    always_usd_per_hour: float
    load_usd_per_hour: float
    break_even: float | None
    busy: float
    owned_usd_per_hour: float
    payback_months: float | None
    own: bool
    by_busy: tuple[OwnAt, ...]
    notes: tuple[str, ...]


def own_or_rent(question: OwnQuestion) -> OwnAnswer:
    """Return the busy share and the months from which owning is cheaper than renting."""
    catalogue = load_facts(question.facts)
    part = catalogue.accelerators.get(question.accelerator)
    notes: list[str] = []
    rent = _rent(question, part, catalogue, notes)
    own = _ownership(question, part, catalogue, notes)
    always, load = (float(value[0]) for value in owned_usd_per_hour(own))
    even = float(break_even_utilisation(own, _array([rent]))[0])
    rows = _by_busy(own, rent, sorted({*SHARES, question.busy}))
    mine = next(row for row in rows if row.busy == question.busy)
    return OwnAnswer(
        accelerator=part.name,
        rent_usd_per_hour=rent,
        always_usd_per_hour=always,
        load_usd_per_hour=load,
        break_even=even if np.isfinite(even) else None,
        busy=question.busy,
        owned_usd_per_hour=mine.owned_usd_per_hour,
        payback_months=mine.payback_months,
        own=mine.owned_usd_per_hour < rent,
        by_busy=rows,
        notes=tuple(notes),
    )


def _by_busy(own: Ownership, rent: float, shares: Sequence[float]) -> tuple[OwnAt, ...]:
    busy = _array(shares)
    always, load = owned_usd_per_hour(own)
    hourly = always / busy + load
    months = payback_months(own, _array([rent]), busy)
    # Gear that outlives its own life has not paid back.
    months = np.where(months <= own.life_years * MONTHS_PER_YEAR, months, np.inf)
    return tuple(
        OwnAt(
            busy=float(share),
            owned_usd_per_hour=float(cost),
            payback_months=float(repaid) if np.isfinite(repaid) else None,
        )
        for share, cost, repaid in zip(busy, hourly, months, strict=True)
    )


def _array(values: Sequence[float]) -> Floats:
    return np.array(values, dtype=np.float64)


def _rent(
    question: OwnQuestion, part: Accelerator, catalogue: Catalogue, notes: list[str]
) -> float:
    if question.rent_usd_per_hour is not None:
        return question.rent_usd_per_hour
    prices = [one.usd_per_gpu_hour for one in catalogue.prices_of(part.name, "on-demand")]
    if not prices:
        raise InputError(
            "no-price",
            f"no price of `{part.name}` on demand is known",
            "say what an hour of it rents for: `--rent-usd-per-hour`",
            field="--rent-usd-per-hour",
        )
    found = float(median(prices))
    notes.append(f"rent of ${found:,.2f} an hour: the median on demand of {len(prices)} providers")
    return found


def _ownership(
    question: OwnQuestion, part: Accelerator, catalogue: Catalogue, notes: list[str]
) -> Ownership:
    usual = catalogue.energy.get("default")
    power_kw, price = question.power_kw, question.usd_per_kwh
    if power_kw is None:
        power_kw = (part.tdp_w or 0.0) / 1000 * usual.server_overhead
        notes.append(f"{power_kw:.2f} kW under load supposed: TDP and its share of a server")
    if price is None:
        price = usual.usd_per_kwh
        notes.append(f"energy at ${price:g} a kWh supposed")
    for name, value in (
        ("running costs", question.running_usd_per_year),
        ("interest", question.interest),
        ("salvage", question.salvage),
    ):
        if not value:
            notes.append(f"no {name} stated")
    return Ownership(
        capital_usd=_array([question.capital_usd]),
        life_years=_array([question.life_years]),
        salvage_share=_array([question.salvage]),
        capital_rate=_array([question.interest]),
        power_kw=_array([power_kw]),
        usd_per_kwh=_array([price]),
        running_usd_per_year=_array([question.running_usd_per_year]),
    )
