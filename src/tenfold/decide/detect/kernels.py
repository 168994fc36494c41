"""Compare a kernel summary with a baseline: the same calls, at their new speed.

Two profiles seldom have the same number of steps, so totals are not compared. Each kernel's new
median is multiplied by the baseline's number of calls, which gives the time of the same work
now. A summary has no single calls, so significance is based on the deviations it states.
"""

from collections.abc import Sequence
from math import erfc, sqrt

from tenfold.decide.detect.verdict import AlarmRule, Comparison, Judgement, outcome_of, percent
from tenfold.model.baseline import PARTS, Kernel, Kernels

SHARED_MIN = 0.5
"""Below this share of the baseline's time in common kernels, there is no verdict."""
NAMED_MAX = 5
Pair = tuple[Kernel, Kernel]


def judge_kernels(before: Kernels, now: Kernels, rule: AlarmRule) -> Judgement:
    """Compare the kernels that two profiles have in common."""
    fresh = {one.name: one for one in now.kernels}
    pairs = [(old, fresh[old.name]) for old in before.kernels if old.name in fresh]
    spent = sum(one.calls * one.median_s for one in before.kernels)
    shared = sum(old.calls * old.median_s for old, _ in pairs)
    if not spent or shared < SHARED_MIN * spent:
        return _not_comparable(shared / spent if spent else 0.0)
    whole = _compare("kernels", pairs, rule)
    by_part = [
        (part, [pair for pair in pairs if pair[0].part == part])
        for part in PARTS
        if any(pair[0].part == part for pair in pairs)
    ]
    parts = [_compare(part, members, rule) for part, members in by_part]
    singles = [_compare(old.name, [(old, new)], rule) for old, new in pairs]
    slower = [one for one in parts if one.outcome == "slower"]
    blamed = max(slower, key=_added, default=None) if whole.outcome == "slower" else None
    worst = sorted((one for one in singles if one.outcome == "slower"), key=_added, reverse=True)
    return Judgement(
        alarm=whole.outcome == "slower",
        outcome=whole.outcome,
        slower_part=None if blamed is None else blamed.part,
        sentence=_sentence(whole, worst, rule),
        comparisons=(whole, *parts, *worst[:NAMED_MAX]),
        notes=_notes(before, now, shared / spent),
    )


def _added(one: Comparison) -> float:
    return one.now - one.before


def _compare(part: str, pairs: Sequence[Pair], rule: AlarmRule) -> Comparison:
    before = sum(old.calls * old.median_s for old, _ in pairs)
    now = sum(old.calls * new.median_s for old, new in pairs)
    error = sqrt(sum((old.calls * _standard_error(old, new)) ** 2 for old, new in pairs))
    change = now / before - 1.0 if before > 0 else 0.0
    if error > 0:
        chance = erfc(abs(now - before) / error / sqrt(2)) / 2
    else:
        chance = 0.0 if now != before else 1.0
    return Comparison(
        part=part,
        unit="s",
        before=before,
        now=now,
        change=change,
        noise=error / before if before > 0 else 0.0,
        chance=chance,
        outcome=outcome_of(change, error / before if before > 0 else 0.0, chance, rule),
    )


def _standard_error(old: Kernel, new: Kernel) -> float:
    """Return the standard error of the difference of two means."""
    return sqrt(old.deviation_s**2 / max(1, old.calls) + new.deviation_s**2 / max(1, new.calls))


def _sentence(whole: Comparison, worst: Sequence[Comparison], rule: AlarmRule) -> str:
    figures = f"{whole.now:.4g} s for the same calls, was {whole.before:.4g} s"
    match whole.outcome:
        case "slower":
            named = f"; mostly `{worst[0].part}`" if worst else ""
            return f"kernels {percent(whole.change)}: {figures}{named}"
        case "faster":
            return f"kernels {percent(whole.change)}: {figures}; record it as the new baseline"
        case "unclear":
            return f"kernels {percent(whole.change)}, but within noise: {figures}"
        case "same":
            return f"kernels within {rule.slower_by:.0%} of the baseline: {figures}"


def _not_comparable(shared: float) -> Judgement:
    return Judgement(
        alarm=False,
        outcome="unclear",
        slower_part=None,
        sentence=(
            f"the profiles share kernels for only {shared:.0%} of the baseline's time, "
            "too little to compare; record a new baseline"
        ),
        comparisons=(),
    )


def _notes(before: Kernels, now: Kernels, shared: float) -> tuple[str, ...]:
    old, new = {one.name for one in before.kernels}, {one.name for one in now.kernels}
    if old == new:
        return ()
    return (
        f"{len(old ^ new)} kernels are in only one profile; "
        f"common kernels cover {shared:.0%} of the baseline's time",
    )
