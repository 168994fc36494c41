"""What time costs: integer micro-dollars at the edges, floats only in between.

A price is a kind (on-demand, reserved, spot, owned) with a rate per accelerator-hour. Spot pays
for lost work, reservations and owned hardware pay for idle hours: comparing bare rates is a
common mistake.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tenfold.physics.arrays import Floats

Micros = NDArray[np.int64]

_MICROS_PER_USD = 1_000_000
_HOUR_S = 3600.0
_HOURS_PER_YEAR = 8766.0
_MONTHS_PER_YEAR = 12.0


@dataclass(frozen=True, slots=True)
class Price:
    """One way of paying for an accelerator."""

    kind: str
    usd_micros_per_gpu_hour: int
    utilisation: float = 1.0
    """Share of the paid hours that do work: 1 when billed by use, the busy share when owned or
    reserved.
    """
    goodput: float = 1.0
    """Share of the working hours that survive (spot loses work at each reclaim)."""


def usd_micros(usd: Floats | float) -> Micros:
    """Return dollars as whole micro-dollars, rounded half to even."""
    return np.rint(np.asarray(usd, dtype=np.float64) * _MICROS_PER_USD).astype(np.int64)


def effective_usd_per_gpu_hour(price: Price) -> float:
    """Return the dollars of one useful accelerator-hour."""
    return price.usd_micros_per_gpu_hour / _MICROS_PER_USD / (price.utilisation * price.goodput)


def usd_per_million_tokens(gpus: Floats, tokens_per_s: Floats, price: Price) -> Floats:
    """Return dollars per million tokens of a replica or run of `gpus` that delivers
    `tokens_per_s`.
    """
    return gpus * effective_usd_per_gpu_hour(price) / _HOUR_S / tokens_per_s * 1e6


@dataclass(frozen=True, slots=True)
class Month:
    """A month's bill, by line."""

    total_usd_micros: int
    lines_usd_micros: dict[str, int]


def month(lines_usd: Mapping[str, float]) -> Month:
    """Add up a month's bill exactly, in whole micro-dollars."""
    lines = {name: int(usd_micros(usd)) for name, usd in lines_usd.items()}
    return Month(sum(lines.values()), lines)


@dataclass(frozen=True, slots=True)
class UtilisationGain:
    """The value of better utilisation of the same fleet."""

    same_work_saved_usd_micros: int
    """Saved by the same work on less capacity, if capacity can be released."""
    extra_work_usd_micros: int
    """Worth of the extra work at today's cost per unit, if it cannot."""


def utilisation_gain(bill: Month, gain: float) -> UtilisationGain:
    """Price a relative utilisation gain (0.15 for 15%) two ways, since only one of them is cash."""
    total = bill.total_usd_micros
    return UtilisationGain(
        same_work_saved_usd_micros=round(total * (1.0 - 1.0 / (1.0 + gain))),
        extra_work_usd_micros=round(total * gain),
    )


@dataclass(frozen=True, slots=True)
class Ownership:
    """Owning an accelerator, its share of server, network and room included."""

    capital_usd: Floats
    life_years: Floats
    salvage_share: Floats
    capital_rate: Floats
    """Yearly cost of money."""
    power_kw: Floats
    usd_per_kwh: Floats
    running_usd_per_year: Floats
    """Space, staff, support and spares."""


def owned_usd_per_hour(own: Ownership) -> tuple[Floats, Floats]:
    """Return the fixed hourly cost, and the extra cost under load."""
    rate, years = own.capital_rate, own.life_years
    annuity = np.where(
        rate > 0, rate / -np.expm1(-years * np.log1p(np.maximum(rate, 1e-12))), 1.0 / years
    )
    salvage = own.salvage_share * (1.0 + rate) ** -years
    fixed = (
        own.capital_usd * (1.0 - salvage) * annuity + own.running_usd_per_year
    ) / _HOURS_PER_YEAR
    return fixed, own.power_kw * own.usd_per_kwh


def break_even_utilisation(own: Ownership, rent_usd_per_hour: Floats) -> Floats:
    """Return the utilisation above which owning beats renting; above 1 it never does."""
    fixed, variable = owned_usd_per_hour(own)
    margin = rent_usd_per_hour - variable
    return np.where(margin > 0, fixed / np.maximum(margin, 1e-12), np.inf)


def payback_months(own: Ownership, rent_usd_per_hour: Floats, utilisation: Floats) -> Floats:
    """Return the months until the rent saved repays the capital; infinite if never.

    Includes the cost of capital, but not the salvage value.
    """
    hours = _HOURS_PER_YEAR / _MONTHS_PER_YEAR
    energy = own.power_kw * own.usd_per_kwh
    saved_usd = utilisation * hours * (rent_usd_per_hour - energy)
    saved_usd = saved_usd - own.running_usd_per_year / _MONTHS_PER_YEAR
    rate = np.expm1(np.log1p(own.capital_rate) / _MONTHS_PER_YEAR)
    payments = own.capital_usd / np.maximum(saved_usd, 1e-12)
    # Savings below the interest never touch what is owed.
    left = np.maximum(1.0 - payments * rate, 1e-300)
    months = np.where(rate > 0, -np.log(left) / np.log1p(np.maximum(rate, 1e-12)), payments)
    return np.where((saved_usd > 0) & (payments * rate < 1.0), months, np.inf)
