"""Fifteen teams on 128 GPUs: without rules, partitioned, by weight and governed."""

from functools import partial
from pathlib import Path

from benchmarks.verdict import Verdict
from tenfold.compose.inputs import SimFiles
from tenfold.model.units import MINUTE, Millis
from tenfold.sim.world import SimSettings
from tenfold.study.govern.compare import Governance, governance
from tenfold.study.govern.figures import Fare
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
    fares = {way.name: _fare(answer, way.name) for way in answer.ways}
    for name, fare in fares.items():
        print(
            f"{name}: mean wait {fare.wait_s_mean / HOUR_S:.1f} h, worst team"
            f" {fare.worst_wait_s_mean / HOUR_S:.1f} h ({fare.worst_team}), evenness of what teams"
            f" deserve {fare.jain_served:.3f}, {fare.allocated_waiting:.1%} allocated while jobs"
            f" wait, {fare.preemptions:,} preemptions, {fare.refused:,} refused"
        )
    gain, governed, fifo = answer.borrowing, fares["governed"], fares["fifo"]
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


def _fare(answer: Governance, name: str) -> Fare:
    way = next(way for way in answer.ways if way.name == name)
    assert way.whole is not None, f"`{name}` failed: {way.error}"
    return way.whole
