"""Rigs that really break: what was said at a quarter of the scale beside where they did.

Every rig is printed, misses and those that did not run included. With TENFOLD_RIGS set, the
folder that it names keeps `settings.json`, `measured.csv`, `prediction.json` and `outcome.json`
of each run; otherwise they go when the benchmark ends. TENFOLD_RIGS_ONLY names rigs to run, by
parts of their names, and TENFOLD_RIGS_TWO how many runs of two limits count.
"""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.grow.rigs import gloo, prometheus, readers, slurm, tier, two_limits
from benchmarks.grow.rigs.harness import Outcome, Rig, begin, measure, observe, run_both
from benchmarks.grow.rigs.predict import Prediction, predict
from benchmarks.verdict import Verdict

RIGS = (slurm.RIG, readers.RIG, gloo.RIG, prometheus.RIG, tier.RIG)
FAILURES = (RuntimeError, OSError, subprocess.SubprocessError)
"""A rig that fails half-way counts as a miss and does not take the others with it."""
DRAWS_MOST = 3
"""Rigs drawn for each that counts, at most: those without a first limit are passed over."""


def run(thresholds: dict[str, float]) -> list[Verdict]:
    with _folder() as folder:
        verdicts = _factors(folder, thresholds)
        if _wanted("two limits"):
            verdicts += _firsts(folder, thresholds)
    return verdicts


def _factors(folder: Path, thresholds: dict[str, float]) -> list[Verdict]:
    """Run every rig with one limit and count those whose factor was said well enough."""
    print(f"{'rig':22} {'said k*':>24} {'was':>8} {'error':>7}  what broke")
    ran = within = 0
    for rig in RIGS:
        if not _wanted(rig.name):
            continue
        reason = rig.why_not()
        if reason:
            print(f"{rig.name:22} not run: {reason}")
            continue
        try:
            said, was = run_both(rig, folder / _slug(rig.name))
        except FAILURES as error:
            print(f"{rig.name:22} failed: {error}", flush=True)
            ran += 1
            continue
        print(_line(rig, said, was), flush=True)
        if not was.void:
            ran += 1
            within += abs(_error(rig, said, was)) <= thresholds["k_apart"]
    if not ran:
        return []
    # Where a rig cannot run, those that can must do as well.
    least = thresholds["within"] * ran / len(RIGS)
    return [Verdict(f"breaking factors within 20%, of {ran}", within, at_least=least)]


def _firsts(folder: Path, thresholds: dict[str, float]) -> list[Verdict]:
    """Draw rigs with two limits until enough have a first, and count those named right."""
    reason = two_limits.why_not()
    if reason:
        print(f"two limits: not run: {reason}")
        return []
    runs = int(os.environ.get("TENFOLD_RIGS_TWO", two_limits.RUNS))
    rankable = right = 0
    for seed, rig in two_limits.rigs():
        if rankable == runs or seed == runs * DRAWS_MOST:
            break
        verdict = _first(rig, folder / _slug(rig.name))
        if verdict is not None:
            rankable += 1
            right += verdict
    if not rankable:
        return []
    least = thresholds["firsts"] * rankable / two_limits.RUNS
    return [Verdict(f"first of two limits named right, of {rankable}", right, at_least=least)]


def _first(rig: Rig, folder: Path) -> bool | None:
    """Return whether the first limit was named right; None where there is none to name."""
    begin(rig, folder)
    with rig.stage(rig.settings, folder) as stage:
        measure(rig, stage, folder)
        said = predict(folder)
        why = two_limits.apart(said.by_resource)
        if why:
            print(f"{rig.name:22} drawn again: {why}", flush=True)
            return None
        was = observe(rig, stage, folder)
    if was.void:
        print(f"{rig.name:22} void: {was.void}", flush=True)
        return None
    right = said.first == was.first
    print(
        f"{_line(rig, said, was)}, {'right' if right else 'WRONG: said ' + said.first}", flush=True
    )
    return right


def _line(rig: Rig, said: Prediction, was: Outcome) -> str:
    quarter = rig.settings["full"] / 4
    interval = f"{said.k:.2f} [{said.low:.2f}, {said.high:.2f}]"
    if was.void:
        return f"{rig.name:22} {interval:>24} void: {was.void}"
    seen = "none" if was.k is None else f"{was.k:.2f}"
    error = _error(rig, said, was)
    load = "" if was.k is None else f" at a load of {was.k * quarter:.3g}"
    return f"{rig.name:22} {interval:>24} {seen:>8} {error:>+7.1%}  {was.first or 'nothing'}{load}"


def _error(rig: Rig, said: Prediction, was: Outcome) -> float:
    """Return how far the factor was off; a rig that did not break is right from full scale on."""
    if was.k is None:
        return min(0.0, said.k / 4.0 - 1.0)
    return said.k / was.k - 1.0


@contextmanager
def _folder() -> Iterator[Path]:
    kept = os.environ.get("TENFOLD_RIGS")
    if kept:
        Path(kept).mkdir(parents=True, exist_ok=True)
        yield Path(kept)
        return
    with tempfile.TemporaryDirectory(prefix="tenfold-rigs-") as name:
        yield Path(name)


def _wanted(name: str) -> bool:
    only = os.environ.get("TENFOLD_RIGS_ONLY", "")
    return not only or any(part.strip().lower() in name.lower() for part in only.split(","))


def _slug(name: str) -> str:
    return name.lower().replace(",", "").replace(" ", "-")
