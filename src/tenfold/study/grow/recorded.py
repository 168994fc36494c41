"""Waits that a history recorded, against the limit: what was measured beats what is simulated."""

from typing import NamedTuple

from tenfold.sim.measure.window import JobWait, WindowFigures, window_figures, window_of
from tenfold.study.grow.inputs import GrowInputs
from tenfold.study.grow.state import State

JOBS_LEAST = 20
"""Fewer jobs with a known start have no percentile worth reporting."""


class RecordedWaits(NamedTuple):
    """The waits of the jobs of a history whose start is known."""

    figures: WindowFigures
    limit_s: float

    @property
    def wait_s(self) -> float:
        """The longer P90 wait: by GPU time, or of the team or job size that waits longest."""
        return max(self.figures.wait_s_p90_gpu, self.figures.wait_s_p90_worst)

    @property
    def sentence(self) -> str:
        """The wait next to its limit."""
        figures = self.figures
        whose = (
            "weighted by GPU time"
            if figures.wait_s_p90_gpu >= figures.wait_s_p90_worst or not figures.worst_class
            else f"for {figures.worst_class}"
        )
        limit = f"limit {self.limit_s / 3_600:,.3g} h"
        return f"recorded P90 wait {self.wait_s / 3_600:,.1f} h {whose} ({limit})"


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
    return RecordedWaits(figures, inputs.grow.limits.wait_s_p90)


def recorded_of(state: State) -> RecordedWaits | None:
    """Return the recorded waits of the history of a state."""
    return recorded_waits(state.inputs)
