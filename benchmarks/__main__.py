"""Run benchmarks by name and end with status 1 where a threshold is missed, or never checked."""

import sys
from collections.abc import Callable
from pathlib import Path

import tomli

from benchmarks import (
    checkpoint_crashes,
    eta,
    failures,
    fairness,
    fleet_size,
    forecast,
    govern,
    governance,
    oracle,
    packing,
    published_runs,
    sim_scale,
    sim_speed,
    slurm_attach,
    slurm_executor,
    slurm_side,
    spot,
    startup,
    workload_fit,
)
from benchmarks.autoscale import bench as autoscale_bench
from benchmarks.capacity import bench as capacity_bench
from benchmarks.control import bench as control_bench
from benchmarks.gateway import bench as gateway_bench
from benchmarks.grow import examples as grow_examples
from benchmarks.grow import kueue as grow_kueue
from benchmarks.grow import measured as grow_measured
from benchmarks.grow import planted as grow_planted
from benchmarks.grow import published as grow_published
from benchmarks.grow import sampled as grow_sampled
from benchmarks.grow.independent import bench as grow_independent
from benchmarks.objects import bench as objects_bench
from benchmarks.planner import fabrics as planner_fabrics
from benchmarks.planner import fresh as planner_fresh
from benchmarks.planner import latency as planner_latency
from benchmarks.planner import serving as planner_serving
from benchmarks.planner import training as planner_training
from benchmarks.verdict import Thresholds, Verdict

BENCHMARKS: dict[str, Callable[[dict[str, float]], list[Verdict]]] = {
    "startup": startup.run,
    "fleet": fleet_size.run,
    "failures": failures.run,
    "packing": packing.run,
    "sim-published": published_runs.run,
    "sim-speed": sim_speed.run,
    "sim-scale": sim_scale.run,
    "slurm": slurm_side.run,
    "slurm-attach": slurm_attach.run,
    "slurm-executor": slurm_executor.run,
    "govern": govern.run,
    "governance": governance.run,
    "oracle": oracle.run,
    "eta": eta.run,
    "workloads": workload_fit.run,
    "planner-serving": planner_serving.run,
    "planner-latency": planner_latency.run,
    "planner-training": planner_training.run,
    "planner-fresh": planner_fresh.run,
    "planner-fabrics": planner_fabrics.run,
    "grow-measured": grow_measured.run,
    "grow-kueue": grow_kueue.run,
    "grow-planted": grow_planted.run,
    "grow-independent": grow_independent.run,
    "grow-examples": grow_examples.run,
    "grow-published": grow_published.run,
    "grow-sampled": grow_sampled.run,
    "checkpoint": checkpoint_crashes.run,
    "objects": objects_bench.run,
    "control": control_bench.run,
    "fairness": fairness.run,
    "spot": spot.run,
    "forecast": forecast.run,
    "capacity": capacity_bench.run,
    "gateway": gateway_bench.run,
    "autoscale": autoscale_bench.run,
}


def main(words: list[str]) -> int:
    # A name stands for itself or for all that begin with it: `planner`.
    names = [
        name
        for word in words
        for name in ([one for one in BENCHMARKS if one.startswith(f"{word}-")] or [word])
    ]
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        sys.stderr.write(f"error: there is no benchmark `{unknown[0]}`\n")
        sys.stderr.write(f"hint: choose from {', '.join(BENCHMARKS)}\n")
        return 2
    thresholds = tomli.loads((Path(__file__).parent / "thresholds.toml").read_text())
    verdicts: list[Verdict] = []
    for name in names or BENCHMARKS:
        print(f"\n== {name}")
        verdicts += verdicts_of(name, thresholds[name])
    print()
    for verdict in verdicts:
        print(verdict.line())
    return 0 if all(verdict.held for verdict in verdicts) else 1


def verdicts_of(name: str, figures: dict[str, float]) -> list[Verdict]:
    """Run one benchmark; a threshold that it leaves unchecked is missed."""
    thresholds = Thresholds(figures)
    return BENCHMARKS[name](thresholds) + thresholds.unchecked(name)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
