"""The registry of unfinished jobs: what they run, and how often they were started.

All of it is in the journal, so a restarted control plane reads it from there. Crashes are counted
by the fleet from events, so the count survives a restart.
"""

from collections.abc import Iterable

from msgspec import Struct

from tenfold.live.keys import RecentKeys
from tenfold.model.ids import JobId, TeamId
from tenfold.model.job.failures import Crashes
from tenfold.model.job.run_spec import RunSpec
from tenfold.model.job.submission import Admitted, SubmitKey
from tenfold.model.units import SECOND, Millis

BACK_OFF_MS = 1 * SECOND
BACK_OFF_MS_MOST = 60 * SECOND
CRASHES_MOST = 3
"""Consecutive crashes without a newer checkpoint after which a job fails."""


class JobEntry(Struct):
    """One unfinished job."""

    run_spec: RunSpec
    attempts: int = 0
    """Number of ordered starts."""
    team: TeamId = TeamId("")
    event_bytes: int = 0
    """Size of the event that submitted it."""


class JobRegistry:
    """Entries by job, and the next job number."""

    def __init__(
        self,
        entries: Iterable[tuple[JobId, JobEntry]] = (),
        next_number: int = 1,
        keys: Iterable[tuple[SubmitKey, int]] = (),
    ) -> None:
        self._entries = dict(entries)
        self._bytes: dict[TeamId, int] = {}
        for entry in self._entries.values():
            self._count(entry, 1)
        self.next_number = next_number
        self.keys = RecentKeys(keys)

    def unfinished_bytes(self, team: TeamId) -> int:
        """Return the size of the events that submitted the unfinished jobs of a team."""
        return self._bytes.get(team, 0)

    def admit(self, jobs: Iterable[Admitted], event_bytes: int = 0) -> None:
        """Add an entry for each job."""
        for one in jobs:
            entry = JobEntry(one.run_spec, team=one.job.team, event_bytes=event_bytes)
            self._entries[one.job.id] = entry
            self._count(entry, 1)
            self.next_number = max(self.next_number, one.job.seq + 1)

    def run_spec(self, job_id: JobId) -> RunSpec:
        """Return what a job runs."""
        return self._entries[job_id].run_spec

    def begin(self, job_id: JobId) -> int:
        """Count an ordered start, and return its number."""
        entry = self._entries[job_id]
        entry.attempts += 1
        return entry.attempts

    def attempt(self, job_id: JobId) -> int:
        """Return the number of the last ordered start."""
        return self._entries[job_id].attempts

    def may_retry(self, job_id: JobId, crashes: Crashes) -> bool:
        """Return whether a crashed job is started again.

        Only jobs with checkpoints are: others would fail the same way from the beginning.
        """
        return (
            self._entries[job_id].run_spec.checkpoint is not None and crashes.count <= CRASHES_MOST
        )

    def close(self, job_id: JobId) -> None:
        """Remove a finished job."""
        entry = self._entries.pop(job_id, None)
        if entry is not None:
            self._count(entry, -1)

    def _count(self, entry: JobEntry, sign: int) -> None:
        self._bytes[entry.team] = self._bytes.get(entry.team, 0) + sign * entry.event_bytes


def back_off_ms(crashes: Crashes | None) -> Millis:
    """Return the delay of a start: 0 unless the job crashed."""
    if crashes is None:
        return Millis(0)
    return Millis(min(BACK_OFF_MS_MOST, BACK_OFF_MS * 2 ** (crashes.count - 1)))
