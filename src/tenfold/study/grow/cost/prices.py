"""Prices by unit: what a port, a rack position, a kW, a technician or a Gbit/s costs a month.

The grow file states them; otherwise the facts give a range, and what is bought is marked as
assumed. Such purchases are remembered in the state, so that they enter the budget.
"""

from collections.abc import Iterable
from dataclasses import replace as with_fields
from typing import NamedTuple

from msgspec.structs import replace

from tenfold.model.fleet.facility import UnitPrice
from tenfold.model.growth.growth import GrowSpec, UnitItem
from tenfold.study.grow.relief import Relief
from tenfold.study.grow.state import State

UNITS: dict[UnitItem, tuple[str, str]] = {
    "switch-port": ("switch port", "`usd_per_switch_port_month` under `[prices]`"),
    "rack-position": ("rack position", "`usd_per_rack_month` under `[prices]`"),
    "power-kw": ("kW of power and cooling", "`usd_per_kw_month` under `[prices]`"),
    "technician": ("technician", "`usd_per_person_month` under `[operations]`"),
    "storage-tb": ("TB of storage", "`usd_per_tb_month` under `[prices]`"),
    "link-gbps": ("Gbit/s between sites", "`usd_per_gbps_month` under `[prices]`"),
}
"""Each unit in words, and the key that states its price."""


class UnitCost(NamedTuple):
    """Dollars a month for one unit, with its range."""

    usd: float
    low: float
    high: float
    assumed: bool


def unit_cost(state: State, item: UnitItem) -> UnitCost:
    """Return the price that the grow file states, or the assumed one of the facts."""
    stated = _stated(state.grow, item)
    if stated is not None:
        return UnitCost(stated, stated, stated, assumed=False)
    fact = state.inputs.fleet.catalogue.unit_prices.get(item)
    months = fact.months
    return UnitCost(fact.usd / months, fact.usd_min / months, fact.usd_max / months, assumed=True)


def priced(state: State, relief: Relief, item: UnitItem, units: float) -> Relief:
    """Return a relief at the price of some units; the purchase enters the budget once applied."""
    one = unit_cost(state, item)

    def apply(now: State) -> State:
        now = relief.apply(now)
        return replace(now, purchases=(*now.purchases, one.usd * units))

    return with_fields(at_price(relief, one, item, units), apply=apply)


def at_price(relief: Relief, one: UnitCost, item: UnitItem, units: float) -> Relief:
    """Return a relief with a price by unit; what it buys is in the fleet once it is applied."""
    return with_fields(
        relief,
        usd_per_month=one.usd * units,
        usd_range=(one.low * units, one.high * units) if one.assumed else None,
        assumed=(item,) if one.assumed else (),
    )


def assumed_prices(items: Iterable[str], facts: Iterable[UnitPrice]) -> list[str]:
    """Return one line for each assumed price: the figure, its range, and what overrides it."""
    known = {fact.name: fact for fact in facts}
    lines: list[str] = []
    for item, (unit, key) in UNITS.items():
        if item in items:
            fact = known[item]
            usd, low, high = (
                _dollars(value / fact.months) for value in (fact.usd, fact.usd_min, fact.usd_max)
            )
            lines.append(f"assumed price: {usd}/month per {unit} ({low}-{high}); set {key}")
    return lines


def _dollars(value: float) -> str:
    return f"${value:,.0f}" if value >= 100 else f"${value:.3g}"


def _stated(grow: GrowSpec, item: UnitItem) -> float | None:
    prices = grow.prices
    return {
        "switch-port": prices.usd_per_switch_port_month,
        "rack-position": prices.usd_per_rack_month,
        "power-kw": prices.usd_per_kw_month,
        "technician": grow.operations.usd_per_person_month,
        "storage-tb": prices.usd_per_tb_month,
        "link-gbps": prices.usd_per_gbps_month,
    }[item]
