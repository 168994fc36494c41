"""How fast jobs go through the loop: whole processes, CPU seconds, one core.

`tenfold sim run` on the Philly trace, the index alone on fleets of growing size, and the
memory of a very long queue.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.published_runs import DATA, nodes
from benchmarks.verdict import Verdict
from tenfold.clock import Stopwatch
from tenfold.fleet.capacity import Capacity
from tenfold.fleet.fleet import Fleet
from tenfold.model.events import NodeJoined
from tenfold.model.job.job import shape_of
from tenfold.model.units import Millis

PHILLY = DATA / "jobs" / "philly_2017.parquet"
RUNS = (("fifo", 96), ("tenfold", 96), ("tenfold", 64))
TIMES = 3
SIZES = (500, 5_000, 50_000)
QUEUED = 1_000_000
_QUEUE = """
import resource, sys
from tenfold.compose.policies import placing_decider
from tenfold.fleet.fleet import Fleet
from tenfold.model.events import JobSubmitted, NodeJoined
from tenfold.model.job.job import Job, shape_of
from tenfold.model.policy.policy import Policy
from benchmarks.published_runs import nodes
fleet = Fleet()
fleet.apply_all([NodeJoined(0, node) for node in nodes(64)])
shapes = [shape_of(gpus) for gpus in (1, 2, 4, 8, 16)]
for number in range(int(sys.argv[1])):
    job = Job(id=f"job-{number}", shape=shapes[number % 5], submitted_ms=number, seq=number,
              team=f"team-{number % 15}", user=f"user-{number % 97}")
    fleet.apply(JobSubmitted(number, job))
decider = placing_decider(Policy(), shapes=shapes)
decision = decider.decide(fleet, number, None)
print(len(decision.actions), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


def run(thresholds: dict[str, float]) -> list[Verdict]:
    verdicts = _placements(thresholds) + _queue(thresholds)
    if not PHILLY.exists():
        print(f"skipped: {PHILLY} is not here")
        return verdicts
    print(f"\n{'policy':8} {'nodes':>5} {'CPU s':>7} {'jobs/CPU s':>11} {'avg JCT s':>10}")
    with tempfile.TemporaryDirectory() as folder:
        for policy, count in RUNS:
            best = min((_philly(Path(folder), policy, count) for _ in range(TIMES)), key=_cpu_s)
            rate = float(best["jobs"]) / _cpu_s(best)
            print(
                f"{policy:8} {count:>5} {_cpu_s(best):>7.2f} {rate:>11,.0f}"
                f" {float(best['avg_jct_s']):>10,.0f}"
            )
            floor = thresholds[f"{policy}_{count}"]
            verdicts.append(Verdict(f"{policy} on {count} nodes, jobs/s", rate, at_least=floor))
    return verdicts


def _philly(folder: Path, policy: str, count: int) -> dict[str, float]:
    fleet = folder / f"fleet-{count}.toml"
    fleet.write_text(
        f'[[pool]]\nname = "p"\naccelerator = "p100"\nnodes = {count}\ngpus_per_node = 8\n'
    )
    words = ["sim", "run", "--fleet", str(fleet), "--jobs", str(PHILLY), "--policy", policy]
    tenfold = Path(sys.executable).with_name("tenfold")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([tenfold, *words, "--json"], check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    answer = json.loads(done.stdout)
    # The kernel's count has what the process cannot see: its own start and end.
    answer["cpu_s"] = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return answer


def _cpu_s(answer: dict[str, float]) -> float:
    return float(answer["cpu_s"])


def _placements(thresholds: dict[str, float]) -> list[Verdict]:
    """Fill fleets with jobs of one and of mixed sizes, and empty them again."""
    print(f"{'nodes':>6} {'placements/CPU s':>17} {'us each':>8}")
    shapes = [shape_of(gpus) for gpus in (1, 1, 1, 2, 1, 4, 1, 8)]
    rates: list[float] = []
    for count in SIZES:
        fleet = Fleet()
        fleet.apply_all([NodeJoined(Millis(0), node) for node in nodes(count)])
        capacity = Capacity.of(fleet)
        wanted = min(200_000, count * 3)
        watch = Stopwatch()
        placed = 0
        while placed < 200_000:
            held = [(capacity.claim(shape), shape) for shape in shapes * (wanted // 8)]
            placed += len(held)
            for slots, shape in held:
                if slots is not None:
                    capacity.give(slots, shape)
        rates.append(placed / watch.cpu_s())
        print(f"{count:>6} {rates[-1]:>17,.0f} {1e6 / rates[-1]:>8.2f}")
    slowest = min(rates)
    return [
        Verdict("placements/s, slowest fleet", slowest, at_least=thresholds["placements"]),
        Verdict("slow-down, largest fleet", rates[0] / rates[-1], thresholds["growth"]),
    ]


def _queue(thresholds: dict[str, float]) -> list[Verdict]:
    root = str(Path(__file__).parents[1])
    words = [sys.executable, "-c", _QUEUE, str(QUEUED)]
    watch = Stopwatch()
    done = subprocess.run(
        words, check=True, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": root}
    )
    started, megabytes = (int(word) for word in done.stdout.split())
    print(
        f"\n{QUEUED:,} jobs queued: {megabytes:,} MiB, first decision starts {started} of them,"
        f" {watch.wall_s():.1f} s in all"
    )
    return [Verdict("a million queued jobs, MiB", megabytes, thresholds["queued_mib"])]
