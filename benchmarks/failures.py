"""Drawn faults beside a recorded fleet: nodes down at once, and interruptions of one large job.

The law knows the summary of the trace (rate, spread of gaps, share of the worst nodes,
middle and mean repair) and none of its quantiles of nodes down, which are what is compared.
"""

import os
from pathlib import Path
from statistics import fmean, median

import numpy as np

from benchmarks.verdict import Verdict
from tenfold.compose.fleet import load_facts
from tenfold.files.traces.node_faults import read_fault_trace
from tenfold.model.facts.failure_law import FailureLaw, law_of
from tenfold.model.fault import Fault
from tenfold.model.fleet.node import Node
from tenfold.model.ids import DomainId, NodeId, PoolId, SiteId
from tenfold.model.units import DAY, HOUR, Millis
from tenfold.physics.operations.faults import poisson_quantile
from tenfold.sim.faults.generate import generate_faults
from tenfold.sim.faults.replay import replay_faults
from tenfold.sim.measure.down_time import mean_count, quantile, sum_tables, time_by_count

DATA = Path(os.environ.get("TENFOLD_SHARED_DATA", Path(__file__).parents[2] / "shared" / "data"))
TRACE = DATA / "failures" / "infinitehbd_raw.json"
# P90 of one draw spreads by 6, so that of 400 draws is known to 0.3.
NODES, DAYS, WARM_DAYS, SEEDS = 400, 349, 730, 400
# P50, P90 and P99 of nodes down at once in the trace, as published with it.
PUBLISHED = (7, 22, 31)
SHARES = (0.5, 0.9, 0.99)
LLAMA_NODES, LLAMA_DAYS, LLAMA_STOPS = 2_048, 54, 419


def nodes(count: int) -> list[Node]:
    """Return a fleet of racks of 4 nodes under leaves of 32."""
    return [
        Node(
            id=NodeId(f"n{place:05}"),
            pool=PoolId("p"),
            site=SiteId("s"),
            gpus=8,
            rack=f"rack-{place // 4}",
            leaf=f"leaf-{place // 32}",
            domains=(DomainId(f"rack-{place // 4}"), DomainId(f"leaf-{place // 32}")),
        )
        for place in range(count)
    ]


def summary(faults: list[Fault], count: int, days: float) -> dict[str, float]:
    """Return what is published of a trace: rate, spread of gaps, worst nodes, repair."""
    gaps = np.diff(np.array(sorted(fault.at_ms for fault in faults), float))
    hours = [(fault.until_ms - fault.at_ms) / HOUR for fault in faults]
    by_node: dict[str, int] = {}
    for fault in faults:
        by_node[fault.node_id] = by_node.get(fault.node_id, 0) + 1
    worst = sorted(by_node.values(), reverse=True)[: count // 10]
    return {
        "faults per 1,000 node-days": len(faults) / (count * days) * 1_000,
        "spread of gaps (cv)": float(gaps.std() / gaps.mean()),
        "share of the worst 10% of nodes": sum(worst) / len(faults),
        "repair, median h": median(hours),
        "repair, mean h": fmean(hours),
    }


def drawn(law: FailureLaw, seeds: int = SEEDS):
    """Return summaries and quantiles of each draw, and the time by count of all together."""
    fleet = nodes(NODES)
    start, end = Millis(WARM_DAYS * DAY), Millis((WARM_DAYS + DAYS) * DAY)
    summaries: list[dict[str, float]] = []
    quantiles: list[list[int]] = []
    pooled = np.zeros(1)
    for seed in range(seeds):
        faults = list(generate_faults(fleet, law, end, seed))
        times = time_by_count(faults, start, end)
        pooled = sum_tables(pooled, times)
        quantiles.append([quantile(times, share) for share in SHARES])
        summaries.append(summary([one for one in faults if one.at_ms >= start], NODES, DAYS))
    means = {key: fmean(one[key] for one in summaries) for key in summaries[0]}
    return means, [fmean(column) for column in zip(*quantiles, strict=True)], pooled


def run(thresholds: dict[str, float]) -> list[Verdict]:
    catalogue = load_facts()
    law = law_of(catalogue.failures.get("infinitehbd"))
    means, average, pooled = drawn(law)
    together = [quantile(pooled, share) for share in SHARES]
    plain = [poisson_quantile(mean_count(pooled), share) for share in SHARES]
    _print_trace(means)
    print(f"{'nodes down at once of 400':34} {'P50':>7} {'P90':>7} {'P99':>7}")
    print(f"{'  the trace':34} {PUBLISHED[0]:7} {PUBLISHED[1]:7} {PUBLISHED[2]:7}")
    print(f"{f'  drawn, mean of {SEEDS} draws':34} " + " ".join(f"{one:7.1f}" for one in average))
    print(f"{'  drawn, all draws together':34} " + " ".join(f"{one:7}" for one in together))
    print(f"{'  Poisson of the same mean':34} " + " ".join(f"{one:7}" for one in plain))
    llama = law_of(catalogue.failures.get("llama-3"))
    stops = _stops(llama)
    outside = sum(abs(one - LLAMA_STOPS) > 3 * LLAMA_STOPS**0.5 for one in stops)
    print(f"interruptions in 54 days at Llama-3's rate: {fmean(stops):.1f} (published 419)")
    verdicts = [
        Verdict(f"nodes down {name}, drawn over the trace", 100 * abs(got / true - 1), limit, "%")
        for name, got, true, limit in zip(
            ("P50", "P90", "P99"),
            average,
            PUBLISHED,
            [thresholds["down_percent"]] * 3,
            strict=True,
        )
    ]
    for place, name in ((1, "P90"), (2, "P99")):
        ratio = abs(average[place] - PUBLISHED[place]) / abs(plain[place] - PUBLISHED[place])
        limit = thresholds["error_over_poisson"]
        verdicts.append(Verdict(f"nodes down {name}, error over Poisson's", ratio, limit, "x"))
    limit = thresholds["llama_sigmas"]
    off = abs(fmean(stops) - LLAMA_STOPS) / LLAMA_STOPS**0.5
    verdicts.append(Verdict("Llama-3 interruptions, sigmas from 419", off, limit))
    share = outside / len(stops)
    limit = thresholds["llama_share_outside"]
    verdicts.append(Verdict("draws beyond 3 sigma of 419", share, limit))
    return verdicts


def _print_trace(means: dict[str, float]) -> None:
    true: dict[str, float] = {}
    if TRACE.is_file():
        faults, _ = replay_faults(read_fault_trace(TRACE), nodes(NODES), Millis(DAYS * DAY))
        true = summary(list(faults), NODES, DAYS)
    else:
        print(f"note: {TRACE.name} is not here, so its summary is not shown")
    print(f"{'':34} {'drawn':>7} {'trace':>7}")
    for name, value in means.items():
        print(f"{name:34} {value:7.2f} {true.get(name, float('nan')):7.2f}")


def _stops(law: FailureLaw) -> list[int]:
    fleet = nodes(LLAMA_NODES)
    end = Millis(LLAMA_DAYS * DAY)
    return [
        len({fault.at_ms for fault in generate_faults(fleet, law, end, seed)})
        for seed in range(SEEDS)
    ]
