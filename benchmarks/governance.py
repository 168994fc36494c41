"""Fifteen teams on 128 GPUs: without rules, partitioned, by weight and governed."""

from functools import partial
from pathlib import Path

from benchmarks.verdict import Verdict
from tenfold.compose.inputs import SimFiles
from tenfold.model.units import MINUTE, Millis
from tenfold.sim.world import SimSettings
from tenfold.study.govern.compare import GovernanceComparison, governance
from tenfold.study.govern.figures import FleetFigures
from tenfold.study.parallel import process_map, usable_cpus

EXAMPLES = Path(__file__).parents[1] / "examples"
SCENE = EXAMPLES / "hundred-twenty-eight-gpus-fifteen-teams"
POLICY = EXAMPLES / "policies" / "fifteen-teams.toml"
HOUR_S = 3_600


def run(thresholds: dict[str, float]) -> list[Verdict]:
    files = SimFiles(
        fleet=SCENE / "fleet.toml",
        jobs=SCENE / "jobs.csv",
        policy=str(POLICY),
        settings=SimSettings(restart_cost_ms=Millis(MINUTE)),
    )
    answer = governance(files, partial(process_map, workers=usable_cpus()), lambda _: None)
    results = {shared.name: _result(answer, shared.name) for shared in answer.runs}
    for name, result in results.items():
        print(
            f"{name}: mean wait {result.wait_s_mean / HOUR_S:.1f} h, worst team"
            f" {result.worst_wait_s_mean / HOUR_S:.1f} h ({result.worst_team}), fairness of"
            f" entitlement {result.jain_served:.3f}, {result.allocated_waiting:.1%} allocated while"
            f" jobs wait, {result.preemptions:,} preemptions, {result.refused:,} refused"
        )
    gain, governed, fifo = answer.borrowing, results["governed"], results["fifo"]
    assert gain is not None, "both runs have figures"
    stops = governed.preemptions / governed.jobs
    over = gain.wait_s_mean / gain.wait_s_mean_before
    even, held = governed.jain_served, governed.allocated_waiting
    return [
        Verdict("wait, governed over partitions", over, thresholds["over_partitions"]),
        Verdict(
            "wait, governed over fifo",
            governed.wait_s_mean / fifo.wait_s_mean,
            thresholds["over_fifo"],
        ),
        Verdict("evenness of what teams deserve", even, at_least=thresholds["jain_served"]),
        Verdict("allocated while jobs wait", held, at_least=thresholds["allocated_waiting"]),
        Verdict("preemptions a job", stops, thresholds["preemptions"]),
    ]


def _result(answer: GovernanceComparison, name: str) -> FleetFigures:
    shared = next(shared for shared in answer.runs if shared.name == name)
    assert shared.whole is not None, f"`{name}` failed: {shared.error}"
    return shared.whole
