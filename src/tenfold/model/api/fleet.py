"""The fleet as a whole: counts by state, jobs that idle, events of the journal, health."""

from typing import Any

from msgspec import UNSET, Struct, UnsetType

from tenfold.model.api.jobs import Use


class FleetStatus(Struct, frozen=True, kw_only=True):
    """What there is and what it does."""

    at: str | None
    nodes: dict[str, int]
    """By state."""
    gpus: dict[str, int]
    """By state: held, free, cordoned, down."""
    accelerators: dict[str, int]
    """GPUs by type, whatever their state."""
    jobs: dict[str, int]
    """By state; below `operator`, those of one's own team."""
    event: int
    """The last event that is counted in."""


class IdleJob(Struct, frozen=True, kw_only=True):
    """One job that idles."""

    id: str
    team: str
    kind: str
    gpus: float
    idle_since: str | None
    gpu_hours_lost: float
    use: Use | None


class IdleTeam(Struct, frozen=True, kw_only=True):
    """GPUs that the jobs of one team hold and do not use."""

    team: str
    jobs: int
    gpus: float
    gpu_hours_lost: float


class Idle(Struct, frozen=True, kw_only=True):
    """Which jobs idle now; hours are lost since each began to."""

    at: str | None
    gpus: float
    gpu_hours_lost: float
    teams: tuple[IdleTeam, ...]
    """Those that lose most come first."""
    jobs: tuple[IdleJob, ...]
    """Likewise, and 1,000 of them at most."""


class JournalEvent(Struct, frozen=True, kw_only=True):
    """One event of the journal, as a stream of server-sent events has it."""

    seq: int
    kind: str
    """Its name in the past tense: `JobStarted`."""
    body: dict[str, Any]
    """Its fields, `at_ms` first."""


class Health(Struct, frozen=True, kw_only=True):
    """One word, and what is odd though work is taken."""

    status: str
    clock_ahead_s: float | UnsetType = UNSET
    """How far times of events are ahead of the machine's clock, where that is a second or more."""
