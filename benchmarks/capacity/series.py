"""Public series of demand, with a period that stands for a month.

No public GPU series is longer than about six months, so a week stands for a month, and a day
where a series covers a month or two. M4 Weekly stands in for long horizons: its series are no GPUs.
"""

import csv
import gzip
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
SHARED = Path(__file__).parents[3] / "shared" / "data"
M4_MOST = 24
M4_LEAST, M4_KEPT = 160, 110
LEVEL = 200.0
"""Demand at the first decision, in GPUs: series are scaled to it, so that costs compare."""


class Course(NamedTuple):
    """One series: what is known before the first decision, and the length of a period."""

    name: str
    values: Floats
    known: int


def gpu_courses() -> list[Course]:
    """Return the GPU series: Alibaba by week, Helios Earth and Philly by day."""
    import pyarrow.parquet as pq  # noqa: PLC0415

    folder, found = SHARED / "series", list[Course]()
    table = pq.read_table(folder / "alibaba_spotgpu_2026_hourly_demand.parquet").to_pydict()
    for name in ("gpus_active_requested", "A10", "A100-SXM4-80GB", "H800", "GPU-series-1"):
        found.append(_course(f"alibaba {name}", _means(table[name], 24 * 7), 10))
    table = pq.read_table(folder / "helios_earth_vc_gpu_demand_10min.parquet").to_pydict()
    names = list(dict.fromkeys(table["vc"]))
    total = {name: _wanted(table, name) for name in names}
    largest = sorted(names, key=lambda name: -float(np.mean(total[name])))[:5]
    found += [_course(f"helios {name}", _means(total[name], 144), 12) for name in largest]
    table = pq.read_table(folder / "philly_active_nodes_10min.parquet").to_pydict()
    found.append(_course("philly nodes", _means(table["active"], 144), 24))
    return [one for one in found if one.values.min() >= 0]


def gpu_histories() -> dict[str, tuple[Floats, int, int]]:
    """Return hourly GPU demand, with the values per day and the horizon of a forecast."""
    import pyarrow.parquet as pq  # noqa: PLC0415

    folder = SHARED / "series"
    found: dict[str, tuple[Floats, int, int]] = {}
    table = pq.read_table(folder / "alibaba_spotgpu_2026_hourly_demand.parquet").to_pydict()
    for name in ("gpus_active_requested", "A10", "A100-SXM4-80GB", "H800"):
        found[f"alibaba {name}"] = (_means(table[name], 1), 24, 168)
    table = pq.read_table(folder / "helios_earth_vc_gpu_demand_10min.parquet").to_pydict()
    names = list(dict.fromkeys(table["vc"]))
    wanted = {name: _wanted(table, name) for name in names}
    total = np.sum([wanted[name] for name in names], axis=0)
    found["helios earth"] = (_means(total, 6), 24, 48)
    table = pq.read_table(folder / "philly_active_nodes_10min.parquet").to_pydict()
    found["philly active nodes"] = (_means(table["active"], 6), 24, 48)
    return found


def m4_courses() -> list[Course]:
    """Return some of the M4 weekly series, evenly chosen: the last values of each."""
    with gzip.open(SHARED / "forecast" / "Weekly-train.csv.gz", "rt") as stream:
        rows = csv.reader(stream)
        next(rows)
        series = {row[0]: np.array([float(one) for one in row[1:] if one]) for row in rows}
    long = [name for name, values in series.items() if len(values) >= M4_LEAST]
    every = max(1, len(long) // M4_MOST)
    return [_course(f"M4 {name}", series[name][-M4_KEPT:], 60) for name in long[::every][:M4_MOST]]


def _wanted(table: dict[str, list[object]], name: str) -> Floats:
    """Return running and pending GPUs: what waits is demand as well."""
    return np.array(
        [
            float(run) + float(wait)  # pyright: ignore
            for run, wait, vc in zip(
                table["running_gpus"], table["pending_gpus"], table["vc"], strict=True
            )
            if vc == name
        ]
    )


def _means(values: object, each: int) -> Floats:
    found = np.nan_to_num(np.array(values, dtype=np.float64))
    usable = len(found) // each * each
    return found[:usable].reshape(-1, each).mean(axis=1)


def _course(name: str, values: Floats, known: int) -> Course:
    return Course(name, values * LEVEL / max(1e-9, float(values[known - 1])), known)
