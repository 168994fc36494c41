"""Long histories are run in part: which part, and what is there when it begins."""

import pytest
from msgspec.structs import replace

import growth_builders as made
from tenfold.model.ids import JobId
from tenfold.model.job.job import Job
from tenfold.model.job.terms import Terms
from tenfold.model.policy.policy import Policy
from tenfold.model.units import DAY, HOUR
from tenfold.sim.measure.window import Window
from tenfold.study.grow.analyse import analyse
from tenfold.study.grow.inputs import GrowInputs
from tenfold.study.grow.question import GrowQuestion
from tenfold.study.grow.runs import window as run_window
from tenfold.study.grow.runs.run import GrowTask, reaching, run_once, simulate_task
from tenfold.study.grow.runs.runs import runs_for
from tenfold.study.grow.runs.window import overloaded_at, representative_window
from tenfold.study.grow.state import state_of
from tenfold.testing.builders import job

DAYS = 12


def even(gpus: int = 8, runs_h: float = 6.0) -> list[Job]:
    """Ten jobs an hour, but for a wild third day with five times as many."""
    times = [at * 0.1 for at in range(24 * 10 * DAYS)]
    wild = [24 * 2 + at * 0.025 for at in range(24 * 40)]
    moments = sorted([*times, *wild])
    return [job(n, gpus, at_s=at * 3_600, runs_s=runs_h * 3_600) for n, at in enumerate(moments)]


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(run_window, "JOBS_MOST", 5_000)


def test_a_history_that_is_short_enough_is_run_whole():
    assert representative_window(even(), 1.0, 3_600) is None


def test_a_long_one_is_run_for_whole_usual_days():
    window = representative_window(even(), 5.0, 3_600)
    assert window is not None
    assert window.length_ms % DAY == 0
    inside = [one for one in even() if window.from_ms <= one.submitted_ms <= window.until_ms]
    a_day = len(inside) / (window.length_ms / DAY)
    assert a_day == pytest.approx(len(even()) / DAYS, rel=0.1)
    assert len(inside) * 5 <= 5_500


def test_a_part_is_never_too_short_to_tell_a_wait():
    window = representative_window(even(), 900.0, 12 * 3_600)
    assert window is not None
    assert window.length_ms == 2 * DAY


def test_jobs_that_would_still_run_are_there_when_a_part_begins():
    jobs = even()
    window = Window(5 * DAY, 6 * DAY)
    kept = reaching(jobs, window)
    assert all(one.submitted_ms >= 5 * DAY - 6 * HOUR for one in kept)
    assert any(one.submitted_ms < 5 * DAY for one in kept)
    assert max(one.submitted_ms for one in kept) <= 6 * DAY


def test_a_job_does_not_wait_for_one_that_was_over_before():
    first, second = job(0, 1, at_s=0, runs_s=60), job(1, 1, at_s=90_000, runs_s=60)
    second = replace(second, terms=Terms(after=(JobId(first.id),)))
    [kept] = reaching([first, second], Window(DAY, 2 * DAY))
    assert kept.terms is not None
    assert kept.terms.after == ()


def test_the_part_is_as_busy_as_the_whole_of_an_even_history():
    """60 of the 64 nodes are in use at any time, from the first moment of the part on."""
    jobs = [job(n, 8, at_s=n * 360, runs_s=6 * 3_600) for n in range(10 * 24 * DAYS)]
    spec = made.fleet(nodes=64).spec
    task = GrowTask(spec=spec, jobs=jobs, policy=Policy(name="fifo"))
    part = replace(task, history_window=Window(5 * DAY, 6 * DAY))
    whole, some = run_once(task), run_once(part)
    assert some.utilisation == pytest.approx(whole.utilisation, rel=0.02)
    assert len(simulate_task(part).jobs) < 0.15 * len(jobs)


def test_the_answer_says_that_runs_go_through_a_part():
    inputs = GrowInputs(fleet=made.fleet(nodes=128), jobs=even(), policy=Policy(name="fifo"))
    question = GrowQuestion(axis="jobs", to=(5.0,))
    assert runs_for(inputs, "jobs", most=5.0).history_window is not None
    assert runs_for(inputs, "job-size", most=5.0).history_window is None
    told: list[int] = []
    answer = analyse(inputs, question, told.append)
    assert any(said.startswith("simulated ") for said in answer.assumptions)
    assert told == sorted(told)
    assert told


def test_runs_are_not_followed_far_beyond_what_the_gpus_can_do():
    jobs = [job(n, 8, at_s=n * 360, runs_s=6 * 3_600) for n in range(10 * 24 * DAYS)]
    state = state_of(GrowInputs(fleet=made.fleet(nodes=120), jobs=jobs))
    assert overloaded_at(state, "jobs") == pytest.approx(5.0, rel=0.05)
    assert overloaded_at(state, "nodes") is None
    assert overloaded_at(state, "data") is None
