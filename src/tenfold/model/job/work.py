"""What a job runs when it is more than a shape: the command and what surrounds it.

A simulated job has none. Deciders never see it: what a job is does not depend on where it lies.
"""

from msgspec import Struct

from tenfold.model.units import SECOND, Millis

GRACE_MS = Millis(30 * SECOND)
"""From the notice to the kill, for jobs that do not say: what Kubernetes gives by default."""


class Saves(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """Where a job keeps its checkpoints, and how often it says that it saves."""

    folder: str
    every_ms: Millis | None = None


class Work(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """One job's command: an argument vector, never a line for a shell."""

    name: str
    command: tuple[str, ...]
    env: tuple[tuple[str, str], ...] = ()
    folder: str = ""
    """Where it runs; empty means a folder of its own under the team's."""
    image: str = ""
    saves: Saves | None = None
    grace_ms: Millis = GRACE_MS
    silent_ms_most: Millis | None = None
    """A member that gives no sign of life for longer is taken to hang; None watches nothing."""
    trace: str = ""
    """The trace that its submission was a part of, as a `traceparent`; empty where of none."""
