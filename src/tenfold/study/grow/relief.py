"""A relief: one fix for a layer, as a change of the state.

Costs come from the fleet file or from facts; any other cost is unknown.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

from msgspec.structs import replace

from tenfold.model.fleet.spec import FleetSpec
from tenfold.model.growth.growth import OrderItem
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


def combined(parts: Sequence[Relief]) -> Relief:
    """Return several reliefs as one: prices add up, and the longest lead time counts."""
    prices = [part.usd_per_month for part in parts]
    weeks = [part.weeks for part in parts]

    def apply(now: State) -> State:
        for part in parts:
            now = part.apply(now)
        return now

    return Relief(
        code="+".join(part.code for part in parts),
        sentence="; ".join(part.sentence for part in parts),
        usd_per_month=None if None in prices else sum(price or 0.0 for price in prices),
        weeks=None if None in weeks else max(week or 0.0 for week in weeks),
        apply=apply,
    )


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
