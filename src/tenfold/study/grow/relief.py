"""A relief: one thing to do about a layer, as a change of the state.

Costs are those that the fleet file or a fact states; one that nobody states is not known.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

from msgspec.structs import replace

from tenfold.model.fleet.spec import FleetSpec
from tenfold.model.growth.growth import OrderItem
from tenfold.study.grow.state import State

NEARLY = 1 - 1e-9
"""Keeps whole numbers whole that arithmetic has brought just above themselves."""


@dataclass(frozen=True, slots=True)
class Relief:
    """One thing to do about a layer."""

    code: str
    sentence: str
    usd_per_month: float | None
    """None where no price is known; 0 where it is a change of settings."""
    weeks: float | None
    apply: Callable[[State], State]


def combined(parts: Sequence[Relief]) -> Relief:
    """Return several reliefs as one: they cost what all cost, and come when the last does."""
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
    """Return the lead time of a thing at which nine of ten orders have come."""
    return next((one.weeks_p90 for one in state.grow.lead_times if one.thing == thing), None)


def with_relief(state: State, code: str, spec: FleetSpec | None = None) -> State:
    """Return the state with a relief on record, and the fleet as it made it."""
    return replace(state, reliefs=(*state.reliefs, code), spec=spec or state.spec)


def round_up_to(value: float, step: int) -> int:
    """Return a value rounded up to whole steps."""
    return ceil(value / step * NEARLY) * step


def round_up_digits(multiple: float) -> float:
    """Return a dose rounded up to two digits, as it is said and as it is given."""
    digits = 1 - floor(log10(multiple))
    return ceil(multiple * 10**digits * NEARLY) / 10**digits
