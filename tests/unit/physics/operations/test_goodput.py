"""Failures, checkpoints and the effective training time ratio, against print and exact forms."""

import numpy as np
import pytest

from tenfold.facts.loader import load_catalogue
from tenfold.physics.arrays import Floats
from tenfold.physics.operations.energy import footprint, gpu_power_w
from tenfold.physics.operations.goodput import (
    Reliability,
    best_interval_s,
    checkpoint_bytes,
    checkpoint_s,
    daly_interval_s,
    goodput,
    mttf_s,
)

# Kokolis et al. (HPCA'25): failures of a node a day on RSC-1 and RSC-2.
RSC_1, RSC_2 = 6.5e-3, 2.34e-3


PRESETS = load_catalogue().failures


def one(value: float) -> Floats:
    return np.array([float(value)])


def reliability(
    rate: float = RSC_1, detection_s: float = 60, restart_s: float = 300, queue_s: float = 60
) -> Reliability:
    return Reliability(one(rate), one(8), one(detection_s), one(restart_s), one(queue_s))


@pytest.mark.parametrize(("gpus", "hours"), [(16_384, 1.80), (131_072, 0.23)])
def test_mean_time_to_failure_matches_the_published_projections(gpus: int, hours: float):
    assert mttf_s(one(gpus), reliability())[0] / 3600 == pytest.approx(hours, abs=0.01)


def test_failures_are_rare_at_16_gpus_and_regular_at_1024():
    days = mttf_s(np.array([16.0, 128.0, 1024.0]), reliability()) / 86_400
    assert days == pytest.approx([76.9, 9.6, 1.2], abs=0.05)


def test_a_job_smaller_than_a_node_fails_with_its_node():
    assert mttf_s(one(1), reliability()) == mttf_s(one(8), reliability())


def first_order(gpus: float, made: Reliability, interval_s: float) -> float:
    """The linear form that the printed points follow: half an interval lost per failure, and no
    failure within a failure."""
    rate = 1.0 / mttf_s(one(gpus), made)
    lost_s = made.detection_s + made.restart_s + interval_s / 2.0
    return ((1.0 - rate * lost_s) / (1.0 + rate * made.queue_s))[0]


@pytest.mark.parametrize(
    ("gpus", "rate", "minutes", "restart_minutes", "printed"),
    [
        (16_000, RSC_1, 60, 5, 0.70),
        (16_000, RSC_1, 5, 5, 0.93),
        (8_000, RSC_1, 30, 5, 0.90),
        (100_000, RSC_1, 7, 5, 0.50),
        (100_000, RSC_2, 2, 2, 0.90),
    ],
)
def test_failure_rates_give_the_published_ratios_in_their_first_order_form(
    gpus: int, rate: float, minutes: float, restart_minutes: float, printed: float
):
    made = reliability(rate, detection_s=0, restart_s=restart_minutes * 60)
    assert first_order(gpus, made, minutes * 60) == pytest.approx(printed, abs=0.03)


def test_the_exact_form_agrees_with_a_simulated_run():
    made = reliability(detection_s=0, restart_s=300, queue_s=0)
    interval_s, save_s = 3600.0, 49.0
    expected = goodput(one(16_000), made, one(save_s), one(interval_s)).ettr[0]
    mean_s = mttf_s(one(16_000), made)[0]
    rng, clock, segments = np.random.default_rng(7), 0.0, 4000
    for _ in range(segments):
        while (failure_s := rng.exponential(mean_s)) < interval_s + save_s:
            clock += failure_s
            while (again_s := rng.exponential(mean_s)) < 300:
                clock += again_s
            clock += 300
        clock += interval_s + save_s
    assert segments * interval_s / clock == pytest.approx(expected, rel=0.03)


def test_shares_of_a_run_add_up():
    made = goodput(one(4096), reliability(), one(49), one(1800), blocking_share=0.3)
    parts = (made.checkpoint_share, made.lost_work_share, made.restart_share, made.queue_share)
    assert made.ettr[0] + sum(part[0] for part in parts) == pytest.approx(1.0)


@pytest.mark.parametrize(("gpus", "minutes"), [(256, 106), (1024, 53), (4096, 26), (16_384, 13)])
def test_the_best_interval_is_dalys_where_saves_are_short(gpus: int, minutes: float):
    best = best_interval_s(one(gpus), reliability(), one(49))
    assert best == pytest.approx(
        daly_interval_s(one(49), mttf_s(one(gpus), reliability())), rel=0.01
    )
    assert best[0] / 60 == pytest.approx(minutes, abs=1)


def test_no_interval_beats_the_best_one_of_the_exact_form():
    gpus, made, save_s = one(8192), reliability(), one(120)
    best = best_interval_s(gpus, made, save_s)
    top = goodput(gpus, made, save_s, best).ettr
    around = np.linspace(0.3, 3.0, 55) * best
    assert (goodput(gpus, made, save_s, around).ettr <= top + 1e-12).all()


def test_young_and_daly_meet_where_saves_are_short_and_part_where_they_are_long():
    mean_s = one(1e6)
    young_short_s, young_long_s = np.sqrt(2 * 1 * mean_s), np.sqrt(2 * 5e5 * mean_s)
    assert daly_interval_s(one(1), mean_s) == pytest.approx(young_short_s, rel=1e-3)
    assert daly_interval_s(one(5e5), mean_s) < young_long_s
    assert daly_interval_s(one(3e6), mean_s) == mean_s


def test_saving_beside_training_is_better_than_standing_still():
    stands, beside = (
        goodput(one(4096), reliability(), one(300), one(1800), blocking_share=share).ettr[0]
        for share in (1.0, 0.05)
    )
    assert beside > stands


def test_a_checkpoint_waits_for_the_slower_of_tier_and_writers():
    size = checkpoint_bytes(one(70e9))
    assert size[0] == 14 * 70e9
    slow_tier = checkpoint_s(size, one(10e9), one(1024), one(1e9))
    few_writers = checkpoint_s(size, one(1e15), one(8), one(1e9))
    assert slow_tier[0] == pytest.approx(2 + 98)
    assert few_writers[0] == pytest.approx(2 + 122.5)


def test_energy_is_the_integral_of_power_with_the_facility_on_top():
    found = footprint(one(8), one(3600), one(700), server_overhead=1.3, pue=1.2, grid_g_per_kwh=400)
    assert found.energy_kwh[0] == pytest.approx(8 * 0.7 * 1.3 * 1.2)
    assert found.co2e_kg[0] == pytest.approx(found.energy_kwh[0] * 0.4)
    halves = footprint(one(8), one(1800), np.array([700.0, 100.0])).energy_kwh
    both = footprint(one(8), one(3600), one(400)).energy_kwh
    assert halves.sum() == pytest.approx(both[0])


def test_power_rises_from_idle_to_the_limit_and_not_beyond():
    found = gpu_power_w(one(700), np.array([0.0, 0.5, 1.0, 2.0]))
    assert found[0] == pytest.approx(0.12 * 700)
    assert found[0] < found[1] < found[2] == found[3] == 700


def test_published_presets_give_the_interruptions_that_were_seen():
    def hours(name: str, gpus: int) -> float:
        rate = PRESETS.get(name).failures_per_1000_node_days / 1000
        return float(mttf_s(one(gpus), reliability(rate))[0]) / 3600

    # RSC-1: 7.9 h at 1,024 GPUs. OPT-175B: 105 restarts in two months on 992.
    assert hours("rsc-1-large-jobs", 1024) == pytest.approx(7.9, rel=0.01)
    assert 61 * 24 / hours("opt-175b", 992) == pytest.approx(105, rel=0.01)
