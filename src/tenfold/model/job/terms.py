"""Terms: what a job asks of time and company, beyond the nodes that its shape asks for.

Most jobs have none, and then cost nothing: `Job.terms` is None for them.
"""

from typing import Literal

from msgspec import UNSET, Struct, UnsetType

from tenfold.model.ids import JobId
from tenfold.model.units import Millis

JobKind = Literal["training", "experiment", "interactive", "batch", "service"]


class Terms(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, gc=False):
    """What a submitter may say about when a job runs, and what may be done to it."""

    kind: JobKind = "batch"
    preemptible: bool = True
    """A job that is not is never stopped for another."""
    checkpoint_every_ms: Millis | None = None
    """Work since the last save is lost with a stop; None means that it saves when told to."""
    least_gpus: int = 0
    """An elastic job may shrink to this many GPUs; 0 means that it is not elastic."""
    most_gpus: int = 0
    """An elastic job may grow to this many."""
    after: tuple[JobId, ...] = ()
    """Jobs that must have completed before."""
    array: str = ""
    """Name of the array it belongs to."""
    array_most: int = 0
    """Members of the array that may run at once; 0 means all."""
    off_peak: bool = False
    """Starts in the off-peak hours of the policy alone."""
    busy_ms: Millis | None = None
    """How long an interactive session is really used before it idles; None means to its end.
    Known only in a replay, and to no policy."""
    idle_ms: Millis | UnsetType = UNSET
    """How long it may do nothing before it is said to idle; not written where it does not say.
    It can only shorten what the control plane and its policy allow."""


class Window(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A time in which nodes are kept for somebody, or for nobody."""

    id: str
    start_ms: Millis
    end_ms: Millis
    every_ms: Millis | None = None
    """It comes again after so long; None means once."""
    nodes: tuple[str, ...] = ()
    """Names of nodes, racks or pools."""
    team: str = ""
    """Who may use them then; empty means maintenance: nobody may."""


class Hours(Struct, frozen=True, forbid_unknown_fields=True):
    """A part of the day, as ms after midnight; the end may lie past midnight."""

    from_ms: Millis
    to_ms: Millis
