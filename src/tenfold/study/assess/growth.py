"""What breaks first and when: the growth of the history itself, and the limits of `grow`."""

from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from math import log, log2
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from tenfold.model.growth.growth import GrowSpec, Pace
from tenfold.model.job.job import Job
from tenfold.model.policy.policy import Policy
from tenfold.model.units import DAY
from tenfold.sim.measure.meters import requested_milli
from tenfold.study.assess.evidence import Evidence
from tenfold.study.grow.analyse import analyse_growth
from tenfold.study.grow.inputs import GrowInputs
from tenfold.study.grow.question import GrowQuestion

WEEK_MS = 7 * DAY
WEEKS_LEAST = 6
"""Fewer whole weeks do not tell growth from chance."""
DAYS_PER_MONTH = 30.4375
MONTHS_MOST = 120.0
UPTO = 4.0


class Trend(Struct, frozen=True, kw_only=True):
    """How fast the submitted work grows: the median of all slopes between two weeks."""

    weeks: int
    per_month: float | None
    """Relative growth in a month; None if the history is too short."""
    per_month_low: float | None = None
    per_month_high: float | None = None
    """The quartiles of the slopes."""
    doubles_in_months: float | None = None
    gpu_hours_by_week: tuple[float, ...] = ()


class Break(Struct, frozen=True, kw_only=True):
    """A limit, the factor of today's load at which it is reached, and the day."""

    label: str
    factor: float | None
    symptom: str
    grade: str
    fix: str
    usd_per_month: float | None
    day: str = ""
    day_early: str = ""
    day_late: str = ""


class Outlook(Struct, frozen=True, kw_only=True):
    """What breaks first."""

    trend: Trend
    sentence: str
    first: Break | None
    others: tuple[Break, ...]
    calibration: str
    assumptions: tuple[str, ...]


class _Slopes(NamedTuple):
    low: float
    middle: float
    high: float


def trend_of(jobs: Sequence[Job]) -> Trend:
    """Return the growth of the GPU-hours that were submitted each week."""
    if not jobs:
        return Trend(weeks=0, per_month=None)
    last = jobs[-1].submitted_ms
    weeks = int((last - jobs[0].submitted_ms) // WEEK_MS)
    sums = [0.0] * weeks
    for job in jobs:
        # Weeks count back from the end, so that the newest one is whole.
        place = weeks - 1 - int((last - job.submitted_ms) // WEEK_MS)
        if 0 <= place < weeks:
            sums[place] += requested_milli(job) / 1_000 * (job.duration_ms or 0) / 3_600_000
    found = tuple(sums)
    slopes = _slopes(found)
    if weeks < WEEKS_LEAST or slopes is None:
        return Trend(weeks=weeks, per_month=None, gpu_hours_by_week=found)
    months = DAYS_PER_MONTH / 7
    return Trend(
        weeks=weeks,
        per_month=2 ** (slopes.middle * months) - 1,
        per_month_low=2 ** (slopes.low * months) - 1,
        per_month_high=2 ** (slopes.high * months) - 1,
        doubles_in_months=1 / (slopes.middle * months) if slopes.middle > 0 else None,
        gpu_hours_by_week=found,
    )


def _slopes(weeks: Sequence[float]) -> _Slopes | None:
    """Return the quartiles of the slopes between all pairs of weeks, in doublings a week."""
    points = [(place, log2(one)) for place, one in enumerate(weeks) if one > 0]
    found = sorted(
        (after[1] - before[1]) / (after[0] - before[0])
        for number, before in enumerate(points)
        for after in points[number + 1 :]
    )
    if len(found) < 3:
        return None
    return _Slopes(*(found[int(share * (len(found) - 1))] for share in (0.25, 0.5, 0.75)))


def outlook_of(evidence: Evidence, done: Callable[[int], None]) -> Outlook:
    """Return what breaks first as the load grows as it did, and when."""
    trend = trend_of(evidence.work)
    today = _today(evidence)
    doubles = trend.doubles_in_months
    pace = None
    if doubles is not None and doubles <= MONTHS_MOST and today is not None:
        pace = Pace(today=today.isoformat(), doubles_in_months=doubles)
    answer = analyse_growth(
        GrowInputs(
            fleet=evidence.fleet,
            jobs=evidence.work,
            starts_ms=evidence.starts_ms,
            ends=evidence.ends,
            policy=_quick(evidence.policy),
            grow=GrowSpec(pace=pace),
        ),
        GrowQuestion(axis="jobs", to=(UPTO,), seeds=1),
        done,
    ).answer
    rows = [row for row in (*answer.rows[:1], *answer.layers) if row.k is not None]
    breaks = [
        _dated(
            Break(
                label=row.label or row.title or row.layer,
                factor=row.k,
                symptom=row.symptom,
                grade=row.grade or "",
                fix=row.relief.sentence if row.relief else row.sentence,
                usd_per_month=row.relief.usd_per_month if row.relief else None,
            ),
            trend,
            today,
        )
        for row in rows
    ]
    names: dict[str, Break] = {}
    for one in breaks:
        names.setdefault(one.label, one)
    first = next(iter(names.values()), None) if answer.rows else None
    rest = tuple(one for one in names.values() if one is not first)
    return Outlook(
        trend=trend,
        sentence=answer.sentence,
        first=first,
        others=rest,
        calibration=answer.calibration.sentence,
        assumptions=answer.assumptions,
    )


def _quick(policy: Policy) -> Policy:
    """Return the policy to grow under: `governed` without quotas is a fair share, and slow."""
    return Policy(name="fair") if policy.name == "governed" else policy


def _today(evidence: Evidence) -> date | None:
    if not evidence.is_dated:
        return None
    return datetime.fromtimestamp(evidence.until_s, UTC).date()


def _dated(one: Break, trend: Trend, today: date | None) -> Break:
    if one.factor is None or today is None or trend.per_month is None:
        return one
    return replace(
        one,
        day=_day(one.factor, trend.per_month, today),
        day_early=_day(one.factor, trend.per_month_high, today),
        day_late=_day(one.factor, trend.per_month_low, today),
    )


def _day(factor: float, per_month: float | None, today: date) -> str:
    """Return the day on which the load is so many times today's; empty if it never is."""
    if factor <= 1:
        return today.isoformat()
    if per_month is None or per_month <= 0:
        return ""
    months = log(factor) / log(1 + per_month)
    if months > MONTHS_MOST:
        return ""
    return (today + timedelta(days=round(months * DAYS_PER_MONTH))).isoformat()
