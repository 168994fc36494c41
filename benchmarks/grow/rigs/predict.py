"""Say at which factor a rig breaks, from what a quarter of the scale showed.

Reads `settings.json` and `measured.csv` of a folder, and `slurm.conf` where there is one, and
writes `prediction.json`, which must not be there yet. Nothing of the rig itself is imported:
the same laws answer here as in `tenfold grow`.

    python -m benchmarks.grow.rigs.predict FOLDER
"""

import hashlib
import json
import math
import statistics
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.grow.rigs.shared_rates import crossings_alternating, fit_cut, ring_s
from tenfold.files.measured.rows import read_measured
from tenfold.files.slurm.conf import read_slurm_conf
from tenfold.model.growth.growth import Controller
from tenfold.model.growth.measured import UsagePoint
from tenfold.physics.growth.admission import starts_per_s
from tenfold.physics.growth.breaking import breaking_factor
from tenfold.physics.growth.usage import factor_at, factor_range, fit_usage

CORE = "core"
"""The unit of processor time."""
FACTOR_MOST = 1e6


class Prediction(NamedTuple):
    """The factor of a quarter of full scale at which a rig breaks, and what breaks it."""

    k: float
    low: float
    high: float
    first: str
    by_resource: dict[str, float]
    settings_digest: str
    measured_digest: str


def predict(folder: Path) -> Prediction:
    """Write `prediction.json` of a folder; it is an error if it is there already."""
    settings = json.loads((folder / "settings.json").read_text())
    points = read_measured(folder / "measured.csv")
    ranges = {"usage": _usages, "admission": _admission, "ring": _ring}[settings["law"]](
        settings, points, folder
    )
    first = min(ranges, key=lambda name: ranges[name][0])
    said = Prediction(
        *ranges[first],
        first=first,
        by_resource={name: found[0] for name, found in ranges.items()},
        settings_digest=_digest(folder / "settings.json"),
        measured_digest=_digest(folder / "measured.csv"),
    )
    with (folder / "prediction.json").open("x") as file:
        json.dump(said._asdict(), file, indent=2)
    return said


Range = tuple[float, float, float]


def _usages(
    settings: Mapping[str, Any], points: Sequence[UsagePoint], folder: Path
) -> dict[str, Range]:
    """Return where each usage meets its limit.

    A link or disk that is asked for more than it has gives all it has, so the symptom shows
    when it has that share of what is asked. A processor does not: late work costs more.
    """
    found: dict[str, Range] = {}
    for name in dict.fromkeys(point.resource for point in points):
        own = [point for point in points if point.resource == name]
        bent = 1.0 if own[0].unit == CORE else settings["share_least"]
        limits = sorted(point.limit / bent for point in own if point.limit is not None)
        constraint = fit_usage(own)
        found[name] = (
            factor_at(constraint, statistics.median(limits)),
            factor_range(constraint, limits[0])[0],
            factor_range(constraint, limits[-1])[1],
        )
    return found


def _admission(
    settings: Mapping[str, Any], points: Sequence[UsagePoint], folder: Path
) -> dict[str, Range]:
    """Return where arrivals meet what is configured, and where the processor is used up."""
    found = _usages(settings, points, folder)
    rate = starts_per_s(Controller(kind="slurm"), read_slurm_conf(folder / "slurm.conf"))
    if rate.per_s is not None:
        k = rate.per_s / settings["share_least"] / (settings["full"] / 4)
        found["configured starts"] = (k, k, k)
    return found


def _ring(
    settings: Mapping[str, Any], points: Sequence[UsagePoint], folder: Path
) -> dict[str, Range]:
    """Return the ranks at which an all-reduce of alternating ranks takes too long."""
    ranks = settings["full"] / 4
    timed = [(float(point.queue), point.usage) for point in points]
    allowed_s = settings["compute_s"] * (1.0 / settings["share_least"] - 1.0)
    cut = fit_cut(timed, ranks, crossings_alternating(ranks))

    def took_s(size_bytes: float, by: float) -> float:
        crossings = crossings_alternating(by)
        return ring_s(size_bytes, by, crossings, cut.link_bytes_per_s, cut.alpha_s)

    def at(slower: float) -> float:
        def utilisation(factor: float) -> float:
            return took_s(settings["size_bytes"], ranks * factor) * slower / allowed_s

        return breaking_factor(utilisation, FACTOR_MOST) or math.inf

    of_size = [one for one in timed if one[0] == settings["size_bytes"]] or timed
    apart = [took / took_s(size, ranks) for size, took in of_size]
    return {"link": (at(1.0), at(max(apart)), at(min(apart)))}


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


if __name__ == "__main__":
    print(json.dumps(predict(Path(sys.argv[1]))._asdict(), indent=2))
