"""How measured usage grows with its factor: a straight line with an offset, or a power law.

A limit is not visible at small scale, but the cost of each further unit is. The fit is
`base + slope * k ** power`. The base is never negative, and the power is 1 unless the points
clearly show a larger one: with few points or a short span a curve would only follow their noise,
and its extrapolation to a far larger factor would be useless.

Usage that bends down at small factors is taken as a line. What makes each unit cheaper there is
spread over more of them and used up: the processor time of a Prometheus for each sample halves
from 60 to 275 targets and then stays, and the curve through four small sizes put its break at 15
times the measured load, the line at 7, where it was at 4. The curve is the far end of the range.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from tenfold.model.growth.measured import UsagePoint

FACTORS_FOR_CURVE = 4
SPAN_FOR_CURVE = 4.0
CURVE_ERROR_SHARE = 0.5
"""Share of the straight line's squared error that a curve must stay below."""
REACH = 4.0
"""How far beyond the largest measured factor a fit is meant to be used."""
POWERS = tuple(tenths / 20 for tenths in range(6, 41))
SINGLE_POINT_LOW = 0.5
"""A single point cannot separate base from slope: up to half of it may be base."""


class Usage(NamedTuple):
    """A usage fit, with the range of its slope from leaving out single points."""

    base: float
    slope: float
    power: float
    slope_low: float
    slope_high: float


class _Line(NamedTuple):
    base: float
    slope: float


_Pairs = Sequence[tuple[float, float]]


def fit_usage(points: Sequence[UsagePoint]) -> Usage:
    """Return the least-squares fit through the points of one resource.

    The range is twice the jackknife deviation of the slope to either side. Where a line or a curve
    could be meant, it extends to what the other one gives at a few times the largest factor.
    """
    assert points, "a usage is fitted to at least one point"
    pairs = [(point.factor, point.usage) for point in points]
    found = _power(pairs)
    power = max(1.0, found)
    line = _line(pairs, power)
    if len(_factors(pairs)) == 1:
        return Usage(line.base, line.slope, power, SINGLE_POINT_LOW * line.slope, line.slope)
    reach = 2.0 * _deviation(pairs, power)
    other = line.slope if found == 1.0 else _slope_to(pairs, line, power, min(1.0, found))
    low = max(0.0, min(line.slope - reach, other))
    return Usage(line.base, line.slope, power, low, max(line.slope + reach, other))


def usage_at(usage: Usage, factor: float) -> float:
    """Return the usage at a factor."""
    return usage.base + usage.slope * factor**usage.power


def spread_of(usage: Usage) -> float:
    """Return half the range of the slope as a share of the slope."""
    if usage.slope <= 0.0:
        return 0.0
    return (usage.slope_high - usage.slope_low) / (2.0 * usage.slope)


def factor_at(usage: Usage, limit: float) -> float:
    """Return the factor at which usage reaches its limit; infinite if it never does."""
    headroom = limit - usage.base
    if headroom <= 0.0:
        return 0.0
    if usage.slope <= 0.0:
        return math.inf
    return (headroom / usage.slope) ** (1.0 / usage.power)


def factor_range(usage: Usage, limit: float) -> tuple[float, float]:
    """Return the factors at which the steepest and the flattest slope reach the limit."""
    steep = usage._replace(slope=usage.slope_high)
    flat = usage._replace(slope=usage.slope_low)
    return factor_at(steep, limit), factor_at(flat, limit)


def straight_line(pairs: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Return base and slope of the least-squares line through pairs, neither negative."""
    return _line(pairs, 1.0)


def _line(pairs: _Pairs, power: float) -> _Line:
    """Fit base and slope; if one would be negative it is zero, and only the other is fitted."""
    across = [factor**power for factor, _ in pairs]
    up = [used for _, used in pairs]
    across_mean, up_mean = sum(across) / len(pairs), sum(up) / len(pairs)
    if len(_factors(pairs)) > 1:
        wide = sum((x - across_mean) ** 2 for x in across)
        both = sum((x - across_mean) * (y - up_mean) for x, y in zip(across, up, strict=True))
        slope = both / wide
        base = up_mean - slope * across_mean
        if slope < 0.0:
            return _Line(up_mean, 0.0)
        if base >= 0.0:
            return _Line(base, slope)
    squares = sum(x * x for x in across)
    return _Line(0.0, sum(x * y for x, y in zip(across, up, strict=True)) / squares)


def _power(pairs: _Pairs) -> float:
    """Return 1, or the power that predicts left-out factors far better than a line."""
    factors = _factors(pairs)
    if len(factors) < FACTORS_FOR_CURVE or factors[-1] < SPAN_FOR_CURVE * factors[0]:
        return 1.0
    errors = {power: _left_out_error(pairs, factors, power) for power in POWERS}
    best = min(POWERS, key=errors.__getitem__)
    return best if errors[best] < CURVE_ERROR_SHARE * errors[1.0] else 1.0


def _slope_to(pairs: _Pairs, line: _Line, power: float, other_power: float) -> float:
    """Return the slope with which a fit would meet one of another power beyond all points."""
    beyond = REACH * max(factor for factor, _ in pairs)
    other = _line(pairs, other_power)
    used = other.base + other.slope * beyond**other_power
    return max(0.0, used - line.base) / beyond**power


def _left_out_error(pairs: _Pairs, factors: Sequence[float], power: float) -> float:
    """Return the squared error at each factor of the fit without it."""
    error = 0.0
    for left_out in factors:
        line = _line([pair for pair in pairs if pair[0] != left_out], power)
        predicted = line.base + line.slope * left_out**power
        error += sum((used - predicted) ** 2 for factor, used in pairs if factor == left_out)
    return error


def _deviation(pairs: _Pairs, power: float) -> float:
    """Return the jackknife standard deviation of the slope."""
    return jackknife(pairs, lambda kept: _line(kept, power).slope)


def jackknife(pairs: _Pairs, figure: Callable[[_Pairs], float]) -> float:
    """Return the standard deviation of a figure, by leaving out one pair at a time."""
    count = len(pairs)
    figures = [figure([*pairs[:place], *pairs[place + 1 :]]) for place in range(count)]
    mean = sum(figures) / count
    return math.sqrt((count - 1) / count * sum((one - mean) ** 2 for one in figures))


def _factors(pairs: _Pairs) -> list[float]:
    return sorted(dict.fromkeys(factor for factor, _ in pairs))
