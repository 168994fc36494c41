"""Tables of what the serving model misses, on rows that the fit behind each figure has not seen."""

from collections.abc import Sequence
from time import process_time

import numpy as np
from numpy.typing import NDArray

from benchmarks.planner.serving_fit import Fitted, spread_beyond
from benchmarks.planner.serving_holdout import calibrated, leave_out, random_half
from benchmarks.planner.serving_model import Names, limits_for, replica_of, sigma_of
from benchmarks.planner.serving_rows import FITTED, Published, Rows, rate_error, served
from tenfold.physics.arrays import Floats
from tenfold.physics.serving.batching import max_throughput
from tenfold.physics.serving.engines import Catalog
from tenfold.physics.serving.online import Stream, online

SEEDS = (0, 1, 2)
SPEED_ROWS = 20_000
ONLINE_ROWS = 5_000
Z_80 = 1.2816
HEAD = f"{'':38} {'rows':>5} {'median':>7} {'mean':>7} {'p90':>7} {'bias':>7}"


def percent(error: Floats) -> Floats:
    return np.abs(np.expm1(error)) * 100


def median_percent(error: Floats) -> float:
    return float(np.median(percent(error[~np.isnan(error)])))


def line(label: str, error: Floats) -> str:
    known = error[~np.isnan(error)]
    off = percent(known)
    return (
        f"{label:38} {len(off):5} {np.median(off):6.1f}% {off.mean():6.1f}% "
        f"{np.quantile(off, 0.9):6.1f}% {100 * np.median(known):+6.1f}%"
    )


def _by(key: NDArray[np.str_], error: Floats, names: Sequence[str] = ()) -> None:
    for name in names or np.unique(key).tolist():
        if (key == name).any():
            print(line(f"    {name}", error[key == name]))


def shipped(data: Rows, catalog: Catalog) -> Floats:
    """Print the rows through the facts of the repository, which were fitted on them."""
    error = rate_error(data.rows, served(data.rows, catalog))
    print(line("fitted rows, facts of the repository", error))
    _by(data.mode, error, FITTED)
    print(
        line(
            "  the same, engine not known", rate_error(data.rows, served(data.rows, catalog, None))
        )
    )
    return error


def random_halves(data: Rows) -> float:
    """Print halves held out by seed and return the median error over all of them."""
    found = [random_half(data, seed) for seed in SEEDS]
    error = np.concatenate([errors for _, errors in found])
    mode = np.concatenate([data.mode[held] for held, _ in found])
    version = np.concatenate([data.version[held] for held, _ in found])
    print(line(f"random half held out, {len(SEEDS)} seeds", error))
    _by(mode, error, FITTED)
    _by(np.char.add("version ", version), error)
    return median_percent(error)


def left_out(data: Rows, error: Floats, key: NDArray[np.str_], label: str) -> tuple[float, float]:
    """Print rows left out whole; return their median error without and with calibration."""
    print(line(f"every {label} left out whole", error))
    _by(data.mode, error, FITTED)
    after = calibrated(data, error)
    print(line("  with at most 3 calibration rows", after))
    _by(data.mode, after, FITTED)
    print("  each, without calibration:")
    _by(key, error)
    return median_percent(error), median_percent(after)


def models_left_out(data: Rows) -> tuple[float, float]:
    return left_out(data, leave_out(data, data.model), data.model, "model")


def coverage(error: Floats, in_sample: Floats, key: NDArray[np.str_], label: str) -> None:
    """Print what the 80% interval holds of each left-out one, its width told by the others."""
    shares: dict[str, float] = {}
    held = np.zeros(len(error), dtype=bool)
    for name in np.unique(key).tolist():
        mine = key == name
        extra = spread_beyond(sigma_of(error[~mine]), in_sample)
        held[mine] = np.abs(error[mine]) <= Z_80 * np.hypot(sigma_of(in_sample), extra)
        shares[name] = 100 * float(np.mean(held[mine]))
    worst = min(shares, key=lambda name: shares[name])
    print(
        f"80% interval, one {label} left out, width from the others: holds "
        f"{100 * held.mean():.0f}% of rows (least: {shares[worst]:.0f}% of {worst})"
    )


def under_load(rows: Sequence[Published], catalog: Catalog) -> None:
    """Print online rows and closed loops.

    These are not held out: the queueing formulas were shaped while looking at them.
    """
    labels = {
        "online": "online (no parameter fitted, formulas shaped on them)",
        "agg": "closed loops (vLLM, SGLang: one factor fitted)",
    }
    for mode, label in labels.items():
        mine = [row for row in rows if row.mode == mode]
        answer = served(mine, catalog)
        print(f"{label}:")
        for name, seen in (
            ("output_tokens_per_s", "tokens_per_s"),
            ("ttft_s", "ttft_s"),
            ("tpot_s", "tpot_s"),
        ):
            ratio = getattr(answer, name) / np.array([getattr(row, seen) for row in mine])
            if not np.isnan(ratio).all():
                print(line(f"    {name}", np.log(ratio)))


def decode_steps(found: Fitted) -> float:
    """Print decode steps measured on an H200; return the median error, held out two-fold."""
    print(line("H200 decode steps, engine not known", found.pytorch.generic_errors))
    print(line("  own profile, two-fold held out", found.pytorch.held_out_errors))
    return median_percent(found.pytorch.held_out_errors)


def speed(data: Rows) -> float:
    """Print configurations per CPU-second; return microseconds a flat-out configuration takes."""
    rows = [data.rows[at % len(data.rows)] for at in range(SPEED_ROWS)]
    large, few = Rows(rows), Rows(rows[:ONLINE_ROWS])
    names = Names(data)
    values, few_values = names.values(names.start, large), names.values(names.start, few)
    replica, limits = replica_of(large, values), limits_for(SPEED_ROWS)
    flat_s: list[float] = []
    for _ in range(5):
        start = process_time()
        sizes = (large.given, large.asked, large.requests)
        max_throughput(replica, limits, *sizes, values["wave"])
        flat_s.append(process_time() - start)
    ones = np.ones(ONLINE_ROWS)
    stream = Stream(few.given, few.asked, 2 * ones, ones * np.nan, ones * np.inf, 0.005 * ones)
    start = process_time()
    online(replica_of(few, few_values), limits_for(ONLINE_ROWS), stream)
    online_s = process_time() - start
    print(f"max-throughput: {SPEED_ROWS / min(flat_s):,.0f} configurations per CPU-second")
    print(f"online (fixed point): {ONLINE_ROWS / online_s:,.0f} configurations per CPU-second")
    return min(flat_s) / SPEED_ROWS * 1e6
