"""What the live world knows of jobs beyond the fleet: what they run, and how often they tried.

All of it stands in the journal, so a controller that comes back reads it there. Crashes are
counted by the fleet itself, from facts, and so the same before a restart as after it.
"""

from collections.abc import Iterable

from msgspec import Struct

from tenfold.live.keys import RecentKeys
from tenfold.model.ids import JobId
from tenfold.model.job.failures import Crashes
from tenfold.model.job.run_spec import RunSpec
from tenfold.model.job.submission import Admitted, SubmitKey
from tenfold.model.units import SECOND, Millis

BACK_OFF_MS = 1 * SECOND
BACK_OFF_MS_MOST = 60 * SECOND
CRASHES_MOST = 3
"""Crashes in a row without a newer checkpoint after which a job is given up."""


class JobEntry(Struct):
    """One job that is not over."""

    run_spec: RunSpec
    attempts: int = 0
    """Starts that were ordered."""


class JobRegistry:
    """Entries by job, and the number that the next job gets."""

    def __init__(
        self,
        entries: Iterable[tuple[JobId, JobEntry]] = (),
        next_number: int = 1,
        keys: Iterable[tuple[SubmitKey, int]] = (),
    ) -> None:
        self._entries = dict(entries)
        self.next_number = next_number
        self.keys = RecentKeys(keys)

    def admit(self, jobs: Iterable[Admitted]) -> None:
        """Open an entry for each of these."""
        for one in jobs:
            self._entries[one.job.id] = JobEntry(one.run_spec)
            self.next_number = max(self.next_number, one.job.seq + 1)

    def run_spec(self, job_id: JobId) -> RunSpec:
        """Return what a job runs."""
        return self._entries[job_id].run_spec

    def begin(self, job_id: JobId) -> int:
        """Count a start that was ordered, and return its number."""
        entry = self._entries[job_id]
        entry.attempts += 1
        return entry.attempts

    def attempt(self, job_id: JobId) -> int:
        """Return the number of the start that was ordered last."""
        return self._entries[job_id].attempts

    def may_retry(self, job_id: JobId, crashes: Crashes) -> bool:
        """Tell whether a job that crashed so often is to be started again.

        Only a job that keeps checkpoints is: another one would do the same again from its
        beginning.
        """
        return (
            self._entries[job_id].run_spec.checkpoint is not None and crashes.count <= CRASHES_MOST
        )

    def close(self, job_id: JobId) -> None:
        """Forget a job that is over."""
        self._entries.pop(job_id, None)


def back_off_ms(crashes: Crashes | None) -> Millis:
    """Return how long a start is put off: not at all, but after a crash."""
    if crashes is None:
        return Millis(0)
    return Millis(min(BACK_OFF_MS_MOST, BACK_OFF_MS * 2 ** (crashes.count - 1)))
