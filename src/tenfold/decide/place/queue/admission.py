"""Admission: jobs that may not start yet because of their own terms.

A job waits for its dependencies, for a place among the running members of its array, and for
off-peak hours. What is held back depends only on the view and the clock.
"""

from collections.abc import Iterable, Mapping
from heapq import heappop, heappush

from tenfold.decide.place.quota.team_tree import is_off_peak
from tenfold.fleet.fleet import FleetView
from tenfold.fleet.view import job_ref
from tenfold.model.ids import JobId
from tenfold.model.job.job import Job
from tenfold.model.job.terms import Terms
from tenfold.model.policy.governance import GovernanceRules
from tenfold.model.reason import JobRef, Reason
from tenfold.model.units import Millis

JobQueue = list[tuple[int, int, Job]]


class Admission:
    """Jobs that are held back, and why."""

    def __init__(self, govern: GovernanceRules) -> None:
        self._govern = govern
        self._after: dict[JobId, dict[JobId, Job]] = {}
        """Held jobs by one of their dependencies."""
        self._off_peak: JobQueue = []
        self._arrays: dict[str, JobQueue] = {}
        self._let_in: dict[str, int] = {}
        """Members of an array that run, are starting, or may start."""

    def begin(self, held: Iterable[Job]) -> None:
        """Count the array members that hold nodes."""
        for job in held:
            if job.terms is not None and job.terms.array_most:
                self._let_in[job.terms.array] = self._let_in.get(job.terms.array, 0) + 1

    def check(self, view: FleetView, job: Job, terms: Terms, now_ms: Millis) -> bool | Reason:
        """Return whether a job may be queued now, or why it never will be."""
        for earlier in terms.after:
            outcome = view.end_statuses.get(earlier)
            if outcome is not None:
                if outcome != "completed":
                    return Reason("dependency-failed", {"job": JobRef(earlier), "status": outcome})
            elif earlier in view.pending or earlier in view.orders or earlier in view.running:
                self._after.setdefault(earlier, {})[job.id] = job
                return False
        for earlier in terms.ended_first:
            if earlier in view.pending or earlier in view.orders or earlier in view.running:
                self._after.setdefault(earlier, {})[job.id] = job
                return False
        if terms.off_peak and not is_off_peak(self._govern, now_ms):
            heappush(self._off_peak, (job.submitted_ms, job.seq, job))
            return False
        return self._may_enter(job, terms)

    def is_plain(self, job: Job) -> bool:
        """Return whether a stopped job may be queued again without checks."""
        terms = job.terms
        return terms is None or not (
            terms.after
            or terms.ended_first
            or terms.off_peak
            or terms.array_most
            or terms.least_gpus
        )

    def ended(self, job: Job) -> list[Job]:
        """Return held jobs to check again now that a job is over or has released its nodes."""
        again = list(self._after.pop(job.id, {}).values())
        terms = job.terms
        if terms is not None and terms.array_most:
            self._let_in[terms.array] -= 1
            queue = self._arrays.get(terms.array)
            if queue:
                again.append(heappop(queue)[2])
        return again

    def is_waited_for(self, job_id: JobId) -> bool:
        """Return whether other jobs depend on a job."""
        return job_id in self._after

    def refused(self, job_id: JobId) -> list[Job]:
        """Return held jobs to check again now that a job is refused."""
        return list(self._after.pop(job_id, {}).values())

    def held_back(self, view: FleetView) -> Mapping[JobId, Reason]:
        """Return what each held job waits for."""
        found: dict[JobId, Reason] = {}
        for earlier, jobs in self._after.items():
            why = Reason("dependency", {"job": job_ref(view, earlier)})
            found.update(dict.fromkeys(jobs, why))
        for _, _, job in self._off_peak:
            found[job.id] = Reason("off-peak")
        for name, queue in self._arrays.items():
            for _, _, job in queue:
                most = job.terms.array_most if job.terms else 0
                array = JobRef(JobId(name), job.team)
                found[job.id] = Reason("array-full", {"array": array, "most": most})
        return {job_id: why for job_id, why in found.items() if job_id in view.pending}

    def _may_enter(self, job: Job, terms: Terms) -> bool:
        if not terms.array_most:
            return True
        running = self._let_in.get(terms.array, 0)
        if running < terms.array_most:
            self._let_in[terms.array] = running + 1
            return True
        heappush(self._arrays.setdefault(terms.array, []), (job.submitted_ms, job.seq, job))
        return False
