"""Finish-time fairness: completion time of a job relative to an even share of the fleet.

As in Themis (Mahajan et al., NSDI 2020): rho is the time a job took over the time it would
have taken alone on 1/N of the fleet, N being the mean number of jobs there while it was. Fair
sharing gives at most 1; 3 means three times as long as on a dedicated share.
Speed is taken to grow with GPUs, so on a share smaller than it requested a job takes longer
in proportion.
"""

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from tenfold.model.job.job import WHOLE, Job
from tenfold.sim.measure.meters import Meters, requested_milli
from tenfold.sim.measure.timeline import in_system

LATE = 1.0 + 1e-9


class Fairness(Struct, frozen=True, kw_only=True):
    """Finish-time fairness over the finished jobs."""

    rho_mean: float
    rho_p50: float
    rho_p99: float
    rho_max: float
    late_share: float
    """Jobs that would have been over sooner on an even share."""


def finish_time_fairness(jobs: Sequence[Job], meters: Meters, gpus: int) -> Fairness | None:
    """Return how late jobs were against an even share, or None where no job has a length."""
    ended = [(end[0], end[4]) for end in meters.ends if end[0].duration_ms]
    if not ended or not gpus:
        return None
    submit = np.array([job.submitted_ms for job, _ in ended], dtype=np.float64)
    end = np.array([at for _, at in ended], dtype=np.float64)
    length = np.array([job.duration_ms for job, _ in ended], dtype=np.float64)
    requested = np.array([requested_milli(job) for job, _ in ended], dtype=np.float64) / WHOLE
    in_system_jobs = in_system(jobs, meters)
    job_time = np.maximum(end - submit, 1e-9)
    others = np.maximum((in_system_jobs.area(end) - in_system_jobs.area(submit)) / job_time, 1.0)
    rho = job_time / (length * np.maximum(1.0, requested * others / gpus))
    p50, p99 = np.quantile(rho, [0.50, 0.99], method="inverted_cdf")
    return Fairness(
        rho_mean=float(rho.mean()),
        rho_p50=float(p50),
        rho_p99=float(p99),
        rho_max=float(rho.max()),
        late_share=float((rho > LATE).mean()),
    )
