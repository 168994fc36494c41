"""What rented work costs: closed forms at the edges, and the order of effects between them."""

import numpy as np
import pytest

from tenfold.physics.operations.rental import Rental, rental_cost


def one(**more: float) -> Rental:
    figures = {
        "usd_per_hour": 10.0,
        "work_per_hour": 100.0,
        "nodes": 1.0,
        "failures_per_1000_node_days": 0.0,
        "reclaims_per_hour": 0.0,
        "reclaimed_s": 0.0,
        "startup_s": 0.0,
        "save_s": 30.0,
        "availability": 1.0,
        "staging_s": 0.0,
        "usd_once": 0.0,
        **more,
    }
    return Rental(**{name: np.array([value]) for name, value in figures.items()})


def usd(rental: Rental, *, has_state: bool = True) -> float:
    cost = rental_cost(rental, np.array([1_000.0]), detection_s=300.0, has_state=has_state)
    return float(cost.usd[0])


def test_without_failures_work_costs_its_hours():
    assert usd(one()) == pytest.approx(100.0, rel=1e-3)
    assert usd(one(), has_state=False) == pytest.approx(100.0)


def test_startup_and_egress_are_paid_once():
    assert usd(one(startup_s=3_600.0, usd_once=7.0)) == pytest.approx(117.0, rel=1e-3)


def test_more_reclaims_cost_more_and_waiting_is_not_billed():
    calm, rough = one(reclaims_per_hour=0.1), one(reclaims_per_hour=0.5)
    assert usd(one()) < usd(calm) < usd(rough)
    waits = one(reclaims_per_hour=0.5, reclaimed_s=7_200.0)
    assert usd(waits) == pytest.approx(usd(rough), rel=1e-6)
    slow = rental_cost(waits, np.array([1_000.0]), detection_s=300.0, has_state=True)
    fast = rental_cost(rough, np.array([1_000.0]), detection_s=300.0, has_state=True)
    assert slow.calendar_h[0] > fast.calendar_h[0]


def test_failures_grow_with_nodes_and_reclaims_do_not():
    def share(**more: float) -> float:
        cost = rental_cost(one(**more), np.array([1e3]), detection_s=300.0, has_state=True)
        return float(cost.effective_share[0])

    assert share(failures_per_1000_node_days=50.0, nodes=64.0) < share(
        failures_per_1000_node_days=50.0
    )
    assert share(reclaims_per_hour=0.2, nodes=64.0) == pytest.approx(share(reclaims_per_hour=0.2))
