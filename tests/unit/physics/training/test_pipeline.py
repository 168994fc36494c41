"""Closed forms of pipeline schedules; the laws check them against a simulation."""

import numpy as np
import pytest

from tenfold.physics.training.pipeline import pass_s, stage_layers
from tenfold.physics.training.step import time_plans
from training_builders import PROFILE, part, plan, shape


@pytest.mark.parametrize(("stages", "micro_batches"), [(2, 2), (4, 8), (8, 8), (16, 64)])
def test_the_bubble_of_equal_stages_is_the_known_share(stages: int, micro_batches: int):
    """R20: (p-1)/(m+p-1) of the pass is idle."""
    busy, bubble = pass_s(micro_batches, 1.0, 1.0, float(stages))
    share = bubble / (busy + bubble)
    assert share == pytest.approx((stages - 1) / (micro_batches + stages - 1))


def test_interleaving_divides_the_bubble_alone():
    busy, bubble = pass_s(16, 1.0, 1.0, 8.0)
    for virtual in (2.0, 4.0):
        assert pass_s(16, virtual, 1.0, 8.0) == (busy, bubble / virtual)


def test_zero_bubble_schedules_fill_part_of_the_bubble():
    plain, filled = pass_s(8, 1.0, 1.0, 4.0), pass_s(8, 1.0, 1.0, 4.0, zero_bubble=1.0)
    assert filled[0] == plain[0]
    assert 0 < filled[1] < plain[1]


def test_one_stage_has_no_bubble():
    assert pass_s(8, 1.0, 2.5, 2.5)[1] == 0


@pytest.mark.parametrize(
    ("layers", "pp", "virtual", "expected"),
    [(32, 4, 1, (8, 8)), (126, 16, 1, (8, 6)), (61, 16, 1, (4, 1)), (96, 8, 6, (12, 12))],
)
def test_the_last_stage_gets_the_layers_that_are_left(
    layers: int, pp: int, virtual: int, expected: tuple[int, int]
):
    assert stage_layers(layers, pp, virtual) == expected


def test_layers_of_all_stages_hold_the_model():
    for pp in (1, 2, 3, 4, 7, 8):
        full, last = stage_layers(61.0, float(pp), 1.0)
        assert full * (pp - 1) + max(last, 61 - full * (pp - 1)) >= 61


def test_more_micro_batches_hide_the_bubble():
    batches = np.array([16.0, 64.0, 256.0])
    times = time_plans(shape(), plan(pp=8.0, global_batch=batches), part(), PROFILE)
    shares = np.asarray(times.bubble_s) / np.asarray(times.step_s)
    assert shares[0] > shares[1] > shares[2]


def test_a_pipeline_without_network_still_sends():
    times = time_plans(shape(), plan(pp=4.0), part(), PROFILE)
    assert float(times.p2p_s) > 0
    assert float(time_plans(shape(), plan(), part(), PROFILE).p2p_s) == 0
