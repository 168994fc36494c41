"""Learning from observed runs: knobs move towards them, and only as far as they are unsure."""

import numpy as np
import pytest

from tenfold.physics.arrays import Floats
from tenfold.physics.training.arrays import gather
from tenfold.physics.training.calibration import (
    WIDEST,
    Calibration,
    Runs,
    calibrate,
    correction,
    distance,
    interval,
    predict,
    similarity_of,
    traits_of,
)
from tenfold.physics.training.catalog import resolve, uncalibrated
from tenfold.physics.training.coefficients import CENTRE, NAMES, coefficients_of, values_of
from tenfold.physics.training.step import time_plans
from training_builders import CATALOGUE, part, plan, shape

H100 = "H100-80G-SXM"
START = resolve(CATALOGUE, "a new stack", H100).start
ENTRY = resolve(CATALOGUE, "a new stack", H100)


def runs(*hidden: float, dp: float = 8.0, stack: str = "a-new-stack") -> Runs:
    """Runs of models of these widths, alike otherwise."""
    count = len(hidden)
    return Runs(
        gather([shape(hidden=width, heads=width / 128, ffn=4 * width) for width in hidden]),
        gather([plan(dp=dp, shard=1.0, recompute=2.0)] * count),
        gather([part()] * count),
        np.array([stack] * count),
        np.array([H100] * count),
    )


def steps(own: Calibration, of: Runs) -> Floats:
    return np.exp(predict(own, of)[0])


def test_without_runs_the_physics_speaks():
    new = runs(2048, 4096)
    own = uncalibrated(ENTRY)
    timed = time_plans(new.shape, new.plans, new.accelerator, START.profile).step_s
    assert steps(own, new) == pytest.approx(np.asarray(timed))


@pytest.mark.parametrize("factor", [0.8, 1.1, 1.3])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_each_run_moves_the_estimate_towards_it(factor: float, count: int):
    new, seen = runs(4096), runs(*(2048, 4096, 8192)[:count])
    before = steps(uncalibrated(ENTRY), new)[0]
    told = steps(uncalibrated(ENTRY), seen) * factor
    after = steps(calibrate(START, seen, told), new)[0]
    gap_before, gap_after = abs(np.log(before * factor / before)), np.log(before * factor / after)
    assert abs(gap_after) < 0.6 * gap_before


def test_more_runs_are_believed_more():
    new = runs(5120)
    base = steps(uncalibrated(ENTRY), new)[0]
    gaps: list[float] = []
    for widths in ((2048,), (2048, 4096), (2048, 4096, 8192)):
        seen = runs(*widths)
        told = steps(uncalibrated(ENTRY), seen) * 1.25
        gaps.append(abs(np.log(steps(calibrate(START, seen, told), new)[0] / base / 1.25)))
    assert gaps[0] > gaps[-1]


def test_seeing_a_run_narrows_its_interval():
    new = runs(4096)
    _, wide = predict(uncalibrated(ENTRY), new)
    seen = runs(4096)
    own = calibrate(START, seen, steps(uncalibrated(ENTRY), seen))
    _, narrow = predict(own, new)
    assert narrow[0] < wide[0]


def test_one_wild_run_is_trusted_less_than_it_shouts():
    new, seen = runs(4096), runs(4096)
    base = steps(uncalibrated(ENTRY), new)[0]
    mild = steps(calibrate(START, seen, np.array([base * 1.3])), new)[0] / base
    wild = steps(calibrate(START, seen, np.array([base * 30.0])), new)[0] / base
    assert mild == pytest.approx(1.3, rel=0.1)
    assert wild < 10


def test_a_launch_bound_run_moves_the_launch_floor_not_the_matrix_products():
    tiny = Runs(
        gather([shape(hidden=512, heads=8, ffn=2048)]),
        gather([plan(seq=256.0, micro_batch=1.0, global_batch=64.0)]),
        gather([part()]),
        np.array(["a-new-stack"]),
        np.array([H100]),
    )
    own = calibrate(START, tiny, steps(uncalibrated(ENTRY), tiny) * 1.8)
    moved = np.abs(own.coefficients - START.coefficients)
    assert moved[NAMES.index("launch_s")] > 5 * moved[NAMES.index("gemm")]


def test_a_search_is_corrected_as_an_estimate_is():
    entry = resolve(CATALOGUE, "megatron-bridge-26.04", H100)
    new = runs(4096, 8192, stack="megatron-bridge-26.04")
    own = uncalibrated(entry)
    timed = time_plans(new.shape, new.plans, new.accelerator, own.profile).step_s
    assert np.asarray(timed) * correction(own, new) == pytest.approx(steps(own, new))


def test_two_runs_share_more_the_more_alike_they_are():
    traits = traits_of(runs(4096, 4096, 8192, 1024))
    shared = similarity_of(traits, traits, START.like)[0]
    assert shared[1] == shared.max()
    assert shared[1] > shared[2] > shared[3] > 0


def test_the_interval_lies_evenly_around_the_step_in_ratios():
    low, high = interval(np.array([2.0]), np.array([0.1]))
    assert low[0] * high[0] == pytest.approx(4.0)
    assert high[0] / 2.0 == pytest.approx(np.exp(0.12816))


def test_knobs_come_back_from_their_positions():
    values = values_of(CENTRE)
    assert coefficients_of(values) == pytest.approx(CENTRE)
    positions = coefficients_of(np.array([float(getattr(START.profile, name)) for name in NAMES]))
    assert positions == pytest.approx(START.coefficients)


def test_intervals_widen_with_the_distance_from_known_runs_and_not_without_end():
    entry = resolve(CATALOGUE, "megatron-bridge-26.04", H100)
    known = uncalibrated(entry)
    near, far = runs(4096, dp=8.0), runs(4096, dp=4096.0)
    apart = [float(distance(known, traits_of(one))[0]) for one in (near, far)]
    sigma = [float(predict(known, one)[1][0]) for one in (near, far)]
    assert apart[0] < apart[1]
    assert sigma[0] < sigma[1] <= WIDEST
    assert float(predict(uncalibrated(ENTRY), near)[1][0]) <= WIDEST


def test_runs_that_contradict_each_other_do_not_move_the_estimate():
    new, seen = runs(6144), runs(4096, 8192)
    before = steps(uncalibrated(ENTRY), new)[0]
    odd = steps(uncalibrated(ENTRY), seen) * np.array([1.13, 0.88])
    own = calibrate(START, seen, odd)
    assert own.trust < 0.1
    assert abs(np.log(steps(own, new)[0] / before)) < 0.01


def test_of_three_runs_the_lesser_miss_of_two_that_err_alike_counts():
    seen = runs(2048, 4096, 8192)
    physics = steps(uncalibrated(ENTRY), seen)
    small, large = (
        calibrate(START, seen, physics * np.array([least, 1.13, 0.95])).trust
        for least in (1.01, 1.08)
    )
    assert small < 0.2
    assert 0.4 < large < 0.8


def test_a_profile_that_is_far_off_is_not_kept_because_runs_disagree():
    seen = runs(2048, 4096, 8192)
    physics = steps(uncalibrated(ENTRY), seen)
    assert calibrate(START, seen, physics * np.array([1.02, 1.6, 1.1])).trust == 1.0


def test_runs_that_agree_are_believed_whole():
    seen = runs(2048, 4096, 8192)
    assert calibrate(START, seen, steps(uncalibrated(ENTRY), seen) * 1.3).trust == 1.0
