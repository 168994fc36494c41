"""Services: deploy, show and change them."""

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from tenfold.model.service.spec import REPLICAS_MAX

ServiceCondition = Literal["starting", "ready", "degraded", "idle", "rolling-out", "removing"]
"""`degraded` has fewer ready replicas than wanted; `idle` has none because none are wanted."""
ReplicaCondition = Literal["pending", "starting", "ready", "not-ready", "draining", "stopping"]


class Reason(Struct, frozen=True, kw_only=True):
    """Why something is so."""

    code: str
    sentence: str


class Replica(Struct, frozen=True, kw_only=True):
    """One replica: a job of the service."""

    id: str
    """The job."""
    revision: str
    state: ReplicaCondition
    url: str
    """Where it answers; empty before it was ready."""
    port: int
    nodes: tuple[str, ...]
    ordered_at: str | None
    ready_at: str | None
    """When it was ready first, since it started last."""
    reason: Reason | None = None
    """Why it is not ready, or drains."""


class Revision(Struct, frozen=True, kw_only=True):
    """One version of a service."""

    name: str
    role: Literal["current", "canary", "previous", "old"]
    weight: float
    """Percent of the requests that it gets now."""
    deployed_at: str | None
    command: tuple[str, ...]
    image: str
    model: str
    """The version in the model registry that it serves, as `chat@3`; empty for none."""
    failures: int
    """Replicas that failed in a row."""


class QuorumRisk(Struct, frozen=True, kw_only=True):
    """A failure domain whose loss leaves fewer ready replicas than `replicas_min`."""

    kind: Literal["site", "domain", "rack", "node"]
    name: str
    ready_left: int


class Service(Struct, frozen=True, kw_only=True):
    """A service."""

    name: str
    team: str
    state: ServiceCondition
    by: str
    """Who deployed it last."""
    deployed_at: str | None
    ready: int
    """Replicas of the current revision that get requests."""
    target: int
    """Replicas of it that should be ready or starting."""
    replicas_min: int
    replicas_max: int
    current: str
    canary: str
    """The revision that is being rolled out; empty for none."""
    canary_weight: float
    """Percent of the requests that it is to get."""
    scaled: Reason | None
    """Why that many replicas are wanted."""
    rolled_back: Reason | None
    """Why the last rollout was rolled back."""
    cold_start_s: float | None
    """Mean of the measured times from order to ready; None before the first."""
    quorum_risks: tuple[QuorumRisk, ...]
    """Domains that it cannot lose, the largest first; empty while it is below its minimum."""
    revisions: tuple[Revision, ...]
    replicas: tuple[Replica, ...]
    spec: dict[str, Any] | UnsetType = UNSET
    """The service file that was deployed, without defaults; only for one service."""


class Services(Struct, frozen=True, kw_only=True):
    """Services, by name."""

    services: tuple[Service, ...]


class ScaleService(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How many replicas a service has at least and at most."""

    replicas_min: Annotated[int, Meta(ge=0, le=REPLICAS_MAX)]
    replicas_max: Annotated[int, Meta(ge=1, le=REPLICAS_MAX)]


class WeighCanary(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The share of the revision that is being rolled out, in percent."""

    weight: Annotated[float, Meta(ge=0, lt=100)]
