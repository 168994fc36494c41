"""How many plans are timed in a CPU-second, and what a whole search costs."""

import tempfile
from pathlib import Path
from time import process_time

import numpy as np
from numpy.typing import NDArray

from benchmarks.verdict import Verdict
from tenfold.model.facts.catalogue import Catalogue
from tenfold.physics.training.arrays import Plans
from tenfold.physics.training.catalog import resolve
from tenfold.physics.training.memory import fits, memory_of
from tenfold.physics.training.shapes import training_part, training_shape
from tenfold.physics.training.step import time_plans

PLANS = 400_000
TURNS = 3
SEARCH_NODES, SEARCH_MODEL = 2_048, "Llama 3.1 405B"
FLEET = """\
[[site]]
name = "main"
rack_kw = 45

[[fabric]]
name = "ib"
nodes_per_leaf = 32

[[pool]]
name = "a"
accelerator = "H100"
gpus_per_node = 8
nodes = {nodes}
"""


def speed(catalogue: Catalogue, thresholds: dict[str, float]) -> list[Verdict]:
    """Print plans a CPU-second (step and memory) and the CPU time of one search."""
    print("\nSpeed: CPU seconds of one process")
    slowest = float("inf")
    for name in (SEARCH_MODEL, "Qwen3 235B-A22B"):
        rate = max(_plans_per_cpu_s(catalogue, name) for _ in range(TURNS))
        slowest = min(slowest, rate)
        print(f"  {name}: {rate:,.0f} plans a CPU-second, step and memory")
    verdicts = [
        Verdict(
            "fully timed plans a CPU-second",
            slowest,
            at_least=thresholds["plans_per_cpu_second"],
        )
    ]
    return verdicts + _search(thresholds)


def _plans_per_cpu_s(catalogue: Catalogue, model: str) -> float:
    shape = training_shape(catalogue.models.get(model).shape)
    part = training_part(catalogue.accelerators.get("H100"))
    profile = resolve(catalogue, "megatron-bridge-26.04", "H100-80G-SXM").start.profile
    plans = _random_plans()
    before = process_time()
    time_plans(shape, plans, part, profile)
    fits(memory_of(shape, plans, profile), part)
    return PLANS / (process_time() - before)


def _random_plans() -> Plans:
    rng = np.random.default_rng(0)

    def doublings(bits: int) -> NDArray[np.float64]:
        return 2.0 ** rng.integers(0, bits, PLANS)

    tp, pp, dp = doublings(4), doublings(5), doublings(8)
    return Plans(
        seq=8192.0,
        micro_batch=doublings(3),
        global_batch=2048.0,
        gpus=tp * pp * dp,
        tp=tp,
        pp=pp,
        dp=dp,
        cp=1.0,
        ep=np.minimum(dp, 8.0),
        virtual_stages=doublings(3),
        shard=rng.integers(0, 4, PLANS) * 1.0,
        recompute=rng.integers(0, 3, PLANS) * 1.0,
        sequence_parallel=1.0,
        precision=2.0,
        scaleup_ranks=8.0,
        nic_bytes_s=50e9,
    )


def _search(thresholds: dict[str, float]) -> list[Verdict]:
    try:
        from tenfold.study.plan.train import TrainQuestion, plan_training  # noqa: PLC0415
    except ImportError as error:
        print(f"  no search yet: {error}")
        return []
    with tempfile.TemporaryDirectory() as folder:
        fleet = Path(folder) / "fleet.toml"
        fleet.write_text(FLEET.format(nodes=SEARCH_NODES))
        gpus = SEARCH_NODES * 8
        question = TrainQuestion(model=SEARCH_MODEL, fleet=fleet, gpus=gpus, seq=8192)
        before = process_time()
        planned = plan_training(question)
        spent_s = process_time() - before
    answer = planned.answer
    searched = getattr(answer, "searched", 0)
    print(
        f"  `plan train` of {SEARCH_MODEL} on {gpus:,} H100s: {searched:,} plans, {spent_s:.2f} s"
    )
    if not searched:
        print(f"  it found none: {answer}")
    limit = thresholds["search_cpu_seconds"]
    return [Verdict("`plan train`, 405B on 16,384 H100s", spent_s, limit, " s of CPU")]
