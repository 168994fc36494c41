"""Axes of a chart: a range that holds the values, ticks at 1, 2 and 5, and short labels.

An axis never fails: values that are not finite are left out, and an empty or single-valued
range is widened, so that a chart of one point is still a chart.
"""

from collections.abc import Callable, Iterable
from itertools import pairwise
from math import ceil, floor, isfinite, log10

from msgspec import Struct

Label = Callable[[float], str]
LARGEST = 1e150
LEAST = 1e-150
TICKS_WANTED = 5
LOG_DECADES_FINE = 3
PAD_LOG = 0.04


class Axis(Struct, frozen=True, kw_only=True):
    """One axis of a chart. `ticks` replace the default ones if given."""

    title: str
    log: bool = False
    from_zero: bool = False
    label: Label
    ticks: tuple[float, ...] = ()
    most: float | None = None
    """Where the range ends, whatever the values are."""


class Range(Struct, frozen=True, kw_only=True):
    """An axis over some values, ready to be drawn."""

    low: float
    high: float
    log: bool
    ticks: tuple[float, ...]

    def share(self, value: float) -> float:
        """Return where a value stands, 0 at the start and 1 at the end."""
        if self.log:
            start, end = log10(self.low), log10(self.high)
            return _clamped((log10(max(value, LEAST)) - start) / (end - start))
        return _clamped((value - self.low) / (self.high - self.low))


def _clamped(share: float) -> float:
    return min(1.0, max(0.0, share))


def kept(value: float, *, log: bool) -> bool:
    """Say whether a value can stand on an axis."""
    return isfinite(value) and (value > 0 or not log)


def range_of(axis: Axis, values: Iterable[float]) -> Range:
    """Return the range and ticks of an axis that shall hold these values."""
    good = [max(-LARGEST, min(LARGEST, one)) for one in values if kept(one, log=axis.log)]
    return _log_range(axis, good) if axis.log else _linear_range(axis, good)


def _linear_range(axis: Axis, values: list[float]) -> Range:
    low, high = min(values, default=0.0), max(values, default=1.0)
    if axis.from_zero:
        low, high = min(low, 0.0), max(high, 0.0)
    if axis.most is not None:
        high = max(axis.most, low)
    if high - low <= max(abs(low), abs(high)) * 1e-9 or high - low < LEAST:
        widen = max(abs(high) * 0.5, 0.5)
        low, high = (low if axis.from_zero and low == 0 else low - widen), high + widen
    step = nice_step((high - low) / TICKS_WANTED)
    first, last = floor(low / step + 1e-9), ceil(high / step - 1e-9)
    if axis.most is not None:
        last = max(first + 1, floor(high / step + 1e-9))
    ticks = tuple(place * step for place in range(first, last + 1))
    return Range(
        low=min(low, ticks[0]), high=max(high, ticks[-1]), log=False, ticks=axis.ticks or ticks
    )


def _log_range(axis: Axis, values: list[float]) -> Range:
    good = [max(LEAST, one) for one in values]
    low, high = log10(min(good, default=1.0)), log10(max(good, default=10.0))
    if high - low < 0.05:
        low, high = low - 0.3, high + 0.3
    pad = (high - low) * PAD_LOG
    low, high = low - pad, high + pad
    ticks = [tick for tick in axis.ticks if tick > 0] or _log_ticks(low, high)
    inside = [tick for tick in ticks if low <= log10(tick) <= high]
    return Range(low=10**low, high=10**high, log=True, ticks=tuple(inside))


def _log_ticks(low: float, high: float) -> list[float]:
    """Return ticks between two powers of ten: 1-2-5, whole decades, or every few decades."""
    fine = high - low <= LOG_DECADES_FINE
    step = 1 if fine else max(1, ceil((high - low) / (TICKS_WANTED + 1)))
    decades = range(floor(low) // step * step, ceil(high) + 1, step)
    ticks = [part * 10.0**decade for decade in decades for part in ((1, 2, 5) if fine else (1,))]
    inside = [tick for tick in ticks if low <= log10(tick) <= high]
    if len(inside) >= 2:
        return inside
    least, most = 10**low, 10**high
    width = nice_step((most - least) / TICKS_WANTED)
    return [place * width for place in range(ceil(least / width), floor(most / width) + 1)]


def nice_step(rough: float) -> float:
    """Return the smallest of 1, 2, 5 times a power of ten that is not below `rough`."""
    power = 10.0 ** floor(log10(max(rough, LEAST)))
    return next(part * power for part in (1, 2, 5, 10) if part * power >= rough * (1 - 1e-9))


def thinned(ticks: Iterable[tuple[float, float]], gap: float) -> list[float]:
    """Return the ticks of (value, width of its label) that keep their labels apart."""
    whole = list(ticks)
    for stride in range(1, len(whole) + 1):
        some = whole[::-1][::stride][::-1]
        if all(b - a >= (wide_a + wide_b) / 2 + gap for (a, wide_a), (b, wide_b) in pairwise(some)):
            return [place for place, _ in some]
    return []


def si(value: float) -> str:
    """Return a number with at most three figures and a letter: 950, 1.2k, 3.4M, 5G."""
    return _lettered(value, ("", "k", "M", "G", "T", "P", "E"))


def short(value: float) -> str:
    """Return a count as people say it, with B for a thousand million: 70.6B, 1T."""
    return _lettered(value, ("", "k", "M", "B", "T"))


def thousands(value: float) -> str:
    """Return a count with its thousands apart."""
    return f"{value:,.0f}" if abs(value) >= 999.95 else f"{value:.4g}"


def usd(value: float) -> str:
    """Return dollars, short: $950, $1.50, $1.2k, $3.4M, $5B."""
    sign, size = "-" if value < 0 else "", abs(value)
    if 0.1 <= size < 1000:
        return f"{sign}${size:.2f}".removesuffix(".00")
    return f"{sign}${short(size)}"


def percent(value: float) -> str:
    """Return a share as a percentage."""
    share = value * 100
    return f"{share:,.0f}%" if abs(share) >= 99.95 else f"{share:.3g}%"


def plain(value: float) -> str:
    """Return a number as short as it can be."""
    if abs(value) < 999.95:
        return f"{value:.4g}"
    return f"{value:,.0f}" if abs(value) < 10_000 else si(value)


def unit(name: str) -> Label:
    """Return a way to write numbers with a unit after them."""
    return lambda value: f"{plain(value)} {name}"


def _lettered(value: float, letters: tuple[str, ...]) -> str:
    if abs(value) < 999.5 or not isfinite(value):
        return f"{value:.3g}"
    place = max(1, min(len(letters) - 1, floor(log10(abs(value)) / 3 + 1e-12)))
    short = f"{value / 1000.0**place:.3g}"
    if short.lstrip("-") == "1e+03" and place + 1 < len(letters):
        place, short = place + 1, "-1" if value < 0 else "1"
    return f"{short}{letters[place]}"
