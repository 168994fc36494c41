"""Load and step efficiency as laws, against figures done by hand: 256 GPUs in all."""

import pytest
from msgspec.structs import replace

import growth_builders as made
from tenfold.compose.fleet import OpenFleet
from tenfold.model.growth.growth import Axis
from tenfold.model.ids import PoolId
from tenfold.model.job.job import Job, shape_of
from tenfold.model.job.traffic import WorkProfile
from tenfold.physics.growth.breaking import breaking_factor
from tenfold.physics.layout import lay_out
from tenfold.study.grow.constraint_set import simulated_constraints
from tenfold.study.grow.inputs import GrowInputs
from tenfold.study.grow.layer import Constraint
from tenfold.study.grow.layers.compute.load import Compute
from tenfold.study.grow.layers.compute.step_efficiency import StepEfficiency
from tenfold.study.grow.layers.jobs.queue import Queue
from tenfold.study.grow.runs.runs import Runs
from tenfold.study.grow.state import state_of
from tenfold.testing.builders import job

COMPUTE = (Compute(), StepEfficiency())
SCALING = ((64, 1.0), (128, 0.8), (256, 0.6))


def work(profile: str = "") -> list[Job]:
    """Return 11 jobs of 64 GPUs, one each 1,000 s, whose work is a quarter of the fleet's."""
    runs = 10_000 * 64 / (11 * 64)
    made_jobs = [job(at, 64, at_s=at * 1_000, runs_s=runs) for at in range(11)]
    return [replace(one, profile=profile) for one in made_jobs]


def constraints(axis: Axis, jobs: list[Job], **inputs: object) -> list[Constraint]:
    return made.evaluated(
        state_of(replace(made.given(made.fleet()), jobs=jobs, **inputs)), axis, *COMPUTE
    )


def test_load_breaks_where_jobs_ask_for_all_gpu_time():
    [constraint] = constraints("jobs", work())
    assert constraint.utilisation(1) < constraint.utilisation(2) < constraint.utilisation(4)
    assert breaking_factor(constraint.utilisation, 64) == pytest.approx(4.0, rel=1e-5)
    assert constraint.utilisation(4.0) == pytest.approx(1.0, rel=1e-5)
    assert constraint.symptom(2.0) == "jobs request 50% of the GPU time available"


def test_nodes_bring_room_for_the_jobs_that_come_with_them():
    [constraint] = constraints("nodes", work())
    assert constraint.utilisation(8.0) == pytest.approx(constraint.utilisation(1.0))


def test_larger_jobs_ask_for_more_where_they_lose_efficiency():
    profiles = {"llm": WorkProfile(scaling=SCALING)}
    load, step = constraints("job-size", work("llm"), profiles=profiles)
    assert load.utilisation(2.0) == pytest.approx(0.25 / 0.8, rel=1e-5)
    assert (step.layer, step.resource) == ("step-efficiency", "profile llm")
    assert step.utilisation(1.5) < step.utilisation(2.0) < step.utilisation(4.0)
    assert breaking_factor(step.utilisation, 64) == pytest.approx(2.0)
    assert step.utilisation(2.0) == pytest.approx(1.0)
    assert step.symptom(2.0) == "jobs 2x as large keep 80% of their speed per GPU"


def test_a_scaling_that_rises_again_is_not_counted_on():
    profiles = {"llm": WorkProfile(scaling=((64, 1.0), (128, 0.7), (256, 0.9)))}
    step = constraints("job-size", work("llm"), profiles=profiles)[1]
    assert step.utilisation(4.0) == step.utilisation(2.0)


def test_work_of_a_mix_is_an_assumption_and_that_of_a_history_needs_no_starts():
    starts = {work()[0].id: work()[0].submitted_ms}
    assert [constraint.grade for constraint in constraints("jobs", work(), starts_ms=starts)] == [
        "published"
    ]
    assert [constraint.grade for constraint in constraints("jobs", work())] == ["published"]
    assert [
        constraint.grade for constraint in constraints("jobs", work(), mix="m", starts_ms=starts)
    ] == ["assumed"]


def test_the_model_expected_scales_as_the_planner_says():
    opened = made.fleet()
    expects = replace(opened.spec.expects, model="llama-3-8b")
    asked = replace(opened, spec=replace(opened.spec, expects=expects))
    constraint = made.evaluated(state_of(made.given(asked)), "job-size", *COMPUTE)[1]
    assert (constraint.resource, constraint.grade, constraint.needs) == (
        "model llama-3-8b",
        "assumed",
        "",
    )
    assert constraint.utilisation(1.0) == pytest.approx(0.8)
    assert (
        constraint.utilisation(1.0) <= constraint.utilisation(4.0) <= constraint.utilisation(16.0)
    )
    assert constraint.utilisation(64.0) > 0.8


def test_what_is_missing_is_named():
    load, step = constraints("job-size", [])
    assert load.needs == "`--jobs` or `--mix`"
    assert "`scaling` in `--profiles`" in step.needs
    assert "`--calibrate`" in step.needs
    assert [constraint.needs for constraint in constraints("jobs", [])] == ["`--jobs` or `--mix`"]
    assert constraints("nodes", []) == constraints("data", []) == []


def two_types() -> GrowInputs:
    """A fleet of 192 H100 and 64 A100, and jobs of which most ask for A100."""
    opened = made.fleet()
    [pool] = opened.spec.pools
    large, small = (
        replace(
            pool, id=PoolId(name), accelerator=name, nodes=nodes, node_names=f"{name}-[1-{nodes}]"
        )
        for name, nodes in (("H100", 24), ("A100", 8))
    )
    spec = replace(opened.spec, pools=(large, small))
    types = [("A100",), ("A100",), ("H100",), ()]
    jobs = [
        replace(one, shape=shape_of(16, accelerators=types[place % 4]))
        for place, one in enumerate(work())
    ]
    return replace(
        made.given(OpenFleet(spec=spec, layout=lay_out(spec), catalogue=opened.catalogue)),
        jobs=jobs,
    )


def test_gpus_of_a_type_that_jobs_ask_for_are_judged_apart():
    found = made.evaluated(state_of(two_types()), "jobs", Compute())
    assert [one.resource for one in found] == ["all GPUs", "A100 GPUs", "H100 GPUs"]
    every, a100, h100 = (one.utilisation(1.0) for one in found)
    # Of 11 jobs of 16 GPUs six ask for A100 and three for H100.
    assert every == pytest.approx(0.25 / 4, rel=1e-5)
    assert a100 == pytest.approx(every * 6 / 11 * 4, rel=1e-5)
    assert h100 == pytest.approx(every * 3 / 11 * 4 / 3, rel=1e-5)
    [relief] = found[1].reliefs(2 / a100)
    assert relief.sentence == "add 8 nodes to pool A100 (4 gangs of 2 nodes each)"


def test_waits_for_a_type_are_judged_apart():
    state, runs = state_of(two_types()), Runs("jobs")
    found = simulated_constraints(state, runs, most=2, layers=(Queue(),))
    assert [one.label for one in found] == [
        "Queue wait",
        "Queue wait, jobs on A100",
        "Queue wait, jobs on H100",
    ]
