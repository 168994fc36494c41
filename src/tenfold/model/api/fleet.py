"""The fleet as a whole: counts by state, idle jobs, journal events, health."""

from typing import Any

from msgspec import UNSET, Struct, UnsetType

from tenfold.model.api.jobs import Use


class FleetStatus(Struct, frozen=True, kw_only=True):
    """Nodes, GPUs and jobs by state."""

    at: str | None
    nodes: dict[str, int]
    """By state."""
    gpus: dict[str, int]
    """By state: held, free, cordoned, down."""
    accelerators: dict[str, int]
    """GPUs by type, in any state."""
    jobs: dict[str, int]
    """By state; below `operator`, only your team's."""
    event: int
    """The last event included."""
    policy: str = ""
    """The policy that places jobs."""


class IdleJob(Struct, frozen=True, kw_only=True):
    """One idle job."""

    id: str
    team: str
    kind: str
    gpus: float
    idle_since: str | None
    gpu_hours_lost: float
    use: Use | None


class IdleTeam(Struct, frozen=True, kw_only=True):
    """Idle GPUs of one team."""

    team: str
    jobs: int
    gpus: float
    gpu_hours_lost: float


class Idle(Struct, frozen=True, kw_only=True):
    """Idle jobs now; hours are counted since each became idle."""

    at: str | None
    gpus: float
    gpu_hours_lost: float
    teams: tuple[IdleTeam, ...]
    """Largest loss first."""
    jobs: tuple[IdleJob, ...]
    """Largest loss first, 1,000 at most."""


class JournalEvent(Struct, frozen=True, kw_only=True):
    """One journal event, as in the stream of server-sent events."""

    seq: int
    kind: str
    """Its name in the past tense: `JobStarted`."""
    body: dict[str, Any]
    """Its fields, `at_ms` first."""


class Health(Struct, frozen=True, kw_only=True):
    """Health, and a clock warning."""

    status: str
    role: str | UnsetType = UNSET
    """`leader` or `standby`, where control planes share a journal."""
    clock_ahead_s: float | UnsetType = UNSET
    """How far event times are ahead of the machine's clock, if a second or more."""


class ControlPlane(Struct, frozen=True, kw_only=True):
    """One of the control planes that share a journal."""

    name: str
    url: str
    role: str
    """`leader`, `standby`, or `gone` if it was not seen for several leases."""
    host: str
    """Its machine and process."""
    version: str
    seen_s: float
    """How long ago it was seen, by the clock of the database."""


class ControlPlanes(Struct, frozen=True, kw_only=True):
    """The control planes that share the journal; none if it is not shared."""

    control_planes: tuple[ControlPlane, ...]
    epoch: int | UnsetType = UNSET
    """Of the leader; it increases with each."""
    lease_s: float | UnsetType = UNSET
