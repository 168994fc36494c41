"""Services as they are recorded: what was deployed, its revisions, and its replicas.

`Fleet.apply` makes these of events; the controller and the routing state are made of them alone.
"""

from msgspec import Struct, field

from tenfold.model.ids import JobId, TeamId
from tenfold.model.job.job import Job
from tenfold.model.job.run_spec import RunSpec
from tenfold.model.reason import Reason
from tenfold.model.service.spec import ServiceSpec
from tenfold.model.units import Millis

COLD_STARTS_KEPT = 20


class ReplicaState(
    Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """One replica: a job that has not ended."""

    id: JobId
    revision: str
    port: int
    ordered_ms: Millis
    is_ready: bool = False
    url: str = ""
    """Where it answers; known once it was ready."""
    ready_ms: Millis | None = None
    """When it was ready first, since its job started last."""
    changed_ms: Millis
    """When its readiness changed last, or its job was requeued."""
    drain_ms: Millis | None = None
    """Since when it drains: it gets no new requests, and stops."""
    is_stopping: bool = False
    """Whether its job is being cancelled."""
    reason: Reason | None = None
    """Why it is not ready any more, or drains."""

    @property
    def serves(self) -> bool:
        """Whether it gets new requests."""
        return self.is_ready and not self.is_leaving

    @property
    def is_leaving(self) -> bool:
        """Whether it drains, or its job is being cancelled."""
        return self.drain_ms is not None or self.is_stopping


class RevisionState(
    Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """One version of a service: what its replicas are."""

    name: str
    deployed_ms: Millis
    job: Job
    """Of every replica, but for its id, its number and its port."""
    run_spec: RunSpec = field(name="work")
    failures: int = 0
    """Replicas that failed in a row, none of which was ready for long."""
    failed_ms: Millis = Millis(0)


class ServiceState(
    Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """One service."""

    spec: ServiceSpec
    team: TeamId
    by: str = ""
    """Who deployed it last."""
    deployed_ms: Millis
    number: int = 0
    """Revisions so far."""
    revisions: tuple[RevisionState, ...] = ()
    """Those that have replicas or may be rolled back to, oldest first."""
    current: str = ""
    """The revision that has the requests."""
    previous: str = ""
    """The revision that had them before."""
    canary: str = ""
    """The revision that is being rolled out; empty for none."""
    weight: float = 0.0
    """Percent of the requests that it is to get; at 100 it is promoted once it is large enough."""
    weight_ms: Millis = Millis(0)
    """When the weight was set."""
    is_held: bool = False
    """Whether a user set the weight, so that it does not advance by itself."""
    is_promoting: bool = False
    """Whether a user asked for its promotion: then it does not wait for the end of a step."""
    target: int = 0
    """Replicas that should be ready or starting, of the revision that has the requests."""
    scaled_ms: Millis = Millis(0)
    scaled: Reason | None = None
    """Why that many."""
    rolled_back: Reason | None = None
    """Why the last rollout was rolled back."""
    replicas: tuple[ReplicaState, ...] = ()
    """In the order in which they were ordered."""
    cold_starts_ms: tuple[int, ...] = ()
    """Measured times from order to ready, oldest first."""
    removed_ms: Millis | None = None
    """Since when it is being removed; it is gone with its last replica."""

    @property
    def name(self) -> str:
        """Its name."""
        return self.spec.name

    def revision(self, name: str) -> RevisionState | None:
        """Return a revision that is still known."""
        return next((one for one in self.revisions if one.name == name), None)

    def of(self, revision: str) -> list[ReplicaState]:
        """Return the replicas of a revision that stay."""
        return [one for one in self.replicas if one.revision == revision and not one.is_leaving]

    def ready(self, revision: str) -> int:
        """Return how many replicas of a revision get requests."""
        return sum(one.is_ready for one in self.of(revision))
