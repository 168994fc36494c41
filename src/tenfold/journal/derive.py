"""Derive the rows of the read tables from events, for appends and for rebuilds.

An update holds the current rows of the jobs and nodes that some events are about; applying the
events changes the rows, and changed rows are written back. It does not access the database. An
event about a job or node without a row changes nothing: that job ended before the first event in
the journal.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from tenfold.journal.models.rows import ModelRows
from tenfold.journal.rows import STATE_OF, AttemptRow, JobRow, KeyRow, NodeRow
from tenfold.model.acceptance import after_test
from tenfold.model.actions import ResizeJob, StartJob, StopJob
from tenfold.model.events import (
    ActionOrdered,
    ActionRefused,
    Event,
    JobCancelled,
    JobCancelRequested,
    JobChanged,
    JobEnded,
    JobHeld,
    JobRefused,
    JobReleased,
    JobResized,
    JobStarted,
    JobStopped,
    JobSubmitted,
    ModelEvent,
    NodeAccepted,
    NodeCordoned,
    NodeJoined,
    NodeLeft,
    NodeLost,
    NodeReturned,
    NodeTested,
)
from tenfold.model.fleet.node import RecordedState
from tenfold.model.ids import JobId, NodeId, TeamId
from tenfold.model.job.job import WHOLE, JobState, Slot
from tenfold.model.reason import Causes, Reason, UserRef, Value

Fields = Mapping[str, Value]
NO_REASON = Reason("")


class ReadTableUpdate:
    """Rows while events are applied to them."""

    def __init__(
        self,
        jobs: Iterable[JobRow] = (),
        attempts: Iterable[AttemptRow] = (),
        nodes: Iterable[NodeRow] = (),
        models: ModelRows | None = None,
    ) -> None:
        self.jobs = {row.id: row for row in jobs}
        self.attempts = {row.job_id: row for row in attempts}
        """The latest attempt of each job: earlier ones never change."""
        self.nodes = {row.id: row for row in nodes}
        self.models = models or ModelRows()
        self.changed_jobs: dict[JobId, None] = {}
        self.changed_attempts: dict[tuple[JobId, int], AttemptRow] = {}
        self.changed_nodes: dict[NodeId, None] = {}
        self.new_keys: dict[tuple[str, str], KeyRow] = {}
        self._seq = 0
        self._handlers: dict[type, Callable[[Any], None]] = {
            JobSubmitted: self._job_submitted,
            ActionOrdered: self._action_ordered,
            ActionRefused: self._action_refused,
            JobStarted: self._job_started,
            JobResized: self._job_resized,
            JobStopped: self._job_stopped,
            JobEnded: self._job_ended,
            JobRefused: self._job_refused,
            JobCancelled: self._job_cancelled,
            JobHeld: self._job_held,
            JobReleased: self._job_released,
            JobChanged: self._job_changed,
            JobCancelRequested: self._cancel_requested,
            NodeJoined: self._node_joined,
            NodeLost: self._node_lost,
            NodeReturned: self._node_returned,
            NodeCordoned: self._node_cordoned,
            NodeLeft: self._node_left,
            NodeTested: self._node_tested,
            NodeAccepted: self._node_accepted,
        }

    def apply(self, seq: int, event: Event) -> None:
        """Apply one event; events that affect no row are ignored."""
        handler = self._handlers.get(type(event))
        if handler is not None:
            self._seq = seq
            handler(event)
        elif isinstance(event, ModelEvent):
            self.models.apply(seq, event)

    def _job_submitted(self, event: JobSubmitted) -> None:
        job, run_spec = event.job, event.run_spec
        before = self.jobs.get(job.id)
        self.jobs[job.id] = JobRow(
            id=job.id,
            seq=self._seq,
            number=job.seq,
            team=job.team,
            user_name=job.user,
            name=run_spec.name if run_spec is not None else "",
            state="pending",
            gpus_milli=job.shape.milli or job.shape.gpus * WHOLE,
            submitted_ms=job.submitted_ms,
            changed_ms=event.at_ms,
            changed_seq=self._seq,
            # A name that is reused after its job ended continues the count.
            attempts=before.attempts if before is not None else 0,
        )
        self.changed_jobs[job.id] = None
        if (key := event.key) is not None:
            self.new_keys[key.team, key.key] = KeyRow(
                team=key.team, key=key.key, digest=key.digest, number=job.seq, at_ms=event.at_ms
            )

    def _action_ordered(self, event: ActionOrdered) -> None:
        action = event.action
        if isinstance(action, StartJob):
            self._set_state(action.job_id, event.at_ms, "starting")
            row = self._count_attempt(action.job_id)
            if row is not None:
                self._attempt(
                    AttemptRow(
                        job_id=row.id,
                        number=row.attempts,
                        ordered_ms=event.at_ms,
                        nodes=_nodes(action.slots),
                    )
                )
        elif isinstance(action, StopJob):
            self._set_state(action.job_id, event.at_ms, "stopping", action.reason)
        elif isinstance(action, ResizeJob):
            self._count_attempt(action.job_id)
            self._update_attempt(action.job_id, nodes_next=_nodes(action.slots))

    def _action_refused(self, event: ActionRefused) -> None:
        action, why = event.action, event.reason
        row = self.jobs.get(action.job_id)
        state = row.state if row is not None else ""
        # A refusal that arrives after the order was already carried out changes nothing.
        if isinstance(action, StartJob) and state == "starting":
            self._set_state(action.job_id, event.at_ms, "pending", why)
            self._update_attempt(action.job_id, ended_ms=event.at_ms, reason=why.code)
        elif isinstance(action, StopJob) and state == "stopping":
            self._set_state(action.job_id, event.at_ms, "running")
        elif isinstance(action, ResizeJob):
            self._update_attempt(action.job_id, nodes_next=None)

    def _job_started(self, event: JobStarted) -> None:
        row = self.jobs.get(event.job_id)
        if row is None or row.state != "stopping":
            # A start that is being cancelled goes on stopping.
            self._set_state(event.job_id, event.at_ms, "running")
        self._update_attempt(event.job_id, started_ms=event.at_ms)

    def _job_resized(self, event: JobResized) -> None:
        row, attempt = self.jobs.get(event.job_id), self.attempts.get(event.job_id)
        if row is None or attempt is None or attempt.nodes_next is None:
            return
        self._end_attempt(event.job_id, event.at_ms, "resized", UNSET)
        self._attempt(
            AttemptRow(
                job_id=event.job_id,
                number=row.attempts,
                ordered_ms=event.at_ms,
                started_ms=event.at_ms,
                nodes=attempt.nodes_next,
            )
        )

    def _job_stopped(self, event: JobStopped) -> None:
        why = Reason(event.cause)
        if event.failure is not UNSET and event.failure.kind == "lost" and event.failure.reason:
            why = event.failure.reason
        self._set_state(event.job_id, event.at_ms, "pending", why)
        self._end_attempt(event.job_id, _ended_at(event), why.code, event.exit_code)

    def _job_ended(self, event: JobEnded) -> None:
        row = self.jobs.get(event.job_id)
        if event.status == "cancelled" and event.by is UNSET and row is not None and _was_idle(row):
            why = Reason(row.reason, row.fields, row.sentence)
        else:
            why = Reason(event.status, *_ending(event, row))
        self._set_state(event.job_id, event.at_ms, STATE_OF[event.status], why)
        self._end_attempt(event.job_id, _ended_at(event), why.code, event.exit_code)

    def _job_refused(self, event: JobRefused) -> None:
        why = event.reasons[0] if event.reasons else Reason("refused")
        self._set_state(event.job_id, event.at_ms, "failed", why)

    def _job_cancelled(self, event: JobCancelled) -> None:
        row = self.jobs.get(event.job_id)
        why = Reason("cancelled", _cancelled(event.by, row))
        self._set_state(event.job_id, event.at_ms, "cancelled", why)

    def _job_held(self, event: JobHeld) -> None:
        self._set_state(event.job_id, event.at_ms, "pending", event.reason)

    def _job_released(self, event: JobReleased) -> None:
        self._set_state(event.job_id, event.at_ms, "pending")

    def _job_changed(self, event: JobChanged) -> None:
        job = event.job
        row = self.jobs.get(job.id)
        if row is not None:
            self.jobs[job.id] = replace(
                row,
                team=job.team,
                gpus_milli=job.shape.milli or job.shape.gpus * WHOLE,
                changed_ms=event.at_ms,
                changed_seq=self._seq,
            )
            self.changed_jobs[job.id] = None

    def _cancel_requested(self, event: JobCancelRequested) -> None:
        row = self.jobs.get(event.job_id)
        why = Reason("cancelled", _cancelled(event.by, row))
        self._set_state(event.job_id, event.at_ms, "stopping", why)

    def _node_joined(self, event: NodeJoined) -> None:
        node = event.node
        self.nodes[node.id] = NodeRow(
            id=node.id,
            seq=self._seq,
            site=node.site,
            pool=node.pool,
            accelerator=node.accelerator,
            gpus=node.gpus,
            state="up",
            changed_ms=event.at_ms,
        )
        self.changed_nodes[node.id] = None

    def _node_lost(self, event: NodeLost) -> None:
        self._node(event.node_id, event.at_ms, "down", Reason(event.cause))

    def _node_returned(self, event: NodeReturned) -> None:
        self._node(event.node_id, event.at_ms, "up")

    def _node_cordoned(self, event: NodeCordoned) -> None:
        cause = NO_REASON if event.cause is UNSET else event.cause
        self._node(event.node_id, event.at_ms, "cordoned", cause)

    def _node_left(self, event: NodeLeft) -> None:
        self._node(event.node_id, event.at_ms, "left")

    def _node_tested(self, event: NodeTested) -> None:
        row = self.nodes.get(event.node_id)
        if row is not None:
            after = after_test(row.acceptance, event.at_ms, event.test, event.verdict)
            self.nodes[row.id] = replace(row, acceptance=after)
            self.changed_nodes[row.id] = None

    def _node_accepted(self, event: NodeAccepted) -> None:
        row = self.nodes.get(event.node_id)
        if row is not None and row.acceptance is not None:
            after = replace(row.acceptance, accepted_by=event.by)
            self.nodes[row.id] = replace(row, acceptance=after)
            self.changed_nodes[row.id] = None

    def _set_state(
        self, job_id: JobId, at_ms: int, state: JobState, why: Reason = NO_REASON
    ) -> JobRow | None:
        row = self.jobs.get(job_id)
        if row is not None:
            row = self.jobs[job_id] = replace(
                row,
                state=state,
                reason=why.code,
                fields=why.fields,
                sentence=why.sentence,
                changed_ms=at_ms,
                changed_seq=self._seq,
            )
            self.changed_jobs[job_id] = None
        return row

    def _count_attempt(self, job_id: JobId) -> JobRow | None:
        """Count an ordered start, or a resize, which is also a start."""
        row = self.jobs.get(job_id)
        if row is not None:
            row = self.jobs[job_id] = replace(row, attempts=row.attempts + 1)
            self.changed_jobs[job_id] = None
        return row

    def _end_attempt(
        self, job_id: JobId, at_ms: int, reason: str, exit_code: int | UnsetType
    ) -> None:
        code = None if exit_code is UNSET else exit_code
        self._update_attempt(job_id, ended_ms=at_ms, reason=reason, exit_code=code, nodes_next=None)

    def _update_attempt(self, job_id: JobId, **fields: object) -> None:
        attempt = self.attempts.get(job_id)
        if attempt is not None:
            self._attempt(replace(attempt, **fields))

    def _attempt(self, attempt: AttemptRow) -> None:
        self.attempts[attempt.job_id] = attempt
        self.changed_attempts[attempt.job_id, attempt.number] = attempt

    def _node(
        self, node_id: NodeId, at_ms: int, state: RecordedState, cause: Reason = NO_REASON
    ) -> None:
        row = self.nodes.get(node_id)
        if row is not None:
            self.nodes[node_id] = replace(
                row,
                state=state,
                cause=cause.code,
                fields=cause.fields,
                sentence=cause.sentence,
                changed_ms=at_ms,
            )
            self.changed_nodes[node_id] = None


def _was_idle(row: JobRow) -> bool:
    """Return whether a job is being stopped because it is idle."""
    return row.state == "stopping" and row.reason == "idle"


def _ending(event: JobEnded, row: JobRow | None) -> tuple[Fields, str]:
    """Return the fields of an end reason; events from before reasons had fields have text."""
    if event.failure is not UNSET:
        if event.failure.reason is not UNSET:
            return {"cause": Causes((event.failure.reason,))}, ""
        if event.failure.message:
            return {}, event.failure.message
    if event.exit_code is not UNSET and event.status == "failed":
        return {"exit_code": event.exit_code}, ""
    return _cancelled(event.by, row), ""


def _cancelled(by: str | UnsetType, row: JobRow | None) -> Fields:
    """Return the user who cancelled a job."""
    return {} if by is UNSET or row is None else {"by": UserRef(by, TeamId(row.team))}


def _ended_at(event: JobStopped | JobEnded) -> int:
    """Return when the last process exited; the event itself may be recorded much later."""
    return event.at_ms if event.ended_ms is UNSET else event.ended_ms


def _nodes(slots: tuple[Slot, ...]) -> tuple[NodeId, ...]:
    return tuple(slot.node for slot in slots)
