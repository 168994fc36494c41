"""What is known of the active attempt of a job."""

from collections.abc import Callable
from typing import Literal

from msgspec import Struct

from tenfold.live.executor import AttemptEnded
from tenfold.model.events import JobResized, JobStarted
from tenfold.model.job.job import Job, JobStatus, Slot, StopCause
from tenfold.model.job.run_spec import RunSpec
from tenfold.model.reason import Reason
from tenfold.model.units import Millis

StopReason = StopCause | Literal["cancelled", "timeout", "resize"]
CheckpointTime = Callable[[Job, RunSpec], Millis | None]
"""Returns the time of the newest valid checkpoint of a job."""


class ActiveAttempt(Struct):
    """The active attempt of a job."""

    job: Job
    slots: tuple[Slot, ...]
    attempt: int
    started_ms: Millis | None = None
    launched: bool = False
    """False while a start is delayed."""
    numbers: tuple[tuple[int, ...], ...] = ()
    """DeviceAllocator by slot."""
    stop_reason: StopReason | None = None
    """Why it is being stopped."""
    by: str = ""
    """The user who cancelled its job."""
    next_slots: tuple[Slot, ...] | None = None
    """The slots of the next attempt, after a resize."""
    next_attempt: int = 0
    """The number of that attempt."""
    is_resize: bool = False
    """Whether this attempt continues a job that was stopped for a resize."""
    done_ms: Millis = Millis(0)
    """Work of this run that was saved before resizes."""
    saved_ms: Millis | None = None
    """When its job last saved, where that is read before its end is handled."""
    quarantine: Reason | None = None
    """Why its job is held once it has ended."""


def start_event(active: ActiveAttempt, now_ms: Millis) -> JobStarted | JobResized:
    """Return the event for the start of an attempt."""
    if active.is_resize:
        return JobResized(now_ms, active.job.id)
    return JobStarted(now_ms, active.job.id)


def earlier_stop_status(active: ActiveAttempt, observed: AttemptEnded) -> JobStatus:
    """Return why an earlier control plane stopped an attempt: time limit or cancellation."""
    limit_ms, started_ms = active.job.limit_ms, active.started_ms
    if limit_ms is None or started_ms is None or observed.at_ms < started_ms + limit_ms:
        return "cancelled"
    return "timeout"
