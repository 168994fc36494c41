"""Compare a network test with a baseline, size by size.

Small transfers show latency and large ones bandwidth, and either may degrade alone, so they are
compared separately: a size is large if the baseline reached half of its best bus bandwidth
there. Sizes are paired with themselves, and a sign test runs over the pairs.
"""

from collections.abc import Sequence
from math import log

from tenfold.decide.detect.ranks import chance_of_signs, median
from tenfold.decide.detect.verdict import AlarmRule, Comparison, Judgement, outcome_of, percent
from tenfold.model.baseline import Transfer, Transfers

DELAY = "delay of small transfers"
BANDWIDTH = "bandwidth of large transfers"
Pair = tuple[Transfer, Transfer]


def judge_transfers(before: Transfers, now: Transfers, rule: AlarmRule) -> Judgement:
    """Compare the sizes that two tests have in common."""
    pairs = _pairs(before, now)
    best = max((old.bus_gb_per_s for old, _ in pairs), default=0.0)
    large = [pair for pair in pairs if pair[0].bus_gb_per_s >= best / 2]
    small = [pair for pair in pairs if pair[0].bus_gb_per_s < best / 2]
    bands = [
        _compare(name, members, rule)
        for name, members in ((BANDWIDTH, large), (DELAY, small))
        if members
    ]
    slower = [one for one in bands if one.outcome == "slower"]
    worst = max(slower or bands, key=lambda one: one.change, default=None)
    outcome = "unclear" if worst is None else worst.outcome
    left_out = len(before.transfers) + len(now.transfers) - 2 * len(pairs)
    return Judgement(
        alarm=bool(slower),
        outcome=outcome,
        slower_part=worst.part if worst is not None and slower else None,
        sentence=_sentence(worst, now.operation, rule),
        comparisons=tuple(bands),
        notes=(f"not compared (size in only one test): {left_out} timings",) if left_out else (),
    )


def _pairs(before: Transfers, now: Transfers) -> list[Pair]:
    """Return timings of the same size and place in both tests; repeats are paired in order."""
    waiting: dict[tuple[int, bool], list[Transfer]] = {}
    for one in before.transfers:
        waiting.setdefault((one.size_bytes, one.in_place), []).append(one)
    pairs: list[Pair] = []
    for one in now.transfers:
        queue = waiting.get((one.size_bytes, one.in_place))
        if queue:
            pairs.append((queue.pop(0), one))
    return pairs


def _compare(part: str, pairs: Sequence[Pair], rule: AlarmRule) -> Comparison:
    growths = [log(now.time_us / old.time_us) for old, now in pairs]
    # The median of ratios, not the ratio of medians: sizes differ by orders of magnitude.
    change = median([now.time_us / old.time_us for old, now in pairs]) - 1.0
    grown = sum(growth > 0 for growth in growths)
    shrunk = sum(growth < 0 for growth in growths)
    chance = chance_of_signs(grown, shrunk) if change >= 0 else chance_of_signs(shrunk, grown)
    if part == BANDWIDTH:
        before = median([old.bus_gb_per_s for old, _ in pairs])
        now = median([new.bus_gb_per_s for _, new in pairs])
    else:
        before = median([old.time_us for old, _ in pairs])
        now = median([new.time_us for _, new in pairs])
    return Comparison(
        part=part,
        unit="GB/s" if part == BANDWIDTH else "us",
        before=before,
        now=now,
        change=change,
        noise=0.0,
        chance=chance,
        outcome=outcome_of(change, 0.0, chance, rule),
    )


def _sentence(worst: Comparison | None, operation: str, rule: AlarmRule) -> str:
    if worst is None:
        return "the two tests have no size in common"
    figures = f"{worst.now:.4g} {worst.unit}, was {worst.before:.4g} {worst.unit}"
    name = f"{operation}: " if operation else ""
    match worst.outcome:
        case "slower" | "faster":
            return f"{name}{worst.part}: {percent(worst.change)}, {figures}"
        case "unclear":
            return (
                f"{name}{worst.part}: {percent(worst.change)}, but within noise, "
                f"{figures}; test more sizes"
            )
        case "same":
            return f"{name}within {rule.slower_by:.0%} of the baseline; {worst.part}: {figures}"
