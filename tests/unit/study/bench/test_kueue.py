"""Kueue's scenarios as they are rebuilt: counts, bounds, quotas, and a small one that runs."""

from collections import Counter
from itertools import pairwise

import pytest
from msgspec.structs import replace

from tenfold.model.job.job import WHOLE
from tenfold.study.bench.kueue import LOADS, THEIRS, bench_kueue
from tenfold.study.bench.kueue_loads import (
    BASELINE,
    LARGE,
    SLOT,
    STARTS_OVER,
    TOPOLOGY,
    KueueLoad,
    governance_of,
    jobs_of,
    nodes_of,
)


def small(load: KueueLoad) -> KueueLoad:
    streams = tuple(replace(each, count=2) for each in load.streams)
    return replace(load, cohorts=1, queues=2, streams=streams)


@pytest.mark.parametrize(
    ("load", "jobs"), [(BASELINE, 15_000), (LARGE, 50_000), (TOPOLOGY, 15_000)]
)
def test_as_many_workloads_come_as_are_published(load: KueueLoad, jobs: int):
    queues = load.cohorts * load.queues
    assert sum(each.count for each in load.streams) * queues == jobs


def test_all_work_over_all_quota_is_as_published():
    assert BASELINE.work_ms == 66_000
    assert LARGE.work_ms == 4_025
    assert TOPOLOGY.work_ms == 66_000


@pytest.mark.parametrize("load", [BASELINE, LARGE, TOPOLOGY])
def test_the_least_makespan_knows_that_work_must_come_before_it_is_done(load: KueueLoad):
    assert load.work_ms < load.least_ms < 1.2 * load.work_ms


def test_the_last_arrival_bounds_the_makespan_where_there_is_little_work():
    first = replace(BASELINE.streams[0], count=2)
    assert replace(BASELINE, streams=(first,)).least_ms == 2 * 100 + 200


def test_work_that_comes_late_is_left_to_do():
    late = replace(BASELINE.streams[2], count=2, every_ms=500, run_ms=1_000)
    load = replace(BASELINE, streams=(late,))
    assert load.work_ms == 2_000
    assert load.least_ms == 500 + 2_000


def test_jobs_come_in_order_and_each_queue_gets_the_same():
    jobs = jobs_of(small(BASELINE), restart=False)
    assert [job.seq for job in jobs] == list(range(len(jobs)))
    assert all(one.submitted_ms <= two.submitted_ms for one, two in pairwise(jobs))
    assert set(Counter(job.team for job in jobs).values()) == {6}
    assert jobs[0].submitted_ms == 100


def test_a_job_that_starts_over_says_so_in_its_terms():
    assert jobs_of(small(BASELINE), restart=False)[0].terms is None
    assert jobs_of(small(BASELINE), restart=True)[0].terms is STARTS_OVER


@pytest.mark.parametrize("load", [BASELINE, LARGE])
def test_room_never_binds_where_the_scenario_has_no_nodes(load: KueueLoad):
    nodes, largest = nodes_of(load), max(each.slots for each in load.streams)
    assert sum(node.gpus - largest + 1 for node in nodes) >= load.slots


def test_the_topology_has_racks_of_nodes_with_a_slot_for_each_quarter():
    nodes = nodes_of(TOPOLOGY)
    assert set(Counter(node.rack for node in nodes).values()) == {64}
    assert len(nodes) == 640
    assert {node.gpus for node in nodes} == {4 * 96}
    large = TOPOLOGY.streams[-1].shape
    assert (large.gpus, large.gpus_per_node) == (80, 10)
    assert large.where is not None
    assert (large.where.within, large.where.how) == ("rack", "balanced")


def test_cohorts_do_not_borrow_and_queues_borrow_within_limits():
    teams = governance_of(BASELINE).teams
    cohorts = [team for team in teams if team.parent is None]
    queues = [team for team in teams if team.parent is not None]
    assert len(cohorts) == 5
    assert all(team.borrow == {SLOT: 0} for team in cohorts)
    assert len(queues) == 30
    assert all(team.quota == {SLOT: 20 * WHOLE} for team in queues)
    assert all(team.borrow == {SLOT: 100 * WHOLE} for team in queues)


@pytest.mark.parametrize("name", LOADS)
@pytest.mark.parametrize("restart", [False, True])
def test_a_small_scenario_of_its_kind_runs_to_its_end(name: str, restart: bool):
    load = small(LOADS[name])
    bench = bench_kueue(name, restart=restart, load=load)
    assert bench.ours("workloads") == 2 * sum(each.count for each in load.streams)
    assert bench.ours("makespan") >= bench.ours("minimum possible makespan")
    assert 0 < bench.ours("mean quota use") <= 100


@pytest.mark.parametrize("name", LOADS)
def test_every_published_figure_stands_beside_ours(name: str):
    bench = bench_kueue(name, restart=False, load=small(LOADS[name]))
    shown = {figure.theirs for figure in bench.figures if figure.theirs}
    assert shown == set(THEIRS[name].values())
    assert "virtual time" in bench.ours_include
    assert "API server" in bench.theirs_include


def test_teams_that_outrank_and_reclaim_from_each_other_come_to_rest():
    """Stops cost nothing here and take no time: a circle of them would never end."""
    found = bench_kueue("kueue-baseline", restart=False, load=replace(BASELINE, cohorts=1))
    assert found.ours("preemptions") < found.ours("workloads")
