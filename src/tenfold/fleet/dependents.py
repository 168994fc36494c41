"""Dependencies between jobs, and how the jobs depended on have ended.

The end of a job is kept only while an unfinished job depends on it. A job that ended before its
dependent was submitted is no longer known, and counts as completed.
"""

from tenfold.model.ids import JobId
from tenfold.model.job.job import Job, JobStatus


class Dependents:
    """How many unfinished jobs depend on each job, and how those jobs ended."""

    def __init__(self) -> None:
        self.awaited: dict[JobId, int] = {}
        """Number of unfinished jobs that depend on this one."""
        self.end_statuses: dict[JobId, JobStatus] = {}

    def add(self, job: Job) -> None:
        """Record the dependencies of a job."""
        if job.terms is not None:
            for earlier in job.terms.after:
                self.awaited[earlier] = self.awaited.get(earlier, 0) + 1

    def over(self, job: Job, status: JobStatus) -> None:
        """Record how a job ended, and forget jobs that only it depended on."""
        if job.id in self.awaited:
            self.end_statuses[job.id] = status
        self.leave(job)

    def leave(self, job: Job) -> None:
        """Forget the dependencies of a job, and jobs that only it depended on."""
        if job.terms is not None:
            for earlier in job.terms.after:
                self.awaited[earlier] -= 1
                if not self.awaited[earlier]:
                    del self.awaited[earlier]
                    self.end_statuses.pop(earlier, None)

    def copy(self) -> "Dependents":
        """Return an independent copy."""
        copy = Dependents()
        copy.awaited, copy.end_statuses = self.awaited.copy(), self.end_statuses.copy()
        return copy
