"""Charts and measures worked out of the record of a run, against cases done by hand."""

from collections.abc import Sequence
from itertools import pairwise
from random import Random

import numpy as np
import pytest
from msgspec.structs import replace

from tenfold.compose.simulation import SimRequest, SimResult, simulate
from tenfold.model.fault import Fault
from tenfold.model.fleet.node import Node
from tenfold.model.ids import JobId, NodeId, PoolId, SiteId, TeamId
from tenfold.model.job.job import Job, shape_of
from tenfold.model.policy.policy import Policy
from tenfold.model.units import SECOND, Millis
from tenfold.sim.measure.fairness import finish_time_fairness
from tenfold.sim.measure.fragmentation import fragmentation
from tenfold.sim.measure.lanes import lane_runs, shown_nodes
from tenfold.sim.measure.step_function import StepFunction
from tenfold.sim.measure.timeline import timeline
from tenfold.sim.world import SimSettings
from tenfold.study.sim.detail import downsample, run_detail

FIFO = Policy(name="fifo")


def node(name: str, gpus: int = 8, rack: str = "r1", accelerator: str = "h100") -> Node:
    return Node(
        id=NodeId(name),
        pool=PoolId("p"),
        site=SiteId("s"),
        gpus=gpus,
        rack=rack,
        accelerator=accelerator,
    )


def job(name: str, at_s: float, length_s: float, gpus: float, team: str = "t") -> Job:
    return Job(
        id=JobId(name),
        shape=shape_of(gpus),
        submitted_ms=Millis(round(at_s * SECOND)),
        duration_ms=Millis(round(length_s * SECOND)),
        team=TeamId(team),
    )


def run(nodes: Sequence[Node], jobs: Sequence[Job], faults: Sequence[Fault] = ()) -> SimResult:
    return simulate(SimRequest(nodes=nodes, jobs=numbered(jobs), policy=FIFO, faults=faults))


def numbered(jobs: Sequence[Job]) -> list[Job]:
    return [replace(one, seq=seq) for seq, one in enumerate(jobs)]


def drawn(seed: int, count: int = 80) -> list[Job]:
    dice = Random(seed)
    made = [
        job(f"j{n}", dice.uniform(0, 500), dice.uniform(1, 300), dice.choice([1, 2, 4, 8, 16]))
        for n in range(count)
    ]
    return numbered(sorted(made, key=lambda one: one.submitted_ms))


def test_means_are_areas_below_the_steps():
    steps = StepFunction([0, 10, 10, 30], [2, -1, 3, -4])
    assert steps.means(np.array([0.0, 10.0, 20.0, 40.0])).tolist() == [2.0, 4.0, 2.0]
    assert StepFunction([], []).means(np.array([0.0, 1.0])).tolist() == [0.0]
    assert steps.means(np.array([-10.0, 0.0])).tolist() == [0.0]


def test_a_queue_of_two_is_seen_waiting_and_then_running():
    jobs = [job("a", 0, 100, 8), job("b", 0, 100, 8)]
    line = timeline(jobs, run([node("n")], jobs).meters, buckets=4)
    assert line.at_s == (25, 75, 125, 175)
    assert line.gpus_allocated == (8, 8, 8, 8)
    assert line.jobs_running == (1, 1, 1, 1)
    assert line.jobs_waiting == (1, 1, 0, 0)
    assert line.nodes_down == (0, 0, 0, 0)


def test_a_lost_node_is_down_until_it_returns():
    jobs = [job("a", 0, 100, 8)]
    fault = Fault(at_ms=Millis(50_000), until_ms=Millis(150_000), node_id=NodeId("n"))
    result = run([node("n")], jobs, [fault])
    line = timeline(jobs, result.meters, buckets=5)
    assert line.nodes_down == (0, 1, 1, 0, 0)
    assert line.jobs_waiting == (0, 1, 1, 0, 0)
    assert line.gpus_allocated == (8, 0, 0, 8, 8)
    assert result.summary.goodput == pytest.approx(100 / 150)


@pytest.mark.parametrize("seed", range(5))
def test_the_mean_over_time_is_the_utilisation(seed: int):
    nodes, jobs = [node("n1"), node("n2"), node("n3")], drawn(seed)
    result = run(nodes, jobs)
    line = timeline(jobs, result.meters)
    mean = sum(line.gpus_allocated) / len(line.gpus_allocated)
    assert mean / 24 == pytest.approx(result.summary.gpu_utilization)


def test_nothing_that_lasts_has_no_timeline():
    assert timeline([], run([node("n")], []).meters).at_s == ()


def test_jobs_alone_are_as_soon_as_on_a_fleet_of_their_own():
    jobs = [job("a", 0, 100, 8), job("b", 200, 50, 4)]
    fair = finish_time_fairness(jobs, run([node("n")], jobs).meters, 8)
    assert fair is not None
    assert (fair.rho_mean, fair.rho_max, fair.late_share) == (1.0, 1.0, 0.0)


def test_two_jobs_in_turn_against_halves_of_the_fleet():
    """The first shares with the second for all its 100 s: half a fleet would take 200. The
    second is there for 200 s beside 1.5 jobs on average: 150 s on its share."""
    jobs = [job("a", 0, 100, 8), job("b", 0, 100, 8)]
    fair = finish_time_fairness(jobs, run([node("n")], jobs).meters, 8)
    assert fair is not None
    assert fair.rho_mean == pytest.approx((0.5 + 200 / 150) / 2)
    assert fair.rho_max == pytest.approx(200 / 150)
    assert fair.late_share == 0.5


def test_a_small_job_behind_a_large_one_is_late():
    jobs = [job("a", 0, 1_000, 8), job("b", 0, 10, 1)]
    fair = finish_time_fairness(jobs, run([node("n")], jobs).meters, 8)
    assert fair is not None
    assert fair.rho_max == pytest.approx(101)


def test_no_job_that_ends_means_no_fairness():
    jobs = [job("a", 0, 10, 64)]
    result = run([node("n")], jobs)
    assert result.summary.refused == 1
    assert finish_time_fairness(jobs, result.meters, 8) is None
    assert fragmentation([node("n")], jobs, result.meters) is None


def test_a_free_gpu_is_stranded_for_gangs_that_its_node_cannot_hold():
    """One node of eight with five taken: three are free, and of no use to jobs of five."""
    jobs = [job("a", 0, 100, 5)]
    assert fragmentation([node("n")], jobs, run([node("n")], jobs).meters) == 1.0
    both = [job("a", 0, 100, 5), job("b", 200, 1e-3, 3)]
    # While `a` runs half of the jobs could use the three; when it is over all can use all eight.
    share = fragmentation([node("n")], both, run([node("n")], both).meters)
    assert share == pytest.approx((100 * 3 * 0.5) / (100 * 3 + 100 * 8), rel=0.02)


def test_what_is_left_of_a_shared_device_is_stranded_for_whole_ones():
    jobs = [job("a", 0, 100, 0.6), job("b", 99.999, 1e-3, 1)]
    nodes = [node("n", 1)]
    share = fragmentation(nodes, jobs, run(nodes, jobs).meters)
    assert share == pytest.approx(1.0, abs=0.01)


def test_a_full_fleet_has_nothing_to_strand():
    jobs = [job("a", 0, 100, 8)]
    assert fragmentation([node("n")], jobs, run([node("n")], jobs).meters) == 0.0


@pytest.mark.parametrize("seed", range(5))
def test_lanes_never_cover_each_other_and_hold_what_ran(seed: int):
    nodes, jobs = [node("n1"), node("n2", rack="r2")], drawn(seed)
    request = SimRequest(
        nodes=nodes,
        jobs=jobs,
        policy=Policy(name="las"),
        settings=SimSettings(restart_cost_ms=Millis(5_000)),
    )
    result = simulate(request)
    runs = lane_runs(nodes, result.meters, 0)
    held = sum((one.end_s - one.start_s) * one.lanes for one in runs)
    assert held / 3600 == pytest.approx(result.summary.gpu_hours)
    for lane in {
        (one.node, lane) for one in runs for lane in range(one.lane, one.lane + one.lanes)
    }:
        times = sorted(
            (one.start_s, one.end_s)
            for one in runs
            if one.node == lane[0] and one.lane <= lane[1] < one.lane + one.lanes
        )
        assert all(a[1] <= b[0] for a, b in pairwise(times))


def test_of_many_nodes_whole_racks_are_shown_and_of_many_runs_the_largest():
    nodes = [node(f"n{n}", rack=f"r{n // 4}") for n in range(40)]
    assert len(shown_nodes(nodes, most=10)) == 8
    assert len(shown_nodes(nodes, most=3)) == 3
    assert shown_nodes([node("c", 0)]) == []
    jobs = [job("small", 0, 1, 1), job("large", 0, 100, 8)]
    [kept] = lane_runs(nodes, run(nodes, jobs).meters, 0, most=1)
    assert kept.job == "large"


def test_a_closer_look_changes_nothing_and_keeps_both_ends():
    nodes, jobs = [node("n1"), node("n2")], drawn(1)
    request = SimRequest(nodes=nodes, jobs=jobs, policy=FIFO)
    result = simulate(request)
    before = result.summary
    detail = run_detail(request, result)
    assert result.meters.summary(jobs, request.gpus) == before
    assert len(detail.waits_s) == len(detail.jcts_s) == before.finished
    assert sum(detail.waits_s) / before.finished == pytest.approx(before.avg_wait_s)
    few = downsample(detail.jcts_s, 10)
    assert (len(few), few[0], few[-1]) == (10, detail.jcts_s[0], detail.jcts_s[-1])
