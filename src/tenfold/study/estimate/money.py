"""Compute monthly bills, and the break-even between owning and renting."""

from collections.abc import Iterable, Mapping, Sequence
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
NOT_IN_FLEETS = ("network", "staff", "tools")
"""Costs that a fleet file does not state."""
"""As in fleet files."""


class BillLine(Struct, frozen=True, kw_only=True):
    """One line of a bill."""

    name: str
    usd: float


class MonthAnswer(Struct, frozen=True, kw_only=True):
    """A monthly bill, and what better utilisation is worth."""

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
    """Return a monthly bill: the cost of a fleet, with extra lines added or replaced."""
    lines: dict[str, float] = {}
    notes: list[str] = []
    if fleet is not None:
        spec = open_fleet(fleet, facts).spec
        stated = fleet_bill(spec)
        lines = {f"{line.kind} {line.part}": line.usd for line in stated}
        notes = _fleet_notes(spec, stated, stated_usd)
    bill = month({**lines, **stated_usd})
    if not bill.lines_usd_micros:
        raise InputError(
            "empty-bill",
            "nothing to bill",
            "set `--fleet` to a fleet with prices, or add lines such as `--line gpus=35000`",
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
    """The monthly cost of one part of a fleet."""

    kind: Literal["pool", "energy", "tier"]
    part: str
    usd: float


def fleet_bill(fleet: FleetSpec) -> list[FleetLine]:
    """Return the monthly cost of a fleet, billed for every hour; energy for owned pools."""
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


def _fleet_notes(fleet: FleetSpec, lines: Sequence[FleetLine], added: Iterable[str]) -> list[str]:
    notes = [
        f"pool `{pool.id}` has no price and is not included"
        for pool in fleet.pools
        if pool.price is None
    ]
    if any(line.kind == "energy" for line in lines):
        notes.append("energy for owned pools is billed at full load")
    given = " ".join(added).lower()
    missing = [name for name in NOT_IN_FLEETS if name not in given]
    if missing:
        notes.append(f"not included: {', '.join(missing)}; add with `--line`")
    return notes


def _energy_usd(pool: Pool, pue: float, usd_per_kwh: float) -> float:
    return pool.nodes * pool.power_w_per_node / 1000 * pue * HOURS_PER_MONTH * usd_per_kwh


Positive = Annotated[float, Meta(gt=0, le=1e12)]
NotNegative = Annotated[float, Meta(ge=0, le=1e12)]
BelowAll = Annotated[float, Meta(ge=0, lt=100)]


class OwnQuestion(Struct, frozen=True, kw_only=True):
    """The options of `estimate own-or-rent`; None is taken from the facts."""

    accelerator: Annotated[str, Meta(description="Accelerator name")]
    capital_usd: Annotated[
        Positive,
        Meta(
            description="Purchase price per GPU, including its share of the server and the facility"
        ),
    ]
    life_years: Annotated[
        Positive, Meta(description="Depreciation period in years (default: 4)")
    ] = DEFAULT_LIFE_YEARS
    salvage_percent: Annotated[
        BelowAll, Meta(description="Resale value, in % of the purchase price (default: 0)")
    ] = 0.0
    interest_percent: Annotated[
        BelowAll, Meta(description="Cost of capital, in % per year (default: 0)")
    ] = 0.0
    running_usd_per_year: Annotated[
        NotNegative,
        Meta(description="Yearly cost of space, staff, support and spares per GPU (default: 0)"),
    ] = 0.0
    power_kw: (
        Annotated[
            Positive,
            Meta(
                description="Power per GPU under load, including cooling (default: "
                "derived from its TDP)"
            ),
        ]
        | None
    ) = None
    usd_per_kwh: (
        Annotated[NotNegative, Meta(description="Electricity price (default: built-in price)")]
        | None
    ) = None
    rent_usd_per_hour: (
        Annotated[
            Positive,
            Meta(description="Hourly rental price per GPU (default: median on-demand price)"),
        ]
        | None
    ) = None
    busy_percent: Annotated[
        float,
        Meta(gt=0, le=100, description="Utilisation: share of hours in use, in % (default: 100)"),
    ] = 100.0
    facts: OwnFacts = None

    @property
    def busy(self) -> float:
        """Utilisation, as a share of hours."""
        return self.busy_percent / 100

    @property
    def salvage(self) -> float:
        """Resale value, as a share of the price."""
        return self.salvage_percent / 100

    @property
    def interest(self) -> float:
        """Cost of capital per year, as a share."""
        return self.interest_percent / 100


class OwnAt(Struct, frozen=True, kw_only=True):
    """The cost of a useful GPU-hour at one utilisation; None months if it never pays back."""

    busy: float
    owned_usd_per_hour: float
    payback_months: float | None


class OwnAnswer(Struct, frozen=True, kw_only=True):
    """The break-even between owning and renting, per GPU."""

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
    """Return the utilisation and the months from which owning is cheaper than renting."""
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
    # A payback later than the depreciation period counts as never.
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
            f"no on-demand price known for `{part.name}`",
            "set its hourly rent with `--rent-usd-per-hour`",
            field="--rent-usd-per-hour",
        )
    found = float(median(prices))
    notes.append(f"rent of ${found:,.2f}/h: median on-demand price of {len(prices)} providers")
    return found


def _cents(price: float) -> str:
    """Return a price with two decimals, or more if it has more."""
    return f"{price:.2f}" if round(price, 2) == price else f"{price:g}"


def _ownership(
    question: OwnQuestion, part: Accelerator, catalogue: Catalogue, notes: list[str]
) -> Ownership:
    default = catalogue.energy.get("default")
    power_kw, price = question.power_kw, question.usd_per_kwh
    if power_kw is None:
        power_kw = (part.tdp_w or 0.0) / 1000 * default.server_overhead
        notes.append(f"{power_kw:.2f} kW under load assumed: TDP plus its share of the server")
    if price is None:
        price = default.usd_per_kwh
        notes.append(f"energy at ${_cents(price)}/kWh assumed")
    for name, value in (
        ("running costs", question.running_usd_per_year),
        ("interest", question.interest),
        ("resale value", question.salvage),
    ):
        if not value:
            notes.append(f"no {name} included")
    return Ownership(
        capital_usd=_array([question.capital_usd]),
        life_years=_array([question.life_years]),
        salvage_share=_array([question.salvage]),
        capital_rate=_array([question.interest]),
        power_kw=_array([power_kw]),
        usd_per_kwh=_array([price]),
        running_usd_per_year=_array([question.running_usd_per_year]),
    )
