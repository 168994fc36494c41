"""Charts of runs over time and of how long jobs took, for one run or several laid over."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from tenfold.report.charts.axes import Axis, percent, plain, thousands
from tenfold.report.charts.points import Series, cdf_chart, line_chart
from tenfold.report.charts.svg import Card

DAY, HOUR, MINUTE = 86_400.0, 3_600.0, 60.0
LEAST_S = 1.0
"""Shorter times are drawn as this: a logarithm knows no zero."""
TIME_TICKS = (1, 10, MINUTE, 10 * MINUTE, HOUR, 6 * HOUR, DAY, 7 * DAY, 30 * DAY, 365 * DAY)
TimeSeries = Sequence[tuple[float, float]]
"""Seconds and a value."""


class TimeUnit(Struct, frozen=True):
    """A unit in which a stretch of time is read with ease."""

    name: str
    seconds: float

    def axis(self) -> Axis:
        """Return an axis of time since the start."""
        title = f"{self.name} since the first submission"
        return Axis(title=title, from_zero=True, label=plain)


def time_unit(longest_s: float) -> TimeUnit:
    """Return the unit for a run of that length."""
    for name, seconds in (("days", DAY), ("hours", HOUR), ("minutes", MINUTE)):
        if longest_s >= 3 * seconds:
            return TimeUnit(name, seconds)
    return TimeUnit("seconds", 1.0)


def span(seconds: float) -> str:
    """Return a time as people would say it: 30 s, 5 min, 2.5 h, 3 d."""
    for size, unit in ((DAY, "d"), (HOUR, "h"), (MINUTE, "min")):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.3g} s"


def share_over_time(title: str, curves: Mapping[str, TimeSeries]) -> str:
    """Return shares of the fleet over time, a line a name."""
    y = Axis(title="share of the GPUs", from_zero=True, most=1.0, label=percent)
    return _over_time(title, curves, y)


def count_over_time(title: str, what: str, curves: Mapping[str, TimeSeries]) -> str:
    """Return counts over time, a line a name."""
    return _over_time(title, curves, Axis(title=what, from_zero=True, label=thousands))


def _over_time(title: str, curves: Mapping[str, TimeSeries], y: Axis) -> str:
    unit = time_unit(max((at for curve in curves.values() for at, _ in curve), default=0.0))
    series = [
        Series(
            name=name,
            points=tuple((at / unit.seconds, value) for at, value in curve),
            dots=False,
        )
        for name, curve in curves.items()
    ]
    return line_chart(Card(title=title), series, unit.axis(), y)


def times_chart(title: str, subtitle: str, values: Mapping[str, Sequence[float]]) -> str:
    """Return which share of jobs took at most so long, on a scale of logarithms."""
    x = Axis(title="at most", log=True, label=span, ticks=TIME_TICKS)
    raised = {name: [max(LEAST_S, one) for one in many] for name, many in values.items()}
    return cdf_chart(Card(title=title, subtitle=subtitle), raised, x)
