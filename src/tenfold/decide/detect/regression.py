"""Compare the steps of a run with a baseline: slower or not, and because of which part.

An alarm needs three things: the median step grew by the rule's share, by more than the
baseline's own noise, and an exact rank test rules out chance. Parts are compared in the same
way, but only the whole step raises the alarm: communication that doubles while hidden behind
compute costs nothing.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from tenfold.decide.detect.kernels import judge_kernels
from tenfold.decide.detect.ranks import blocks, chance_of_larger, median, noise
from tenfold.decide.detect.transfers import judge_transfers
from tenfold.decide.detect.verdict import AlarmRule, Comparison, Judgement, outcome_of, percent
from tenfold.model.baseline import PARTS, Kernels, Measured, Part, Steps, Transfers

STEPS_MIN = 8
"""Fewer cannot be distinguished from chance at 1%: 8 and 8 divide in 12,870 ways."""
REST = "rest"
FELT_MIN = 0.01
"""Changes of one part below this share of the step are not reported."""


def judge(before: Measured, now: Measured, rule: AlarmRule) -> Judgement:
    """Compare two measurements of one kind."""
    match before, now:
        case Steps(), Steps():
            return judge_steps(before, now, rule)
        case Transfers(), Transfers():
            return judge_transfers(before, now, rule)
        case Kernels(), Kernels():
            return judge_kernels(before, now, rule)
        case _:
            raise AssertionError("only measurements of one kind are compared")


def judge_steps(before: Steps, now: Steps, rule: AlarmRule) -> Judgement:
    """Compare the steps of two runs, first the whole and then its parts."""
    whole = _compare("step", before.step_s, now.step_s, rule)
    shared: list[Part] = [part for part in PARTS if part in before.parts_s and part in now.parts_s]
    parts = [_compare(part, before.parts_s[part], now.parts_s[part], rule) for part in shared]
    if parts:
        parts.append(_compare(REST, _rest(before, shared), _rest(now, shared), rule))
    parts = [_weighed(part, whole) for part in parts]
    slower_part = _slower_part(whole, parts)
    return Judgement(
        alarm=whole.outcome == "slower",
        outcome=whole.outcome,
        slower_part=slower_part,
        sentence=_sentence(whole, slower_part, parts, rule),
        comparisons=(whole, *parts),
        notes=_notes(before, now),
    )


def _compare(
    part: str, before: Sequence[float], now: Sequence[float], rule: AlarmRule
) -> Comparison:
    old, new = blocks(before), blocks(now)
    was, is_now = median(before), median(now)
    spread = noise(old) / was if was > 0 else 0.0
    # A part that took no time before has no share to grow by; a step always has.
    change = is_now / was - 1.0 if was > 0 else float(is_now > 0)
    chance = chance_of_larger(old, new) if change >= 0 else chance_of_larger(new, old)
    return Comparison(
        part=part,
        unit="s",
        before=was,
        now=is_now,
        change=change,
        noise=spread,
        chance=chance,
        outcome=outcome_of(change, spread, chance, rule),
    )


def _rest(steps: Steps, parts: Sequence[Part]) -> list[float]:
    """Return what no part accounts for; zero where parts overlap and exceed the step."""
    seconds = [steps.parts_s[part] for part in parts]
    return [
        max(0.0, whole - sum(spent)) for whole, *spent in zip(steps.step_s, *seconds, strict=True)
    ]


def _weighed(part: Comparison, whole: Comparison) -> Comparison:
    """Return a part whose change counts only if it affects the step."""
    if abs(part.now - part.before) >= FELT_MIN * whole.before:
        return part
    return replace(part, outcome="same")


def _slower_part(whole: Comparison, parts: Sequence[Comparison]) -> str | None:
    """Return the part that added the most time, if it is significantly slower."""
    if whole.outcome != "slower":
        return None
    slower = [one for one in parts if one.outcome == "slower"]
    most = max(slower, key=lambda one: one.now - one.before, default=None)
    return None if most is None else most.part


def _sentence(
    whole: Comparison, slower_part: str | None, parts: Sequence[Comparison], rule: AlarmRule
) -> str:
    figures = f"{whole.now:.4g} s per step, was {whole.before:.4g} s"
    match whole.outcome:
        case "slower":
            blame = ""
            if slower_part is not None:
                one = next(part for part in parts if part.part == slower_part)
                blame = f"; {slower_part} accounts for {one.now - one.before:.4g} s"
            return f"{percent(whole.change)}: {figures}{blame}"
        case "faster":
            return f"{percent(whole.change)}: {figures}; record it as the new baseline"
        case "unclear":
            return f"{percent(whole.change)}, but within noise: {figures}; measure more steps"
        case "same":
            return f"within {rule.slower_by:.0%} of the baseline: {figures}"


def _notes(before: Steps, now: Steps) -> tuple[str, ...]:
    lost = [part for part in PARTS if (part in before.parts_s) != (part in now.parts_s)]
    if not lost:
        return ()
    return (f"not compared (in only one run): {', '.join(lost)}",)
