"""Laws of runs, against fleets whose breaking factor is known in closed form."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from growth_builders import EXACT
from tenfold.compose.fleet import open_fleet
from tenfold.model.facts.failure_law import FailureLaw
from tenfold.model.growth.growth import GrowSpec, GrowthLimits
from tenfold.model.job.job import Job
from tenfold.model.policy.policy import Policy
from tenfold.study.grow.constraint_set import simulated_constraints
from tenfold.study.grow.inputs import GrowInputs
from tenfold.study.grow.layer import Constraint, break_of, relax
from tenfold.study.grow.runs.curve import around_limit, pooled, run_curve
from tenfold.study.grow.runs.runs import Runs
from tenfold.study.grow.runs.sampling import LONGER
from tenfold.study.grow.state import State, state_of
from tenfold.testing.builders import job

ONE_RACK = Path(__file__).parents[5] / "examples" / "one-rack" / "fleet.toml"
FIFO = Policy(name="fifo")
DAYS = 4


@pytest.fixture(scope="module")
def inputs() -> GrowInputs:
    return GrowInputs(fleet=open_fleet(ONE_RACK), policy=FIFO)


def even(inputs: GrowInputs, load: float, gpus: int) -> list[Job]:
    """Jobs alike at even times that take so much of a node each, over four days."""
    nodes = inputs.fleet.spec.nodes
    runs_s = 2 * 3_600
    gap_s = runs_s / nodes / load
    count = int(DAYS * 86_400 / gap_s) + 1
    return [job(n, gpus, at_s=n * gap_s, runs_s=runs_s) for n in range(count)]


def constraint_of(
    state: State, runs: Runs, layer: str, seeds: tuple[int, ...] = (0,)
) -> Constraint:
    constraints = simulated_constraints(state, runs, most=8, seeds=seeds, calibration=EXACT)
    return next(constraint for constraint in constraints if constraint.layer == layer)


@pytest.mark.parametrize("load", [0.3, 0.6])
def test_a_queue_of_even_jobs_breaks_where_the_closed_form_says(inputs: GrowInputs, load: float):
    state = state_of(replace(inputs, jobs=even(inputs, load, 8)))
    # The same demand for longer: in four days an overload has not yet made jobs wait that long.
    span_s, limit_s = LONGER * DAYS * 86_400, state.grow.limits.wait_s_p90
    wanted = 1 / load / (1 - limit_s / (0.9 * span_s))
    constraint = constraint_of(state, Runs("jobs"), "queue", seeds=(0, 1, 2))
    broken = break_of(constraint, 8)
    assert broken.k == pytest.approx(wanted, rel=0.06)
    assert constraint.grade == "calibrated"
    assert "P90 wait" in constraint.symptom(wanted)


def test_jobs_of_five_gpus_strand_the_rest_of_their_nodes(inputs: GrowInputs):
    grow = GrowSpec(limits=GrowthLimits(wait_s_p90=1e9))
    state = state_of(replace(inputs, jobs=even(inputs, 0.5, 5), grow=grow))
    constraint = constraint_of(state, Runs("jobs"), "fragmentation")
    broken = break_of(constraint, 8)
    # Copies of jobs at even times come in pairs, which wait a little before all nodes are taken.
    assert broken.k == pytest.approx(1.9, rel=0.1)
    assert "of the GPUs idle because no waiting job fits" in constraint.symptom(4)


def test_a_fleet_that_grows_with_its_jobs_does_not_queue(inputs: GrowInputs):
    state = state_of(replace(inputs, jobs=even(inputs, 0.5, 8)))
    assert break_of(constraint_of(state, Runs("nodes"), "queue"), 8).status == "constant"


def test_a_fleet_that_is_too_full_today_binds_below_one(inputs: GrowInputs):
    state = state_of(replace(inputs, jobs=even(inputs, 2, 8)))
    broken = break_of(constraint_of(state, Runs("jobs"), "queue"), 8)
    assert broken.k is not None
    assert 0.45 < broken.k < 0.6


def test_laws_share_runs_and_do_not_make_them_twice(inputs: GrowInputs):
    state, runs = state_of(replace(inputs, jobs=even(inputs, 0.5, 8))), Runs("jobs")
    simulated_constraints(state, runs, most=8)
    made = runs.made
    simulated_constraints(state, runs, most=8)
    assert runs.made == made < 20


def test_without_work_laws_of_runs_are_unknown_and_say_what_would_tell(inputs: GrowInputs):
    constraints = simulated_constraints(state_of(inputs), Runs("jobs"), most=8)
    assert [constraint.needs for constraint in constraints] == ["`--jobs` or `--mix`"] * 2


def test_traffic_moves_no_run(inputs: GrowInputs):
    state = state_of(replace(inputs, jobs=even(inputs, 0.5, 8)))
    assert simulated_constraints(state, Runs("traffic"), most=8) == []
    assert simulated_constraints(state, Runs("data"), most=8) == []


def test_uncalibrated_laws_are_assumptions_and_lifted_ones_are_left_out(inputs: GrowInputs):
    state, runs = state_of(replace(inputs, jobs=even(inputs, 0.5, 8))), Runs("jobs")
    queue = constraint_of(state, runs, "queue")
    [constraint] = simulated_constraints(relax(state, queue), runs, most=2)
    assert (constraint.layer, constraint.grade) == ("fragmentation", "assumed")


def test_failures_and_teams_have_laws_where_there_are_any(inputs: GrowInputs):
    jobs = [replace(one, team=one.id[-1:]) for one in even(inputs, 0.5, 8)]
    often = FailureLaw(
        name="f", faults_per_1000_node_days=900, repair_h_median=1.0, repair_h_mean=1.5
    )
    state = state_of(replace(inputs, jobs=jobs))
    constraints = simulated_constraints(state, Runs("jobs", failures=often), most=1.2)
    assert [constraint.layer for constraint in constraints] == [
        "queue",
        "fragmentation",
        "governance",
        "failures",
    ]
    failures = constraints[-1]
    assert failures.utilisation(1) > 0
    assert "lost to failures" in failures.symptom(1)


@given(st.lists(st.floats(0, 10), min_size=1, max_size=12))
def test_pooled_values_never_fall_and_keep_their_mean(values: list[float]):
    found = pooled(values)
    assert len(found) == len(values)
    assert all(one <= two + 1e-9 for one, two in pairwise(found))
    assert sum(found) == pytest.approx(sum(values), abs=1e-6)


@pytest.mark.parametrize("crossing", [(16, 24, 26), (16, 7, 5), (16, 16, 17)])
def test_all_seeds_are_run_until_most_of_them_pass_the_limit(crossing: tuple[int, ...]):
    def of_seeds(places: Sequence[int]) -> dict[int, list[float]]:
        return {place: [place / (one - 0.5) for one in crossing] for place in places}

    # The first seed passes it after 15, the second one where half of the seeds do.
    near = around_limit(of_seeds, 15, 64)
    middle = sorted(crossing)[1]
    assert median(near[middle - 1]) <= 1 < median(near[middle])
    assert sorted(near) == list(range(min(near), max(near) + 1))
    # It is not followed past the largest factor asked for.
    assert max(around_limit(of_seeds, 15, 16)) == 17


def test_a_curve_passes_its_limit_where_its_runs_do(inputs: GrowInputs):
    state, runs = state_of(replace(inputs, jobs=even(inputs, 0.5, 8))), Runs("jobs")
    curve = run_curve(runs, state, lambda one: one.load / 1.2, 8, (0, 1))
    assert curve.utilisation(2.4) == pytest.approx(1, rel=0.05)
    assert curve.utilisation(1) == pytest.approx(0.5 / 1.2, rel=0.05)
    assert list(curve.utilisations) == sorted(curve.utilisations)
