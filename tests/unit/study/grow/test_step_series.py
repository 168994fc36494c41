"""Runs timed at small scale, and what grow makes of them for larger jobs."""

from pathlib import Path

import pytest
from msgspec.json import encode
from msgspec.structs import replace

import growth_builders as made
from tenfold.model.errors import InputError
from tenfold.model.estimate import ShapeRow, TrainEstimate, TrainRow
from tenfold.model.growth.growth import GrowSpec, GrowthLimits
from tenfold.model.job.traffic import WorkProfile
from tenfold.study.estimate.train import estimate_train
from tenfold.study.grow.inputs import GrowInputs
from tenfold.study.grow.layer import Constraint, break_of
from tenfold.study.grow.layers.compute.load import Compute
from tenfold.study.grow.layers.compute.step_efficiency import StepEfficiency
from tenfold.study.grow.observed import ObservedInputs, read_observed, with_observed
from tenfold.study.grow.state import state_of
from tenfold.study.grow.step_series import step_series
from tenfold.testing.builders import job

COMPUTE = (Compute(), StepEfficiency())
SMALL = TrainRow(
    id="small",
    model="llama-3-8b",
    accelerator="H100",
    gpus=16,
    seq=4096,
    micro_batch=1,
    global_batch=128,
    tp=2,
    stack="megatron-core",
    step_s=6.0,
)
LARGE = replace(SMALL, id="large", gpus=128, global_batch=1024, step_s=None)


def given(*rows: TrainRow, **inputs: object) -> GrowInputs:
    return with_observed(replace(made.given(made.fleet()), **inputs), rows)


def steps(have: GrowInputs) -> list[Constraint]:
    constraints = made.evaluated(state_of(have), "job-size", *COMPUTE)
    return [constraint for constraint in constraints if constraint.layer == "step-efficiency"]


def rate(row: TrainRow, *timed: TrainRow) -> float:
    [answer] = estimate_train([row], made.catalogue(), timed)
    assert isinstance(answer, TrainEstimate)
    return answer.tokens_per_s_per_gpu


def test_a_planned_layout_keeps_what_the_calibrated_planner_says():
    [constraint] = steps(given(SMALL, LARGE))
    kept = rate(LARGE, SMALL) / rate(SMALL, SMALL)
    assert kept < 1
    assert 0.8 / constraint.utilisation(8.0) == pytest.approx(kept)
    assert constraint.utilisation(1.0) == pytest.approx(0.8)
    assert (constraint.resource, constraint.grade) == ("model llama-3-8b on H100", "calibrated")


def test_timed_steps_move_what_is_said():
    told = [step_series([replace(SMALL, step_s=s), LARGE], made.catalogue()) for s in (4.0, 9.0)]
    fast, slow = (dict(series.scaling)[128] for [series] in told)
    assert fast != slow


def test_without_a_plan_the_layout_goes_on_by_data_parallelism():
    [kept_batch] = step_series([replace(SMALL, dp=8)], made.catalogue())
    sizes = [gpus for gpus, _ in kept_batch.scaling]
    assert sizes[:3] == [16, 32, 64]
    fixed = replace(SMALL, dp=16, gpus=32, step_s=None)
    assert dict(kept_batch.scaling)[32] == pytest.approx(
        rate(fixed, replace(SMALL, dp=8)) / rate(SMALL, replace(SMALL, dp=8))
    )


def test_a_batch_that_grew_with_the_gpus_goes_on_growing():
    half = replace(SMALL, id="half", gpus=8, global_batch=64)
    [series] = step_series([half, SMALL], made.catalogue())
    assert series.gpus == 16
    assert dict(series.scaling)[128] == pytest.approx(
        rate(LARGE, half, SMALL) / rate(SMALL, half, SMALL)
    )


def test_gpus_that_no_sequence_is_left_for_idle():
    few = replace(SMALL, global_batch=32)
    [series] = step_series([few], made.catalogue())
    share = dict(series.scaling)
    assert max(share) == 16 * 64
    assert share[128] == pytest.approx(share[64] / 2), "32 sequences for 32 pairs of GPUs"
    assert share[1024] == pytest.approx(share[64] / 16)
    assert share[64] > share[32] / 2


def test_the_largest_plan_goes_on_too():
    [series] = step_series([SMALL, LARGE], made.catalogue())
    assert max(gpus for gpus, _ in series.scaling) == 128 * 64


def test_a_plan_that_cannot_be_is_an_error():
    with pytest.raises(InputError) as found:
        step_series([SMALL, replace(LARGE, tp=3)], made.catalogue())
    assert found.value.code == "not-whole"
    assert "`large`" in found.value.message


def test_models_and_stacks_are_series_of_their_own():
    other = replace(SMALL, id="other", model=ShapeRow(layers=24, hidden=2048, heads=16))
    long = replace(SMALL, id="long", seq=8192)
    names = [one.name for one in step_series([SMALL, other, long], made.catalogue())]
    assert names == [
        "model llama-3-8b on H100",
        "model of 24 layers of 2048 on H100",
        "model llama-3-8b on H100 as long",
    ]


def test_spellings_of_one_stack_and_part_are_one_series():
    spelled = replace(LARGE, accelerator="H100-80G-SXM", precision="bf16")
    [series] = step_series([SMALL, spelled], made.catalogue())
    assert 128 in dict(series.scaling)


def test_a_gain_is_not_counted_on():
    base = replace(SMALL, gpus=64, micro_batch=1, global_batch=32, tp=2)
    wider = replace(base, id="wider", gpus=128, global_batch=8192, step_s=None)
    [series] = step_series([base, wider], made.catalogue())
    assert dict(series.scaling)[128] > 1
    [constraint] = steps(given(base, wider))
    assert constraint.utilisation(2.0) == constraint.utilisation(1.0)


@pytest.mark.parametrize("least", [0.5, 0.7, 0.8, 0.9, 0.95])
def test_what_is_not_known_of_larger_jobs_never_breaks_those_of_today(least: float):
    limits = GrowthLimits(step_efficiency_least=least)
    [constraint] = steps(given(SMALL, grow=GrowSpec(limits=limits)))
    broken = break_of(constraint, 64)
    assert broken.k is not None
    assert broken.low is not None
    assert broken.high is None or broken.high > broken.k
    assert 1.0 <= broken.low < broken.k


def test_how_far_a_ratio_may_be_off_grows_with_the_size():
    half = replace(SMALL, id="half", gpus=8, global_batch=64, step_s=6.1)
    [series] = step_series([half, SMALL], made.catalogue())
    spreads = [spread for _, spread in series.spreads]
    assert spreads[0] == 0.0
    assert spreads == sorted(spreads)
    assert series.spread_where(0.0) == spreads[-1]
    assert series.spread_where(1.0) == 0.0


def test_measured_scaling_of_profiles_stands_beside_the_runs():
    profiles = {"llm": WorkProfile(scaling=((64, 1.0), (128, 0.8)))}
    work = [replace(job(1, 64, at_s=0, runs_s=100), profile="llm")]
    found = steps(given(SMALL, LARGE, jobs=work, profiles=profiles))
    assert [constraint.resource for constraint in found] == [
        "profile llm",
        "model llama-3-8b on H100",
    ]


def test_planned_runs_alone_calibrate_nothing():
    [constraint] = steps(given(LARGE))
    assert constraint.needs


def test_timed_runs_of_the_stack_move_the_curve_of_the_model_expected():
    opened = made.fleet()
    expects = replace(opened.spec.expects, model="llama-3-8b")
    asked = replace(opened, spec=replace(opened.spec, expects=expects))
    bare = made.given(asked)
    other = replace(SMALL, model=ShapeRow(layers=24, hidden=2048, heads=16), step_s=2.0)
    moved = ObservedInputs(fleet=asked, observed=(other,))
    # The series itself would stand in front of the model expected.
    moved.__dict__["series"] = ()
    [before], [after] = steps(bare), steps(moved)
    assert after.resource == before.resource
    assert after.grade == "assumed"
    assert after.utilisation(16.0) != before.utilisation(16.0)


def test_runs_are_read_from_json_lines_and_outlive_a_change_of_inputs(tmp_path: Path):
    path = tmp_path / "runs.jsonl"
    path.write_bytes(encode(SMALL) + b"\n" + encode(LARGE) + b"\n")
    read = read_observed(made.given(made.fleet()), path)
    assert isinstance(read, ObservedInputs)
    assert read.observed == (SMALL, LARGE)
    changed = replace(read, grow=GrowSpec())
    assert [constraint.grade for constraint in steps(changed)] == ["calibrated"]
    bare = made.given(made.fleet())
    assert with_observed(bare, []) is bare
