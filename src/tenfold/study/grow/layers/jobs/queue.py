"""Queue: how long jobs wait, by GPU time and by the team or size that waits longest."""

from tenfold.study.grow.layers.jobs.policy import shorter_waits
from tenfold.study.grow.runs.layer import Reading, SimulatedLayer
from tenfold.study.grow.runs.run import RunFigures
from tenfold.study.grow.runs.runs import Runs
from tenfold.study.grow.state import State


class Queue(SimulatedLayer):
    """Waits are the effect of nearly everything, and so come last of what breaks together."""

    name = "queue"
    resource = "waits"
    breaks = "a tenth of the GPU time, or of the jobs of a team or size, waits over `wait_s_p90`"
    cause_rank = 80
    fixed_by = "another policy, or nodes"
    always_listed = True
    shows_slow_jobs = True
    reports_missing_work = True

    def reading(self, state: State, runs: Runs) -> Reading:
        """Read the longer of two waits against the longest that is borne."""
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
        return f"a tenth of the GPU time asked for waits {figures.wait_s_p90_gpu / 3_600:,.1f} h"
    whose = figures.worst_class or "jobs"
    return f"one in ten of {whose} waits {figures.wait_s_p90_worst / 3_600:,.1f} h"
