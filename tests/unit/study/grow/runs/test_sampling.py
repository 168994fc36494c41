"""A history is a sample: how far its factor may be off."""

from math import log
from random import Random

import pytest
from msgspec.structs import replace

import growth_builders as made
from tenfold.model.growth.growth import GrowSpec, GrowthLimits
from tenfold.model.job.job import Job
from tenfold.model.job.terms import Terms
from tenfold.model.policy.policy import Policy
from tenfold.model.units import DAY, HOUR
from tenfold.physics.growth.breaking import Break, breaking_factor, widened
from tenfold.sim.measure.window import Window, work_of
from tenfold.study.grow.constraint_set import simulated_constraints
from tenfold.study.grow.inputs import GrowInputs
from tenfold.study.grow.layer import break_of
from tenfold.study.grow.layers.jobs.queue import Queue
from tenfold.study.grow.runs.curve import RunCurve
from tenfold.study.grow.runs.layer import of_longer
from tenfold.study.grow.runs.resample import Blocks, deviations_80, load_spread
from tenfold.study.grow.runs.runs import Runs
from tenfold.study.grow.state import state_of
from tenfold.testing.builders import job


def by_chance(days: int = 10, per_day: float = 40, seed: int = 1) -> list[Job]:
    draw = Random(seed)
    times = sorted(draw.uniform(0, days * 86_400) for _ in range(int(days * per_day)))
    return [
        job(n, 8, at_s=at, runs_s=draw.expovariate(1 / 7_200) + 1) for n, at in enumerate(times)
    ]


def inputs(jobs: list[Job]) -> GrowInputs:
    return GrowInputs(
        fleet=made.fleet(nodes=8),
        jobs=jobs,
        policy=Policy(name="fifo"),
        grow=GrowSpec(limits=GrowthLimits(wait_s_p90=7_200)),
    )


def test_a_drawn_history_has_other_days_at_the_same_hours():
    jobs = by_chance()
    blocks = Blocks(jobs)
    drawn = blocks.history(3)
    hours = {one.submitted_ms % DAY for one in jobs}
    first = jobs[0].submitted_ms
    assert blocks.count == 10
    assert {one.submitted_ms % DAY for one in drawn} <= hours
    assert [one.submitted_ms for one in drawn] == sorted(one.submitted_ms for one in drawn)
    assert len({one.id for one in drawn}) == len(drawn)
    assert max(one.submitted_ms for one in drawn) < first + 10 * DAY
    assert drawn == blocks.history(3)
    assert [one.submitted_ms for one in drawn] != [one.submitted_ms for one in blocks.history(4)]
    whole = sum(work_of(one) for one in jobs)
    assert blocks.load(3) == pytest.approx(sum(work_of(one) for one in drawn) / whole)


def test_a_job_of_a_drawn_history_waits_for_none_that_may_be_missing():
    jobs = [replace(one, terms=Terms(after=("job-0",))) for one in by_chance()]
    assert all(one.terms is None or one.terms.after == () for one in Blocks(jobs).history(1))


def test_weekends_are_drawn_from_weekends():
    jobs = [
        job(n, 8, at_s=(day * 24 + hour) * 3_600, runs_s=60)
        for day in range(21)
        for n, hour in enumerate(range(24) if day % 7 < 5 else (0, 20), start=100 * day)
    ]
    days = [0] * 21
    for one in Blocks(jobs).history(5):
        days[one.submitted_ms // DAY] += 1
    assert days == [24 if day % 7 < 5 else 2 for day in range(21)]


def test_a_longer_history_is_drawn_from_the_same_days_of_the_week():
    jobs = [
        job(n, 8, at_s=(day * 24 + hour) * 3_600, runs_s=60)
        for day in range(15)
        for n, hour in enumerate(range(24) if day % 7 < 5 else (0, 20), start=100 * day)
    ]
    drawn = Blocks(jobs).history(5, times=4)
    days = [0] * 60
    for one in drawn:
        days[one.submitted_ms // DAY] += 1
    assert days == [24 if day % 7 < 5 else 2 for day in range(60)]
    assert len({one.id for one in drawn}) == len(drawn)


def test_a_longer_history_moves_the_break_and_not_today():
    curve = RunCurve(places=(0, 16), utilisations=(0.5, 1.5), spread=0.0)
    utilisation, in_runs = of_longer(curve, k=2**0.5, bias=1.05)
    assert utilisation(1.0) == 0.5
    assert breaking_factor(utilisation, 5.0) == pytest.approx(2**0.5 / 1.05, rel=1e-3)
    assert in_runs(1.8) == pytest.approx(1.8 * 1.05)
    # A history within its limit today is never moved over it.
    near, _ = of_longer(curve, k=1.02, bias=1.25)
    assert near(1.0) == 0.5
    today, _ = of_longer(curve, k=0.9, bias=1.25)
    assert today(0.9) == curve.utilisation(0.9)


def test_the_bias_of_a_short_history_is_found_once():
    state, runs = state_of(inputs(by_chance())), Runs("jobs")
    [queue] = simulated_constraints(
        state, runs, most=5, calibration=made.EXACT, layers=(Queue(),), seeds=(0, 1)
    )
    [bias] = runs.length_biases.values()
    assert 0.8 <= bias <= 1.5
    assert bias != 1.0
    many = runs.made
    again = simulated_constraints(
        state, runs, most=5, calibration=made.EXACT, layers=(Queue(),), seeds=(0, 1)
    )
    assert break_of(again[0], 5) == break_of(queue, 5)
    assert runs.made - many <= 2, "only the grid points that a higher factor needs"


def test_long_histories_are_drawn_by_week_and_parts_of_them_by_day():
    jobs = by_chance(days=70, per_day=4)
    assert Blocks(jobs).block_ms == 7 * DAY
    part = Blocks(jobs, Window(10 * DAY, 12 * DAY))
    assert part.block_ms == DAY
    assert part.load(1) > 0
    assert Blocks(by_chance(days=1)).block_ms < 4 * HOUR


def test_the_load_of_few_days_is_known_less_well():
    short, long = load_spread(by_chance(days=5)), load_spread(by_chance(days=50))
    assert 0.02 < long < short < 0.5
    assert load_spread(by_chance()[:1]) == 1.0
    assert deviations_80(13) == pytest.approx(1.350, abs=0.002)
    assert deviations_80(1_000_000) == pytest.approx(1.2816, abs=1e-4)


def test_a_wait_has_an_interval_as_wide_as_its_sample_leaves_it():
    state = state_of(inputs(by_chance()))
    runs = Runs("jobs")
    queue, again = (
        simulated_constraints(
            state, runs, most=5, calibration=made.EXACT, layers=(Queue(),), seeds=(0, 1)
        )[0]
        for _ in range(2)
    )
    broken = break_of(queue, 5)
    assert broken.k is not None
    assert broken.low is not None
    assert broken.high is not None
    assert 0.05 < log(broken.k / broken.low) < 0.5
    assert queue.factor_spread == again.factor_spread > 0
    assert break_of(again, 5) == broken


def test_an_uncalibrated_wait_draws_no_histories():
    state, runs = state_of(inputs(by_chance())), Runs("jobs")
    [queue] = simulated_constraints(state, runs, most=5, layers=(Queue(),))
    made_before = runs.made
    assert queue.factor_spread > 0
    simulated_constraints(state, runs, most=5, calibration=made.EXACT, layers=(Queue(),))
    assert runs.made > made_before


def test_an_interval_is_widened_by_what_is_independent_of_it():
    broken = Break(2.0, 1.9, 2.1, "breaks")
    wider = widened(broken, 0.1, 10.0)
    assert wider.low is not None
    assert wider.high is not None
    assert wider.low < 2 / 1.1
    assert wider.high > 2 * 1.1
    assert widened(broken, 0.0, 10.0) == broken
    assert widened(Break(2.0, 1.9, None, "breaks"), 0.1, 10.0).high == pytest.approx(2.24, abs=0.02)
    assert widened(Break(9.5, 9.4, None, "breaks"), 0.1, 10.0).high is None
    assert widened(Break(None, None, None, "free"), 0.1, 10.0).k is None
