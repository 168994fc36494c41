"""What must hold of grown work, whatever the history."""

import os
import subprocess
import sys
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tenfold.model.growth.growth import AXES, Axis
from tenfold.model.ids import JobId, TeamId
from tenfold.model.job.job import Job, shape_of
from tenfold.model.job.terms import Terms
from tenfold.model.units import DAY, HOUR, SECOND, Millis
from tenfold.sim.workload.batches import submission_batches
from tenfold.sim.workload.scale import copy_marker, original_id, scale_jobs, total_work_milli_ms

COPYING: tuple[Axis, ...] = ("jobs", "teams", "nodes", "all")


@st.composite
def histories(draw: st.DrawFn) -> list[Job]:
    """Some days of jobs: teams, users, bursts, arrays and chains among them."""
    rows = draw(
        st.lists(
            st.tuples(
                st.integers(0, 20 * 24),
                st.sampled_from((0, 0, 30, 3_000)),
                st.sampled_from((0, 0.5, 1, 8, 16)),
                st.integers(0, 40 * HOUR),
                st.sampled_from(("", "a", "b")),
                st.sampled_from(("", "x", "y")),
                st.sampled_from(("alone", "alone", "array", "after")),
            ),
            min_size=1,
            max_size=25,
        )
    )
    at = sorted((hour * HOUR + more * SECOND, *rest) for hour, more, *rest in rows)
    jobs: list[Job] = []
    for seq, (submit, gpus, length, team, user, how) in enumerate(at):
        terms = None
        if how == "array":
            terms = Terms(array=f"sweep-{team}")
        elif how == "after" and jobs:
            terms = Terms(after=(jobs[-1].id,))
        jobs.append(
            Job(
                id=JobId(f"j{seq}"),
                shape=shape_of(gpus),
                submitted_ms=Millis(submit),
                seq=seq,
                team=TeamId(team),
                user=user,
                duration_ms=Millis(length),
                terms=terms,
            )
        )
    return jobs


factors = st.floats(0.05, 6)
seeds = st.integers(0, 3)


def unnumbered(jobs: list[Job]) -> dict[JobId, Job]:
    return {job.id: replace(job, seq=0) for job in jobs}


@given(histories(), st.sampled_from(AXES), seeds)
def test_factor_one_is_the_history_itself(jobs: list[Job], axis: Axis, seed: int):
    assert scale_jobs(jobs, axis, 1, seed) == jobs


@given(histories(), st.sampled_from(COPYING), factors, factors, seeds)
def test_work_at_a_factor_is_part_of_the_work_at_a_larger_one(
    jobs: list[Job], axis: Axis, one: float, other: float, seed: int
):
    low, high = sorted((one, other))
    less, more = (unnumbered(scale_jobs(jobs, axis, factor, seed)) for factor in (low, high))
    assert less.items() <= more.items()


@given(histories(), st.sampled_from(COPYING), st.integers(2, 5), seeds)
def test_whole_factors_multiply_the_work_exactly(
    jobs: list[Job], axis: Axis, factor: int, seed: int
):
    more = scale_jobs(jobs, axis, factor, seed)
    assert len(more) == factor * len(jobs)
    assert total_work_milli_ms(more) == factor * total_work_milli_ms(jobs)


@given(histories(), factors, seeds)
def test_between_whole_factors_work_is_right_to_within_one_submission(
    jobs: list[Job], factor: float, seed: int
):
    largest = max(
        total_work_milli_ms([jobs[one] for one in batch]) for batch in submission_batches(jobs)
    )
    error = total_work_milli_ms(
        scale_jobs(jobs, "jobs", factor, seed)
    ) - factor * total_work_milli_ms(jobs)
    assert abs(error) <= largest / 2 + 1


@given(histories(), st.sampled_from(COPYING), factors, seeds)
def test_jobs_come_in_order_with_names_of_their_own(
    jobs: list[Job], axis: Axis, factor: float, seed: int
):
    more = scale_jobs(jobs, axis, factor, seed)
    assert len({job.id for job in more}) == len(more)
    assert [job.seq for job in more] == list(range(len(more)))
    assert all(one.submitted_ms <= two.submitted_ms for one, two in pairwise(more))


@given(histories(), st.sampled_from(COPYING), factors, seeds)
def test_what_belongs_together_is_copied_together(
    jobs: list[Job], axis: Axis, factor: float, seed: int
):
    more = {job.id: job for job in scale_jobs(jobs, axis, factor, seed)}
    sign = copy_marker(jobs)
    for batch in submission_batches(jobs):
        first = jobs[batch[0]]
        for copy in range(6):
            ending = f"{sign}{copy}" if copy else ""
            there = [JobId(jobs[one].id + ending) in more for one in batch]
            assert all(there) or not any(there)
            if all(there):
                moved = {
                    more[JobId(jobs[one].id + ending)].submitted_ms - jobs[one].submitted_ms
                    for one in batch
                }
                assert len(moved) == 1, f"{first.id} falls apart"


@given(histories(), st.sampled_from(COPYING), factors, seeds)
def test_nobody_waits_for_a_job_that_does_not_come(
    jobs: list[Job], axis: Axis, factor: float, seed: int
):
    more = scale_jobs(jobs, axis, factor, seed)
    names = {job.id for job in more}
    assert all(one in names for job in more if job.terms for one in job.terms.after)


@given(histories(), seeds)
def test_the_first_copies_keep_the_hour_and_stay_within_the_history(jobs: list[Job], seed: int):
    span = jobs[-1].submitted_ms - jobs[0].submitted_ms
    by_name = {job.id: job for job in jobs}
    for job in scale_jobs(jobs, "jobs", 2, seed):
        moved = job.submitted_ms - by_name[original_id(job.id)].submitted_ms
        if moved % DAY == 0:
            assert jobs[0].submitted_ms <= job.submitted_ms <= jobs[-1].submitted_ms
            assert span < 14 * DAY or moved % (7 * DAY) == 0
        else:
            assert 0 < moved % DAY < HOUR, "only where no other day is left"


@given(histories(), factors, factors)
def test_larger_jobs_do_the_same_work(jobs: list[Job], one: float, other: float):
    low, high = sorted((one, other))
    for before, less, more in zip(
        jobs,
        scale_jobs(jobs, "job-size", low, 0),
        scale_jobs(jobs, "job-size", high, 0),
        strict=True,
    ):
        assert before.id == less.id == more.id
        assert less.shape.gpus * 1_000 + less.shape.milli <= (
            more.shape.gpus * 1_000 + more.shape.milli
        )
        size = max(more.shape.gpus * 1_000, more.shape.milli, 1_000)
        assert 0 <= total_work_milli_ms([more]) - total_work_milli_ms([before]) <= size


SCRIPT = """
import hashlib, msgspec
from tenfold.model.ids import JobId, TeamId
from tenfold.model.job.job import Job, shape_of
from tenfold.model.growth.growth import AXES
from tenfold.model.units import Millis
from tenfold.sim.workload.scale import scale_jobs
jobs = [
    Job(id=JobId(f"j{n}"), shape=shape_of(1 + n % 3), submitted_ms=Millis(n * 7_000_000), seq=n,
        team=TeamId("ab"[n % 2]), user=str(n % 5), duration_ms=Millis(n * 1_000))
    for n in range(60)
]
for axis in AXES:
    work = scale_jobs(jobs, axis, 2.7, 1)
    print(axis, hashlib.sha256(msgspec.json.encode(work)).hexdigest())
"""


def test_the_same_bytes_under_any_hash_seed():
    said = [
        subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "4321")
    ]
    assert said[0] == said[1] == said[2]
