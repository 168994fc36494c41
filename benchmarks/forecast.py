"""Forecasts of the M4 competition's hourly and weekly series, by its own measures."""

import csv
import gzip
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.capacity.series import gpu_histories
from benchmarks.verdict import Verdict
from tenfold.decide.capacity.forecast import BLOCKS, Forecast, forecast
from tenfold.decide.capacity.methods import theta

DATA = Path(__file__).parents[2] / "shared" / "data" / "forecast"
Floats = NDArray[np.float64]


def run(thresholds: dict[str, float]) -> list[Verdict]:
    if not DATA.exists():
        print(f"skipped: {DATA.name} is not here")
        return []
    verdicts: list[Verdict] = []
    # The published errors of Naive2, which OWA is relative to.
    for name, season, period, naive2 in (
        ("Hourly", 24, 24, (18.383, 2.395)),
        ("Weekly", None, 1, (9.161, 2.777)),
    ):
        known, came = _read(name, "train"), _read(name, "test")
        horizon = len(next(iter(came.values())))
        found, _ = forecast(known, horizon, season)
        naive = {one: np.resize(values[-period:], horizon) for one, values in known.items()}
        # Theta without a season, as published, is a peer of the weekly series alone.
        line = {one: theta(values, horizon) for one, values in known.items() if season is None}
        ours = {one: np.array(made.mean) for one, made in found.items()}
        owa = 0.0
        for label, made in (("seasonal naive", naive), ("theta", line), ("tenfold", ours)):
            if not made:
                continue
            smape, mase, owa = _errors(made, known, came, period, naive2)
            print(f"{name:7s} {label:15s} sMAPE {smape:6.3f}  MASE {mase:5.3f}  OWA {owa:5.3f}")
        key = name.lower()
        verdicts.append(Verdict(f"forecast: OWA, {key}", owa, thresholds[f"owa_{key}"]))
        for level in (80, 95):
            shares = _covered(found, came, level)
            print(f"{name:7s} {level}% covers " + ", ".join(f"{one:.1%}" for one in shares))
            if level == 95:
                verdicts += [
                    Verdict(
                        f"forecast: {key}, 95% covers, part {part + 1}",
                        100 * one,
                        thresholds["covers_most"],
                        "%",
                        thresholds["covers_least"],
                    )
                    for part, one in enumerate(shares)
                ]
    _rolling()
    return verdicts


def _rolling() -> None:
    """Print WAPE and coverage on series of GPU demand, at origins that roll over their second half.

    There are too few series for a threshold: an interval of a single one rests on few errors.
    """
    print("\nGPU demand, rolling origins   origins   WAPE   naive   80% covers  95% covers")
    for name, (values, season, horizon) in gpu_histories().items():
        errors = naive = total = 0.0
        inside = {80: 0, 95: 0}
        origins = range(len(values) // 2, len(values) - horizon, horizon)
        for origin in origins:
            known, came = values[:origin], values[origin : origin + horizon]
            made = forecast({"one": known}, horizon, season)[0]["one"]
            errors += float(np.abs(np.array(made.mean) - came).sum())
            naive += float(np.abs(np.resize(known[-season:], horizon) - came).sum())
            total += float(came.sum())
            for level in inside:
                low, high = getattr(made, f"lo{level}"), getattr(made, f"hi{level}")
                inside[level] += int(((np.array(low) <= came) & (came <= np.array(high))).sum())
        seen = len(origins) * horizon
        print(
            f"{name:28s} {len(origins):8d} {errors / total:7.1%} {naive / total:7.1%} "
            f"{inside[80] / seen:10.1%} {inside[95] / seen:11.1%}",
            flush=True,
        )


def _errors(
    made: dict[str, Floats],
    known: dict[str, Floats],
    came: dict[str, Floats],
    period: int,
    naive2: tuple[float, float],
) -> tuple[float, float, float]:
    smapes: list[float] = []
    mases: list[float] = []
    for name, values in made.items():
        seen, past = came[name], known[name]
        error = np.abs(seen - values)
        smapes.append(float(np.mean(200 * error / (np.abs(seen) + np.abs(values)))))
        mases.append(float(error.mean() / np.abs(past[period:] - past[:-period]).mean()))
    smape, mase = float(np.mean(smapes)), float(np.mean(mases))
    return smape, mase, (smape / naive2[0] + mase / naive2[1]) / 2


def _covered(found: dict[str, Forecast], came: dict[str, Floats], level: int) -> list[float]:
    inside = np.array(
        [
            (np.array(getattr(one, f"lo{level}")) <= came[name])
            & (came[name] <= np.array(getattr(one, f"hi{level}")))
            for name, one in found.items()
        ]
    )
    blocks = np.minimum(np.arange(inside.shape[1]) * BLOCKS // inside.shape[1], BLOCKS - 1)
    return [float(inside[:, blocks == block].mean()) for block in range(BLOCKS)]


def _read(name: str, part: str) -> dict[str, Floats]:
    with gzip.open(DATA / f"{name}-{part}.csv.gz", "rt") as stream:
        rows = csv.reader(stream)
        next(rows)
        return {row[0]: np.array([float(one) for one in row[1:] if one]) for row in rows}
