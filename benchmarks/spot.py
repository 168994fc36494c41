"""Spot capacity under a deadline: public availability traces, all policies, all starts.

For each slack and changeover: no deadline is missed, and `tenfold` costs no more than the cheaper
of greedy and uniform progress.
"""

import os
from pathlib import Path

import numpy as np

from benchmarks.verdict import Verdict
from tenfold.model.spot import SpotPolicyName, SpotTask
from tenfold.sim.spot import Availability
from tenfold.study.spot.run import SpotResult, run_policy

TRACES = Path(__file__).parents[2] / "shared" / "data" / "spot" / "skypilot_spot_traces.parquet"
COLLECTION = "availability/1-node/aws-02-15-2023/"
WORK_S = 48 * 3_600.0
SLACKS = (0.04, 0.08, 0.16, 0.32)
CHANGEOVERS_S = (0.0, 60.0, 300.0, 900.0)
ONDEMAND_OVER_SPOT = 3.3
"""The ratio of the sketch from which the reference figures come."""
POLICIES: tuple[SpotPolicyName, ...] = ("greedy", "uniform-progress", "tenfold")


def run(thresholds: dict[str, float]) -> list[Verdict]:
    if not TRACES.exists():
        print(f"skipped: {TRACES.name} is not here")
        return []
    every = int(os.environ.get("TENFOLD_SPOT_EVERY", "1"))
    zones = traces(COLLECTION)
    print(f"{len(zones)} zones, every {every} sample(s) a start; cost over on-demand throughout")
    print(" slack changeover   greedy  uniform  tenfold    bound   missed")
    missed, over = 0, -1.0
    for slack in SLACKS:
        for changeover_s in CHANGEOVERS_S:
            cell = {name: _mean(name, zones, slack, changeover_s, every) for name in POLICIES}
            late = sum(figures[2] for figures in cell.values())
            missed += late
            greedy, uniform, ours = (cell[name][0] for name in POLICIES)
            over = max(over, ours - min(greedy, uniform))
            print(
                f"{slack:6.0%} {changeover_s:8.0f} s {greedy:8.4f} {uniform:8.4f} {ours:8.4f} "
                f"{cell['tenfold'][1]:8.4f} {late:8d}",
                flush=True,
            )
    return [
        Verdict("spot: deadlines missed", missed, thresholds["missed"]),
        Verdict("spot: cost over the better of the two", over, thresholds["over_best"]),
    ]


def traces(collection: str) -> dict[str, Availability]:
    from pyarrow import parquet  # noqa: PLC0415 - only this benchmark needs it

    rows = parquet.read_table(TRACES)
    names = np.array(rows["trace"].to_pylist())
    times, values = rows["t_s"].to_numpy(), rows["value"].to_numpy()
    found: dict[str, Availability] = {}
    for name in dict.fromkeys(names.tolist()):
        if name.startswith(collection):
            at = times[names == name].astype(float)
            lasts = np.diff(at, append=2 * at[-1] - at[-2])
            found[name] = Availability(lasts, values[names == name] > 0)
    return found


def _mean(
    name: SpotPolicyName,
    zones: dict[str, Availability],
    slack: float,
    changeover_s: float,
    every: int,
) -> tuple[float, float, int]:
    task = SpotTask(
        work_s=WORK_S,
        deadline_s=WORK_S * (1 + slack),
        changeover_s=changeover_s,
        ondemand_price=ONDEMAND_OVER_SPOT,
        spot_price=1.0,
    )
    results: list[SpotResult] = [
        run_policy(name, task, zone, range(0, len(zone.is_up), every)) for zone in zones.values()
    ]
    return (
        float(np.mean([one.cost_ratio_to_ondemand for one in results])),
        float(np.mean([one.lower_bound for one in results])),
        sum(one.deadlines_missed for one in results),
    )
