"""Gaps in a history: found against its own rhythm, and cut out."""

from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import growth_builders as made
from tenfold.model.job.job import Job
from tenfold.model.policy.policy import Policy
from tenfold.model.units import DAY, HOUR, Millis
from tenfold.study.grow.analyse import analyse
from tenfold.study.grow.coverage import covered, gaps_of
from tenfold.study.grow.history import arrival_span_ms, span_s
from tenfold.study.grow.inputs import GrowInputs
from tenfold.study.grow.layers.compute.load import Compute
from tenfold.study.grow.question import GrowQuestion
from tenfold.testing.builders import job


def stream(days: float, per_hour: Callable[[int], float], seed: int = 1) -> list[Job]:
    """Jobs by chance, so many in each hour of the history."""
    draw = Random(seed)
    times: list[float] = []
    for hour in range(int(days * 24)):
        times += [hour + draw.random() for _ in range(20) if draw.random() < per_hour(hour) / 20]
    return [job(n, 8, at_s=at * 3_600, runs_s=7_200) for n, at in enumerate(sorted(times))]


def without(jobs: list[Job], since: float, until: float) -> list[Job]:
    """The same history without the records of some days."""
    return [one for one in jobs if not since * DAY <= one.submitted_ms < until * DAY]


def evenly(_: int) -> float:
    return 1.5


def office_hours(hour: int) -> float:
    return 3.0 if 8 <= hour % 24 < 18 and hour // 24 % 7 < 5 else 0.0


@pytest.mark.parametrize("rhythm", [evenly, office_hours])
def test_weeks_without_records_are_a_gap_and_are_cut_out(rhythm: Callable[[int], float]):
    jobs = without(stream(56, rhythm), 14, 35)
    [gap] = gaps_of(jobs)
    assert gap.cut_ms in (21 * DAY, 23 * DAY)
    found = covered(GrowInputs(fleet=made.fleet(), jobs=jobs))
    assert found.jobs[-1].submitted_ms == jobs[-1].submitted_ms - gap.cut_ms
    assert "no records for 2" in found.notes[-1]
    assert "fitted to the 3" in found.notes[-1]


@pytest.mark.parametrize("rhythm", [evenly, office_hours])
def test_nights_and_weekends_are_no_gaps(rhythm: Callable[[int], float]):
    assert gaps_of(stream(35, rhythm)) == []


def test_a_single_missing_day_of_a_busy_history_is_a_gap():
    [gap] = gaps_of(without(stream(21, evenly), 9, 10))
    assert gap.cut_ms == DAY


def test_campaigns_with_pauses_between_them_have_no_gaps():
    assert gaps_of(stream(40, lambda hour: 3.0 if hour // 24 % 5 == 0 else 0.0)) == []


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([0.05, 0.2, 1.0]))
def test_jobs_by_chance_have_no_gaps(seed: int, per_hour: float):
    assert gaps_of(stream(21, lambda _: per_hour, seed)) == []


def test_a_history_of_few_jobs_is_left_alone():
    jobs = [job(n, 8, at_s=n * 5 * 86_400, runs_s=60) for n in range(10)]
    inputs = GrowInputs(fleet=made.fleet(), jobs=jobs)
    assert covered(inputs) is inputs


def test_starts_move_with_their_jobs():
    jobs = without(stream(28, evenly), 7, 21)
    starts = {one.id: Millis(one.submitted_ms + HOUR) for one in jobs}
    found = covered(GrowInputs(fleet=made.fleet(), jobs=jobs, starts_ms=starts))
    assert all(found.starts_ms[one.id] == one.submitted_ms + HOUR for one in found.jobs)


def test_missing_weeks_do_not_make_a_fleet_look_idle():
    """The load of the covered time counts, as if the whole had been recorded."""
    whole = stream(42, evenly)
    inputs = GrowInputs(fleet=made.fleet(nodes=6), jobs=whole, policy=Policy(name="fifo"))
    question = GrowQuestion(axis="jobs", to=(3.0,), seeds=1)
    part = covered(GrowInputs(fleet=made.fleet(nodes=6), jobs=without(whole, 7, 28)))
    assert span_s(part.jobs) == pytest.approx(21 * 86_400, rel=0.01)
    answers = [
        analyse(made_of, question, layers=(Compute(),))
        for made_of in (inputs, GrowInputs(fleet=inputs.fleet, jobs=without(whole, 7, 28)))
    ]
    factors = [one.first.k for one in answers if one.first is not None and one.first.k]
    assert len(factors) == 2
    assert factors[1] == pytest.approx(factors[0], rel=0.1)
    assert any("gaps in the history" in said for said in answers[1].assumptions)


def test_arrivals_stand_for_time_up_to_the_next_one():
    hourly = [hour * HOUR for hour in range(240)]
    assert arrival_span_ms(hourly) == 240 * HOUR
    office = [day * DAY + hour * HOUR for day in range(10) for hour in range(9, 18)]
    assert arrival_span_ms(office) == 10 * DAY, "the last night counts"
    weeks = [at + week * 7 * DAY for week in range(4) for at in office if at < 5 * DAY]
    assert arrival_span_ms(weeks) == 28 * DAY, "the last weekend counts"
    assert arrival_span_ms(hourly[:24]) == 23 * HOUR, "one day shows no rhythm"
    assert arrival_span_ms([5]) == 0


def test_a_gap_of_days_is_said_in_days():
    found = covered(GrowInputs(fleet=made.fleet(), jobs=without(stream(40, evenly), 9, 14)))
    assert any("no records for 5 days from day" in note for note in found.notes)
