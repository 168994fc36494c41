"""A queue as a fluid: who leaves, who waits, and how many slots that takes."""

import numpy as np
import pytest

from tenfold.physics.serving.replica_queue import Service, missed_share, served, slots_for

EVEN = Service(service_s=5.0, wait_s=2.0, variability=1.0)


def after(steps: int, per_step: float, slots: float) -> float:
    """Return the requests present after so many steps of ten seconds."""
    present = np.zeros(1)
    for _ in range(steps):
        present = served(present, per_step, np.array([slots]), EVEN, 10.0)
    return float(present[0])


def test_with_slots_to_spare_requests_at_once_are_rate_times_time():
    # Little's law: 2 requests a second for 5 seconds each.
    assert after(50, 20, 1_000) == pytest.approx(10, rel=0.01)


def test_what_exceeds_the_slots_waits():
    # 8 slots serve 16 requests in ten seconds, 20 arrive.
    assert after(10, 20, 8) - after(9, 20, 8) == pytest.approx(4, rel=0.05)


def test_without_a_slot_all_requests_stay_and_wait():
    present = served(np.zeros(1), 3, np.zeros(1), EVEN, 10.0)
    assert present[0] == pytest.approx(3)
    assert missed_share(present, 0, np.zeros(1), EVEN, 0.0)[0] == 1


def test_who_came_recently_enough_is_not_late_without_a_slot():
    patient = Service(service_s=5.0, wait_s=60.0, variability=1.0)
    assert missed_share(np.array([3.0]), 3, np.zeros(1), patient, 60.0)[0] == 0
    assert missed_share(np.array([4.0]), 3, np.zeros(1), patient, 60.0)[0] == 1


def test_more_slots_never_make_more_requests_late():
    slots = np.arange(1.0, 60.0)
    late = missed_share(np.full(59, 20.0), 0, slots, EVEN, 0.0)
    assert (np.diff(late) <= 0).all()
    assert late[0] > 0.99
    assert late[-1] < 0.01


def test_requests_that_may_wait_need_no_slots_for_chance():
    patient = Service(service_s=5.0, wait_s=50.0, variability=1.0)
    load = np.array([20.0])
    assert slots_for(load, patient, 2.0)[0] == 20
    assert slots_for(load, Service(5.0, 0.1, 1.0), 2.0)[0] > 25
