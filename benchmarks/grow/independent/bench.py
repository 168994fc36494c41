"""Judge every made fleet and hold the shares that are right against thresholds."""

import math
from collections.abc import Sequence

from benchmarks.grow.independent.judge import Finding, judge_all, misses, share, table
from benchmarks.grow.independent.made import ENOUGH, FACTOR, FIRST, INTERVAL, MINIMAL, RULE, THEN
from benchmarks.verdict import Verdict

# The ranges that are judged are said to hold four times of five.
COVERAGE = 0.8
PERCENTS = {
    "first_percent": FIRST,
    "factor_percent": FACTOR,
    "enough_percent": ENOUGH,
    "minimal_percent": MINIMAL,
    "then_percent": THEN,
    "rules_percent": RULE,
}


def run(thresholds: dict[str, float]) -> list[Verdict]:
    findings = judge_all([], [], None)
    print(
        "\n".join([*misses(findings), "", *table(findings, "layer"), "", *table(findings, "item")])
    )
    fleets = {(one.fleet, one.seed) for one in findings}
    spent = sum(one.cpu_s for one in findings)
    covered = share(findings, INTERVAL)
    print(f"\n{len(fleets)} fleets, {spent:.0f} s of CPU; ranges cover {covered:.0%}")
    verdicts = [
        Verdict(
            f"grow-independent: {kind}, right",
            100 * share(findings, kind),
            unit="%",
            at_least=thresholds[name],
        )
        for name, kind in PERCENTS.items()
    ]
    sigmas = coverage_sigmas(findings)
    return [
        *verdicts,
        Verdict("grow-independent: fleets", len(fleets), at_least=thresholds["fleets"]),
        Verdict(
            "grow-independent: coverage of ranges from 80%",
            sigmas,
            thresholds["coverage_sigmas"],
            " sigma",
        ),
    ]


def coverage_sigmas(findings: Sequence[Finding]) -> float:
    """Return how far the coverage is from 80%, in standard deviations of as many fleets."""
    judged = [one for one in findings if one.kind == INTERVAL]
    fleets = len({(one.fleet, one.seed) for one in judged})
    if not fleets:
        return math.inf
    apart = abs(share(findings, INTERVAL) - COVERAGE)
    return apart / math.sqrt(COVERAGE * (1 - COVERAGE) / fleets)
