"""Waits that a history recorded, against the limit: what was measured beats what is simulated."""

from typing import NamedTuple

from tenfold.sim.measure.window import JobWait, WindowFigures, window_figures, window_of
from tenfold.study.grow.history import types_asked
from tenfold.study.grow.inputs import GrowInputs
from tenfold.study.grow.state import State

JOBS_LEAST = 20
"""Fewer jobs with a known start have no percentile worth reporting."""


class RecordedWaits(NamedTuple):
    """The waits of the jobs of a history whose start is known."""

    figures: WindowFigures
    limit_s: float
    types: tuple[str, ...] = ()
    """Accelerator types that jobs ask for and are judged by, as they are labelled."""

    @property
    def longest(self) -> tuple[float, str]:
        """The longest P90 wait and whose it is: by GPU time, of a team, job size or type."""
        figures = self.figures
        by_type = ((self.of_type(label), f"for jobs on {label}") for label in self.types)
        worst = f"for {figures.worst_class}" if figures.worst_class else "weighted by GPU time"
        all_jobs = (figures.wait_s_p90_gpu, "weighted by GPU time")
        # Of equal waits the first is named.
        return max((all_jobs, (figures.wait_s_p90_worst, worst), *by_type), key=lambda one: one[0])

    @property
    def over(self) -> bool:
        """Whether some wait exceeded the limit."""
        return self.longest[0] > self.limit_s

    def of_type(self, label: str) -> float:
        """Return the P90 wait of the jobs that ask for some accelerator types."""
        return self.figures.wait_s_p90_by_type.get(label, 0.0)

    @property
    def sentence(self) -> str:
        """The longest wait next to its limit."""
        return self.said(*self.longest)

    def said(self, wait_s: float, whose: str) -> str:
        """Return a wait next to the limit."""
        limit = f"limit {self.limit_s / 3_600:,.3g} h"
        return f"recorded P90 wait {wait_s / 3_600:,.1f} h {whose} ({limit})"

    @property
    def sentence_of_all(self) -> str:
        """The longest wait of all jobs, a team or a job size, whatever types they ask for."""
        return self.said(*self._replace(types=()).longest)


def recorded_waits(inputs: GrowInputs) -> RecordedWaits | None:
    """Return the waits that a history recorded; None if it does not say when jobs started."""
    window = window_of(inputs.jobs)
    waited = [
        JobWait(job, inputs.starts_ms[job.id] - job.submitted_ms, inputs.starts_ms[job.id])
        for job in inputs.jobs
        if job.id in inputs.starts_ms and window.from_ms <= job.submitted_ms <= window.until_ms
    ]
    if inputs.mix or len(waited) < JOBS_LEAST:
        return None
    spec = inputs.fleet.spec
    node_gpus = max((pool.gpus_per_node for pool in spec.pools if pool.nodes), default=1)
    figures = window_figures(waited, (), window, spec.gpus, node_gpus)
    types = tuple("/".join(sorted(types)) for types in types_asked(inputs.jobs, spec))
    return RecordedWaits(figures, inputs.grow.limits.wait_s_p90, types)


def recorded_of(state: State) -> RecordedWaits | None:
    """Return the recorded waits of the history of a state."""
    return recorded_waits(state.inputs)
