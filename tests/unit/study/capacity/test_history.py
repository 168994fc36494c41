"""Demand of a history: a full fleet is not mistaken for low demand."""

import pytest

from tenfold.model.capacity.history import UNKNOWN_LEFT, JobSpan
from tenfold.model.errors import InputError
from tenfold.model.ids import JobId, TeamId
from tenfold.model.job.job import Job, Shape
from tenfold.model.units import DAY, HOUR, Millis
from tenfold.study.capacity.history import demand_history


def job(name: str, gpus: int = 8, team: str = "a", profile: str = "") -> Job:
    shape = Shape(key=f"{gpus}", gpus=gpus, accelerators=("H100",))
    return Job(
        id=JobId(name), shape=shape, submitted_ms=Millis(0), team=TeamId(team), profile=profile
    )


def ran(of: Job, wanted_h: float, start_h: float, hours: float) -> JobSpan:
    start = Millis(round(start_h * HOUR))
    run = (start, Millis(start + round(hours * HOUR)))
    return JobSpan(job=of, wanted_ms=Millis(round(wanted_h * HOUR)), runs=(run,), left=0)


def test_jobs_that_wait_for_a_full_fleet_count_when_they_were_wanted():
    queued = [ran(job(f"j{n}"), wanted_h=0, start_h=12.0 * n, hours=12) for n in range(4)]
    found = demand_history(queued, Millis(2 * DAY))
    group = found.groups[0]
    assert group.used_gpu_hours == (192, 192)
    assert group.demand_gpu_hours == (384, 0)
    assert group.demand_gpus[0] == 16


def test_no_gpu_hour_is_counted_twice_or_lost_however_long_jobs_wait():
    queued = [ran(job(f"j{n}"), wanted_h=n, start_h=5 + 3 * n, hours=3) for n in range(12)]
    group = demand_history(queued, Millis(3 * DAY)).groups[0]
    assert sum(group.used_gpu_hours) == pytest.approx(12 * 8 * 3)
    assert sum(group.demand_gpu_hours) == pytest.approx(12 * 8 * 3)


def test_a_job_that_still_waits_counts_with_the_median_of_its_team():
    done = [ran(job(f"j{n}"), 0, 0, hours) for n, hours in enumerate((2, 4, 9))]
    waits = JobSpan(job=job("w"), wanted_ms=Millis(0), runs=(), left=UNKNOWN_LEFT)
    found = demand_history([*done, waits], Millis(DAY))
    assert found.unfinished == 1
    assert found.groups[0].used_gpu_hours == (120,)
    assert found.groups[0].demand_gpu_hours == (120 + 8 * 4,)


def test_a_fleet_that_is_saturated_shows_more_demand_than_it_has():
    # One node of 8 GPUs, and a job of 8 GPUs for a day arrives every half day.
    spans = [ran(job(f"j{n}"), wanted_h=12 * n, start_h=24 * n, hours=24) for n in range(20)]
    group = demand_history(spans, Millis(10 * DAY)).groups[0]
    assert max(group.used_gpu_hours) == 192
    assert group.demand_gpus[4] == 16


def test_groups_are_classes_teams_or_accelerators():
    spans = [
        ran(job("a", gpus=1), 0, 0, 24),
        ran(job("b", team="b"), 0, 0, 24),
        ran(job("c", profile="llm"), 0, 0, 24),
    ]
    names = {
        by: [group.name for group in demand_history(spans, Millis(DAY), by=by).groups]
        for by in ("class", "team", "accelerator", "all")
    }
    assert names == {
        "class": ["development", "llm", "training"],
        "team": ["a", "b"],
        "accelerator": ["H100"],
        "all": ["all"],
    }


def test_a_history_shorter_than_a_period_is_refused():
    with pytest.raises(InputError, match="shorter than one week"):
        demand_history([ran(job("a"), 0, 0, 5)], Millis(DAY), period="week")
