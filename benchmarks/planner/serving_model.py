"""What is fitted: generic efficiencies, then shrunk factors by release and by accelerator.

A ridge prior holds every efficiency near a physical value, a random walk ties each release to
the one before it, and accelerator factors shrink to 1: what is left of an unseen release or
part is the generic profile, which is what leaving it out measures.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from benchmarks.planner.serving_rows import FITTED, Rows
from tenfold.physics.arrays import Floats
from tenfold.physics.serving.batching import EngineLimits, first_token, max_throughput, static_batch
from tenfold.physics.serving.replica import EFFICIENCY_NAMES, Efficiency, Replica

PRIOR = {
    "power": 0.1,
    "compute": 0.8,
    "compute_8": 1.0,
    "compute_4": 1.0,
    "weights": 0.9,
    "cache": 0.8,
    "prompt_attention": 0.6,
    "query": 0.5,
    "scan_s": 1e-10,
    "odd_group": 1e-3,
    "overlap_p": 1.6,
    "elementwise": 7.0,
    "expert_pad_tokens": 30.0,
    "expert": 0.7,
    "expert_half_ffn": 64.0,
    "mixed": 0.6,
    "permute": 3.0,
    "layer_floor_s": 50e-6,
    "expert_floor_s": 15e-6,
    "step_floor_s": 0.8e-3,
    "sequence_s": 2.5e-6,
    "request_s": 1e-4,
    "link": 0.75,
    "link_pcie": 0.5,
    "hop_s": 6e-6,
    "bulk_hop_s": 20e-6,
    "hop_pcie": 2.0,
    "stage_s": 3e-3,
    "wave": 0.8,
}
PRIOR_SD = dict.fromkeys(PRIOR, 0.4) | {
    "power": 0.5,
    "compute_8": 0.1,
    "compute_4": 0.15,
    "hop_s": 0.2,
    "odd_group": 1e-3,
    "scan_s": 1e-3,
}
RELEASE_SD = {"compute": 0.1, "cache": 0.15, "layer_floor_s": 0.3, "expert": 0.15, "wave": 0.5}
PART_SD = {
    "compute": 0.1,
    "compute_8": 0.1,
    "compute_4": 0.2,
    "weights": 0.1,
    "cache": 0.1,
    "link": 0.2,
    "bulk_hop_s": 0.3,
}
LIMITS = {"batch_max": 4096.0, "tokens_max": 8192.0, "kv_share": 0.92, "overhead_bytes": 4e9}
# Before 0.10 a group of heads that is no power of two had no grouped kernel: each head read the
# cache again.
ODD_GROUP = {8.0: 450.0, 9.0: 450.0}
SIGMA_ROW = 0.07
TURNS, TURNS_FINAL = 14, 25
_STEP = 1e-6
_Z_80 = 1.2816
Values = dict[str, Floats]


@dataclass(frozen=True, slots=True)
class Split:
    """A vector of parameters, all of them logarithms, by what they belong to."""

    generic: dict[str, float]
    release: dict[str, Floats]
    """One entry a release."""
    part: dict[str, Floats]
    """One entry an accelerator."""


class Names:
    """Where each number of the parameter vector belongs."""

    def __init__(self, data: Rows) -> None:
        self.releases = np.unique(data.release)
        self.parts: list[str] = np.unique(data.part).tolist()
        sizes = [1] * len(PRIOR) + [len(self.releases)] * len(RELEASE_SD)
        edges = np.cumsum([0, *sizes, *[len(self.parts)] * len(PART_SD)]).tolist()
        self.groups = [slice(a, b) for a, b in pairwise(edges)]
        self.start = np.zeros(edges[-1])
        self.start[: len(PRIOR)] = np.log(list(PRIOR.values()))

    def split(self, x: Floats) -> Split:
        taken = [x[group] for group in self.groups]
        after = len(PRIOR) + len(RELEASE_SD)
        generic = {name: float(v[0]) for name, v in zip(PRIOR, taken, strict=False)}
        release = dict(zip(RELEASE_SD, taken[len(PRIOR) : after], strict=True))
        return Split(generic, release, dict(zip(PART_SD, taken[after:], strict=True)))

    def prior(self, x: Floats) -> Floats:
        found = self.split(x)
        out = [np.array([(found.generic[k] - np.log(PRIOR[k])) / PRIOR_SD[k] for k in PRIOR])]
        for name, sd in RELEASE_SD.items():
            out += [np.diff(found.release[name]) / sd, found.release[name] / (2.5 * sd)]
        return np.concatenate([*out, *(found.part[name] / sd for name, sd in PART_SD.items())])

    def places(self, data: Rows) -> NDArray[np.int64]:
        """Index of each row's accelerator; one past the last for a part that was not seen."""
        known = {name: at for at, name in enumerate(self.parts)}
        return np.array([known.get(name, len(self.parts)) for name in data.part.tolist()])

    def values(self, x: Floats, data: Rows) -> Values:
        found, places = self.split(x), self.places(data)
        out: Values = {}
        for name in PRIOR:
            log = np.full(len(data.rows), found.generic[name])
            if name in RELEASE_SD:
                log += np.interp(data.release, self.releases, found.release[name])
            if name in PART_SD:
                log += np.append(found.part[name], 0.0)[places]
            out[name] = np.exp(log)
        out["odd_group"] *= np.array([ODD_GROUP.get(r, 1.0) for r in data.release.tolist()])
        return out


class Modes:
    """Rows by mode, so that each is computed under its own mode alone."""

    def __init__(self, data: Rows) -> None:
        self.size = len(data.rows)
        masks = [(mode, data.mode == mode) for mode in FITTED]
        self.parts = [(mode, mask, data.take(mask)) for mode, mask in masks if mask.any()]

    def predict(self, values: Values) -> Floats:
        """Return rates comparable with `Rows.observed` (1 / TTFT for first-token rows)."""
        out = np.empty(self.size)
        for mode, mask, rows in self.parts:
            mine = {name: value[mask] for name, value in values.items()}
            out[mask] = _rate(mode, rows, mine)
        return out


def _rate(mode: str, rows: Rows, values: Values) -> Floats:
    replica, limits = replica_of(rows, values), limits_for(len(rows.rows))
    if mode == "max-throughput":
        sizes = (rows.given, rows.asked, rows.requests)
        return max_throughput(replica, limits, *sizes, values["wave"]).output_tokens_per_s
    if mode == "static-batch":
        fixed = static_batch(replica, limits, rows.given, rows.asked, rows.batch)
        return fixed.output_tokens_per_s
    return 1.0 / first_token(replica, limits, rows.given, rows.batch).ttft_s


def replica_of(data: Rows, values: Values) -> Replica:
    return Replica(
        data.shape,
        data.device,
        data.layout,
        data.number.widths,
        data.number.math_bits,
        data.number.expert_math_bits,
        Efficiency(**{name: values[name] for name in EFFICIENCY_NAMES}),
    )


def limits_for(size: int) -> EngineLimits:
    return EngineLimits(**{name: np.full(size, value) for name, value in LIMITS.items()})


@dataclass(frozen=True, slots=True)
class Fit:
    """What a fit found."""

    names: Names
    x: Floats

    def errors(self, data: Rows) -> Floats:
        """Return log(predicted / published), of rows that were fitted or of others."""
        predicted = Modes(data).predict(self.names.values(self.x, data))
        return np.log(predicted / data.observed)


def fit(data: Rows, turns: int = TURNS) -> Fit:
    """Fit all parameters to `data`; robust, so that a misprint costs one row."""
    names, modes = Names(data), Modes(data)
    log_observed = np.log(data.observed)
    places = _places(names, data)

    def scaled(x: Floats) -> Floats:
        return (np.log(modes.predict(names.values(x, data))) - log_observed) / SIGMA_ROW

    def residuals(x: Floats) -> Floats:
        return np.concatenate([_softened(scaled(x)), names.prior(x)])

    def slopes(x: Floats) -> Floats:
        base = scaled(x)
        rows = np.zeros((len(base), len(x)))
        every = np.arange(len(base))
        # A row has one release and one part, so those of a name are moved all at once.
        for group, place in zip(names.groups, places, strict=True):
            moved = x.copy()
            moved[group] += _STEP
            rows[every, group.start + place] = (scaled(moved) - base) / _STEP
        return np.concatenate([rows * _softened_slope(base)[:, None], prior_slopes])

    at_start = names.prior(names.start)
    steps = np.eye(len(names.start))
    prior_slopes = np.stack([names.prior(names.start + step) - at_start for step in steps], axis=1)
    return Fit(names, least_squares(residuals, names.start, jac=slopes, max_nfev=turns).x)


def sigma_of(error: Floats) -> float:
    """Return the spread of a normal with the same central 80%; robust against misprints."""
    return float(np.quantile(np.abs(error), 0.8) / _Z_80)


def _places(names: Names, data: Rows) -> list[NDArray[np.int64]]:
    """Return, for each group of parameters, which of them each row depends on."""
    alone = np.zeros(len(data.rows), dtype=np.int64)
    release = np.searchsorted(names.releases, data.release)
    ours = [alone] * len(PRIOR) + [release] * len(RELEASE_SD)
    return [*ours, *[names.places(data)] * len(PART_SD)]


def _softened(r: Floats) -> Floats:
    return np.sign(r) * np.sqrt(2.0 * (np.sqrt(1.0 + r * r) - 1.0))


def _softened_slope(r: Floats) -> Floats:
    soft = np.abs(_softened(r))
    steep = np.abs(r) / np.sqrt(1.0 + r * r) / np.maximum(soft, 1e-6)
    return np.where(soft > 1e-6, steep, 1.0)
