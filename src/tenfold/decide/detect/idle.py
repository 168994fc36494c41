"""When a job is idle: its usage stays near zero for some time.

A pause of a minute is not idle, and a single low sample says little. So usage must stay below a
threshold for the whole period, and must rise well above it to count as busy again. Missed
samples prove nothing: after a gap the period starts again.
"""

from typing import Literal

from msgspec import Struct

from tenfold.model.errors import InputError
from tenfold.model.units import MINUTE, SECOND, Millis

IdleChange = Literal["idles", "is-used"]
AFTER_S_MOST = 366 * 86_400
BELOW_PERCENT_MOST = 50
"""Busy again means twice the threshold, which must be reachable."""


class IdleRule(Struct, frozen=True, kw_only=True):
    """What counts as idle. The figures are assumptions: no source gives them for all jobs."""

    is_on: bool = True
    idle_milli: int = 50
    """Thousandths of its GPUs, or of one CPU if it has no measurable GPUs: less is idle."""
    busy_milli: int = 100
    """As much or more is busy, for a job that was idle."""
    after_ms: Millis = Millis(15 * MINUTE)
    """For how long usage must stay below."""
    gap_ms_most: Millis = Millis(2 * MINUTE)
    """Samples further apart than this do not count as one period."""


class IdleWatch(Struct, frozen=True):
    """What is kept of one attempt between samples."""

    seen_ms: Millis
    below_ms: Millis | None
    """Since when every sample was below the threshold; None if the last was not."""


def observe(
    before: IdleWatch | None, use_milli: int, now_ms: Millis, rule: IdleRule, *, idles: bool
) -> IdleWatch:
    """Return the watch after another sample; `idles` is whether the job counts as idle so far."""
    if use_milli >= (rule.busy_milli if idles else rule.idle_milli):
        return IdleWatch(now_ms, None)
    is_new = before is None or now_ms - before.seen_ms > rule.gap_ms_most
    if is_new or before is None or before.below_ms is None:
        return IdleWatch(now_ms, now_ms)
    return IdleWatch(now_ms, before.below_ms)


def idle_change(
    watch: IdleWatch, rule: IdleRule, own_ms: Millis | None, *, idles: bool
) -> IdleChange | None:
    """Return how a job's idle state changes after a sample; None if it does not.

    `own_ms` is the job's own limit; it can only shorten the rule's.
    """
    if idles:
        return "is-used" if watch.below_ms is None else None
    after_ms = rule.after_ms if own_ms is None else min(own_ms, rule.after_ms)
    is_over = watch.below_ms is not None and watch.seen_ms - watch.below_ms >= after_ms
    return "idles" if is_over and rule.is_on else None


def idle_rule_of(after_s: float, below_percent: float) -> IdleRule:
    """Return the rule for seconds and percent from the command line; 0 seconds turns it off."""
    if not 0 <= after_s <= AFTER_S_MOST:
        raise InputError(
            "wrong-value",
            f"`--idle-after` must be from 0 to {AFTER_S_MOST:,} seconds, got {after_s:g}",
            "0 turns idle detection off",
            field="--idle-after",
        )
    if not 0 < below_percent <= BELOW_PERCENT_MOST:
        raise InputError(
            "wrong-value",
            f"`--idle-below` must be above 0, at most {BELOW_PERCENT_MOST}, got {below_percent:g}",
            "it is a percentage of GPU use, below which a job counts as idle",
            field="--idle-below",
        )
    milli = max(1, round(below_percent * 10))
    return IdleRule(
        is_on=after_s > 0,
        idle_milli=milli,
        busy_milli=2 * milli,
        after_ms=Millis(round(after_s * SECOND)),
    )
