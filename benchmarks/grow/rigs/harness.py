"""Run a rig in two phases: measure at a quarter of the scale, say what breaks, then let it break.

The full scale is fixed in the settings before anything is measured. Phase one never loads the
rig with more than a quarter of it and writes `measured.csv`. The prediction is written by
`predict.py`, from files alone, and is never written twice. Phase two does not begin without it
and keeps its digest, so that nobody can fit a prediction to an outcome.
"""

import csv
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from benchmarks.grow.rigs.predict import Prediction, predict
from tenfold.files.measured.rows import COLUMNS
from tenfold.model.growth.measured import UsagePoint

Settings = Mapping[str, Any]
STEP = 1.08
"""The break is known to a step of this factor, and interpolated within it."""
SURE = 0.04
"""A share so far from its limit is not asked for again."""
REPEATS = 3


class Attained(NamedTuple):
    """What a rig did under one load: its share of what was asked, and what was at its limit."""

    share: float
    first: str = ""
    void: str = ""
    """Why a share that is too low says nothing about the rig."""


class Stage(Protocol):
    """A rig that is set up."""

    def measure(self, loads: Sequence[float]) -> list[UsagePoint]:
        """Return the usage at these loads, each as a factor of a quarter of full scale."""
        ...

    def attain(self, load: float) -> Attained:
        """Put on one load and return what came of it."""
        ...


class Rig(NamedTuple):
    """Something real that can be loaded until it breaks."""

    name: str
    settings: Settings
    why_not: Callable[[], str]
    """The reason for which it cannot run on this machine; empty where it can."""
    stage: Callable[[Settings, Path], AbstractContextManager[Stage]]


class Tried(NamedTuple):
    """One load of phase two, with the share of each repeat."""

    load: float
    shares: list[float]
    first: str
    void: str = ""

    @property
    def share(self) -> float:
        return sorted(self.shares)[len(self.shares) // 2]


class Outcome(NamedTuple):
    """Where the rig really broke, as a factor of a quarter of full scale; None where nowhere."""

    k: float | None
    first: str
    void: str
    prediction_digest: str
    tried: list[Tried]


def begin(rig: Rig, folder: Path) -> None:
    """Write the settings of a run; a folder holds one run."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "settings.json").open("x") as file:
        json.dump(dict(rig.settings), file, indent=2)


def measure(rig: Rig, stage: Stage, folder: Path) -> None:
    """Phase one: write `measured.csv` from loads of at most a quarter of full scale."""
    loads: list[float] = list(rig.settings["loads"])
    quarter = rig.settings["full"] / 4
    assert max(loads) <= quarter, "phase one loads a rig with at most a quarter of full scale"
    points = stage.measure(loads)
    assert all(point.factor <= 1.0 for point in points), "a factor above 1 is not a quarter"
    with (folder / "measured.csv").open("x", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(COLUMNS)
        for point in points:
            cells = [getattr(point, name) for name in COLUMNS]
            rows.writerow(["" if cell is None else cell for cell in cells])


def observe(rig: Rig, stage: Stage, folder: Path) -> Outcome:
    """Phase two: find the load at which the rig breaks, and write `outcome.json`."""
    path = folder / "prediction.json"
    if not path.exists():
        raise FileNotFoundError(f"no `{path}`: the full scale is not run before a prediction")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    tried = _search(rig.settings, stage)
    k, first, void = _broke(rig.settings, tried)
    outcome = Outcome(k, first, void, digest, sorted(tried.values()))
    with (folder / "outcome.json").open("x") as file:
        json.dump(
            {**outcome._asdict(), "tried": [one._asdict() for one in outcome.tried]}, file, indent=2
        )
    return outcome


def run_both(rig: Rig, folder: Path) -> tuple[Prediction, Outcome]:
    """Run both phases of a rig in a folder of its own, with the prediction between them."""
    begin(rig, folder)
    with rig.stage(rig.settings, folder) as stage:
        measure(rig, stage, folder)
        said = predict(folder)
        return said, observe(rig, stage, folder)


def grid(settings: Settings) -> list[float]:
    """Return the loads of phase two, from a quarter of full scale up to it, in small steps."""
    if "grid" in settings:
        return list(settings["grid"])
    loads: list[float] = []
    load = settings["full"] / 4
    while load < settings["full"]:
        loads.append(float(round(load)) if settings.get("whole", True) else load)
        load *= settings.get("step", STEP)
    return list(dict.fromkeys([*loads, float(settings["full"])]))


def _search(settings: Settings, stage: Stage) -> dict[float, Tried]:
    """Bisect the grid of loads; every share that was seen is kept."""
    loads = grid(settings)
    tried: dict[float, Tried] = {}
    low, high = 0, len(loads) - 1
    for end in (low, high):
        tried[loads[end]] = _try(settings, stage, loads[end])
    least = settings["share_least"]
    if tried[loads[low]].share < least or tried[loads[high]].share >= least:
        return tried
    while high - low > 1:
        middle = (low + high) // 2
        tried[loads[middle]] = _try(settings, stage, loads[middle])
        if tried[loads[middle]].share < least:
            high = middle
        else:
            low = middle
    return tried


def _try(settings: Settings, stage: Stage, load: float) -> Tried:
    """Put on a load until two repeats agree, or once where the first leaves no doubt."""
    least = settings["share_least"]
    shares: list[float] = []
    first = void = ""
    while len(shares) < REPEATS:
        attained = stage.attain(load)
        shares.append(attained.share)
        first = attained.first or first
        void = attained.void or void
        broken = sum(share < least for share in shares)
        if abs(attained.share - least) > SURE and len(shares) == 1:
            break
        if max(broken, len(shares) - broken) == 2:
            break
    return Tried(load, shares, first, void)


def _broke(settings: Settings, tried: Mapping[float, Tried]) -> tuple[float | None, str, str]:
    """Return the breaking factor, what was at its limit there, and why it does not count."""
    quarter, least = settings["full"] / 4, settings["share_least"]
    loads = sorted(tried)
    broken = [load for load in loads if tried[load].share < least]
    if not broken:
        return None, "", ""
    if broken[0] == loads[0]:
        return 1.0, tried[loads[0]].first, "broken at a quarter of full scale"
    high = broken[0]
    low = loads[loads.index(high) - 1]
    above, below = tried[low].share, tried[high].share
    part = (above - least) / (above - below) if above > below else 1.0
    return (low + (high - low) * part) / quarter, tried[high].first, tried[high].void
