"""Drawn faults: the law follows from published summaries, and quantiles follow from the law."""

import os
import subprocess
import sys
from itertools import islice, pairwise
from pathlib import Path
from statistics import fmean, median

import numpy as np
import pytest
from msgspec.structs import replace

from tenfold.compose.failures import failure_source
from tenfold.compose.fleet import load_facts
from tenfold.model.errors import InputError
from tenfold.model.facts.failure_law import NO_FAILURES, FailureLaw, law_of
from tenfold.model.fleet.node import Node
from tenfold.model.ids import DomainId, NodeId, PoolId, SiteId
from tenfold.model.units import DAY, HOUR, Millis
from tenfold.physics.operations.faults import (
    burst_mean,
    burst_sizes,
    poisson_quantile,
    poisson_share,
    repair_sigma,
    spares_for,
)
from tenfold.sim.faults.generate import Fault, generate_faults
from tenfold.sim.measure.down_time import mean_count, quantile, sum_tables, time_by_count

FACTS = load_facts()
LAW = law_of(FACTS.failures.get("infinitehbd"))
SHARES = (0.5, 0.9, 0.99)


def fleet(count: int, site: str = "s") -> list[Node]:
    return [
        Node(
            id=NodeId(f"{site}-{place:05}"),
            pool=PoolId("p"),
            site=SiteId(site),
            gpus=8,
            rack=f"rack-{place // 4}",
            domains=(DomainId(f"{site}-rack-{place // 4}"), DomainId(f"{site}-leaf-{place // 32}")),
        )
        for place in range(count)
    ]


def drawn(law: FailureLaw, nodes: list[Node], days: float, seed: int = 0) -> list[Fault]:
    return list(generate_faults(nodes, law, Millis(round(days * DAY)), seed))


def test_the_summaries_of_the_trace_come_back_and_so_do_its_nodes_down_at_once():
    """349 days of 400 nodes, 100 times, each after two years; the trace has 7, 22 and 31 down."""
    nodes, start, end = fleet(400), Millis(730 * DAY), Millis(1_079 * DAY)
    pooled, hours, gaps_cv, worst, per_draw = np.zeros(1), [], [], [], []
    faults_seen = 0
    for seed in range(100):
        faults = list(generate_faults(nodes, LAW, end, seed))
        times = time_by_count(faults, start, end)
        pooled = sum_tables(pooled, times)
        per_draw.append([quantile(times, share) for share in SHARES])
        seen = [fault for fault in faults if fault.at_ms >= start]
        faults_seen += len(seen)
        hours += [(fault.until_ms - fault.at_ms) / HOUR for fault in seen]
        gaps = np.diff([fault.at_ms for fault in seen])
        gaps_cv.append(gaps.std() / gaps.mean())
        counts = np.unique([fault.node_id for fault in seen], return_counts=True)[1]
        worst.append(np.sort(counts)[-40:].sum() / len(seen))
    assert faults_seen / (100 * 400 * 0.349) == pytest.approx(4.18, rel=0.03)
    assert fmean(gaps_cv) == pytest.approx(1.76, rel=0.04)
    assert fmean(worst) == pytest.approx(0.41, abs=0.02)
    assert median(hours) == pytest.approx(20.4, rel=0.06)
    assert fmean(hours) == pytest.approx(132.8, rel=0.12)
    p50, p90, p99 = (quantile(pooled, share) for share in SHARES)
    assert p50 == pytest.approx(7, rel=0.25)
    assert p90 == pytest.approx(22, rel=0.25)
    assert p99 == pytest.approx(31, rel=0.25)
    for place, (true, plain) in enumerate(((7, 9), (22, 13), (31, 17))):
        assert abs(fmean(draw[place] for draw in per_draw) - true) < abs(plain - true)
    # The trace itself is one that the law could have drawn.
    assert 0.05 < fmean(draw[1] >= 22 for draw in per_draw) < 0.95
    assert 0.05 < fmean(draw[2] >= 31 for draw in per_draw) < 0.95


def test_llama_3_gives_419_interruptions_in_54_days_on_16384_gpus():
    law, nodes = law_of(FACTS.failures.get("llama-3")), fleet(2_048)
    stops = [len({fault.at_ms for fault in drawn(law, nodes, 54, seed)}) for seed in range(40)]
    assert fmean(stops) == pytest.approx(419, abs=3 * 419**0.5 / 40**0.5)
    assert sum(abs(one - 419) > 3 * 419**0.5 for one in stops) <= 1


def test_the_causes_of_llama_3_come_in_their_published_parts():
    """Chi-squared over the causes with at least 5 expected; 99.9% lies below 40 of 17 kinds."""
    law = law_of(FACTS.failures.get("llama-3"))
    causes = [f.cause for s in range(20) for f in drawn(law, fleet(2_048), 54, s)]
    whole = sum(law.causes.values())
    expected = {cause: part / whole * len(causes) for cause, part in law.causes.items()}
    chi = sum((causes.count(cause) - one) ** 2 / one for cause, one in expected.items())
    assert chi < 40
    assert law.transient_share == pytest.approx(63 / 419)


def test_a_transient_fault_is_over_with_the_restart():
    law = law_of(FACTS.failures.get("llama-3"))
    away = {f.until_ms - f.at_ms for f in drawn(law, fleet(2_048), 54) if f.cause == "software-bug"}
    assert away == {900_000}


def test_faults_come_in_order_and_a_node_that_is_down_does_not_fail_again():
    faults = drawn(LAW, [*fleet(64), *fleet(64, "t")], 2_000)
    assert all(a.at_ms <= b.at_ms for a, b in pairwise(faults))
    back: dict[str, int] = {}
    for fault in faults:
        assert back.get(fault.node_id, 0) <= fault.at_ms < fault.until_ms
        back[fault.node_id] = fault.until_ms


def test_a_burst_stays_in_the_smallest_domain_that_has_so_many_up():
    bursts: dict[int, list[int]] = {}
    for fault in drawn(LAW, fleet(320), 200):
        bursts.setdefault(fault.at_ms, []).append(int(fault.node_id[2:]))
    pairs = [places for places in bursts.values() if len(places) == 2]
    assert len(pairs) > 10
    assert fmean(len({place // 4 for place in places}) == 1 for places in pairs) > 0.9
    assert max(map(len, bursts.values())) <= 32


def test_another_site_changes_nothing_here():
    alone = drawn(LAW, fleet(32), 500)
    beside = [f for f in drawn(LAW, [*fleet(32), *fleet(32, "t")], 500) if f.node_id[0] == "s"]
    assert alone == beside


def test_faults_are_drawn_as_they_are_asked_for():
    endless = generate_faults(fleet(1_000), LAW, Millis(10**15), 0)
    assert len(list(islice(endless, 50))) == 50


def test_the_same_seed_gives_the_same_faults_under_any_hash_seed():
    code = (
        "import sys, hashlib; sys.path[:0] = sys.argv[1:]\n"
        "import unit.sim.faults.test_generate as t\n"
        "print(hashlib.sha256(repr(t.drawn(t.LAW, t.fleet(64), 900, 7)).encode()).hexdigest())"
    )
    tests = str(Path(__file__).parents[3])
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code, tests],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1
    assert drawn(LAW, fleet(64), 900, 7) != drawn(LAW, fleet(64), 900, 8)


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_a_small_fleet_fails_too_and_never_hangs(count: int):
    nodes = [replace(node, domains=(), rack="") for node in fleet(count)]
    faults = drawn(LAW, nodes, 20_000)
    assert 0 < len(faults) < 20_000 * count * 0.00418 * 1.5


def test_bursts_are_as_large_as_the_spread_of_gaps_says():
    assert burst_mean(1.0, 32) == burst_mean(0.5, 32) == 1.0
    mean = burst_mean(1.76, 32)
    assert mean == pytest.approx((1.76**2 + 1) / 2)
    sizes = burst_sizes(mean, 32)
    assert float(sizes @ np.arange(1, 33)) == pytest.approx(mean)
    assert burst_mean(9.0, 4) == 2.5
    assert burst_sizes(2.5, 4) == pytest.approx(np.full(4, 0.25))


def test_poisson_has_the_quantiles_that_undersize_the_spares_of_the_trace():
    assert [poisson_quantile(9.25, share) for share in SHARES] == [9, 13, 17]
    assert sum(poisson_share(9.25, count) for count in range(60)) == pytest.approx(1)
    assert poisson_quantile(0, 0.99) == 0
    assert poisson_quantile(1_000_000, 0.5) == pytest.approx(1_000_000, abs=2)


def test_a_lognormal_has_the_median_and_mean_that_were_given():
    sigma = repair_sigma(20.4, 132.8)
    assert 20.4 * np.exp(sigma**2 / 2) == pytest.approx(132.8)
    assert repair_sigma(5, 5) == 0


def test_spares_fail_as_well():
    assert spares_for(10, 100, 100) == 12
    assert spares_for(0, 100, 100) == 0
    assert spares_for(10, 100, 50) == 6


def test_time_is_counted_by_nodes_down_and_only_inside_the_window():
    faults = [
        Fault(Millis(0), NodeId("a"), Millis(50)),
        Fault(Millis(20), NodeId("b"), Millis(30)),
        Fault(Millis(90), NodeId("c"), Millis(500)),
    ]
    times = time_by_count(faults, Millis(10), Millis(100))
    assert times.tolist() == [40, 40, 10]
    assert mean_count(times) == pytest.approx(60 / 90)
    assert [quantile(times, share) for share in (0.4, 0.5, 0.99)] == [0, 1, 2]
    assert time_by_count([], Millis(0), Millis(5)).tolist() == [5]


@pytest.mark.parametrize("name", ["rsc-1", "rsc-2", "llama-3", "infinitehbd"])
def test_every_preset_of_the_contract_is_a_law_that_says_what_it_assumes(name: str):
    law = failure_source(name, FACTS)
    assert isinstance(law, FailureLaw)
    assert law.repair_h_mean >= law.repair_h_median > 0
    assert "burst_nodes_max" in law.assumed
    assert ("repair_h_mean" in law.assumed) == (name != "infinitehbd")


def test_none_is_no_failure_at_all():
    assert failure_source("none", FACTS) is NO_FAILURES
    assert drawn(NO_FAILURES, fleet(8), 10_000) == []


def test_a_preset_that_cannot_be_drawn_says_why():
    with pytest.raises(InputError, match="has no repair times") as caught:
        failure_source("titan", FACTS)
    assert caught.value.code == "no-repair-time"
    preset = FACTS.failures.get("infinitehbd")
    for change in (
        {"repair_h_mean": 1.0},
        {"frailty_shape": 0.0},
        {"arrival_cv": -1.0},
        {"burst_nodes_max": 0},
        {"failures_per_1000_node_days": -1.0},
        {"causes": {"a": -1.0}},
    ):
        with pytest.raises(InputError) as caught:
            law_of(replace(preset, **change))
        assert caught.value.code == "impossible-failures"
    with pytest.raises(InputError) as caught:
        failure_source("rsc-9", FACTS)
    assert caught.value.code == "unknown-failure"
