"""The time of day, for records that people read; decisions are told the time instead."""

from time import time_ns


def now_ms() -> int:
    """Return milliseconds since 1970, in UTC."""
    return time_ns() // 1_000_000
