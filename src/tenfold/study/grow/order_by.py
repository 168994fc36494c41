"""When to order: the day a factor is reached at the stated pace, minus the lead time."""

from datetime import date, timedelta
from math import log2

from tenfold.model.growth.growth import Pace

DAYS_PER_MONTH = 365.25 / 12
DAYS_PER_WEEK = 7


def order_by(pace: Pace | None, factor: float, weeks: float | None) -> str:
    """Return the last day to order, or how long before the factor if no pace is stated.

    The system clock is not used: the same question has the same answer tomorrow.
    """
    if weeks is None:
        return ""
    if pace is None:
        return f"{weeks:g} weeks before {factor:.2g}x" if weeks else ""
    reached = pace.doubles_in_months * log2(max(factor, 1.0)) * DAYS_PER_MONTH
    days = int(reached - weeks * DAYS_PER_WEEK)
    return (date.fromisoformat(pace.today) + timedelta(days=days)).isoformat()


def is_late(pace: Pace | None, day: str) -> bool:
    """Return whether a day to order by is before `today` of `[pace]`."""
    return pace is not None and bool(day) and day < pace.today
