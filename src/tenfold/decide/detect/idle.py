"""When a job idles: it used next to nothing of what it holds, for a while.

Who pauses for a minute does not idle, and one look that found nothing says little. So use must
stay below a threshold for the whole while, and must rise well above it to count as use again.
Looks that were missed prove nothing: after a gap the while begins anew.
"""

from typing import Literal

from msgspec import Struct

from tenfold.model.errors import InputError
from tenfold.model.units import MINUTE, SECOND, Millis

IdleChange = Literal["idles", "is-used"]
AFTER_S_MOST = 366 * 86_400
BELOW_PERCENT_MOST = 50
"""Use counts again at twice the threshold, which must be there to be reached."""


class IdleRule(Struct, frozen=True, kw_only=True):
    """What counts as idle. The figures are assumptions: no source gives them for all jobs."""

    is_on: bool = True
    idle_milli: int = 50
    """Thousandths of its GPUs, or of one CPU where it has none that can be asked: less is idle."""
    busy_milli: int = 100
    """As much or more is use, where it idled before."""
    after_ms: Millis = Millis(15 * MINUTE)
    """For how long use must stay below."""
    gap_ms_most: Millis = Millis(2 * MINUTE)
    """Looks that lie further apart do not belong together."""


class IdleWatch(Struct, frozen=True):
    """What is kept of one attempt from look to look."""

    seen_ms: Millis
    below_ms: Millis | None
    """Since when every look found it below the threshold; None where the last did not."""


def observe(
    before: IdleWatch | None, use_milli: int, now_ms: Millis, rule: IdleRule, *, idles: bool
) -> IdleWatch:
    """Return the watch after one more look; `idles` is what is believed of the job so far."""
    if use_milli >= (rule.busy_milli if idles else rule.idle_milli):
        return IdleWatch(now_ms, None)
    is_new = before is None or now_ms - before.seen_ms > rule.gap_ms_most
    if is_new or before is None or before.below_ms is None:
        return IdleWatch(now_ms, now_ms)
    return IdleWatch(now_ms, before.below_ms)


def idle_change(
    watch: IdleWatch, rule: IdleRule, own_ms: Millis | None, *, idles: bool
) -> IdleChange | None:
    """Return what is to be told of a job after a look; None where it goes on as it was.

    `own_ms` is how long the job itself allows; it can only be less than the rule's.
    """
    if idles:
        return "is-used" if watch.below_ms is None else None
    after_ms = rule.after_ms if own_ms is None else min(own_ms, rule.after_ms)
    is_over = watch.below_ms is not None and watch.seen_ms - watch.below_ms >= after_ms
    return "idles" if is_over and rule.is_on else None


def idle_rule_of(after_s: float, below_percent: float) -> IdleRule:
    """Return the rule for seconds and percent as people give them; 0 seconds turns it off."""
    if not 0 <= after_s <= AFTER_S_MOST:
        raise InputError(
            "wrong-value",
            f"--idle-after is {after_s:g} seconds",
            "give a time up to a year, or 0 to flag nothing",
            field="--idle-after",
        )
    if not 0 < below_percent <= BELOW_PERCENT_MOST:
        raise InputError(
            "wrong-value",
            f"--idle-below is {below_percent:g} percent",
            f"give a number above 0 and up to {BELOW_PERCENT_MOST}",
            field="--idle-below",
        )
    milli = max(1, round(below_percent * 10))
    return IdleRule(
        is_on=after_s > 0,
        idle_milli=milli,
        busy_milli=2 * milli,
        after_ms=Millis(round(after_s * SECOND)),
    )
