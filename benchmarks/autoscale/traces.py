"""The traces of the autoscaler benchmark, each with the service that it is served by.

ServeGen's have 196 and 1,174 requests a second. They are thinned client by client: each one sends
one in so many of its requests that all together send about one a second, with gaps of its own
distribution in each window of ten minutes, scaled to fill the window. So the mix and the rate over
the days stay, and so do the bursts of each client; a subset of whole clients would keep neither:
those small enough send in 3% of all windows. Lengths are lognormal with a client's mean and median.
"""

from collections.abc import Callable, Mapping
from math import log, sqrt
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tenfold.model.service.simulated import RequestTrace, SimulatedService
from tenfold.model.units import DAY, SECOND

DATA = Path(__file__).parents[3] / "shared" / "data" / "inference"
WINDOW_S = 600
LENGTHS = ("input_mean", "input_p50", "output_mean", "output_p50")
KEPT_PER_S = 1.0
"""Requests per second of the thinned traces."""


Columns = dict[str, NDArray[Any]]


class Case(NamedTuple):
    """A trace, and how it is served."""

    name: str
    trace: RequestTrace
    service: SimulatedService
    split_ms: int
    """Policies are tuned before this, and scored after it."""


def hour(name: str, trace: str, service: SimulatedService) -> Case:
    """Return a trace of an hour; the first half tunes."""
    table = _table("llm_requests.parquet")
    kept = np.array(table["trace"].to_pylist()) == trace
    times = table["t_s"].to_numpy()[kept]
    order = np.argsort(times, kind="stable")
    columns = [table[name].to_numpy()[kept][order] for name in ("input_tokens", "output_tokens")]
    found = _trace(times[order] - times[order][0], *columns)
    return Case(name, found, service, found.arrived_ms[-1] // 2)


def diffusion() -> Case:
    """Return the images of 23 days: seconds of work stand for tokens, the wait for the TTFT."""
    table = _table("alibaba_diffusion_requests_2024.parquet")
    times, work = table["t_s"].to_numpy(), table["exec_time_seconds"].to_numpy()
    order = np.argsort(times, kind="stable")
    tokens = np.maximum(np.rint(work[order] * 1_000), 1)
    found = _trace(times[order] - times[order][0], np.zeros(len(times)), tokens)
    service = SimulatedService(
        slots=1,
        prefill_tokens_per_s=1.0,
        decode_tokens_per_s=1_000.0,
        cold_start_s=0,
        replicas_min=0,
        replicas_max=60,
        ttft_objective_s=60,
        hold_timeout_s=600,
    )
    return Case("diffusion", found, service, found.arrived_ms[-1] // 2)


def servegen(name: str, model: str, decode_tokens_per_s: float, seed: int) -> Case:
    """Return 14 days of a model's clients, thinned; the first week tunes."""
    draws = np.random.default_rng(seed)
    rates = _columns("servegen_client_rates.parquet", model)
    lengths = _columns("servegen_client_token_lengths.parquet", model)
    usual = {name: float(np.nanmean(lengths[name])) for name in LENGTHS}
    times: list[NDArray[np.float64]] = []
    tokens: list[NDArray[np.float64]] = []
    end_s = float(rates["t_s"].max()) + WINDOW_S
    kept = KEPT_PER_S / (float(rates["rate_rps"].sum()) * WINDOW_S / end_s)
    for client in np.unique(rates["client"]).tolist():
        own = lengths["client"] == client
        shape = {name: _mean(lengths[name][own], usual[name]) for name in LENGTHS}
        sent = _arrivals(rates, rates["client"] == client, kept, draws)
        times.append(sent)
        tokens.append(
            np.stack([_lognormal(shape, kind, len(sent), draws) for kind in ("input", "output")])
        )
    at, both = np.concatenate(times), np.concatenate(tokens, axis=1)
    order = np.argsort(at, kind="stable")
    service = SimulatedService(
        slots=2,
        prefill_tokens_per_s=8_000,
        decode_tokens_per_s=decode_tokens_per_s,
        cold_start_s=0,
        replicas_max=1_000,
        ttft_objective_s=2,
    )
    return Case(name, _trace(at[order], both[0][order], both[1][order]), service, 7 * DAY)


def _mean(values: NDArray[np.float64], otherwise: float) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else otherwise


def _arrivals(
    rates: Columns, own: NDArray[np.bool_], kept: float, draws: np.random.Generator
) -> NDArray[np.float64]:
    found: list[NDArray[np.float64]] = [np.zeros(0)]
    names = ("t_s", "rate_rps", "p1", "dist")
    for start_s, rate, first, kind in zip(*(rates[one][own] for one in names), strict=True):
        many = int(rate * WINDOW_S * kept + draws.random())
        if many <= 0:
            continue
        shape = max(float(first), 0.01)
        gaps = (
            draws.gamma(shape, size=many + 1)
            if kind == "Gamma"
            else draws.weibull(shape, size=many + 1)
        ) + 1e-9
        ends = np.cumsum(gaps)
        # A random start in the first gap, or each window would begin with a burst.
        found.append(start_s + (ends[:-1] - gaps[0] * draws.random()) / ends[-1] * WINDOW_S)
    return np.concatenate(found)


def _lognormal(
    shape: Mapping[str, float], kind: str, many: int, draws: np.random.Generator
) -> NDArray[np.float64]:
    mean, median = max(shape[f"{kind}_mean"], 1.0), max(shape[f"{kind}_p50"], 1.0)
    spread = sqrt(2 * log(max(mean / median, 1.0001)))
    return np.clip(np.rint(draws.lognormal(log(median), spread, many)), 1, 100_000)


def _trace(
    times_s: NDArray[Any], given: NDArray[np.float64], made: NDArray[np.float64]
) -> RequestTrace:
    return RequestTrace(
        np.rint(times_s * SECOND).astype(np.int64).tolist(),
        given.astype(np.int64).tolist(),
        made.astype(np.int64).tolist(),
    )


def _columns(name: str, model: str) -> Columns:
    """Return the columns of the rows of a model; a missing number is not a number."""
    table = _table(name)
    own = np.array(table["model"].to_pylist()) == model
    found: Columns = {}
    for column in table.column_names:
        values = np.array(table[column].to_pylist(), dtype=None)
        found[column] = (values.astype(np.float64) if values.dtype == object else values)[own]
    return found


def _table(name: str) -> Any:
    from pyarrow import parquet  # noqa: PLC0415 - only this benchmark needs it

    return parquet.read_table(DATA / name)


def _llm(prefill: float, decode: float, objective_s: float) -> SimulatedService:
    return SimulatedService(
        slots=8,
        prefill_tokens_per_s=prefill,
        decode_tokens_per_s=decode,
        cold_start_s=0,
        replicas_max=60,
        ttft_objective_s=objective_s,
    )


CASES: dict[str, Callable[[], Case]] = {
    "azure-conv": lambda: hour("azure-conv", "azure-2023-conv", _llm(8_000, 40, 2)),
    "mooncake-conv": lambda: hour("mooncake-conv", "mooncake-conversation", _llm(10_000, 40, 15)),
    "diffusion": diffusion,
    "m-large": lambda: servegen("m-large", "m-large", 20, 1),
    "m-small": lambda: servegen("m-small", "m-small", 10, 1),
    "m-large-2": lambda: servegen("m-large-2", "m-large", 20, 2),
    "m-small-2": lambda: servegen("m-small-2", "m-small", 10, 2),
}
