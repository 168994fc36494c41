"""Kueue's report from production: is it named, and how near is the wait that follows from it?

The report tells of about 1,300 nodes, 9.6 admissions a minute and a deep queue of 536 jobs that
wait 64 minutes at the median. Only the settings and the arrivals are given to the laws.
"""

from pathlib import Path

from benchmarks.verdict import Verdict
from tenfold.physics.growth.admission import backlog_wait_s, starts_per_s
from tenfold.study.grow.analyse import analyse
from tenfold.study.grow.inputs import GrowFiles, grow_inputs
from tenfold.study.grow.question import GrowQuestion

EXAMPLE = Path(__file__).parents[2] / "examples" / "kueue-1300"
ADMISSIONS_PER_MIN = 9.6
WAIT_MIN_P50 = 64.0
DEPTH = 536


def run(thresholds: dict[str, float]) -> list[Verdict]:
    given = grow_inputs(
        GrowFiles(
            fleet=EXAMPLE / "fleet.toml",
            grow=EXAMPLE / "grow.toml",
            measured=EXAMPLE / "measured.csv",
        )
    )
    answer = analyse(given, GrowQuestion(axis="jobs"))
    rate = starts_per_s(given.grow.controllers[0]).per_s or 0.0
    wait_min = backlog_wait_s(ADMISSIONS_PER_MIN / 60, rate, depth=DEPTH) / 60
    first = answer.first
    named = "nothing" if first is None else f"{first.layer} ({first.resource})"
    print(f"first break: {answer.sentence}")
    print(f"admissions a minute: said {rate * 60:.2f}, reported {ADMISSIONS_PER_MIN}")
    print(f"wait at depth {DEPTH}: said {wait_min:.0f} min, reported {WAIT_MIN_P50:.0f} at p50")
    return [
        Verdict(
            "grow: Kueue's report is named admission rate",
            float(named == "admission (kueue deep)"),
            at_least=1,
        ),
        Verdict(
            "grow: wait of Kueue's deep queue, off by",
            abs(wait_min / WAIT_MIN_P50 - 1),
            at_most=thresholds["wait_apart"],
        ),
    ]
