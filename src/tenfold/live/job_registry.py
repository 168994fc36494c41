"""The registry of unfinished jobs: what they run, and how often they were started.

All of it is in the journal, so a restarted control plane reads it from there. Crashes are counted
by the fleet from events, so the count survives a restart.
"""

from collections.abc import Iterable

from msgspec import Struct

from tenfold.live.keys import RecentKeys
from tenfold.model.ids import JobId, TeamId
from tenfold.model.job.run_spec import RunSpec
from tenfold.model.job.submission import Admitted, SubmitKey


class JobEntry(Struct):
    """One unfinished job."""

    run_spec: RunSpec
    attempts: int = 0
    """Number of ordered starts."""
    team: TeamId = TeamId("")
    event_bytes: int = 0
    """Size of the event that submitted it."""
    refusals: int = 0
    """Consecutive starts that were refused. Not in the journal: it only delays the next."""


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

    def refusals(self, job_id: JobId) -> int:
        """Return how many starts in a row were refused."""
        return self._entries[job_id].refusals

    def note_start(self, job_id: JobId, *, refused: bool) -> None:
        """Record whether a start was refused."""
        entry = self._entries[job_id]
        entry.refusals = entry.refusals + 1 if refused else 0

    def close(self, job_id: JobId) -> None:
        """Remove a finished job."""
        entry = self._entries.pop(job_id, None)
        if entry is not None:
            self._count(entry, -1)

    def _count(self, entry: JobEntry, sign: int) -> None:
        self._bytes[entry.team] = self._bytes.get(entry.team, 0) + sign * entry.event_bytes
