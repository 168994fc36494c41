"""What the controller of a service sees beside its record, and what it orders."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from tenfold.model.events import ReplicaEvent, ServiceEvent
from tenfold.model.ids import JobId
from tenfold.model.reason import Reason
from tenfold.model.service.load import ServiceLoad
from tenfold.model.service.traffic import RolledBack
from tenfold.model.units import Millis


class Probed(Struct, frozen=True, kw_only=True):
    """What probes say of one replica, after as many failures as its service allows."""

    is_ready: bool
    url: str = ""
    reason: Reason | None = None
    """Why it is not ready."""


class ServiceSeen(Struct, frozen=True, kw_only=True):
    """What was observed of one service."""

    started_ms: Mapping[JobId, Millis] = {}
    """When the processes of each replica were started; one that waits for its start is not here."""
    probes: Mapping[JobId, Probed] = {}
    load: ServiceLoad | None = None
    """None while no gateway has answered."""
    covers_ms: Millis = Millis(0)
    """How far back the history of the load goes."""
    idle: Sequence[JobId] = ()
    """Draining replicas that all gateways know to drain, and that have no requests left."""
    rolled_back: Sequence[RolledBack] = ()
    ports: Sequence[int] = ()
    """Free ports for new replicas."""


class ReplicaOrder(Struct, frozen=True, kw_only=True):
    """Start a replica of this revision, which listens on this port."""

    revision: str
    port: int


class ServiceStep(Struct, frozen=True, kw_only=True):
    """What to record and to order for one service."""

    events: tuple[ServiceEvent | ReplicaEvent, ...] = ()
    starts: tuple[ReplicaOrder, ...] = ()
    stops: tuple[JobId, ...] = ()
    """Replicas whose jobs are cancelled."""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do."""
        return not (self.events or self.starts or self.stops)
