"""Wishes, in the imperative. A decider returns them; a world carries them out."""

from msgspec import Struct

from tenfold.model.ids import JobId
from tenfold.model.job import Slot, StopCause
from tenfold.model.reason import Reason


class StartJob(Struct, frozen=True, gc=False, tag=True):
    """Start every member of a gang on these slots, or none."""

    job_id: JobId
    slots: tuple[Slot, ...]


class StopJob(Struct, frozen=True, gc=False, tag=True):
    """Checkpoint a running job where it can be, and give back its slots."""

    job_id: JobId
    cause: StopCause
    reason: Reason


class RefuseJob(Struct, frozen=True, gc=False, tag=True):
    """Tell the submitter that this fleet can never hold the job."""

    job_id: JobId
    reasons: tuple[Reason, ...]


Action = StartJob | StopJob | RefuseJob
