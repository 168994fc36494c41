"""The truth at 1x, and runs that are shared."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec.structs import replace
from scipy.stats import kendalltau

from tenfold.compose.fleet import open_fleet
from tenfold.model.errors import TenfoldError
from tenfold.model.facts.failure_law import FailureLaw
from tenfold.model.growth.growth import GrowSpec, GrowthLimits
from tenfold.model.ids import JobId
from tenfold.model.job.job import Job, shape_of
from tenfold.model.policy.policy import Policy
from tenfold.model.units import HOUR, MINUTE, SECOND, Millis
from tenfold.study.grow.calibrate import calibrate, order_tau
from tenfold.study.grow.inputs import GrowInputs
from tenfold.study.grow.runs.run import GrowTask, simulate_task
from tenfold.study.grow.runs.runs import Runs, factor_at, index_above, index_below, runs_for
from tenfold.study.grow.state import state_of
from tenfold.testing.builders import job

ONE_RACK = Path(__file__).parents[4] / "examples" / "one-rack" / "fleet.toml"
FIFO = Policy(name="fifo")


def busy(count: int = 120) -> list[Job]:
    """Jobs of a node for two hours, every ten minutes: more than the rack holds."""
    return [job(n, 8, at_s=n * 600, runs_s=7_200) for n in range(count)]


@pytest.fixture(scope="module")
def inputs() -> GrowInputs:
    return GrowInputs(fleet=open_fleet(ONE_RACK), jobs=busy(), policy=FIFO)


def real_starts(inputs: GrowInputs) -> dict[JobId, Millis]:
    """What a fleet that behaves as the simulated one would have recorded, drained."""
    later = job(999, 1, at_s=40 * 86_400, runs_s=1)
    ran = simulate_task(
        GrowTask(spec=inputs.fleet.spec, jobs=[*inputs.jobs, later], policy=inputs.policy)
    )
    return {one.id: Millis(start) for one, _, start, _ in ran.runs if one.id != later.id}


def test_a_history_that_the_simulator_made_is_calibrated(inputs: GrowInputs):
    found = calibrate(replace(inputs, starts_ms=real_starts(inputs)))
    assert (found.wait_error, found.utilisation_error) == (0, 0)
    assert found.order_tau == pytest.approx(1)
    assert found.calibrated
    assert found.sentence.startswith("calibrated against 120 jobs")


def test_another_policy_is_found_out(inputs: GrowInputs):
    starts = real_starts(inputs)
    jobs = list(inputs.jobs)
    for one in jobs:
        starts[one.id] = Millis(starts[one.id] + 5 * HOUR)
    found = calibrate(replace(inputs, starts_ms=starts))
    assert not found.calibrated
    assert found.wait_error is not None
    assert found.wait_error > 0.15
    assert "wait time off by" in found.sentence


@pytest.mark.parametrize(("limit_s", "alike"), [(14_400.0, True), (600.0, False)])
def test_starts_a_scheduling_period_late_are_alike_if_that_is_little_of_the_limit(
    inputs: GrowInputs, limit_s: float, alike: bool
):
    # Five jobs of a node on four: every fifth waits ten minutes, two minutes on average.
    jobs = [job(n, 8, at_s=n // 5 * 3_600, runs_s=600) for n in range(100)]
    given_jobs = replace(inputs, jobs=jobs, grow=GrowSpec(limits=GrowthLimits(wait_s_p90=limit_s)))
    late = {one: Millis(at + 40 * SECOND) for one, at in real_starts(given_jobs).items()}
    assert calibrate(replace(given_jobs, starts_ms=late)).calibrated is alike


def test_starts_in_another_order_are_found_out(inputs: GrowInputs):
    starts = real_starts(inputs)
    names = [one.id for one in inputs.jobs]
    swapped = {name: starts[other] for name, other in zip(names, names[::-1], strict=True)}
    late = {name: at for name, at in swapped.items() if at >= 0}
    found = calibrate(replace(inputs, starts_ms=late))
    assert found.order_tau is not None
    assert found.order_tau < 0
    assert not found.calibrated


def test_a_history_without_starts_or_without_jobs_is_not_calibrated(inputs: GrowInputs):
    assert "has no start times" in calibrate(inputs).sentence
    assert "no job history" in calibrate(replace(inputs, jobs=())).sentence
    assert "no job history" in calibrate(replace(inputs, mix="some")).sentence
    one = {inputs.jobs[0].id: Millis(0)}
    assert "20 needed" in calibrate(replace(inputs, starts_ms=one)).sentence


def test_an_idle_history_is_judged_by_use_and_order_alone(inputs: GrowInputs):
    jobs = [job(n, 8, at_s=n * 3_600, runs_s=1_800) for n in range(40)]
    starts = {one.id: Millis(one.submitted_ms + MINUTE // 2) for one in jobs}
    found = calibrate(replace(inputs, jobs=jobs, starts_ms=starts))
    assert found.wait_error == 0
    assert found.calibrated


def test_a_job_that_fits_no_node_tells_of_the_fleet_file_and_not_of_waits(inputs: GrowInputs):
    large = [
        replace(one, shape=shape_of(8, accelerators=("elsewhere",))) for one in inputs.jobs[:4]
    ]
    starts = {**real_starts(inputs)}
    few = replace(inputs, jobs=[*large, *inputs.jobs[4:]], starts_ms=starts)
    found = calibrate(few)
    assert found.jobs == 116
    assert found.unfit_share == pytest.approx(4 / 120)
    many = [replace(one, shape=large[0].shape) for one in inputs.jobs[:60]]
    found = calibrate(replace(inputs, jobs=[*many, *inputs.jobs[60:]], starts_ms=starts))
    assert "50% of the GPU time fits no node" in found.sentence
    assert not found.calibrated


def test_moments_all_alike_have_no_order():
    assert order_tau([5, 5], [7, 7]) == 1
    assert order_tau([5, 5], [7, 8]) == 0
    assert order_tau([1, 2, 3], [1, 2, 3]) == pytest.approx(1)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=2, max_size=40))
def test_the_order_of_two_lists_is_kendalls_tau_b(pairs: list[tuple[int, int]]):
    real, simulated = [one for one, _ in pairs], [other for _, other in pairs]
    assume(len(set(real)) > 1 and len(set(simulated)) > 1)
    expected = kendalltau(real, simulated).statistic
    assert order_tau(real, simulated) == pytest.approx(expected, abs=1e-12)


def test_the_grid_has_sixteen_places_to_a_doubling():
    assert [factor_at(place) for place in (0, 16, 32)] == [1, 2, 4]
    assert (index_below(2), index_above(2)) == (16, 16)
    assert (index_below(3), index_above(3)) == (25, 26)


def test_a_run_is_made_once(inputs: GrowInputs):
    runs, state = Runs("jobs"), state_of(inputs)
    [once, again] = runs.at(state, [(16, 0), (16, 0)])
    assert once is again
    assert (runs.made, runs.reused) == (1, 1)
    runs.at(state, [(16, 1), (0, 0), (0, 4)])
    assert (runs.made, runs.reused) == (3, 2)


def test_a_relief_that_no_run_reads_makes_no_new_run(inputs: GrowInputs):
    runs, state = Runs("jobs"), state_of(inputs)
    runs.at(state, [(0, 0)])
    site = replace(state.spec.sites[0], power_kw_limit=9_999.0)
    runs.at(replace(state, spec=replace(state.spec, sites=(site,))), [(0, 0)])
    assert runs.made == 1
    runs.at(replace(state, policy=Policy(name="sjf")), [(0, 0)])
    assert runs.made == 2


def test_a_figure_between_two_places_lies_between_theirs(inputs: GrowInputs):
    runs, state = Runs("jobs"), state_of(inputs)
    low, between, high = (runs.figure(state, factor, 0, "load") for factor in (1, 1.02, 2))
    assert low < between < high
    assert runs.made == 3


def test_seeds_differ_at_factor_one_only_where_nodes_fail(inputs: GrowInputs):
    constraint = FailureLaw(
        name="f", faults_per_1000_node_days=9.0, repair_h_median=1, repair_h_mean=1
    )
    state = state_of(inputs)
    assert Runs("jobs").key(state, 0, 3) == Runs("jobs").key(state, 0, 0)
    faulty = Runs("jobs", failures=constraint)
    assert faulty.key(state, 0, 3) != faulty.key(state, 0, 0)
    assert faulty.key(state, 4, 0) != Runs("jobs").key(state, 4, 0)


def test_failures_that_a_history_went_through_are_not_added_to_it(inputs: GrowInputs):
    constraint = FailureLaw(
        name="f", faults_per_1000_node_days=9.0, repair_h_median=1, repair_h_mean=1
    )
    clean = replace(inputs, failures=constraint)
    assert runs_for(clean, "jobs").fails
    assert not runs_for(inputs, "jobs").fails
    assert not runs_for(replace(clean, ends={inputs.jobs[0].id: "failed"}), "jobs").fails
    assert runs_for(replace(clean, ends={inputs.jobs[0].id: "cancelled"}), "jobs").fails


def test_a_run_whose_process_dies_is_told(inputs: GrowInputs, monkeypatch: pytest.MonkeyPatch):
    def died(*_: object, lost: Callable[[GrowTask, str], object], **__: object) -> object:
        return lost(GrowTask(spec=inputs.fleet.spec, jobs=(), factor=8), "its process died")

    monkeypatch.setattr("tenfold.study.grow.runs.runs.process_map", died)
    with pytest.raises(TenfoldError) as caught:
        Runs("jobs").at(state_of(inputs), [(48, 0)])
    assert caught.value.code == "run-lost"
    assert "at 8x `jobs`" in caught.value.message
