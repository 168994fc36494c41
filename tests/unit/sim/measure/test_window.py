"""Figures of a window, on runs small enough to work out by hand."""

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from tenfold.compose.simulation import SimRequest, SimResult, simulate
from tenfold.model.fault import Fault
from tenfold.model.ids import NodeId
from tenfold.model.job.job import Job, shape_of
from tenfold.model.job.terms import Terms
from tenfold.model.policy.policy import Policy, PolicyName
from tenfold.model.units import DAY, HOUR, Millis
from tenfold.sim.measure.stranded import stranded_share
from tenfold.sim.measure.window import (
    Window,
    WindowFigures,
    job_waits,
    runs_until,
    window_figures,
    window_of,
)
from tenfold.sim.measure.window_losses import (
    entitlement_fairness,
    lost_milli_ms,
    nodes_down_p99,
    weighted_shares,
)
from tenfold.testing.builders import job, nodes


def run_until(
    jobs: Sequence[Job],
    until_s: int,
    *,
    count: int = 1,
    faults: Sequence[Fault] = (),
    policy: PolicyName = "fifo",
) -> SimResult:
    return simulate(
        SimRequest(
            nodes=nodes(count),
            jobs=jobs,
            policy=Policy(name=policy),
            faults=faults,
            until_ms=Millis(until_s * 1_000),
        )
    )


def figures(result: SimResult, jobs: Sequence[Job], window: Window, gpus: int) -> WindowFigures:
    runs = list(runs_until(result.meters, result.fleet.running, window.until_ms))
    found = job_waits(jobs, runs, result.meters, window)
    return window_figures(found, runs, window, gpus, 8)


def test_who_still_waits_has_waited_until_the_end():
    jobs = [job(0, 8, runs_s=100), job(1, 8, at_s=10, runs_s=100), job(2, 8, at_s=20, runs_s=100)]
    seen = figures(run_until(jobs, 150), jobs, Window(0, 150_000), 8)
    assert (seen.jobs, seen.waiting) == (3, 1)
    assert seen.wait_s_mean == pytest.approx((0 + 90 + 130) / 3)
    assert seen.utilisation == 1
    assert seen.load == 2
    assert seen.starts_per_s == pytest.approx(2 / 150)


def test_a_job_larger_than_the_fleet_waits_to_the_end():
    jobs = [job(0, 16, runs_s=100)]
    result = run_until(jobs, 100)
    assert result.meters.refused_jobs == jobs
    seen = figures(result, jobs, Window(0, 100_000), 8)
    assert (seen.jobs, seen.waiting, seen.wait_s_p90_gpu, seen.load) == (1, 1, 100, 2)


def test_who_comes_after_a_job_that_failed_waits_for_nothing():
    first = job(0, 8, runs_s=50)
    after = replace(job(1, 1, at_s=1, runs_s=100), terms=Terms(after=(first.id,)))
    jobs = [first, after]
    request = SimRequest(
        nodes=nodes(1),
        jobs=jobs,
        policy=Policy(name="governed"),
        ends={first.id: "failed"},
        until_ms=Millis(100_000),
    )
    result = simulate(request)
    assert result.meters.refused_jobs == [after]
    assert figures(result, jobs, Window(0, 100_000), 8).jobs == 1


def test_only_what_lies_within_the_window_counts():
    jobs = [job(0, 8, runs_s=100), job(1, 4, at_s=120, runs_s=100)]
    seen = figures(run_until(jobs, 200), jobs, Window(50_000, 200_000), 8)
    assert (seen.jobs, seen.wait_s_mean) == (1, 0)
    assert seen.utilisation == pytest.approx((50 * 8 + 80 * 4) / (150 * 8))
    assert seen.load == pytest.approx(100 * 4 / (150 * 8))


def test_waits_by_gpu_time_see_the_long_job_that_starves():
    long = job(0, 8, at_s=1, runs_s=40_000)
    short = [job(n, 1, at_s=2 + n, runs_s=1) for n in range(1, 21)]
    blocker = job(99, 1, at_s=0, runs_s=5_000)
    jobs = [blocker, long, *short]
    seen = figures(run_until(jobs, 4_000, policy="sjf"), jobs, Window(0, 4_000_000), 8)
    assert seen.wait_s_p90 == 0
    assert seen.wait_s_p90_gpu == 3_999
    assert seen.wait_s_mean_gpu > 3_500


def test_the_worst_class_is_named_where_it_has_jobs_enough():
    large = [job(n, 16, at_s=n, runs_s=100) for n in range(10)]
    small = [job(n, 1, at_s=n, runs_s=1, team="a") for n in range(10, 25)]
    jobs = [*large, *small]
    seen = figures(run_until(jobs, 500, count=2), jobs, Window(0, 500_000), 16)
    assert seen.worst_class == "multi-node jobs"
    few = figures(run_until(large[:3], 500, count=2), large[:3], Window(0, 500_000), 16)
    assert few.worst_class == ""
    assert few.wait_s_p90_worst == few.wait_s_p90 == 198


def test_d_d_c_gives_the_wait_of_its_closed_form():
    # One node, jobs of 600 s every 400 s: load 1.5, waits up to H * (1 - 1 / 1.5).
    jobs = [job(n, 8, at_s=n * 400, runs_s=600) for n in range(601)]
    window = window_of(jobs)
    seen = figures(run_until(jobs, 240_000), jobs, window, 8)
    assert seen.wait_s_p90 == pytest.approx(0.9 * 240_000 * (1 - 1 / 1.5), rel=0.01)


def test_a_long_history_has_a_warm_up_and_a_short_one_is_judged_whole():
    long = [job(day, 1, at_s=day * 86_400, runs_s=3_600) for day in range(15)]
    assert window_of(long) == Window(2 * DAY, 14 * DAY)
    assert window_of(long[:4]) == Window(0, 3 * DAY)
    slow = [job(day, 1, at_s=day * 86_400, runs_s=4 * 86_400) for day in range(15)]
    assert window_of(slow) == Window(4 * DAY, 14 * DAY)
    assert window_of([]).length_ms == 1


def test_work_since_the_last_save_is_lost_to_failures():
    jobs = [job(0, 8, runs_s=3 * 3_600)]
    fault = Fault(Millis(90 * 60_000), NodeId("n0"), Millis(100 * 60_000), "gpu")
    result = run_until(jobs, 10 * 3_600, faults=[fault])
    window = Window(0, 10 * HOUR)
    runs = list(runs_until(result.meters, result.fleet.running, window.until_ms))
    lost = lost_milli_ms(runs, result.meters, result.fleet.past, result.work_ms, window)
    assert lost == {"failures": 8_000 * HOUR // 2, "preemption": 0, "contention": 0}
    assert nodes_down_p99(result.meters, window) == 1


def test_lost_work_counts_while_its_job_goes_on():
    jobs = [job(0, 8, runs_s=3 * 3_600)]
    fault = Fault(Millis(90 * 60_000), NodeId("n0"), Millis(100 * 60_000), "gpu")
    result = run_until(jobs, 2 * 3_600, faults=[fault])
    window = Window(0, 2 * HOUR)
    runs = list(runs_until(result.meters, result.fleet.running, window.until_ms))
    lost = lost_milli_ms(runs, result.meters, result.fleet.past, result.work_ms, window)
    assert lost["failures"] == 8_000 * HOUR // 2


def test_a_gang_that_takes_whole_nodes_loses_no_time_by_it():
    jobs = [job(0, 12, runs_s=3_600)]
    result = run_until(jobs, 2 * 3_600, count=2)
    window = Window(0, 2 * HOUR)
    runs = list(runs_until(result.meters, result.fleet.running, window.until_ms))
    lost = lost_milli_ms(runs, result.meters, result.fleet.past, result.work_ms, window)
    assert sum(lost.values()) == 0


def test_rare_outages_are_no_ninety_ninth_hundredth():
    jobs = [job(0, 8, runs_s=1_000)]
    fault = Fault(Millis(10_000), NodeId("n0"), Millis(12_000), "gpu")
    result = run_until(jobs, 1_000, faults=[fault])
    assert nodes_down_p99(result.meters, Window(0, 1_000_000)) == 0


def test_jobs_of_five_strand_three_of_eight():
    jobs = [job(n, 5, at_s=n, runs_s=10_000) for n in range(8)]
    result = run_until(jobs, 10_000, count=4)
    window = Window(100_000, 10_000_000)
    runs = list(runs_until(result.meters, result.fleet.running, window.until_ms))
    share = stranded_share(nodes(4), jobs, runs, result.meters, window)
    assert share == pytest.approx(3 / 8)


def test_free_gpus_are_not_stranded_where_nobody_waits():
    jobs = [job(n, 5, at_s=n, runs_s=10_000) for n in range(4)]
    result = run_until(jobs, 5_000, count=4)
    window = Window(100_000, 5_000_000)
    runs = list(runs_until(result.meters, result.fleet.running, window.until_ms))
    assert stranded_share(nodes(4), jobs, runs, result.meters, window) == 0


def test_free_gpus_of_another_type_are_not_stranded():
    there = [*nodes(1, accelerator="h100"), *nodes(3, accelerator="l4", name="l")]
    asked = shape_of(5, accelerators=("h100",))
    jobs = [replace(job(n, 5, at_s=n, runs_s=10_000), shape=asked) for n in range(3)]
    request = SimRequest(
        nodes=there, jobs=jobs, policy=Policy(name="fifo"), until_ms=Millis(10_000_000)
    )
    result = simulate(request)
    window = Window(100_000, 10_000_000)
    runs = list(runs_until(result.meters, result.fleet.running, window.until_ms))
    share = stranded_share(there, jobs, runs, result.meters, window)
    assert share == pytest.approx(3 / 32)


def test_a_job_of_no_length_holds_nothing_afterwards():
    jobs = [job(0, 8, runs_s=0), job(1, 5, at_s=1, runs_s=100), job(2, 5, at_s=2, runs_s=100)]
    result = run_until(jobs, 100)
    window = Window(10_000, 100_000)
    runs = list(runs_until(result.meters, result.fleet.running, window.until_ms))
    assert stranded_share(nodes(1), jobs, runs, result.meters, window) == pytest.approx(3 / 8)


def test_a_part_is_what_one_asks_for_or_what_weights_give():
    assert weighted_shares({"a": 1, "b": 50, "c": 50}, {}, 21) == {"a": 1, "b": 10, "c": 10}
    assert weighted_shares({"a": 50, "b": 50}, {"a": 3}, 40) == {"a": 30, "b": 10}
    assert weighted_shares({"a": 5, "b": 5}, {}, 40) == {"a": 5, "b": 5}


def test_teams_that_get_what_they_deserve_are_even_and_a_starved_one_is_not():
    mine = [job(n, 8, at_s=n, runs_s=100, team="a") for n in range(20)]
    theirs = [job(n + 20, 8, at_s=30, runs_s=100, team="b") for n in range(20)]
    jobs = [*mine, *theirs]
    window = Window(0, 2_000_000)
    result = run_until(jobs, 2_000)
    runs = list(runs_until(result.meters, result.fleet.running, window.until_ms))
    found = job_waits(jobs, runs, result.meters, window)
    assert entitlement_fairness(found, runs, window, 8, {}) == pytest.approx(0.5)
    assert entitlement_fairness(found[:20], runs, window, 8, {}) == 1
    wide = Window(0, 4_000_000)
    result = run_until(jobs, 4_000)
    runs = list(runs_until(result.meters, result.fleet.running, wide.until_ms))
    assert entitlement_fairness(job_waits(jobs, runs, result.meters, wide), runs, wide, 8, {}) == 1
