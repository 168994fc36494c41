"""The sentences of an assessment, which screen and page share."""

from datetime import UTC, datetime

from tenfold.report.charts.runs import span
from tenfold.report.figures import count, share
from tenfold.study.assess.assess import Assessment
from tenfold.study.assess.changes import Change, Tried
from tenfold.study.assess.growth import Break, Trend

DATED_S = 946_684_800.0


def amount(value: float) -> str:
    """Return a number of hours, with a decimal where that says something."""
    return f"{value:,.0f}" if abs(value) >= 100 or not value else f"{value:,.1f}"


def period(found: Assessment) -> str:
    """Return the period: days, and dates where they are known."""
    days = found.use.days
    long = f"{days:,.1f} days" if days >= 2 else span(days * 86_400)
    if found.until_s < DATED_S:
        return long
    first, last = (_day(one) for one in (found.from_s, found.until_s))
    return f"{long} up to {last}" if first == last else f"{long}, {first} to {last}"


def _day(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d")


def headline(found: Assessment) -> str:
    """Return the first line."""
    use = found.use
    size = f"{found.cluster}: {count(use.gpus, 'GPU')}"
    if not use.has_history:
        return f"{size}, no history of jobs: only this moment is known"
    return f"{size}, {count(use.jobs, 'job')} that ran in the {period(found)}"


def fullness(found: Assessment) -> str:
    """Return how full the fleet was and by whom; empty without a history."""
    use = found.use
    if not use.has_history:
        return ""
    if not use.counts_gpus:
        return "not known: Slurm's accounting does not count GPUs here"
    most = [f"{one.name} {share(one.share)}" for one in use.by_account[:3] if one.gpu_hours]
    whose = f"; top accounts: {', '.join(most)}" if most else ""
    return (
        f"{share(use.share)} of the GPU-hours were allocated "
        f"({amount(use.gpu_hours)} of {amount(use.gpu_hours_available)}){whose}"
    )


def now_text(found: Assessment) -> str:
    """Return the GPUs at this moment; empty for a trace."""
    now = found.use.now
    if now is None:
        return ""
    return (
        f"{now.allocated} of {now.gpus} GPUs allocated, {now.free} free"
        + (f" ({now.stranded} on nodes without free CPUs)" if now.stranded else "")
        + (f", {now.unusable} on nodes out of service" if now.unusable else "")
        + f"; {count(now.pending, 'job')} pending for {now.pending_gpus:,.0f} GPUs"
    )


def held_text(found: Assessment) -> str:
    """Return which GPU-hours were held and not used; empty where none are known."""
    held = found.use.held
    if not (found.use.has_history and found.use.counts_gpus):
        return ""
    parts = [f"{amount(held.unrequested)} GPU-hours allocated beyond the request"]
    if held.low_cpu is not None:
        parts.append(f"{amount(held.low_cpu)} in jobs that used almost no CPU time")
    if held.lost or held.cancelled:
        parts.append(f"{amount(held.lost or 0.0)} in runs that failed or timed out")
        parts.append(f"{amount(held.cancelled or 0.0)} in cancelled runs")
    cost = "" if not found.usd_held else f" (the first{_two(held.low_cpu)}: ${found.usd_held:,.0f})"
    return ", ".join(parts) + cost


def _two(low_cpu: float | None) -> str:
    return " two" if low_cpu is not None else ""


def waits_text(found: Assessment) -> str:
    """Return how long jobs waited; empty without a history."""
    every = found.waits.every
    if not found.use.has_history:
        return ""
    how = "simulated: " if found.waits.simulated else ""
    return (
        f"{how}mean {span(every.mean_s)}, median {span(every.p50_s)}, P90 {span(every.p90_s)}; "
        f"{amount(every.waiting_hours)} hours in total over {every.jobs:,} jobs"
    )


def longest_text(found: Assessment) -> str:
    """Return which account, partition and size waited longest, by the sum of its waits."""
    parts = [
        f"{kind} {rows[0].name} (mean {span(rows[0].mean_s)})"
        for kind, rows in (
            ("account", found.waits.by_account),
            ("partition", found.waits.by_partition),
            ("size", found.waits.by_size),
        )
        if rows and rows[0].name != "(none)"
    ]
    return "most wait time: " + ", ".join(parts) if parts else ""


def growth_text(trend: Trend) -> str:
    """Return how fast the work grows."""
    if trend.per_month is None:
        return (
            f"no dates: a growth rate needs 6 full weeks of history, and this has {trend.weeks:,}"
        )
    low, high = trend.per_month_low or 0.0, trend.per_month_high or 0.0
    grows = "grows" if trend.per_month > 0 else "shrinks"
    return (
        f"submitted work {grows} by {abs(trend.per_month):.0%} a month "
        f"(middle half of all slopes: {low:+.0%} to {high:+.0%})"
    )


def break_text(one: Break) -> str:
    """Return a limit with its factor and day."""
    if one.factor is None:
        return one.label
    if one.factor <= 1:
        return f"{one.label}: over its limit today"
    when = ""
    if one.day:
        late = one.day_late or "never"
        when = f", about {one.day} ({one.day_early or 'unknown'} to {late})"
    return f"{one.label}: at {one.factor:.2f}x today's load{when}"


def saved_text(tried: Tried) -> str:
    """Return how much waiting a change saves on one half."""
    part = "" if tried.share_saved is None else f" ({tried.share_saved:+.0%})".replace("+", "")
    hours = tried.hours_saved
    text = amount(hours) if abs(hours) >= 10 else f"{hours:,.2g}"
    return f"{text} h{part}"


def cost_text(change: Change) -> str:
    """Return what a change costs a month."""
    if change.usd_per_month is None:
        return "no price known"
    return f"${change.usd_per_month:,.0f}"


def calibration_text(found: Assessment) -> str:
    """Return how well the unchanged policy reproduces the record."""
    return "; ".join(one.sentence for one in found.changes.calibrations)
