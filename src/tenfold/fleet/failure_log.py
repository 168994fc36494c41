"""What went wrong lately, by node and by job: so much as it takes to judge nodes.

All of it comes from facts that carry a mishap, which only a live world tells of; a simulated
fleet keeps nothing here. A success clears its node; a node that comes back, or that a person
takes to be good again, begins with a clean record.
"""

from collections.abc import Iterable

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from tenfold.model.events import ActionRefused, JobEnded, JobStopped
from tenfold.model.ids import JobId, NodeId
from tenfold.model.job.failures import AttemptFailure, Crashes, NodeFailure
from tenfold.model.job.job import Job
from tenfold.model.reason import Reason
from tenfold.model.units import Millis

KEEPS_FAILING = "keeps-failing-jobs"
"""The code of a cordon that nobody asked for: jobs fail on this node and not on others."""
KEPT = 16
"""Failures that are remembered of one node."""


class FailureLog(Struct):
    """Failures by node since its last success, and crashes by job since it last saved."""

    failures: dict[NodeId, tuple[NodeFailure, ...]] = {}
    succeeded: dict[NodeId, Millis] = {}
    """When a job last ran to its end on a node, while some node was in trouble."""
    blamed: dict[NodeId, Reason] = {}
    """Nodes that were cordoned because jobs kept failing there."""
    crashes: dict[JobId, Crashes] = {}

    def stopped(self, event: JobStopped, job: Job) -> None:
        """Note what a stop says, where nobody asked for it."""
        if event.failure is not UNSET:
            self._failed(job, event.failure, event.at_ms)
            if event.cause == "crashed":
                before = self.crashes.get(job.id)
                self.crashes[job.id] = after_crash(before, event.failure.saved_ms)

    def ended(self, event: JobEnded, job: Job, nodes: Iterable[NodeId]) -> None:
        """Note what an end says of the nodes that a job was on."""
        if event.failure is not UNSET:
            self._failed(job, event.failure, event.at_ms)
        elif event.status == "completed" and self.failures:
            self._completed(job.id, nodes, event.at_ms)
        self.over(job.id)

    def refused(self, event: ActionRefused, job: Job) -> None:
        """Note what the refusal of a start says."""
        if event.failure is not UNSET:
            self._failed(job, event.failure, event.at_ms)

    def over(self, job_id: JobId) -> None:
        """Forget what only a job that is not over has."""
        self.crashes.pop(job_id, None)

    def _failed(self, job: Job, failure: AttemptFailure, at_ms: Millis) -> None:
        """Note a failure on the node whose member failed first."""
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
        """Clear the nodes on which a job ran to its end, and the job where it failed before."""
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
        """Note that a node was taken out because of what stands here."""
        if cause.code == KEEPS_FAILING:
            self.blamed[node] = cause

    def returned(self, node: NodeId) -> None:
        """Begin a clean record."""
        self.failures.pop(node, None)
        self.blamed.pop(node, None)
        self._tidy()

    def lost(self, node: NodeId) -> None:
        """Leave a node that is gone to whoever looks after lost nodes."""
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
    """Return the crashes of a job with one more; one that saved something new gets on."""
    before = before or Crashes(0)
    if saved_ms is not UNSET and saved_ms > before.saved_ms:
        return Crashes(1, saved_ms)
    return Crashes(before.count + 1, before.saved_ms)
