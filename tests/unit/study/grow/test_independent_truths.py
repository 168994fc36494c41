"""The simulators and closed forms of `grow-independent`, against results known from theory."""

import math
import random

import pytest

from benchmarks.grow.independent.bench import coverage_sigmas
from benchmarks.grow.independent.catalogue import KINDS
from benchmarks.grow.independent.closed import (
    any_of,
    crossing,
    erlang_c,
    longer_than,
    md1_mean_wait,
    mmc_mean_wait,
    mmc_queue_occupied,
    mmc_waits_longer,
    poisson_longer,
)
from benchmarks.grow.independent.failing import (
    Bursts,
    Fault,
    renewals,
    short_share,
    spares_needed,
    time_by_count,
)
from benchmarks.grow.independent.judge import Finding
from benchmarks.grow.independent.made import INTERVAL, added, toml
from benchmarks.grow.independent.queueing import (
    Gang,
    easy_starts,
    fifo_starts,
    poisson_gangs,
    wait_quantile,
)
from benchmarks.grow.independent.sharing import max_min, readers_lose

DAY_S = 86_400.0


def mean_wait(gangs: list[Gang], nodes: int) -> float:
    starts = fifo_starts(gangs, nodes)
    return sum(start - gang.submit_s for gang, start in zip(gangs, starts, strict=True)) / len(
        gangs
    )


def test_one_server_makes_erlang_c_the_load():
    assert erlang_c(1, 0.7) == pytest.approx(0.7)


def test_erlang_c_is_the_textbook_value_for_ten_servers_at_eight():
    assert erlang_c(10, 8.0) == pytest.approx(0.409, abs=0.001)


def test_fifo_waits_of_one_server_are_those_of_m_m_1():
    gangs = poisson_gangs(1, 0.6 / 1_000, 60_000_000, [(1, 1.0, 1_000.0)])
    assert mean_wait(gangs, 1) == pytest.approx(mmc_mean_wait(1, 0.6, 1_000.0), rel=0.06)


def test_fifo_waits_of_several_servers_follow_erlang_c():
    gangs = poisson_gangs(2, 4.0 / 1_000, 15_000_000, [(1, 1.0, 1_000.0)])
    starts = fifo_starts(gangs, 6)
    late = sum(start - gang.submit_s > 300 for gang, start in zip(gangs, starts, strict=True))
    assert late / len(gangs) == pytest.approx(mmc_waits_longer(6, 4.0, 1_000.0, 300.0), rel=0.12)


def test_fixed_times_on_one_server_wait_as_pollaczek_and_khinchine_say():
    draw = random.Random(3)
    now, gangs = 0.0, list[Gang]()
    for _ in range(60_000):
        now += draw.expovariate(0.7 / 100)
        gangs.append(Gang(now, 100.0, 1))
    assert mean_wait(gangs, 1) == pytest.approx(md1_mean_wait(0.7, 100.0), rel=0.05)


def test_a_queue_is_occupied_less_often_than_an_arrival_waits():
    assert mmc_queue_occupied(5, 3.0) == pytest.approx(erlang_c(5, 3.0) * 0.6)


def test_backfill_passes_the_head_only_where_it_does_not_delay_it():
    gangs = [Gang(0, 100, 3), Gang(1, 50, 4), Gang(2, 90, 1), Gang(3, 200, 1)]
    assert easy_starts(gangs, 4) == [0, 100, 2, 150]
    assert fifo_starts(gangs, 4) == [0, 100, 150, 150]


def test_backfill_of_equal_jobs_is_first_come_first():
    gangs = poisson_gangs(4, 3.0 / 1_000, 400_000, [(1, 1.0, 1_000.0)])
    assert easy_starts(gangs, 4) == pytest.approx(fifo_starts(gangs, 4))


def test_a_quantile_by_gpu_time_counts_long_jobs_more():
    gangs = [Gang(float(turn), 1.0, 1) for turn in range(9)] + [Gang(9.0, 1_000.0, 1)]
    starts = [gang.submit_s for gang in gangs[:-1]] + [509.0]
    assert wait_quantile(gangs, starts, 0.5, by_gpu_time=False, skip=0) == 0
    assert wait_quantile(gangs, starts, 0.5, skip=0) == 500


def test_max_min_gives_small_demands_all_and_the_rest_equal_parts():
    assert max_min([10, 50, 50], 80) == [10, 35, 35]
    assert max_min([10, 20], 80) == [10, 20]


def test_two_readers_of_a_tier_for_one_lose_half_of_their_time_together():
    assert readers_lose([(0, 100), (0, 100)], 8, 1.0, 8.0) == pytest.approx(0.5)
    assert readers_lose([(0, 100), (500, 100)], 8, 1.0, 8.0) == pytest.approx(0)


def test_a_node_is_down_for_its_share_of_a_renewal():
    seconds = time_by_count(renewals(5, 4_000, [(90.0, 10.0)] * 20), 0, 4_000 * DAY_S)
    down = sum(count * span for count, span in seconds.items()) / sum(seconds.values())
    assert down == pytest.approx(20 * 0.1, rel=0.03)


def test_nodes_down_of_independent_renewals_are_binomial():
    seconds = time_by_count(renewals(6, 6_000, [(90.0, 10.0)] * 20), 0, 6_000 * DAY_S)
    assert short_share(seconds, 4) == pytest.approx(longer_than(any_of([0.1] * 20), 4), rel=0.1)


def test_many_rare_events_are_a_poisson_count():
    assert longer_than(any_of([0.004] * 750), 6) == pytest.approx(poisson_longer(3, 6), rel=0.05)


def test_bursts_need_more_spares_than_as_many_single_failures():
    bursts = Bursts(128, 8, 0.25, 30.0)
    seconds = time_by_count(bursts.draw(7, 4_000), 0, 4_000 * DAY_S)
    down = sum(count * span for count, span in seconds.items()) / sum(seconds.values())
    alone = next(count for count in range(100) if poisson_longer(down, count) <= 0.01)
    assert spares_needed(seconds, 0.01) > alone + 3


def test_two_faults_of_one_node_at_once_are_one_node_down():
    seconds = time_by_count([Fault(1, 0, 10), Fault(1, 5, 20), Fault(2, 0, 5)], 0, 40)
    assert seconds == {0: 20, 1: 15, 2: 5}


def test_a_crossing_is_where_a_value_exceeds_its_limit():
    assert crossing(lambda k: k * k, 9.0) == pytest.approx(3.0)
    assert crossing(lambda k: 0.5, 1.0) == math.inf


def test_what_a_fix_adds_is_read_from_its_sentence():
    assert added("add 1,089 switch ports", "port") == 1_089
    assert added("add floor space for 5 racks, or another site", "rack") == 5
    assert added("switch the policy; add 2 nodes across the pools", "node") == 2
    assert added("raise the power feed of a to 2,560 kW (up from 900)", "kW") == 1_660
    assert added("switch the policy", "node") is None


def test_coverage_is_counted_by_fleet_in_both_directions():
    def found(covered: int, of: int) -> list[Finding]:
        return [
            Finding("f", seed, "", "", INTERVAL, "", "" if seed < covered else "off")
            for seed in range(of)
        ]

    assert coverage_sigmas(found(80, 100)) == 0
    assert coverage_sigmas(found(60, 100)) == pytest.approx(5)
    assert coverage_sigmas(found(100, 100)) == pytest.approx(5)


@pytest.mark.parametrize("name", ["racks", "ports", "streams", "owned", "lead-time"])
def test_a_seed_makes_the_same_fleet_again(name: str):
    make, _ = KINDS[name]
    assert make(3).files == make(3).files
    assert make(3).files != make(4).files or name == "lead-time"


def test_tables_become_toml_that_names_what_is_set():
    text = toml(name="x", pool=[{"name": "p", "nodes": 4, "price": None}], limits={"kw_most": 1.5})
    assert text.split() == [
        "name",
        "=",
        '"x"',
        "[[pool]]",
        "name",
        "=",
        '"p"',
        "nodes",
        "=",
        "4",
        "[limits]",
        "kw_most",
        "=",
        "1.5",
    ]
