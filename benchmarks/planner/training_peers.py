"""The same rows through peers: llm-analysis in this run, Calculon by its published validation.

llm-analysis is not a dependency: `TENFOLD_PEER_PYTHON` names a Python that has it, for instance
`python3 -m venv peer && peer/bin/pip install llm-analysis==0.2.2`.
"""

import json
import os
import subprocess
from dataclasses import dataclass

import numpy as np

from benchmarks.planner.training_judge import Judge, ask, miss
from benchmarks.planner.training_rows import Rows, pick
from benchmarks.verdict import Verdict
from tenfold.physics.arrays import Floats
from tenfold.physics.training.arrays import SHARD_CODES

PEER_PYTHON = "TENFOLD_PEER_PYTHON"
EFFICIENCIES = (0.5, 0.6, 0.7)
PEER_GPUS = {
    "A100-40G-SXM": "a100-sxm-40gb",
    "A100-80G-SXM": "a100-sxm-80gb",
    "H100-80G-SXM": "h100-sxm-80gb",
    "V100-32G-SXM3": "v100-sxm-32gb",
}
PEER_TIMEOUT_S = 180
KORTHIKANTI = "Korthikanti 2022 Table 5"
# Read in the notes on peers (shared/notes/physics.md, section 1): Calculon's own `llm-validation`,
# reproduced, and its shipped A100 file on rows that it was not tuned on. vTrain counted 109 rows
# then and a sample of 300; SC21 Table 1 is the README table of January 2021.
CALCULON = (
    ("its 8 validation rows, mean", KORTHIKANTI, "mean", 0.0365),
    ("SC21 Table 1, median", "Megatron-LM README Jan 2021", "median", 0.107),
    ("vTrain multi node, median", "vTrain ground truth multi node", "median", 0.097),
    ("vTrain single node, median", "vTrain ground truth single node", "median", 0.34),
)
PROGRAM = """
import json, logging, sys
logging.disable(logging.CRITICAL)
from llm_analysis.analysis import ActivationRecomputation, DSZeRO, LLMAnalysis
from llm_analysis.config import (
    ModelConfig, ParallelismConfig, get_dtype_config_by_name, get_gpu_config_by_name,
)
print_back, sys.stdout = sys.stdout, sys.stderr
out = []
for row in json.load(sys.stdin):
    times = []
    try:
        model = ModelConfig(name="row", max_seq_len=row["seq"], expansion_ratio=row["ratio"],
                            **row["model"])
        for efficiency in row["efficiencies"]:
            own = LLMAnalysis(
                model, get_gpu_config_by_name(row["gpu"]), get_dtype_config_by_name("w16a16e16"),
                ParallelismConfig(**row["degrees"]), flops_efficiency=efficiency,
            )
            said = own.training(
                batch_size_per_gpu=row["micro_batch"], global_batch_size=row["global_batch"],
                seq_len=row["seq"], ds_zero=DSZeRO(row["zero"]), flash_attn=row["flash"],
                activation_recomputation=ActivationRecomputation(row["recompute"]),
                mlp_gated_linear_units=row["gated"],
            )
            times.append(said["latency_per_iter"])
        out.append(times)
    except Exception as error:
        out.append(str(error)[:200] or type(error).__name__)
json.dump(out, print_back)
"""


@dataclass(frozen=True, slots=True)
class Peer:
    """Steps by efficiency (columns) of the rows that the peer could express."""

    rows: Rows
    step_s: Floats
    refused: int


def peers(judge: Judge, thresholds: dict[str, float]) -> list[Verdict]:
    """Print both peers against ours on the same rows, sources left out of our fit."""
    return [*_calculon(judge, thresholds), *_llm_analysis(judge, thresholds)]


def _calculon(judge: Judge, thresholds: dict[str, float]) -> list[Verdict]:
    print("\nCalculon, errors quoted from the notes on peers; ours on the same sources")
    print(f"{'rows':30} {'Calculon':>8} {'left out':>8} {'shipped':>8}")
    ratios: list[float] = []
    for label, source, kind, theirs in CALCULON:
        rows = judge.of_source(source)
        ours = [
            _error(ask(rows, catalogue).step_s, rows, kind)
            for catalogue in (judge.without(source), judge.shipped)
        ]
        ratios.append(ours[0] / theirs)
        print(f"{label:30} {theirs:8.1%} {ours[0]:8.1%} {ours[1]:8.1%}")
    limit = thresholds["error_over_calculon"]
    names = ("validation rows", "SC21", "vTrain multi node", "vTrain single node")
    return [
        Verdict(f"left out, error over Calculon's: {name}", ratio, limit)
        for name, ratio in zip(names, ratios, strict=True)
    ]


def _error(step_s: Floats, rows: Rows, kind: str) -> float:
    errors = np.abs(step_s / rows.step_s - 1)
    return float(errors.mean() if kind == "mean" else np.median(errors))


def _llm_analysis(judge: Judge, thresholds: dict[str, float]) -> list[Verdict]:
    python = os.environ.get(PEER_PYTHON)
    if not python:
        print(f"\nllm-analysis skipped: {PEER_PYTHON} names no Python that has it")
        return []
    found = _asked(judge.rows, python)
    if isinstance(found, str):
        print(f"\nllm-analysis skipped: {found}")
        return []
    errors = np.abs(found.step_s / found.rows.step_s[:, None] - 1)
    best = int(np.argmin(np.median(errors, axis=0)))
    print(
        f"\nllm-analysis on {len(found.rows)} rows it can express (it refused {found.refused}), "
        f"with its best efficiency of {EFFICIENCIES[best]}: median error"
    )
    print(f"{'source':38} {'rows':>4} {'theirs':>7} {'ours, left out':>14}")
    ours = np.zeros(len(found.rows))
    medians: list[tuple[float, float]] = []
    for source in sorted(set(found.rows.source.tolist())):
        index = np.flatnonzero(found.rows.source == source)
        own = pick(found.rows, index)
        ours[index] = np.abs(np.expm1(miss(ask(own, judge.without(source)), own).log))
        medians.append((float(np.median(errors[index, best])), float(np.median(ours[index]))))
        print(f"{source:38} {len(index):4} {medians[-1][0]:7.1%} {medians[-1][1]:14.1%}")
    pair = float(np.median(errors[:, best])), float(np.median(ours))
    print(f"{'all':38} {len(found.rows):4} {pair[0]:7.1%} {pair[1]:14.1%}")
    middle = np.median(np.array(medians), axis=0)
    print(f"{'middle source':38} {'':4} {middle[0]:7.1%} {middle[1]:14.1%}")
    limit = thresholds["error_over_llm_analysis"]
    name = "left out, error over llm-analysis's"
    return [
        Verdict(f"{name}: all rows", pair[1] / pair[0], limit),
        # Most rows are vTrain's, so the middle source is the fairer word.
        Verdict(f"{name}: middle source", float(middle[1] / middle[0]), limit),
    ]


def _asked(rows: Rows, python: str) -> Peer | str:
    """Return what the peer says of the rows it can express, or why it cannot be asked."""
    can = pick(rows, np.array([_expressible(rows, at) for at in range(len(rows))]))
    questions = json.dumps([_question(can, at) for at in range(len(can))])
    try:
        ran = subprocess.run(
            [python, "-c", PROGRAM],
            input=questions,
            capture_output=True,
            text=True,
            timeout=PEER_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if ran.returncode:
        return (ran.stderr.strip().splitlines() or ["it said nothing"])[-1]
    answers = json.loads(ran.stdout)
    told = np.array([isinstance(answer, list) for answer in answers])
    if not told.any():
        return f"it refused every row, for instance: {answers[0]}"
    steps = np.array([answer for answer in answers if isinstance(answer, list)])
    return Peer(pick(can, told), steps, int((~told).sum()))


def _expressible(rows: Rows, at: int) -> bool:
    """Dense models in half precision on a part it knows, with no context parallelism."""
    plans, shape = rows.runs.plans, rows.runs.shape
    plain = np.asarray(shape.experts)[at] == 0 and np.asarray(plans.cp)[at] == 1
    half = np.asarray(plans.precision)[at] == 2
    return bool(plain and half and rows.runs.part[at] in PEER_GPUS)


def _question(rows: Rows, at: int) -> dict[str, object]:
    def whole(values: object) -> int:
        return int(np.asarray(values)[at])

    shape, plans = rows.runs.shape, rows.runs.plans
    head = float(np.asarray(shape.qk_dim)[at])
    tp = whole(plans.tp)
    hidden, ffn = whole(shape.hidden), whole(shape.ffn)
    return {
        "model": {
            "num_layers": whole(shape.layers),
            "n_head": whole(shape.heads),
            "hidden_dim": hidden,
            "vocab_size": whole(shape.vocab),
            "num_key_value_heads": int(float(np.asarray(shape.kv_width)[at]) / 2 / head),
            "ffn_embed_dim": ffn,
        },
        "ratio": ffn / hidden,
        "gated": whole(shape.gates) == 2,
        "gpu": PEER_GPUS[str(rows.runs.part[at])],
        "degrees": {
            "tp_size": tp,
            "pp_size": whole(plans.pp),
            "dp_size": whole(plans.dp),
            "sp_size": tp if whole(plans.sequence_parallel) else 1,
        },
        "micro_batch": whole(plans.micro_batch),
        "global_batch": whole(plans.global_batch),
        "seq": whole(plans.seq),
        "zero": min(whole(plans.shard), SHARD_CODES["zero3"]),
        # Its codes of recompute and of sharding are ours.
        "recompute": whole(plans.recompute),
        "flash": "megatron" not in str(rows.levels[at, 0]) or "core" in str(rows.levels[at, 0]),
        "efficiencies": EFFICIENCIES,
    }
