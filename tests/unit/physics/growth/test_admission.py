"""How fast controllers start jobs: as configured, as measured, or unknown."""

import pytest

from tenfold.model.growth.growth import Controller
from tenfold.model.policy.slurm import Backfill, SlurmPolicy
from tenfold.model.units import SECOND, Millis
from tenfold.physics.growth.admission import backlog_wait_s, starts_per_s

BUILTIN = SlurmPolicy(scheduler="builtin", jobs_started_max=4, interval_min_us=2_000_000)
SLURM = Controller(kind="slurm")


def test_one_head_a_cycle_and_some_of_them_admitted():
    rate = starts_per_s(
        Controller(kind="kueue", cycles_per_min=25, heads_per_cycle=1, admitted_share=0.38)
    )
    assert rate.per_s == pytest.approx(9.5 / 60)
    assert rate.why == "25 cycles/min, 1 job per queue and cycle, 38% admitted"


def test_more_heads_a_cycle_start_as_many_times_as_many():
    rate = starts_per_s(Controller(kind="kueue", cycles_per_min=30, heads_per_cycle=4))
    assert rate == (2.0, "30 cycles/min, 4 jobs per queue and cycle")


def test_slurm_starts_so_many_a_pass_and_passes_keep_apart():
    assert starts_per_s(SLURM, BUILTIN) == (2.0, "4 starts per pass, one pass every 2 s")


def test_without_a_least_time_between_them_a_pass_comes_every_second():
    by = SlurmPolicy(scheduler="builtin", jobs_started_max=4)
    assert starts_per_s(SLURM, by).per_s == 4.0


def test_backfill_adds_its_own_starts():
    habits = Backfill(interval_ms=Millis(10 * SECOND), jobs_started_max=5)
    by = SlurmPolicy(jobs_started_max=4, backfill=habits)
    assert starts_per_s(SLURM, by).per_s == pytest.approx(4.5)


def test_a_costly_job_counts_where_it_is_less_than_what_is_configured():
    slow = Controller(kind="slurm", cost_ms_per_job=1_000)
    assert starts_per_s(slow, BUILTIN) == (1.0, "1000 ms of controller time per job")
    assert starts_per_s(Controller(kind="slurm", cost_ms_per_job=10), BUILTIN).per_s == 2.0


def test_what_is_not_known_names_the_figure_that_would_answer():
    rate = starts_per_s(Controller(kind="slurm"), SlurmPolicy())
    assert rate.per_s is None
    assert "sched_max_job_start" in rate.why
    assert "cycles_per_min" in starts_per_s(Controller(kind="kueue")).why
    assert "cost_ms_per_job" in starts_per_s(Controller(kind="tenfold")).why


def test_a_line_of_536_at_nine_and_a_half_a_minute_waits_56_minutes():
    assert backlog_wait_s(9.6 / 60, 9.5 / 60, depth=536) / 60 == pytest.approx(56.4, abs=0.1)


def test_what_comes_faster_than_it_is_admitted_adds_to_the_line():
    assert backlog_wait_s(3.0, 2.0, window_s=100) == 50.0
    assert backlog_wait_s(1.0, 2.0, window_s=100, depth=10) == 5.0
