"""What deciders may read of a fleet: everything, with no way to change it."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from tenfold.fleet.failure_log import FailureLog
from tenfold.model.fleet.node import Node, NodeState
from tenfold.model.ids import JobId, NodeId
from tenfold.model.job.job import (
    BackfillReservation,
    EndedJob,
    Job,
    JobStatus,
    Order,
    PriorRuns,
    Run,
)
from tenfold.model.reason import JobRef
from tenfold.model.service.state import ServiceState
from tenfold.model.units import Millis


def job_ref(view: "FleetView", job_id: JobId) -> JobRef:
    """Return a job as reasons name it; the team of a finished job is no longer known."""
    active = view.running.get(job_id) or view.orders.get(job_id)
    job = view.pending.get(job_id) or view.held.get(job_id) if active is None else active.job
    return JobRef(job_id, None if job is None else job.team)


class FleetView(Protocol):
    """What a decider may read. It has no method that changes anything."""

    @property
    def version(self) -> int:
        """Number of events applied so far."""
        ...

    @property
    def nodes(self) -> Mapping[NodeId, Node]:
        """Every node that ever joined, in order."""
        ...

    @property
    def states(self) -> Mapping[NodeId, NodeState]:
        """Whether a node accepts new jobs."""
        ...

    @property
    def gpus_free(self) -> Mapping[NodeId, int]:
        """Whole devices that are free."""
        ...

    @property
    def cpus_milli_free(self) -> Mapping[NodeId, int]:
        """CPUs left, where they are counted."""
        ...

    @property
    def memory_mib_free(self) -> Mapping[NodeId, int]:
        """Memory left, where it is counted."""
        ...

    @property
    def shares(self) -> Mapping[NodeId, tuple[tuple[int, int], ...]]:
        """Shared devices, as (device, thousandths in use)."""
        ...

    @property
    def pending(self) -> Mapping[JobId, Job]:
        """Pending jobs."""
        ...

    @property
    def orders(self) -> Mapping[JobId, Order]:
        """Starts whose outcome is not known yet."""
        ...

    @property
    def running(self) -> Mapping[JobId, Run]:
        """Jobs that run, or are being stopped."""
        ...

    @property
    def held(self) -> Mapping[JobId, Job]:
        """Jobs that are held: they start no more, but are not over."""
        ...

    @property
    def past(self) -> Mapping[JobId, PriorRuns]:
        """Earlier runs of unfinished jobs."""
        ...

    @property
    def reservations(self) -> Mapping[JobId, BackfillReservation]:
        """Pending gangs with reserved nodes, the oldest reservation first."""
        ...

    @property
    def idle(self) -> Mapping[JobId, Millis]:
        """Running jobs that are idle, and since when."""
        ...

    @property
    def cancel_requests(self) -> Mapping[JobId, str]:
        """Jobs with an attempt whose cancellation was accepted, and who requested it."""
        ...

    @property
    def evictions(self) -> Sequence[Millis]:
        """When jobs were last preempted, oldest first."""
        ...

    @property
    def end_statuses(self) -> Mapping[JobId, JobStatus]:
        """How jobs ended that unfinished jobs depend on."""
        ...

    @property
    def services(self) -> Mapping[str, ServiceState]:
        """Services by name."""
        ...

    @property
    def failure_log(self) -> FailureLog:
        """Recent failures by node and by job; read-only, copy it to change it."""
        ...

    @property
    def history(self) -> Sequence[EndedJob]:
        """The latest finished jobs, oldest first."""
        ...

    @property
    def ended(self) -> int:
        """How many jobs have finished."""
        ...
