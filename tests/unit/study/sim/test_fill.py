"""How far jobs that never leave fill a fleet."""

from random import Random

import pytest

from placement_builders import jobs, node
from tenfold.model.job.job import Shape, shape_of
from tenfold.model.policy.policy import PLACEMENTS, Placement
from tenfold.study.sim.fill import fill


def test_the_share_allocated_is_taken_when_requests_reach_each_mark():
    nodes = [node("n0", 8), node("n1", 2)]
    result = fill(nodes, jobs([shape_of(6), shape_of(3), shape_of(1), shape_of(1)]), "best-fit")
    assert result.gpus == 10
    assert (result.placed, result.dropped) == (3, 1)
    assert result.gpu_allocated == {"0.8": 0.6, "0.9": 0.6, "1.0": 0.7}
    assert result.gpu_allocated_end == 0.8


def test_a_mark_that_requests_never_reach_has_no_share():
    result = fill([node("n", 10)], jobs([shape_of(0.5)] * 16 + [shape_of(0.2)]), "tenfold")
    assert result.gpu_allocated == {"0.8": 0.8, "0.9": None, "1.0": None}
    assert result.gpu_allocated_end == pytest.approx(0.82)


@pytest.mark.parametrize("placement", PLACEMENTS)
def test_a_fleet_without_gpus_takes_jobs_without_gpus(placement: Placement):
    result = fill([node("n", 0, cpus=4)], jobs([shape_of(0, cpus=3)] * 2), placement)
    assert (result.jobs, result.placed, result.gpus) == (2, 1, 0)


def pods(seed: int, count: int) -> list[Shape]:
    """Shares and whole GPUs with CPUs in odd proportions; a few insist on a type."""
    dice = Random(seed)
    kinds = [
        (0.2, 3, ()),
        (0.5, 6, ()),
        (0.46, 8, ()),
        (1, 6, ()),
        (1, 16, ("B",)),
        (2, 12, ()),
        (4, 40, ()),
        (8, 60, ()),
        (0, 10, ()),
    ]
    weights = [15, 15, 10, 40, 8, 4, 4, 4, 10]
    picks = dice.choices(kinds, weights, k=count)
    return [shape_of(gpus, cpus=cpus, accelerators=types) for gpus, cpus, types in picks]


def test_the_default_placement_fills_a_mixed_fleet_further_than_best_fit():
    nodes = [
        node(f"n{number}-{gpus}", gpus, cpus=cpus, memory_gib=512, accelerator=kind)
        for number in range(12)
        for gpus, cpus, kind in ((8, 96, "A"), (4, 64, "B"), (2, 96, "A"))
    ]
    ours = best = 0.0
    for seed in range(5):
        arrivals = jobs(pods(seed, 400))
        ours += fill(nodes, arrivals, "tenfold").gpu_allocated["1.0"] or 0.0
        best += fill(nodes, arrivals, "best-fit").gpu_allocated["1.0"] or 0.0
    assert ours > best
