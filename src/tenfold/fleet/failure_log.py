"""Recent failures by node and by job, as far as judging nodes needs them.

All entries come from events that carry a failure, which only live executors report; a simulated
fleet keeps nothing here. A success clears its node; a node that returns, or that an operator
uncordons, starts with a clean record.
"""

from collections.abc import Iterable

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from tenfold.fleet.retries import counts_against_job
from tenfold.model.events import ActionRefused, JobEnded, JobStopped
from tenfold.model.ids import JobId, NodeId
from tenfold.model.job.failures import AttemptFailure, Crashes, NodeFailure
from tenfold.model.job.job import Job
from tenfold.model.reason import Reason
from tenfold.model.units import Millis

KEEPS_FAILING = "keeps-failing-jobs"
"""The code of an automatic cordon: jobs fail on this node and not on others."""
KEPT = 16
"""Failures kept for one node."""


class FailureLog(Struct):
    """Failures by node since its last success, and crashes by job since its last checkpoint."""

    failures: dict[NodeId, tuple[NodeFailure, ...]] = {}
    succeeded: dict[NodeId, Millis] = {}
    """When a job last completed on a node, while any node had failures."""
    blamed: dict[NodeId, Reason] = {}
    """Nodes that were cordoned because jobs kept failing on them."""
    crashes: dict[JobId, Crashes] = {}

    def stopped(self, event: JobStopped, job: Job) -> None:
        """Record the failure behind a stop that was not ordered."""
        if event.failure is not UNSET:
            self._failed(job, event.failure, event.at_ms)
            if event.cause == "crashed" or counts_against_job(event.failure):
                before = self.crashes.get(job.id)
                self.crashes[job.id] = after_crash(before, event.failure.saved_ms)

    def ended(self, event: JobEnded, job: Job, nodes: Iterable[NodeId]) -> None:
        """Record what the end of a job says about its nodes."""
        if event.failure is not UNSET:
            self._failed(job, event.failure, event.at_ms)
        elif event.status == "completed" and self.failures:
            self._completed(job.id, nodes, event.at_ms)
        self.over(job.id)

    def refused(self, event: ActionRefused, job: Job) -> None:
        """Record the failure behind a refused start."""
        if event.failure is not UNSET:
            self._failed(job, event.failure, event.at_ms)

    def over(self, job_id: JobId) -> None:
        """Forget what is only kept for unfinished jobs."""
        self.crashes.pop(job_id, None)

    def _failed(self, job: Job, failure: AttemptFailure, at_ms: Millis) -> None:
        """Record a failure on the node whose member failed first."""
        if failure.node_id is not UNSET:
            array = job.terms.array if job.terms is not None else ""
            recorded = NodeFailure(
                job_id=job.id,
                attempt=failure.attempt,
                kind=failure.kind,
                at_ms=at_ms,
                array_or_job=array or job.id,
                owner=f"{job.team}/{job.user}",
            )
            before = self.failures.get(failure.node_id, ())
            self.failures[failure.node_id] = (*before, recorded)[-KEPT:]

    def _completed(self, job_id: JobId, nodes: Iterable[NodeId], at_ms: Millis) -> None:
        """Clear the nodes on which a job completed, and its own earlier failures."""
        for node in nodes:
            self.failures.pop(node, None)
            self.succeeded[node] = at_ms
        if job_id in self.crashes:
            for node, failures in self.failures.items():
                self.failures[node] = tuple(
                    replace(one, cleared=True) if one.job_id == job_id else one for one in failures
                )
        self._tidy()

    def cordoned(self, node: NodeId, cause: Reason) -> None:
        """Record that a node was cordoned because of these failures."""
        if cause.code == KEEPS_FAILING:
            self.blamed[node] = cause

    def returned(self, node: NodeId) -> None:
        """Start a clean record."""
        self.failures.pop(node, None)
        self.blamed.pop(node, None)
        self._tidy()

    def lost(self, node: NodeId) -> None:
        """Forget a lost node here: losing it is handled elsewhere."""
        self.blamed.pop(node, None)

    def copy(self) -> "FailureLog":
        """Return an independent copy."""
        return FailureLog(
            self.failures.copy(), self.succeeded.copy(), self.blamed.copy(), self.crashes.copy()
        )

    def _tidy(self) -> None:
        if not self.failures:
            self.succeeded.clear()


def after_crash(before: Crashes | None, saved_ms: Millis | UnsetType) -> Crashes:
    """Return the crashes of a job plus one; a new checkpoint resets the count."""
    before = before or Crashes(0)
    if saved_ms is not UNSET and saved_ms > before.saved_ms:
        return Crashes(1, saved_ms)
    return Crashes(before.count + 1, before.saved_ms)
