"""Histories of demand: what each job wanted, and what it got."""

from msgspec import Struct

from tenfold.model.job.job import Job
from tenfold.model.units import Millis


class JobSpan(Struct, frozen=True, kw_only=True):
    """One job in a history: when it wanted to run, and when it ran."""

    job: Job
    wanted_ms: Millis
    """When it could have started, had there been room."""
    runs: tuple[tuple[Millis, Millis], ...]
    """From when to when it ran; several if it was interrupted, none if it never started."""
    left: int
    """Milliseconds that it still wants: 0 if it is over, `UNKNOWN_LEFT` if it waits or runs."""


UNKNOWN_LEFT = -1
"""A job that waits or runs when the history ends: how long it will take is not known."""
