"""Steps measured on a real H200 after the model was frozen, beside what it said of them.

The rows are our own (`benchmarks/h200_steps.py`, torch 2.11, driver 580.159); they were
chosen and run once, after the profile was fitted, and nothing was fitted to them.
"""

import json
from pathlib import Path
from statistics import median

from benchmarks.planner.training_rows import OWN_STACK, measured_row
from benchmarks.verdict import Verdict
from tenfold.compose.fleet import load_facts
from tenfold.model.estimate import TrainEstimate
from tenfold.study.estimate.train import estimate_train

MEASURED = Path(__file__).with_name("h200_fresh.jsonl")


def run(thresholds: dict[str, float]) -> list[Verdict]:
    measured = [json.loads(line) for line in MEASURED.read_text().splitlines()]
    answers = estimate_train(
        [measured_row(one, f"fresh-{place}", OWN_STACK) for place, one in enumerate(measured)],
        load_facts(),
    )
    head = f"{'configuration':34} {'predicted':>10} {'measured':>10} {'error':>7}"
    print(f"{head} {'GiB':>6} {'of':>6}")
    steps: list[float] = []
    memory: list[float] = []
    wrong_calls = 0
    for one, answer in zip(measured, answers, strict=True):
        assert isinstance(answer, TrainEstimate), "what was measured can be estimated"
        name = f"h{one['hidden']} l{one['layers']} s{one['seq']} b{one['mbs']} {one['recompute']}"
        said = answer.step_s * 1000
        gib = answer.memory_gib
        wrong_calls += answer.fits == ("error" in one)
        if "error" in one:
            print(f"{name:34} {said:8.1f}ms {'oom':>10} {'':>7} {gib:6.1f}")
            continue
        error = said / one["step_ms"] - 1
        steps.append(abs(error))
        memory.append(abs(gib / one["peak_gib"] - 1))
        print(
            f"{name:34} {said:8.1f}ms {one['step_ms']:8.1f}ms {error:+7.1%} {gib:6.1f} "
            f"{one['peak_gib']:6.1f}"
        )
    print(f"median error: step {median(steps):.1%}, memory {median(memory):.1%}")
    print(f"largest error: step {max(steps):.1%}, memory {max(memory):.1%}")
    return [
        Verdict("fresh H200 memory, median error", median(memory), thresholds["memory_error"]),
        Verdict("fresh H200 memory, largest error", max(memory), thresholds["memory_error_most"]),
        Verdict("fresh H200 steps, median error", median(steps), thresholds["step_error"]),
        Verdict("fresh H200 out-of-memory calls that were wrong", wrong_calls, 0),
    ]
