"""What deciders may see of a fleet: everything, and nothing that changes it."""

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
from tenfold.model.units import Millis


def job_ref(view: "FleetView", job_id: JobId) -> JobRef:
    """Return a job as a reason names it; whose a job is that is over, the fleet has forgotten."""
    held = view.running.get(job_id) or view.orders.get(job_id)
    job = view.pending.get(job_id) if held is None else held.job
    return JobRef(job_id, None if job is None else job.team)


class FleetView(Protocol):
    """What a decider may see. It has no method that changes anything."""

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
        """Whether a node may take work."""
        ...

    @property
    def gpus_free(self) -> Mapping[NodeId, int]:
        """Whole devices that nobody holds a part of."""
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
        """Devices that are shared, as (device, thousandths given)."""
        ...

    @property
    def pending(self) -> Mapping[JobId, Job]:
        """Jobs that wait."""
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
    def past(self) -> Mapping[JobId, PriorRuns]:
        """Earlier runs of jobs that are not over."""
        ...

    @property
    def reservations(self) -> Mapping[JobId, BackfillReservation]:
        """Waiting gangs for which nodes are kept, the oldest promise first."""
        ...

    @property
    def idle(self) -> Mapping[JobId, Millis]:
        """Running sessions without anything to do, and since when."""
        ...

    @property
    def evictions(self) -> Sequence[Millis]:
        """When jobs were last told to stop for others, oldest first."""
        ...

    @property
    def fates(self) -> Mapping[JobId, JobStatus]:
        """How jobs ended that others, which are not over, come after."""
        ...

    @property
    def failure_log(self) -> FailureLog:
        """What went wrong lately, by node and by job; to be read, and copied to be changed."""
        ...

    @property
    def history(self) -> Sequence[EndedJob]:
        """The latest finished jobs, oldest first."""
        ...

    @property
    def ended(self) -> int:
        """How many jobs are over."""
        ...
