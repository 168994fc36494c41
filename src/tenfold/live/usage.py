"""What is measured of attempts that run, and where the latest figures are kept."""

from collections.abc import Mapping
from typing import Protocol

from msgspec import Struct

from tenfold.model.ids import JobId
from tenfold.model.job.usage import GpuUse, JobUse
from tenfold.model.units import Millis


class AttemptUsage(Struct, frozen=True):
    """One attempt and what it uses."""

    job_id: JobId
    attempt: int
    use: JobUse


class UsageSample(Struct, frozen=True):
    """One look at everything: attempts that could be measured, and devices that answer."""

    attempts: tuple[AttemptUsage, ...] = ()
    gpus: tuple[GpuUse, ...] = ()


class Probe(Protocol):
    """Measures. It may take its time: it is never asked by the loop."""

    def measure(self, now_ms: Millis) -> UsageSample:
        """Return what is used now, or was since the last look."""
        ...


class Usage:
    """The latest look, for those who read; it is replaced as a whole."""

    def __init__(self, node: str = "") -> None:
        self.node = node
        """The node whose devices these are."""
        self.gpus: tuple[GpuUse, ...] = ()
        self.idle: Mapping[JobId, Millis] = {}
        """Who idled at the last look, and since when: for listings, which must not wait."""
        self._jobs: Mapping[JobId, JobUse] = {}

    def take(self, look: UsageSample) -> None:
        """Keep a new look, and forget the one before."""
        self._jobs = {one.job_id: one.use for one in look.attempts}
        self.gpus = look.gpus

    def of(self, job_id: str) -> JobUse | None:
        """Return what a job used at the last look; None where it was not measured."""
        return self._jobs.get(JobId(job_id))

    def by_measure(self) -> dict[str, int]:
        """Return how many jobs were measured by each measure."""
        found = {"gpu": 0, "cpu": 0}
        for use in self._jobs.values():
            found[use.measure] += 1
        return found
