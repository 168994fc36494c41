"""Whether a failed attempt is followed by another, and after what delay.

Two kinds of failure count against a job, both until its next checkpoint: its command failed, or the
attempt was lost with nothing wrong with the node. A node that is lost or restarts ends attempts of
any job, so these are repeated without limit and without delay.
"""

from msgspec import UNSET, UnsetType

from tenfold.model.job.failures import AttemptFailure, Crashes
from tenfold.model.units import SECOND, Millis

BACK_OFF_MS = 1 * SECOND
BACK_OFF_MS_MOST = 60 * SECOND
CRASHES_MOST = 3
"""Consecutive failures of a command without a newer checkpoint after which a job fails."""
LOSSES_MOST = 8
"""Consecutive lost attempts without a newer checkpoint after which a job fails."""
ATTEMPTS_MOST = 1_000
"""Starts of a job, of any outcome, after which a failure ends it even if it saves each time."""


def counts_against_job(failure: AttemptFailure | UnsetType) -> bool:
    """Return whether a lost attempt counts against its job.

    Losses that do not, and all from before losses were counted, have no reason.
    """
    return failure is not UNSET and failure.kind == "lost" and failure.reason is not UNSET


def retries_crash(crashes: Crashes, attempts: int, *, saves: bool) -> bool:
    """Return whether a job is started again after its command failed.

    Only jobs with checkpoints are: others would fail the same way from the beginning.
    """
    return saves and crashes.count <= CRASHES_MOST and attempts < ATTEMPTS_MOST


def retries_loss(crashes: Crashes, attempts: int) -> bool:
    """Return whether a job is started again after an attempt was lost through no node's fault."""
    return crashes.count <= LOSSES_MOST and attempts < ATTEMPTS_MOST


def back_off_ms(failures: int) -> Millis:
    """Return the delay of a start after this many consecutive failures."""
    if failures <= 0:
        return Millis(0)
    # The exponent is limited first: the power of a large count would be a large number.
    doublings = min(failures - 1, BACK_OFF_MS_MOST.bit_length())
    return Millis(min(BACK_OFF_MS_MOST, BACK_OFF_MS * 2**doublings))
