"""The carbon intensity and price of a kilowatt-hour over time: hourly curves that repeat.

Values are integer millionths, so sums are exact: equal hours stay equal, and the first of
them can be chosen. Hour 0 begins at time 0 of the jobs.
"""

from collections.abc import Iterable
from itertools import accumulate
from typing import Literal

from msgspec import Struct

from tenfold.model.units import DAY, HOUR, Millis

MICROS = 1_000_000
ShiftBy = Literal["co2", "price"]
"""What deferrable jobs are shifted by."""


class HourlyCurve(Struct, frozen=True):
    """One value per hour, in millionths of its unit; the curve repeats after the last hour."""

    hourly: tuple[int, ...]
    before: tuple[int, ...]
    """The sum of all hours before each, and of all."""

    @property
    def period_ms(self) -> Millis:
        """Return how long it takes until the curve repeats."""
        return Millis(len(self.hourly) * HOUR)

    @property
    def hours(self) -> int:
        """Return how many hours the curve has before it repeats."""
        return len(self.hourly)

    @property
    def is_whole_days(self) -> bool:
        """Return whether the curve repeats at the same hour of the day."""
        return self.period_ms % DAY == 0

    def area(self, from_ms: int, to_ms: int) -> int:
        """Return millionths of the unit times milliseconds between two moments."""
        return self._area(to_ms) - self._area(from_ms)

    def _area(self, at_ms: int) -> int:
        hours, part_ms = divmod(at_ms, HOUR)
        rounds, hour = divmod(hours, len(self.hourly))
        whole = rounds * self.before[-1] + self.before[hour]
        return whole * HOUR + self.hourly[hour] * part_ms


class Intensity(Struct, frozen=True, kw_only=True):
    """The carbon intensity and price of grid energy. The price is None if unknown."""

    co2_g_per_kwh: HourlyCurve
    usd_per_kwh: HourlyCurve | None = None


def curve_of(hourly: Iterable[float]) -> HourlyCurve:
    """Return the curve of values in their unit, each rounded to a millionth."""
    micros = tuple(round(value * MICROS) for value in hourly)
    assert micros, "a curve has an hour"
    return HourlyCurve(micros, tuple(accumulate(micros, initial=0)))
