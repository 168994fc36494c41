"""What the live world knows of jobs beyond the fleet: what they run, and how often they tried.

All of it stands in the journal, so a controller that comes back reads it there.
"""

from collections.abc import Iterable

from msgspec import Struct

from tenfold.model.ids import JobId
from tenfold.model.submission import Admitted
from tenfold.model.units import SECOND, Millis
from tenfold.model.work import Work

BACK_OFF_MS = 1 * SECOND
BACK_OFF_MS_MOST = 60 * SECOND
CRASHES_MOST = 3
"""Crashes in a row without a newer checkpoint after which a job is given up."""


class Entry(Struct):
    """One job that is not over."""

    work: Work
    attempts: int = 0
    """Starts that were ordered."""
    crashes: int = 0
    """Attempts in a row that crashed and saved nothing new."""
    saved_ms: Millis = Millis(0)
    """When the newest checkpoint that was seen was made."""


class Book:
    """Entries by job, and the number that the next job gets."""

    def __init__(self, entries: Iterable[tuple[JobId, Entry]] = (), next_number: int = 1) -> None:
        self._entries = dict(entries)
        self.next_number = next_number

    def admit(self, jobs: Iterable[Admitted]) -> None:
        """Open an entry for each of these."""
        for one in jobs:
            self._entries[one.job.id] = Entry(one.work)
            self.next_number = max(self.next_number, one.job.seq + 1)

    def work(self, job_id: JobId) -> Work:
        """Return what a job runs."""
        return self._entries[job_id].work

    def begin(self, job_id: JobId) -> int:
        """Count a start that was ordered, and return its number."""
        entry = self._entries[job_id]
        entry.attempts += 1
        return entry.attempts

    def attempt(self, job_id: JobId) -> int:
        """Return the number of the start that was ordered last."""
        return self._entries[job_id].attempts

    def back_off_ms(self, job_id: JobId) -> Millis:
        """Return how long a start is put off: not at all, but after a crash."""
        crashes = self._entries[job_id].crashes
        if not crashes:
            return Millis(0)
        return Millis(min(BACK_OFF_MS_MOST, BACK_OFF_MS * 2 ** (crashes - 1)))

    def crashed(self, job_id: JobId, saved_ms: Millis | None) -> bool:
        """Count a crash; return whether the job is worth another try.

        Only a job that keeps checkpoints is tried again: another one would do the same again
        from its beginning. One that saved something new since its last crash gets on.
        """
        entry = self._entries[job_id]
        if entry.work.saves is None:
            return False
        if saved_ms is not None and saved_ms > entry.saved_ms:
            entry.saved_ms, entry.crashes = saved_ms, 1
        else:
            entry.crashes += 1
        return entry.crashes <= CRASHES_MOST

    def close(self, job_id: JobId) -> None:
        """Forget a job that is over."""
        self._entries.pop(job_id, None)
