"""Grown work, by hand: copies, queues and larger jobs."""

from collections import Counter

import pytest
from msgspec.structs import replace

from tenfold.model.ids import JobId
from tenfold.model.job.job import Job, shape_of
from tenfold.model.job.terms import Terms
from tenfold.model.units import DAY, HOUR, Millis
from tenfold.sim.workload.batches import submission_batches
from tenfold.sim.workload.scale import copy_marker, original_id, scale_jobs
from tenfold.testing.builders import job


def days_of_jobs(days: int) -> list[Job]:
    """One job of an hour each day at the same hour, each of another user."""
    return [
        replace(job(day, 8, at_s=day * 86_400, runs_s=3_600), user=f"u{day}") for day in range(days)
    ]


def test_a_copy_comes_on_another_day_at_the_same_hour():
    jobs = days_of_jobs(5)
    copies = [one for one in scale_jobs(jobs, "jobs", 2, 0) if "~" in one.id]
    moved = [one.submitted_ms - jobs[int(one.id[4])].submitted_ms for one in copies]
    assert len(moved) == 5
    assert all(by and by % DAY == 0 for by in moved)


def test_a_history_of_two_weeks_keeps_the_day_of_the_week():
    jobs = days_of_jobs(22)
    by_id = {one.id: one for one in jobs}
    for one in scale_jobs(jobs, "jobs", 2, 0):
        assert (one.submitted_ms - by_id[original_id(one.id)].submitted_ms) % (7 * DAY) == 0


def test_ten_times_the_jobs_are_no_bursts_of_ten():
    jobs = days_of_jobs(15)
    at_once = Counter(one.submitted_ms for one in scale_jobs(jobs, "jobs", 10, 0))
    assert max(at_once.values()) < 5


def test_the_jobs_of_a_user_within_a_minute_are_one_submission():
    sweep = [replace(job(n, 1, at_s=n * 30, runs_s=60), user="ann") for n in range(4)]
    later = replace(job(4, 1, at_s=900, runs_s=60), user="ann")
    other = replace(job(5, 1, at_s=900, runs_s=60), user="bob")
    assert submission_batches([*sweep, later, other]) == [[0, 1, 2, 3], [4], [5]]


def test_a_robot_that_never_stops_makes_many_submissions():
    jobs = [replace(job(n, 1, at_s=n * 50, runs_s=60), user="cron") for n in range(200)]
    assert 2 < len(submission_batches(jobs)) < 6


def test_jobs_of_nobody_belong_together_at_one_moment_only():
    jobs = [job(0, 1, runs_s=60), job(1, 1, runs_s=60), job(2, 1, at_s=1, runs_s=60)]
    assert submission_batches(jobs) == [[0, 1], [2]]


def test_copies_of_a_chain_wait_for_copies():
    first, second = job(0, 1, runs_s=60), job(1, 4, at_s=5, runs_s=60)
    second = replace(second, terms=Terms(after=(first.id,), array="s"))
    copy = next(one for one in scale_jobs([first, second], "jobs", 2, 0) if one.id == "job-1~1")
    assert copy.terms is not None
    assert (copy.terms.after, copy.terms.array) == (("job-0~1",), "s~1")


def test_more_teams_are_more_queues_of_the_same_kinds():
    jobs = [job(n, 1, at_s=n, runs_s=60, team="ab"[n % 2]) for n in range(6)]
    teams = Counter(one.team for one in scale_jobs(jobs, "teams", 3, 0))
    assert teams == {"a": 3, "b": 3, "a~1": 3, "b~1": 3, "a~2": 3, "b~2": 3}
    half = Counter(one.team for one in scale_jobs(jobs, "teams", 1.5, 0))
    assert len(half) == 3
    assert set(half.values()) == {3}


def test_data_and_traffic_leave_the_jobs_alone():
    jobs = days_of_jobs(3)
    assert scale_jobs(jobs, "data", 4, 0) == scale_jobs(jobs, "traffic", 4, 0) == jobs


def test_names_of_copies_are_taken_by_nobody():
    jobs = [replace(job(0, 1, runs_s=60), id=JobId("a")), replace(job(1, 1), id=JobId("a~1"))]
    names = [one.id for one in scale_jobs(jobs, "jobs", 2, 0)]
    assert len(dict.fromkeys(names)) == 4
    assert copy_marker(jobs) == "~~"
    assert original_id("a~1~~1", "~~") == "a~1"


@pytest.mark.parametrize(
    ("gpus", "per_node", "factor", "wanted"),
    [(8, None, 2, 16), (8, None, 1.3, 8), (16, 4, 1.3, 20), (4, 8, 3, 16), (3, None, 1.5, 4)],
)
def test_larger_jobs_keep_to_whole_nodes(
    gpus: int, per_node: int | None, factor: float, wanted: int
):
    [one] = scale_jobs([job(0, gpus, runs_s=3_600, per_node=per_node)], "job-size", factor, 0)
    assert (one.shape.gpus, one.shape.gpus_per_node) == (wanted, per_node)


def test_a_share_grows_to_whole_gpus():
    jobs = [job(0, 0.25, runs_s=100)]
    assert scale_jobs(jobs, "job-size", 2, 0)[0].shape.milli == 500
    [whole] = scale_jobs(jobs, "job-size", 8, 0)
    assert (whole.shape.gpus, whole.shape.milli, whole.duration_ms) == (2, 0, 12_500)


def test_a_larger_job_pays_what_its_curve_says():
    one = replace(job(0, 8, runs_s=3_600), profile="llm", limit_ms=Millis(HOUR))
    [larger] = scale_jobs([one], "job-size", 4, 0, scaling={"llm": ((8, 1.0), (32, 0.8))})
    assert larger.shape.gpus == 32
    assert larger.duration_ms == larger.limit_ms == HOUR / (4 * 0.8)


def test_a_larger_job_asks_for_cpus_and_bounds_in_proportion():
    one = replace(job(0, 2, runs_s=60), shape=shape_of(2, cpus=16, memory_gib=64))
    elastic = replace(job(1, 2, runs_s=60), terms=Terms(least_gpus=1, most_gpus=3))
    larger, wider = scale_jobs([one, elastic], "job-size", 2, 0)
    assert (larger.shape.cpus_milli, larger.shape.memory_mib) == (32_000, 128 * 1_024)
    assert wider.terms is not None
    assert (wider.terms.least_gpus, wider.terms.most_gpus) == (2, 6)
