"""Terms: scheduling options of a job beyond its shape, such as preemption and dependencies.

Most jobs have none; `Job.terms` is then None and costs nothing.
"""

from typing import Literal

from msgspec import UNSET, Struct, UnsetType

from tenfold.model.ids import JobId
from tenfold.model.service.replica import ReplicaRef
from tenfold.model.units import Millis

JobKind = Literal["training", "experiment", "interactive", "batch", "service"]


class Terms(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, gc=False):
    """Options a submitter sets for when a job may run and how it may be stopped or resized."""

    kind: JobKind = "batch"
    preemptible: bool = True
    """If false, the job is never stopped for another job."""
    checkpoint_every_ms: Millis | None = None
    """Checkpoint interval: work since the last checkpoint is lost at a stop. None means that it
saves on SIGTERM."""
    least_gpus: int = 0
    """Minimum GPUs of an elastic job; 0 means not elastic."""
    most_gpus: int = 0
    """Maximum GPUs of an elastic job."""
    after: tuple[JobId, ...] = ()
    """Dependencies: jobs that must have completed first."""
    after_any: tuple[JobId, ...] | UnsetType = UNSET
    """Jobs that must have ended first, with success or without; unset where there are none."""
    array: str = ""
    """Id of its array."""
    array_most: int = 0
    """Maximum number of array members that run at once; 0 means all."""
    array_most_always: bool | UnsetType = UNSET
    """Set where `array_most` holds under every policy. For jobs without it, of traces and of
    earlier versions, only the policy `governed` applies it."""
    off_peak: bool = False
    """Start only in the off-peak hours of the policy."""
    busy_ms: Millis | None = None
    """How long an interactive session is in use before it goes idle; None means until its end.
Known only in a replay, and to no policy."""
    idle_ms: Millis | UnsetType = UNSET
    """How long it may be inactive before it counts as idle; unset where the job sets none. It can
only shorten the limit of the control plane and its policy."""
    allow_pending: bool | UnsetType = UNSET
    """Set where a job that this fleet can never run waits for nodes that may join later."""
    keep_on_rerank: bool | UnsetType = UNSET
    """Set where a submitted job has no checkpoint and does not set `preemptible`: it would lose
its work, so a policy that ranks running jobs again does not stop it. Quota reclaim may."""

    data: tuple[str, ...] | UnsetType = UNSET
    """Names of the data that it reads; unset where it names none."""
    service: ReplicaRef | UnsetType = UNSET
    """Set where it is a replica of a service."""

    @property
    def ended_first(self) -> tuple[JobId, ...]:
        """Jobs that must have ended first in any way."""
        return () if self.after_any is UNSET else self.after_any

    @property
    def rerank_preemptible(self) -> bool:
        """Whether a policy that ranks running jobs again may stop it for another job."""
        return self.preemptible and self.keep_on_rerank is not True


class Window(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A period in which nodes are reserved for a team, or down for maintenance."""

    id: str
    start_ms: Millis
    end_ms: Millis
    every_ms: Millis | None = None
    """Repeat interval; None means once."""
    nodes: tuple[str, ...] = ()
    """Names of nodes, racks or pools."""
    team: str = ""
    """The team that may use them; empty means maintenance."""


class Hours(Struct, frozen=True, forbid_unknown_fields=True):
    """A part of the day, in ms after midnight; the end may be past midnight."""

    from_ms: Millis
    to_ms: Millis
