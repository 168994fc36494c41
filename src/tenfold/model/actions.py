"""Actions, in the imperative. A decider returns them; a world carries them out."""

from collections.abc import Sequence

from msgspec import UNSET, Struct, UnsetType

from tenfold.model.ids import JobId
from tenfold.model.job.job import Slot, StopCause
from tenfold.model.reason import Reason
from tenfold.model.units import Millis


class StartJob(Struct, frozen=True, forbid_unknown_fields=True, gc=False, tag="StartJob"):
    """Start all members of a gang on these slots, or none."""

    job_id: JobId
    slots: tuple[Slot, ...]
    because: Reason | UnsetType = UNSET
    """Why there and not at another site, where several could start it at different costs."""


class StopJob(Struct, frozen=True, forbid_unknown_fields=True, gc=False, tag="StopJob"):
    """Stop a running job, with a checkpoint if it supports them, and release its slots."""

    job_id: JobId
    cause: StopCause
    reason: Reason


class RefuseJob(Struct, frozen=True, forbid_unknown_fields=True, gc=False, tag="RefuseJob"):
    """Reject a job that can never fit this fleet."""

    job_id: JobId
    reasons: tuple[Reason, ...]


class ResizeJob(Struct, frozen=True, forbid_unknown_fields=True, gc=False, tag="ResizeJob"):
    """Continue a running elastic job on these slots instead of its current ones."""

    job_id: JobId
    slots: tuple[Slot, ...]
    reason: Reason


class ReserveStart(Struct, frozen=True, forbid_unknown_fields=True, gc=False, tag="PromiseStart"):
    """Keep these slots for a waiting gang: it is to start there at `start_ms` at the latest.

    A new promise takes the place of an older one; without slots it is withdrawn.
    """

    job_id: JobId
    slots: tuple[Slot, ...]
    start_ms: Millis
    since_ms: Millis
    """Since when the slots are kept; who came there later only fills the time until then."""


Action = StartJob | StopJob | RefuseJob | ResizeJob | ReserveStart


def decision_key(action: Action) -> tuple[object, ...]:
    """Return the identity of a decision: kind, job, slots, then times, causes and codes.

    Text is left out: another version may word it differently.
    """
    kind = action.__struct_config__.tag
    match action:
        case StartJob():
            return kind, action.job_id, action.slots
        case StopJob():
            return kind, action.job_id, (), action.cause, action.reason.code
        case RefuseJob():
            return kind, action.job_id, (), tuple(reason.code for reason in action.reasons)
        case ResizeJob():
            return kind, action.job_id, action.slots, action.reason.code
        case ReserveStart():
            return kind, action.job_id, action.slots, action.start_ms, action.since_ms


def same_decisions(some: Sequence[Action], others: Sequence[Action]) -> bool:
    """Return whether two deciders chose the same actions, in the same order."""
    return [decision_key(one) for one in some] == [decision_key(one) for one in others]
