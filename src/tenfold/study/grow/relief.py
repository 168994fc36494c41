"""A relief: one fix for a layer, as a change of the state.

Costs come from the fleet file, the grow file or from facts; any other cost is unknown.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

from msgspec.structs import replace

from tenfold.model.fleet.spec import FleetSpec
from tenfold.model.growth.growth import OrderItem, UnitItem
from tenfold.study.grow.state import State

NEARLY = 1 - 1e-10
"""Keeps rounding errors from pushing a whole number to the next one."""


@dataclass(frozen=True, slots=True)
class Relief:
    """One fix for a layer."""

    code: str
    sentence: str
    usd_per_month: float | None
    """None if no price is known; 0 for a change of settings."""
    weeks: float | None
    apply: Callable[[State], State]
    units: int = 1
    """Whole things that it adds, such as nodes, racks or gangs."""
    resize: Callable[[int], "Relief"] | None = None
    """The same relief with other units; None if its size follows from a formula."""
    scheduler: bool = False
    """Whether it switches the scheduler: an alternative, never a part of a purchase."""
    usd_range: tuple[float, float] | None = None
    """The range of the cost, if one of its prices is assumed."""
    assumed: tuple[UnitItem, ...] = ()
    """What has an assumed price."""
    unpriced: int = 0
    """Parts without a price in a relief of several; the others are in `usd_per_month`."""


def combined(parts: Sequence[Relief]) -> Relief:
    """Return several as one: known prices add up, and the longest known lead time counts."""
    prices = [part.usd_per_month for part in parts if part.usd_per_month is not None]
    weeks = [part.weeks for part in parts if part.weeks is not None]
    ranges = [part.usd_range or (part.usd_per_month or 0.0,) * 2 for part in parts]
    assumed: tuple[UnitItem, ...] = ()
    for part in parts:
        assumed = (*assumed, *(item for item in part.assumed if item not in assumed))

    def apply(now: State) -> State:
        for part in parts:
            now = part.apply(now)
        return now

    return Relief(
        code="+".join(part.code for part in parts),
        sentence="; ".join(part.sentence for part in parts),
        usd_per_month=sum(prices) if prices else None,
        weeks=max(weeks, default=None),
        apply=apply,
        usd_range=(sum(low for low, _ in ranges), sum(high for _, high in ranges))
        if assumed
        else None,
        assumed=assumed,
        unpriced=sum(_unpriced(part) for part in parts) if prices else 0,
    )


def _unpriced(relief: Relief) -> int:
    return 1 if relief.usd_per_month is None else relief.unpriced


def lead_weeks(state: State, thing: OrderItem) -> float | None:
    """Return the P90 lead time of an item, in weeks."""
    return next((one.weeks_p90 for one in state.grow.lead_times if one.thing == thing), None)


def with_relief(state: State, code: str, spec: FleetSpec | None = None) -> State:
    """Return the state with a relief recorded, and the fleet it leads to."""
    return replace(state, reliefs=(*state.reliefs, code), spec=spec or state.spec)


def round_up_to(value: float, step: int) -> int:
    """Return a value rounded up to whole steps."""
    return ceil(value / step * NEARLY) * step


def round_up_digits(multiple: float) -> float:
    """Return a multiple rounded up to two digits, as printed and as applied."""
    digits = 1 - floor(log10(multiple))
    return ceil(multiple * 10**digits * NEARLY) / 10**digits
