"""Errors on rows that a fit has not seen: random halves, and whatever is left out whole."""

import numpy as np
from numpy.typing import NDArray

from benchmarks.planner.serving_model import fit
from benchmarks.planner.serving_rows import Rows
from tenfold.physics.arrays import Floats
from tenfold.physics.serving.engines import calibration_factor

CALIBRATION_ROWS_MAX = 3


def random_half(data: Rows, seed: int) -> tuple[NDArray[np.bool_], Floats]:
    """Fit one half of the rows and return the mask and the errors of the other."""
    held = np.random.default_rng(seed).random(len(data.rows)) >= 0.5
    return held, fit(data.take(~held)).errors(data.take(held))


def leave_out(data: Rows, key: NDArray[np.str_]) -> Floats:
    """Return every row's error under a fit that saw no row of the same `key`."""
    error = np.full(len(data.rows), np.nan)
    for name in np.unique(key):
        out = key == name
        error[out] = fit(data.take(~out)).errors(data.take(out))
    return error


def calibrated(data: Rows, error: Floats, seed: int = 0) -> Floats:
    """Return errors after shifting each stack (release on a part) by at most three of its rows;
    those rows are not judged and become NaN, and a stack of one row has none to spare.
    """
    out, rng = error.copy(), np.random.default_rng(seed)
    stacks = np.char.add(np.char.add(data.version, "|"), data.part)
    for stack in np.unique(stacks):
        mine = np.flatnonzero(stacks == stack)
        seen = rng.choice(mine, min(CALIBRATION_ROWS_MAX, len(mine) - 1), replace=False)
        if len(seen):
            out[mine] += np.log(calibration_factor(np.exp(-error[seen]), np.ones(len(seen))))
            out[seen] = np.nan
    return out
