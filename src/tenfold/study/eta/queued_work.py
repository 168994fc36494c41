"""Estimate how long the queued work will keep the fleet busy.

The length of a job is not known before it ends. It is estimated as the total run time of jobs of
its size divided by how many of them ended, running jobs included: without them, jobs would look
as short as the quickest ones. If few jobs of one size are known, all sizes contribute. True
durations are never read.
"""

from tenfold.fleet.fleet import HISTORY, NEVER_RAN, FleetView
from tenfold.model.job.job import WHOLE, Job
from tenfold.model.units import HOUR, Millis

PRIOR_JOBS = 8
"""Weight of the estimate over all sizes, in finished jobs of one size."""


class QueuedWork:
    """Run times and job ends by power-of-two size, collected during a run."""

    def __init__(self) -> None:
        self._ran: dict[int, int] = {}
        self._ends: dict[int, int] = {}
        self._state_counts = 0
        self._gpus = (0, 0)
        """(nodes, GPUs of all of them)."""

    def drain_ms(self, view: FleetView, now_ms: Millis) -> float:
        """Return how long the pending jobs would keep all GPUs busy."""
        self._record_ended(view)
        mean_run_ms = self._mean_run_ms(view, now_ms)
        overall_ms = mean_run_ms[None]
        work = 0.0
        for job in view.pending.values():
            work += _gpus(job) * mean_run_ms.get(_size(job), overall_ms)
        return work / max(1, self._all_gpus(view))

    def _record_ended(self, view: FleetView) -> None:
        """Record jobs that ended since the last call."""
        new = min(view.ended - self._state_counts, HISTORY, len(view.history))
        self._state_counts = view.ended
        for back in range(new, 0, -1):
            ended = view.history[-back]
            size = _size(ended.job)
            self._ran[size] = self._ran.get(size, 0) + ended.ran_ms
            self._ends[size] = self._ends.get(size, 0) + 1

    def _mean_run_ms(self, view: FleetView, now_ms: Millis) -> "dict[int | None, float]":
        """Return the expected run time by size, and under None over all sizes."""
        ran, past = dict(self._ran), view.past
        for job_id, run in view.running.items():
            size = _size(run.job)
            before_ms = past[job_id].ran_ms if job_id in past else 0
            ran[size] = ran.get(size, 0) + before_ms + now_ms - run.started_ms
        for job_id in past:
            if (job := view.pending.get(job_id)) is not None:
                size = _size(job)
                ran[size] = ran.get(size, 0) + past.get(job_id, NEVER_RAN).ran_ms
        overall_ms = (sum(ran.values()) + HOUR) / (sum(self._ends.values()) + 1)
        mean_run_ms: dict[int | None, float] = {
            size: (ran_ms + PRIOR_JOBS * overall_ms) / (self._ends.get(size, 0) + PRIOR_JOBS)
            for size, ran_ms in ran.items()
        }
        mean_run_ms[None] = overall_ms
        return mean_run_ms

    def _all_gpus(self, view: FleetView) -> int:
        if self._gpus[0] != len(view.nodes):
            self._gpus = len(view.nodes), sum(node.gpus for node in view.nodes.values())
        return self._gpus[1]


def _size(job: Job) -> int:
    return job.shape.gpus.bit_length()


def _gpus(job: Job) -> float:
    return job.shape.gpus or job.shape.milli / WHOLE
