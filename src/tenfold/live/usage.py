"""Utilization samples of running attempts, and the latest values."""

from collections.abc import Mapping
from typing import Protocol

from msgspec import Struct

from tenfold.model.ids import JobId
from tenfold.model.job.usage import GpuUse, JobUse
from tenfold.model.units import Millis


class AttemptUsage(Struct, frozen=True):
    """One attempt and its utilization."""

    job_id: JobId
    attempt: int
    use: JobUse


class UsageSample(Struct, frozen=True):
    """One sample: attempts that could be measured, and devices that respond."""

    attempts: tuple[AttemptUsage, ...] = ()
    gpus: tuple[GpuUse, ...] = ()


class Probe(Protocol):
    """Takes samples. It may be slow: the loop never calls it."""

    def measure(self, now_ms: Millis) -> UsageSample:
        """Return the utilization since the last sample."""
        ...


class Usage:
    """The latest sample, for readers; it is replaced as a whole."""

    def __init__(self, node: str = "") -> None:
        self.node = node
        """The node of these devices."""
        self.gpus: tuple[GpuUse, ...] = ()
        self.idle: Mapping[JobId, Millis] = {}
        """Idle jobs at the last sample and since when, for listings, which must not block."""
        self._jobs: Mapping[JobId, JobUse] = {}

    def take(self, look: UsageSample) -> None:
        """Replace the sample."""
        self._jobs = {one.job_id: one.use for one in look.attempts}
        self.gpus = look.gpus

    def of(self, job_id: str) -> JobUse | None:
        """Return the last utilization of a job; None if it was not measured."""
        return self._jobs.get(JobId(job_id))

    def by_measure(self) -> dict[str, int]:
        """Return the number of jobs by measure."""
        found = {"gpu": 0, "cpu": 0}
        for use in self._jobs.values():
            found[use.measure] += 1
        return found
