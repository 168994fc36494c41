"""Whether 80% intervals hold 80% of steps at every distance from the runs that are known."""

import numpy as np

from benchmarks.planner.training_judge import Judge
from benchmarks.verdict import Verdict
from tenfold.physics.arrays import Floats
from tenfold.physics.training.calibration import INTERVAL_Z, distance, predict, traits_of
from tenfold.physics.training.names import generation_of
from tenfold.study.estimate.fill import FilledConfig, calibrated, fill, runs_of

SHARE = 0.8
ERRORS = 2.0
BANDS: tuple[tuple[str, float, float], ...] = (
    ("alike", 0.0, 2.0),
    ("further", 2.0, 5.0),
    ("far", 5.0, 1e9),
    ("family without runs", 1e9, np.inf),
)


def coverage(judge: Judge, thresholds: dict[str, float]) -> list[Verdict]:
    """Print coverage by band of distance, every source left out whole, and judge each band."""
    found = [_of_source(judge, name) for name in judge.sources]
    apart = np.concatenate([one for one, _ in found])
    inside = np.concatenate([one for _, one in found])
    names = np.concatenate(
        [[name] * len(one[0]) for name, one in zip(judge.sources, found, strict=True)]
    )
    print("\nIntervals by distance from the nearest known run, every source left out whole")
    print(
        f"{'distance':20} {'rows':>5} {'inside':>6} {'at least':>8} | "
        f"{'sources':>7} {'inside':>6} {'80% within':>12}"
    )
    low = apart_by_source = 0
    for label, least, most in BANDS:
        own = (apart >= least) & ((apart < most) | (most == np.inf))
        rows = int(own.sum())
        if not rows:
            continue
        share = float(inside[own].mean())
        bound = SHARE - ERRORS * _error(rows)
        low += share < bound
        shares = [float(inside[own & (names == name)].mean()) for name in sorted(set(names[own]))]
        middle, off = float(np.mean(shares)), ERRORS * _error(len(shares))
        apart_by_source += abs(middle - SHARE) > off
        print(
            f"{label:20} {rows:5} {share:6.0%} {bound:8.0%} | {len(shares):7} {middle:6.0%} "
            f"{max(0.0, SHARE - off):5.0%} -{min(1.0, SHARE + off):5.0%}"
        )
    print("rows of a source miss together, so the right side weighs each source as one")
    return [
        Verdict(
            "intervals: bands of distance that hold less than 80%, beyond two standard errors",
            low,
            thresholds["interval_bands_low"],
        ),
        Verdict(
            "intervals: bands of distance in which sources are not at 80%, two standard errors",
            apart_by_source,
            thresholds["interval_bands_apart"],
        ),
    ]


def _error(count: int) -> float:
    """Return the standard error of a share of 80% among so many."""
    return float(np.sqrt(SHARE * (1 - SHARE) / count))


def _of_source(judge: Judge, name: str) -> tuple[Floats, Floats]:
    """Return distances of a source's rows from all other runs, and which are in their interval."""
    rows, catalogue = judge.of_source(name), judge.without(name)
    groups: dict[tuple[str, str], list[tuple[FilledConfig, float]]] = {}
    for row, step_s in zip(rows.rows.tolist(), rows.step_s.tolist(), strict=True):
        filled = fill(row, catalogue)
        key = (filled.entry.family, generation_of(filled.part.name))
        groups.setdefault(key, []).append((filled, step_s))
    apart: list[Floats] = []
    inside: list[Floats] = []
    for members in groups.values():
        filled = [one for one, _ in members]
        runs, own = runs_of(filled), calibrated(filled[0].entry, [])
        log_s, sigma = predict(own, runs)
        off = np.abs(log_s - np.log([step_s for _, step_s in members]))
        apart.append(np.minimum(distance(own, traits_of(runs)), 1e9))
        inside.append((off <= INTERVAL_Z * sigma).astype(float))
    return np.concatenate(apart), np.concatenate(inside)
