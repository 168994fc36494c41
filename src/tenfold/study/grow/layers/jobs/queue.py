"""Queue wait: how long jobs wait, by GPU time and by the team or size that waits longest."""

from tenfold.study.grow.layers.jobs.policy import shorter_waits
from tenfold.study.grow.runs.layer import Reading, SimulatedLayer
from tenfold.study.grow.runs.run import RunFigures
from tenfold.study.grow.runs.runs import Runs
from tenfold.study.grow.state import State


class Queue(SimulatedLayer):
    """Waits are the effect of nearly everything, and so rank last of what breaks together."""

    name = "queue"
    title = "Queue wait"
    labels = (("waits", "Queue wait"),)
    resource = "waits"
    breaks = "the P90 wait, weighted by GPU time or for any team or job size, exceeds `wait_s_p90`"
    cause_rank = 80
    fixed_by = "another policy, or more nodes"
    always_listed = True
    shows_slow_jobs = True
    reports_missing_work = True

    def reading(self, state: State, runs: Runs) -> Reading:
        """Read the longer of two waits against the limit."""
        most_s = state.grow.limits.wait_s_p90

        def utilisation(figures: RunFigures) -> float:
            return max(figures.wait_s_p90_gpu, figures.wait_s_p90_worst) / most_s

        return Reading(
            utilisation,
            _symptom,
            lambda constraint, target: shorter_waits(constraint, state, target),
        )


def _symptom(figures: RunFigures) -> str:
    if figures.wait_s_p90_gpu >= figures.wait_s_p90_worst:
        return f"P90 wait, weighted by requested GPU time: {figures.wait_s_p90_gpu / 3_600:,.1f} h"
    whose = figures.worst_class or "jobs"
    return f"P90 wait {figures.wait_s_p90_worst / 3_600:,.1f} h for {whose}"
