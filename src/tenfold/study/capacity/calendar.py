"""Days and months of a plan: month 0 begins on the day the plan starts."""

from datetime import date, timedelta
from math import floor

DAYS_PER_MONTH = 365.25 / 12
DAYS_PER_WEEK = 7


def day_after(start: str, months: float) -> str:
    """Return the day so many months after the start."""
    return shifted(start, floor(months * DAYS_PER_MONTH))


def shifted(day: str, days: int) -> str:
    """Return the day so many days later."""
    return (date.fromisoformat(day) + timedelta(days=days)).isoformat()


def months_until(start: str, day: str) -> float:
    """Return the months from the start to a day; negative if it is past."""
    return (date.fromisoformat(day) - date.fromisoformat(start)).days / DAYS_PER_MONTH


def months_of(weeks: float) -> float:
    """Return weeks in months."""
    return weeks * DAYS_PER_WEEK / DAYS_PER_MONTH
