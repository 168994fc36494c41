"""`tenfold sim autoscale` answers what a second, naive simulator finds in the same files."""

from heapq import heapify, heappop, heappush
from math import inf
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tenfold.files.series.requests import read_requests
from tenfold.files.series.simulated_service import read_simulated_service
from tenfold.sim.service.run import ServiceFigures
from tenfold.study.autoscale.run import AutoscaleRequest, run_autoscaler

PREFILL, DECODE, OBJECTIVE_S = 500.0, 20.0, 1.5
Rows = list[tuple[float, int, int]]


def trace(seed: int, requests: int = 400) -> Rows:
    """Return requests in bursts, with a long gap in the middle, in no order."""
    draw = np.random.default_rng(seed)
    gaps = draw.exponential(draw.choice([0.1, 2.0], requests))
    gaps[requests // 2] = 4_000.0
    times = np.round(np.cumsum(gaps), 3)
    rows = [(float(at), int(draw.integers(0, 400)), int(draw.integers(0, 200))) for at in times]
    return [rows[one] for one in draw.permutation(requests)]


def written(rows: Rows, file: Path) -> Path:
    table = pl.DataFrame(
        rows,
        schema={"t_s": pl.Float64, "input_tokens": pl.Int64, "output_tokens": pl.Int64},
        orient="row",
    )
    table.write_parquet(file) if file.suffix == ".parquet" else table.write_csv(file)
    return file


def service(folder: Path, **keys: float | str) -> Path:
    values: dict[str, float | str] = {
        "slots": 3,
        "prefill_tokens_per_s": PREFILL,
        "decode_tokens_per_s": DECODE,
        "cold_start_s": 30,
        "replicas_max": 20,
        "ttft_objective_s": OBJECTIVE_S,
        "attainment": 0.9,
        **keys,
    }
    lines = [
        f'{key} = "{value}"' if isinstance(value, str) else f"{key} = {value}"
        for key, value in values.items()
    ]
    file = folder / "service.toml"
    file.write_text("\n".join(lines) + "\n")
    return file


def answered(
    requests: Path, spec: Path, policy: str, seed: int = 0
) -> tuple[ServiceFigures, int | None]:
    described, cold_starts_ms = read_simulated_service(spec)
    request = AutoscaleRequest(
        trace=read_requests(requests), service=described, cold_starts_ms=cold_starts_ms, seed=seed
    )
    found = run_autoscaler(request, policy)  # pyright: ignore[reportArgumentType]
    return found.figures, found.replicas_static


def naive(rows: Rows, slots: int, hold_s: float = 300.0, hold_max: int = 1_000) -> list[float]:
    """Return the TTFT of each request, in order of arrival: one queue, so many slots.

    Which replica has the free slot makes no difference to when a request begins.
    """
    ordered = sorted(rows, key=lambda one: one[0])
    first = ordered[0][0]
    free, found = [0.0] * slots, list[float]()
    heapify(free)
    begins = list[float]()
    for arrived_s, given, made in ordered:
        at_s = arrived_s - first
        waiting = sum(one > at_s for one in begins if one < inf)
        begin = max(at_s, free[0])
        if begin > at_s and (waiting >= hold_max or begin - at_s > hold_s):
            found.append(inf)
            begins.append(inf)
            continue
        heappop(free)
        heappush(free, begin + given / PREFILL + made / DECODE)
        begins.append(begin)
        found.append(begin - at_s + given / PREFILL)
    return found


def met(ttft_s: list[float]) -> float:
    return sum(one <= OBJECTIVE_S for one in ttft_s) / len(ttft_s)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_static_is_the_number_that_a_naive_simulator_finds(seed: int, suffix: str, tmp_path: Path):
    rows = trace(seed)
    spec = service(tmp_path)
    figures, chosen = answered(written(rows, tmp_path / f"r{suffix}"), spec, "static", seed)
    enough = [count for count in range(1, 21) if met(naive(rows, 3 * count)) >= 0.9]
    assert chosen == enough[0]
    ttft_s = naive(rows, 3 * enough[0])
    assert figures.requests == len(rows)
    assert figures.attainment == pytest.approx(met(ttft_s), abs=2 / len(rows))
    assert figures.ttft_p50_s == pytest.approx(np.percentile(ttft_s, 50), abs=0.01)
    assert figures.ttft_p99_s == pytest.approx(np.percentile(ttft_s, 99), abs=0.1)
    span_s = max(one[0] for one in rows) - min(one[0] for one in rows)
    assert figures.replica_hours == pytest.approx(enough[0] * span_s / 3_600, rel=1e-3)
    assert (figures.shed, figures.starts, figures.stops) == (0, 0, 0)


def test_requests_beyond_the_hold_are_shed_and_miss(tmp_path: Path):
    rows = [(0.0, 0, 400) for _ in range(10)]
    spec = service(tmp_path, replicas_max=1, hold_timeout_s=30, hold_requests_max=5)
    figures, _ = answered(written(rows, tmp_path / "r.csv"), spec, "static")
    # Three are served at once and the next after 20 s; five may wait at a time, two of them too
    # long.
    assert figures.shed == 4
    assert figures.attainment == pytest.approx(0.3)


@pytest.mark.parametrize("policy", ["tenfold", "kpa", "hpa", "ray-serve", "skyserve", "dynamo"])
@pytest.mark.parametrize("seed", range(3))
def test_no_policy_beats_more_replicas_than_it_may_have_or_costs_less_than_the_work(
    policy: str, seed: int, tmp_path: Path
):
    rows = trace(seed)
    spec = service(tmp_path, replicas_max=4)
    figures, _ = answered(written(rows, tmp_path / "r.csv"), spec, policy, seed)
    assert figures.attainment <= met(naive(rows, 3 * 4, hold_s=inf)) + 2 / len(rows)
    span_s = max(one[0] for one in rows) - min(one[0] for one in rows)
    assert figures.replica_hours <= 4 * span_s / 3_600 + 1e-9
    assert figures.replica_hours >= span_s / 3_600 - 1e-9


def test_a_single_request_and_a_gap_of_weeks_are_served(tmp_path: Path):
    cold = tmp_path / "cold.csv"
    cold.write_text("cold_start_s\n20\n40\n")
    spec = service(tmp_path, cold_start_file="cold.csv", replicas_min=0)
    text = spec.read_text().replace("cold_start_s = 30\n", "")
    spec.write_text(text)
    single, _ = answered(written([(5.0, 100, 20)], tmp_path / "one.csv"), spec, "tenfold")
    assert (single.requests, single.attainment, single.shed) == (1, 1.0, 0)
    assert single.ttft_p50_s == pytest.approx(0.2)
    rows = [(0.0, 100, 20), (7 * 86_400.0, 100, 20)]
    gap, _ = answered(written(rows, tmp_path / "gap.parquet"), spec, "kpa", seed=1)
    # The second request waits for a cold start, which is one of the two.
    assert gap.requests == 2
    assert gap.ttft_p99_s is not None
    assert 20 <= gap.ttft_p99_s <= 45
    assert gap.replica_hours < 1
