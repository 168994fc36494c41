"""The time of day, for records that people read; deciders get the time as an argument."""

from time import time_ns


def now_ms() -> int:
    """Return milliseconds since 1970, in UTC."""
    return time_ns() // 1_000_000
