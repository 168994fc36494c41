"""Jobs that others come after, and how they ended.

An end is remembered only while somebody who is not over has to know it. A job that was over
before its dependent came is not known any more, and counts as completed.
"""

from tenfold.model.ids import JobId
from tenfold.model.job.job import Job, JobStatus


class Dependents:
    """Who is awaited by how many, and the ends of those who are."""

    def __init__(self) -> None:
        self.awaited: dict[JobId, int] = {}
        """Jobs that are not over and come after this one."""
        self.fates: dict[JobId, JobStatus] = {}

    def add(self, job: Job) -> None:
        """Note whom a job comes after."""
        if job.terms is not None:
            for earlier in job.terms.after:
                self.awaited[earlier] = self.awaited.get(earlier, 0) + 1

    def over(self, job: Job, status: JobStatus) -> None:
        """Note how a job ended, and forget those that only it was waiting for."""
        if job.id in self.awaited:
            self.fates[job.id] = status
        if job.terms is not None:
            for earlier in job.terms.after:
                self.awaited[earlier] -= 1
                if not self.awaited[earlier]:
                    del self.awaited[earlier]
                    self.fates.pop(earlier, None)

    def copy(self) -> "Dependents":
        """Return an independent copy."""
        copy = Dependents()
        copy.awaited, copy.fates = self.awaited.copy(), self.fates.copy()
        return copy
