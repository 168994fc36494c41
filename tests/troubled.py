"""A fleet on which jobs come to their ends one after another, for tests that judge nodes."""

from msgspec import UNSET

from tenfold.decide.recover.lemons import CordonThresholds, nodes_to_cordon
from tenfold.fleet.fleet import Fleet
from tenfold.model.actions import StartJob
from tenfold.model.events import (
    ActionOrdered,
    Event,
    JobEnded,
    JobStarted,
    JobStopped,
    JobSubmitted,
    NodeJoined,
)
from tenfold.model.fleet.node import Node
from tenfold.model.ids import JobId, NodeId, PoolId, SiteId, TeamId
from tenfold.model.job.failures import AttemptFailure, FailureKind
from tenfold.model.job.job import Job, Slot, shape_of
from tenfold.model.job.terms import Terms
from tenfold.model.reason import Reason
from tenfold.model.units import Millis

RULE = CordonThresholds()


class Story:
    """A fleet of one pool, and what happens to jobs on it, one after another."""

    def __init__(self, nodes: int = 10) -> None:
        self.fleet = Fleet()
        self.now_ms = 0
        self._jobs = 0
        self.events: list[Event] = []
        for number in range(1, nodes + 1):
            node = Node(id=NodeId(f"n{number}"), pool=PoolId("p"), site=SiteId("s"), gpus=8)
            self._apply(NodeJoined(Millis(0), node))

    def runs(self, node: NodeId, owner: str = "ann", array: str = "") -> JobId:
        """Let a new job run on a node."""
        self._jobs += 1
        job = Job(
            id=JobId(f"job-{self._jobs}"),
            shape=shape_of(1),
            submitted_ms=self._tick(),
            team=TeamId("t"),
            user=owner,
            terms=Terms(array=array) if array else None,
        )
        self._apply(JobSubmitted(job.submitted_ms, job))
        self.again(job.id, node)
        return job.id

    def again(self, job_id: JobId, node: NodeId) -> None:
        """Let a job that waits run on a node."""
        self._apply(ActionOrdered(self._tick(), StartJob(job_id, (Slot(node, 1),))))
        self._apply(JobStarted(self._tick(), job_id))

    def completes(self, job_id: JobId) -> None:
        self._apply(JobEnded(self._tick(), job_id, "completed", 0))

    def crashes(self, job_id: JobId, kind: FailureKind = "exited", saved_ms: int = 0) -> None:
        failure = self._mishap(job_id, kind, saved_ms)
        self._apply(JobStopped(self._tick(), job_id, "crashed", Millis(0), 1, failure))

    def fails(self, job_id: JobId, kind: FailureKind = "exited") -> None:
        self._apply(JobEnded(self._tick(), job_id, "failed", 1, self._mishap(job_id, kind)))

    def blamed(self, rule: CordonThresholds = RULE) -> list[NodeId]:
        found = nodes_to_cordon(self.fleet, self.fleet.failure_log, Millis(self.now_ms), rule)
        return [node for node, _ in found]

    def reason(self) -> Reason:
        [(_, reason)] = nodes_to_cordon(
            self.fleet, self.fleet.failure_log, Millis(self.now_ms), RULE
        )
        return reason

    def _mishap(self, job_id: JobId, kind: FailureKind, saved_ms: int = 0) -> AttemptFailure:
        node = self.fleet.running[job_id].slots[0].node
        saved = Millis(saved_ms) if saved_ms else UNSET
        return AttemptFailure(1, kind, Millis(self.now_ms), node, saved)

    def _apply(self, event: Event) -> None:
        self.events.append(event)
        self.fleet.apply(event)

    def _tick(self) -> Millis:
        self.now_ms += 1
        return Millis(self.now_ms)
