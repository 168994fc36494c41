"""How many jobs per second a controller can start if GPUs are free, and how long the backlog waits.

A controller is limited by its settings per pass and by its cost per job; the lower rate counts. If
neither is known, the rate is unknown and the missing input is named: an estimate would be ranked
next to measurements.
"""

from math import inf, sqrt
from typing import NamedTuple

from tenfold.model.growth.growth import Controller
from tenfold.model.policy.slurm import SlurmPolicy
from tenfold.model.units import SECOND

_LOOP_S = 1.0
"""Slurm's main loop runs once a second: jobs that end trigger no more passes than that."""
_NEEDED = {
    "slurm": "a slurm.conf with `sched_max_job_start`, or a measured `cost_ms_per_job`",
    "kueue": "`cycles_per_min`, or a measured `cost_ms_per_job`",
    "tenfold": "a measured `cost_ms_per_job`",
}


class StartRate(NamedTuple):
    """Starts per second, or None if unknown, and the setting or missing input behind it."""

    per_s: float | None
    why: str


def starts_per_s(controller: Controller, slurm: SlurmPolicy | None = None) -> StartRate:
    """Return the maximum starts per second of the controller while GPUs are free."""
    rates: list[tuple[float, str]] = []
    if controller.cycles_per_min is not None:
        rates.append(_cycled(controller, controller.cycles_per_min))
    if slurm is not None:
        rates.extend(_configured(slurm))
    if controller.cost_ms_per_job is not None and controller.cost_ms_per_job > 0.0:
        cost_ms = controller.cost_ms_per_job
        rates.append((SECOND / cost_ms, f"{cost_ms:g} ms of controller time per job"))
    if not rates:
        return StartRate(None, f"needs {_NEEDED[controller.kind]}")
    return StartRate(*min(rates))


def mean_wait_s(arrivals_per_s: float, capacity_per_s: float) -> float:
    """Return the mean wait of jobs that arrive by chance and are admitted one by one (M/D/1)."""
    load = arrivals_per_s / capacity_per_s
    return inf if load >= 1 else load / (2 * capacity_per_s * (1 - load))


def arrivals_within(capacity_per_s: float, wait_s: float) -> float:
    """Return the arrivals per second at which the mean wait reaches a limit."""
    waiting = 2 * capacity_per_s * wait_s
    return capacity_per_s * waiting / (1 + waiting)


def capacity_for(arrivals_per_s: float, wait_s: float) -> float:
    """Return the admission rate at which some arrivals wait no longer than a limit, on average."""
    return (arrivals_per_s + sqrt(arrivals_per_s**2 + 2 * arrivals_per_s / wait_s)) / 2


def backlog_wait_s(
    arrivals_per_s: float, capacity_per_s: float, window_s: float = 0.0, depth: float = 0.0
) -> float:
    """Return the longest wait for admission within a window, by Little's law.

    `depth` jobs are queued at its start; arrivals above the admission rate add to them.
    """
    assert capacity_per_s > 0.0, "a controller that admits nothing has no finite wait"
    gathered = max(0.0, arrivals_per_s - capacity_per_s) * window_s
    return (depth + gathered) / capacity_per_s


def _cycled(controller: Controller, cycles_per_min: float) -> tuple[float, str]:
    share = 1.0 if controller.admitted_share is None else controller.admitted_share
    rate = cycles_per_min / 60.0 * controller.heads_per_cycle * share
    heads = "1 job" if controller.heads_per_cycle == 1 else f"{controller.heads_per_cycle} jobs"
    why = f"{cycles_per_min:g} cycles/min, {heads} per queue and cycle"
    return rate, why if share == 1.0 else f"{why}, {share:.0%} admitted"


def _configured(slurm: SlurmPolicy) -> list[tuple[float, str]]:
    """Return the rate set by `sched_max_job_start`, plus that of backfill.

    Without it the main pass starts every job that fits: then no rate is configured.
    """
    if not slurm.jobs_started_max:
        return []
    period_s = max(_LOOP_S, slurm.interval_min_us / 1e6)
    rate = slurm.jobs_started_max / period_s
    why = f"{slurm.jobs_started_max} starts per pass, one pass every {period_s:g} s"
    if slurm.scheduler == "backfill":
        habits = slurm.backfill
        most = habits.jobs_started_max or habits.jobs_tested_max
        every_s = max(_LOOP_S, habits.interval_ms / SECOND)
        rate += most / every_s
        why += f", plus {most} by backfill every {every_s:g} s"
    return [(rate, why)]
