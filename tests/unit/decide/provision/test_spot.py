"""Policies for spot capacity: what they choose, and what they cost on small traces."""

import numpy as np
import pytest

from tenfold.decide.provision.expected_cost import UP_MEANS_S, choice_tables
from tenfold.model.spot import ON_DEMAND, SPOT, WAIT, SpotPolicyName, SpotTask
from tenfold.sim.spot import Availability
from tenfold.study.spot.run import run_policy

HOUR_S = 3_600.0
POLICIES: tuple[SpotPolicyName, ...] = ("tenfold", "on-demand", "greedy", "uniform-progress")


def task(work_h: float = 10, deadline_h: float = 12, changeover_s: float = 300) -> SpotTask:
    return SpotTask(
        work_s=work_h * HOUR_S,
        deadline_s=deadline_h * HOUR_S,
        changeover_s=changeover_s,
        ondemand_price=3.0,
        spot_price=1.0,
    )


def trace(*is_up: int, step_s: float = 600) -> Availability:
    return Availability(np.full(len(is_up), step_s), np.array(is_up) > 0)


@pytest.mark.parametrize("name", ["tenfold", "greedy", "uniform-progress"])
def test_spot_capacity_that_never_ends_is_used_alone(name: SpotPolicyName):
    found = run_policy(name, task(), trace(1, 1), [0])
    assert (found.preemptions, found.changeovers) == (0, 1)
    assert found.ondemand_h == 0
    assert found.cost_ratio_to_ondemand == pytest.approx((10 + 300 / HOUR_S) / 10 / 3)
    assert found.lower_bound == pytest.approx(1 / 3)


@pytest.mark.parametrize("name", POLICIES)
def test_a_job_without_spot_capacity_runs_on_demand_in_time(name: SpotPolicyName):
    found = run_policy(name, task(), trace(0, 0), [0])
    assert found.deadline_met
    assert found.spot_h == 0
    assert found.lower_bound == 1


@pytest.mark.parametrize("name", POLICIES)
def test_a_deadline_that_leaves_no_time_for_the_changeover_is_missed_by_no_more(
    name: SpotPolicyName,
):
    found = run_policy(name, task(deadline_h=10), trace(1, 0), [0])
    assert not found.deadline_met
    assert found.finished_h == pytest.approx(10 + 300 / HOUR_S)
    assert found.ondemand_h == pytest.approx(found.finished_h)


def test_greedy_stays_on_demand_where_others_return():
    # An hour up, an hour down: half of the time.
    half = trace(*([1] * 6 + [0] * 6))
    greedy = run_policy("greedy", task(), half, [0])
    uniform = run_policy("uniform-progress", task(), half, [0])
    ours = run_policy("tenfold", task(), half, [0])
    assert greedy.preemptions < min(ours.preemptions, uniform.preemptions)
    assert ours.cost_ratio_to_ondemand < greedy.cost_ratio_to_ondemand
    assert ours.cost_ratio_to_ondemand < uniform.cost_ratio_to_ondemand


def test_without_changeovers_the_lower_bound_is_reached():
    half = trace(*([1] * 6 + [0] * 6))
    found = run_policy("tenfold", task(changeover_s=0), half, [0])
    assert found.cost_ratio_to_ondemand == pytest.approx(found.lower_bound)


def test_slack_is_kept_for_changeovers_while_work_is_left():
    tables = choice_tables(task(work_h=48, deadline_h=50, changeover_s=900))
    pair = 4 * 8 + 3
    assert UP_MEANS_S[4] == 4 * HOUR_S
    works, slacks = tables.best.shape[0] - 1, tables.best.shape[1] - 1
    at_start = tables.best[works, slacks, pair]
    near_end = tables.best[int(HOUR_S / tables.step_s), slacks, pair]
    assert at_start[1, WAIT] == SPOT
    assert at_start[0, WAIT] == ON_DEMAND, "two hours of slack are worth more for changeovers"
    assert near_end[0, WAIT] == WAIT, "an hour of work has no use for that much slack"
    assert (tables.best[:, 0, :, 0, :] == ON_DEMAND).all()


def test_a_job_with_much_time_does_not_wait_where_that_saves_nothing():
    half = trace(*([1] * 6 + [0] * 6))
    found = run_policy("tenfold", task(work_h=10, deadline_h=1_000, changeover_s=60), half, [0])
    assert found.ondemand_h == 0
    assert found.finished_h < 24


@pytest.mark.parametrize("changeover_s", [0, 300])
def test_spot_capacity_that_is_dearer_is_not_used(changeover_s: float):
    dearer = SpotTask(
        work_s=10 * HOUR_S,
        deadline_s=20 * HOUR_S,
        changeover_s=changeover_s,
        ondemand_price=1.0,
        spot_price=2.0,
    )
    found = run_policy("tenfold", dearer, trace(1, 0), [0])
    assert found.spot_h == 0
    assert found.finished_h == pytest.approx(10 + changeover_s / HOUR_S)


@pytest.mark.parametrize("name", POLICIES)
def test_a_row_per_change_gives_what_a_row_per_step_gives(name: SpotPolicyName):
    lengths = np.array([7, 40, 3, 90, 30, 6, 55, 12]) * 600.0
    is_up = np.arange(len(lengths)) % 2 == 0
    changes = Availability(lengths, is_up)
    steps = Availability(
        np.full(int(lengths.sum() / 600), 600.0), np.repeat(is_up, [7, 40, 3, 90, 30, 6, 55, 12])
    )
    found, same = (run_policy(name, task(), one, [0]) for one in (changes.split(600.0), steps))
    assert found == same
