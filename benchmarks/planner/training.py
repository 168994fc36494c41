"""The planner's training side: accuracy, memory, scaling, ranking, speed, and peers, as tables."""

from benchmarks.planner.training_distance import coverage
from benchmarks.planner.training_evaluate import (
    h200,
    leave_source_out,
    print_halves,
    print_sources,
    source_verdicts,
)
from benchmarks.planner.training_judge import Judge
from benchmarks.planner.training_peers import peers
from benchmarks.planner.training_rows import missing, read_rows
from benchmarks.planner.training_scaling import ranking, scaling
from benchmarks.planner.training_speed import speed
from benchmarks.verdict import Verdict
from tenfold.facts.loader import load_catalogue


def run(thresholds: dict[str, float]) -> list[Verdict]:
    """Print every table and return what they say against the aims."""
    catalogue = load_catalogue()
    verdicts = speed(catalogue, thresholds)
    absent = missing()
    if absent:
        print(f"\n{absent}; no verdicts on accuracy")
        return verdicts
    rows, left_out = read_rows(catalogue)
    why = "; ".join(f"{count}: {reason}" for reason, count in left_out.items())
    print(f"\n{len(rows)} runs; left out {sum(left_out.values())} ({why})")
    judge = Judge(rows, catalogue)
    sources = leave_source_out(judge)
    print_sources(sources)
    verdicts += source_verdicts(sources, thresholds)
    print_halves(judge)
    for table in (coverage, h200, scaling, ranking, peers):
        verdicts += table(judge, thresholds)
    return verdicts
