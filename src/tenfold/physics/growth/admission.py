"""How many jobs a second a controller can start, whatever room there is, and what waits then.

A controller is bound by what it is configured to do in a pass and by what a job costs it. The
least of the two counts. Where neither is known the rate is unknown, and a figure is named that
would answer; a guess would be ranked beside what was measured.
"""

from typing import NamedTuple

from tenfold.model.growth.growth import Controller
from tenfold.model.policy.slurm import SlurmPolicy
from tenfold.model.units import SECOND

_LOOP_S = 1.0
"""Slurm's own loop turns once a second: ends of jobs bring no more passes than that."""
_NEEDED = {
    "slurm": "a slurm.conf with `sched_max_job_start`, or a measured `cost_ms_per_job`",
    "kueue": "`cycles_per_min`, or a measured `cost_ms_per_job`",
    "tenfold": "a measured `cost_ms_per_job`",
}


class StartRate(NamedTuple):
    """Starts a second, or None where unknown, and the figure that sets it or is missing."""

    per_s: float | None
    why: str


def starts_per_s(controller: Controller, slurm: SlurmPolicy | None = None) -> StartRate:
    """Return the most jobs a second that the controller starts while there is room for all."""
    rates: list[tuple[float, str]] = []
    if controller.cycles_per_min is not None:
        rates.append(_cycled(controller, controller.cycles_per_min))
    if slurm is not None:
        rates.extend(_configured(slurm))
    if controller.cost_ms_per_job is not None and controller.cost_ms_per_job > 0.0:
        cost_ms = controller.cost_ms_per_job
        rates.append((SECOND / cost_ms, f"a job costs the controller {cost_ms:g} ms"))
    if not rates:
        return StartRate(None, f"needs {_NEEDED[controller.kind]}")
    return StartRate(*min(rates))


def backlog_wait_s(
    arrivals_per_s: float, capacity_per_s: float, window_s: float = 0.0, depth: float = 0.0
) -> float:
    """Return the longest wait for admission within a window, by Little's law.

    `depth` jobs are in line when it begins; what comes faster than it is admitted adds to them.
    """
    assert capacity_per_s > 0.0, "a controller that admits nothing has no finite wait"
    gathered = max(0.0, arrivals_per_s - capacity_per_s) * window_s
    return (depth + gathered) / capacity_per_s


def _cycled(controller: Controller, cycles_per_min: float) -> tuple[float, str]:
    share = 1.0 if controller.admitted_share is None else controller.admitted_share
    rate = cycles_per_min / 60.0 * controller.heads_per_cycle * share
    heads = "1 head" if controller.heads_per_cycle == 1 else f"{controller.heads_per_cycle} heads"
    why = f"{cycles_per_min:g} cycles a minute, {heads} of a queue in each"
    return rate, why if share == 1.0 else f"{why}, {share:.0%} of them admitted"


def _configured(slurm: SlurmPolicy) -> list[tuple[float, str]]:
    """Return the rate that `sched_max_job_start` sets, and that of backfill with it.

    Without it the regular turn starts all that fit, however many: then nothing is configured.
    """
    if not slurm.jobs_started_max:
        return []
    period_s = max(_LOOP_S, slurm.interval_min_us / 1e6)
    rate = slurm.jobs_started_max / period_s
    why = f"{slurm.jobs_started_max} starts a pass, a pass every {period_s:g} s"
    if slurm.scheduler == "backfill":
        habits = slurm.backfill
        most = habits.jobs_started_max or habits.jobs_tested_max
        every_s = max(_LOOP_S, habits.interval_ms / SECOND)
        rate += most / every_s
        why += f", and {most} by backfill every {every_s:g} s"
    return [(rate, why)]
