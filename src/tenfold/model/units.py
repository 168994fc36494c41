"""Integer units: milliseconds, bytes and micro-dollars.

Files that people write use human units with the unit in the key (`memory_gib`, `gbps`); they are
converted to integers only here.
"""

from typing import NewType

Millis = NewType("Millis", int)
Bytes = NewType("Bytes", int)
BytesPerSecond = NewType("BytesPerSecond", int)
UsdMicros = NewType("UsdMicros", int)

SECOND = 1_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR

HOURS_PER_YEAR = 8_760
HOURS_PER_MONTH = 730
GIB = 1024**3
TIB = 1024**4
USD = 1_000_000


def bytes_from_gib(gib: float) -> Bytes:
    """Return whole bytes for a number of GiB."""
    return Bytes(round(gib * GIB))


def bytes_per_second_from_gbit(gbit_per_s: float) -> BytesPerSecond:
    """Return bytes per second for a line rate in Gbit/s, as links are sold."""
    return BytesPerSecond(round(gbit_per_s * 1e9 / 8))


def bytes_per_second_from_gb(gb_per_s: float) -> BytesPerSecond:
    """Return bytes per second for decimal GB/s, as storage and NVLink are sold."""
    return BytesPerSecond(round(gb_per_s * 1e9))


def usd_micros(usd: float) -> UsdMicros:
    """Return micro-dollars for dollars, rounded half to even, only here."""
    return UsdMicros(round(usd * USD))


def usd(micros: int) -> float:
    """Return dollars for display; never add up these values."""
    return micros / USD
