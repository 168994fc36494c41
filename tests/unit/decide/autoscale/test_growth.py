"""What is learned of growth and of idle times."""

import numpy as np

from tenfold.decide.autoscale.growth import Growth
from tenfold.decide.autoscale.idle import Idle

HIGH = np.array([0.5, 0.99])


def test_before_anything_was_seen_small_loads_are_assumed_to_vary_more():
    growth = Growth(keep=1.0)
    small, large = growth.peaks(2.0, HIGH, 0), growth.peaks(200.0, HIGH, 0)
    assert small[1] / 2.0 > large[1] / 200.0 > 1.0


def test_growth_that_was_seen_is_expected_at_that_level_and_not_far_from_it():
    growth = Growth(keep=1.0)
    for _ in range(500):
        growth.observe(10.0, 30.0, 0)
    assert 27 < growth.peaks(10.0, HIGH, 0)[0] < 33
    assert growth.peaks(1_000.0, HIGH, 0)[1] < 1_500


def test_the_time_of_day_counts():
    growth = Growth(keep=1.0)
    for _ in range(200):
        growth.observe(10.0, 40.0, 9)
        growth.observe(10.0, 10.0, 21)
    median = HIGH[:1]
    assert growth.peaks(10.0, median, 9)[0] > 30
    assert growth.peaks(10.0, median, 21)[0] < 15


def test_what_is_old_counts_less():
    growth = Growth(keep=0.99)
    for _ in range(1_000):
        growth.observe(10.0, 40.0, 0)
    for _ in range(500):
        growth.observe(10.0, 10.0, 0)
    assert growth.peaks(10.0, HIGH[:1], 0)[0] < 12


def test_the_longer_a_service_was_idle_the_less_likely_is_a_request():
    idle = Idle(start=6, keep=1.0)
    for _ in range(30):
        idle.add(2)
        idle.add(0)
    soon = idle.requests_per_bucket()
    for _ in range(2_000):
        idle.add(0)
    assert idle.requests_per_bucket() < 0.01 * soon


def test_requests_that_come_in_bursts_count_as_many():
    single, bursts = Idle(start=6, keep=1.0), Idle(start=6, keep=1.0)
    for _ in range(30):
        for bucket in range(20):
            single.add(int(bucket == 0))
            bursts.add(10 * int(bucket < 3))
    assert bursts.requests_per_bucket() > 5 * single.requests_per_bucket()
