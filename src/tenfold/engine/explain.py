"""The history of one job from the record: every stage in order, each with its reason.

Events are applied again, so what a job waited for is read from the fleet at the start of that
wait. Only the number of jobs ahead is asked of a decider.
"""

from collections.abc import Callable, Iterable
from typing import Literal

from msgspec import UNSET, Struct

from tenfold.engine.decision_log import Cycle
from tenfold.engine.loop import Decider
from tenfold.engine.obstacle import Obstacle, obstacle_of
from tenfold.engine.recording import Line
from tenfold.fleet.fleet import NEVER_RAN, Fleet, more_than
from tenfold.fleet.view import job_ref
from tenfold.model.actions import ReserveStart, ResizeJob, StartJob, StopJob
from tenfold.model.events import (
    ActionOrdered,
    ActionRefused,
    Event,
    JobBusy,
    JobCancelled,
    JobCancelRequested,
    JobChanged,
    JobEnded,
    JobHeld,
    JobIdled,
    JobRefused,
    JobReleased,
    JobResized,
    JobStarted,
    JobStopped,
    JobSubmitted,
    NodeLost,
    NodeReturned,
    job_of,
)
from tenfold.model.ids import JobId, NodeId, TeamId
from tenfold.model.job.job import WHOLE, Job, Slot
from tenfold.model.reason import (
    Causes,
    JobRef,
    NodeRef,
    Reason,
    TeamRef,
    Text,
    UserRef,
    Value,
    joined,
)
from tenfold.model.units import Millis

State = Literal["pending", "starting", "running", "ended", "refused", "cancelled"]
Code = Literal[
    "submitted",
    "waited",
    "promised",
    "unreserved",
    "start-ordered",
    "started",
    "order-refused",
    "held",
    "released",
    "changed",
    "resized",
    "idled",
    "busy",
    "stop-ordered",
    "stopped",
    "idle-reclaimed",
    "ended",
    "refused",
    "cancelled",
]


class Stage(Struct, frozen=True, kw_only=True):
    """One thing that happened to a job, and why."""

    at_ms: Millis
    code: Code
    why: Reason
    nodes: tuple[NodeId, ...] = ()


class JobHistory(Struct, frozen=True, kw_only=True):
    """Everything that happened to a job, in order."""

    job: Job
    state: State
    stages: tuple[Stage, ...]
    waited_ms: Millis
    ran_ms: Millis
    obstacle: Obstacle | None = None
    """What blocks it at the end of the record, if it is pending then."""


def explain(
    lines: Iterable[Line],
    job_id: JobId,
    decider_of: Callable[[], Decider] | None = None,
    base: Fleet | None = None,
) -> JobHistory | None:
    """Return the history of a job, or None if the record does not have it.

    `base` is the fleet before the first event, and is changed; without it that fleet is empty.
    """
    builder = _HistoryBuilder(job_id, decider_of, base or Fleet())
    last: Line | None = None
    for line in lines:
        if last is not None and line.at_ms != last.at_ms:
            builder.moment_over(last.at_ms)
        if not isinstance(line, Cycle):
            builder.add_event(line)
        last = line
    if last is None or builder.job is None:
        return None
    builder.moment_over(last.at_ms)
    return builder.history(last.at_ms)


class _HistoryBuilder:
    """Follows the events, and notes those about one job."""

    def __init__(
        self, job_id: JobId, decider_of: Callable[[], Decider] | None, fleet: Fleet
    ) -> None:
        self.job: Job | None = None
        self._job_id = job_id
        self._decider_of = decider_of
        self._fleet = fleet
        self._stages: list[Stage] = []
        self._state: State = "pending"
        self._submitted_ms = Millis(0)
        self._over_ms: Millis | None = None
        self._ran_ms = 0
        self._waits = False
        """Whether a wait began whose reason has not been added yet."""
        self._freed: dict[NodeId, Reason] = {}
        """What was freed at this moment, by node."""
        self._lost: dict[NodeId, str] = {}
        """Nodes lost at this moment, with the cause."""
        self._reserved: ReserveStart | None = None
        """The reserved start that holds."""
        self._why_resized: Reason | None = None
        """The reason of a resize that was ordered."""
        self._begin(fleet)

    def _begin(self, fleet: Fleet) -> None:
        """Add a job that existed before the record begins."""
        name = self._job_id
        held = fleet.running.get(name) or fleet.orders.get(name)
        self.job = held.job if held else fleet.pending.get(name) or fleet.held.get(name)
        if self.job is None:
            return
        self._submitted_ms, self._waits = self.job.submitted_ms, held is None
        if held is not None:
            self._state = "running" if name in fleet.running else "starting"
        request = {**_request_fields(self.job), "earlier": "yes"}
        self._add(self._submitted_ms, "submitted", Reason("submitted", request))

    def add_event(self, event: Event) -> None:
        """Apply an event, and note it if it is about the job."""
        self._note_freed(event)
        if job_of(event) == self._job_id:
            self._note(event)
        self._fleet.apply(event)

    def moment_over(self, at_ms: Millis) -> None:
        """Add what the job waits for once the decisions of a moment are known."""
        self._freed.clear()
        self._lost.clear()
        if self._waits and self.job is not None and self._job_id in self._fleet.pending:
            self._waits = False
            self._add(at_ms, "waited", self._obstacle(at_ms).reason)

    def history(self, at_ms: Millis) -> JobHistory:
        """Return everything noted."""
        assert self.job is not None, "only a submitted job has a history"
        run = self._fleet.running.get(self._job_id)
        ran_ms = self._ran_ms + (at_ms - run.started_ms if run else 0)
        over_ms = at_ms if self._over_ms is None else self._over_ms
        return JobHistory(
            job=self.job,
            state=self._state,
            stages=tuple(self._stages),
            waited_ms=Millis(over_ms - self._submitted_ms - ran_ms),
            ran_ms=Millis(ran_ms),
            obstacle=self._obstacle(at_ms) if self._job_id in self._fleet.pending else None,
        )

    def _obstacle(self, at_ms: Millis) -> Obstacle:
        assert self.job is not None, "only a submitted job can be pending"
        decider = None if self._decider_of is None else self._decider_of()
        return obstacle_of(self._fleet, self.job, at_ms, decider)

    def _add(self, at_ms: Millis, code: Code, why: Reason, slots: tuple[Slot, ...] = ()) -> None:
        nodes = tuple(slot.node for slot in slots)
        self._stages.append(Stage(at_ms=at_ms, code=code, why=why, nodes=nodes))

    def _note_freed(self, event: Event) -> None:
        """Note what an event frees; it may be why the job starts at this moment."""
        if isinstance(event, JobEnded | JobStopped):
            run = self._fleet.running.get(event.job_id)
            how = "ended" if isinstance(event, JobEnded) else "stopped"
            for slot in run.slots if run else ():
                self._freed[slot.node] = self._freed_by(event.job_id, how)
        elif isinstance(event, JobResized):
            run = self._fleet.running[event.job_id]
            for slot in more_than(run.slots, run.becoming or ()):
                self._freed[slot.node] = self._freed_by(event.job_id, "shrank")
        elif isinstance(event, NodeReturned):
            self._freed[event.node_id] = Reason("start-ordered", {"node": NodeRef(event.node_id)})
        elif isinstance(event, NodeLost):
            self._lost[event.node_id] = event.cause

    def _note(self, event: Event) -> None:
        at_ms = event.at_ms
        match event:
            case JobSubmitted():
                self.job, self._submitted_ms, self._waits = event.job, at_ms, True
                self._add(at_ms, "submitted", Reason("submitted", _request_fields(event.job)))
            case ActionOrdered() | ActionRefused():
                self._note_order(event)
            case JobStarted():
                self._note_start(at_ms)
            case JobStopped():
                self._note_stop(event)
            case JobEnded():
                self._note_end(event)
            case JobResized() | JobIdled() | JobBusy():
                self._note_change(event)
            case JobHeld() | JobReleased() | JobChanged():
                self._note_hold(event)
            case JobRefused():
                why = joined(event.reasons) if event.reasons else Reason("refused")
                self._finish(at_ms, "refused", why)
            case JobCancelled() | JobCancelRequested():
                self._note_cancel(event)
            case _:
                pass

    def _note_hold(self, event: JobHeld | JobReleased | JobChanged) -> None:
        if isinstance(event, JobChanged):
            self.job = event.job
            self._add(event.at_ms, "changed", Reason("changed", _request_fields(event.job)))
            return
        self._waits = isinstance(event, JobReleased)
        if isinstance(event, JobReleased):
            self._add(event.at_ms, "released", Reason("released", self._by_user(event)))
        else:
            self._add(event.at_ms, "held", event.reason)

    def _note_cancel(self, event: JobCancelled | JobCancelRequested) -> None:
        by = self._by_user(event)
        if isinstance(event, JobCancelled):
            self._finish(event.at_ms, "cancelled", Reason("cancelled", by))
        else:
            self._add(event.at_ms, "stop-ordered", Reason("cancelled", by))

    def _by_user(self, event: JobCancelled | JobCancelRequested | JobReleased) -> dict[str, Value]:
        return {} if event.by is UNSET else {"by": UserRef(event.by, self._team)}

    def _note_order(self, event: ActionOrdered | ActionRefused) -> None:
        action, at_ms = event.action, event.at_ms
        if isinstance(event, ActionRefused):
            # After a refused start the job is pending again.
            self._waits = isinstance(action, StartJob)
            self._state = "pending" if self._waits else self._state
            self._add(at_ms, "order-refused", event.reason)
        elif isinstance(action, StartJob):
            self._waits, self._state = False, "starting"
            self._add(at_ms, "start-ordered", self._why_now(action), action.slots)
        elif isinstance(action, StopJob):
            self._add(at_ms, "stop-ordered", action.reason)
        elif isinstance(action, ResizeJob):
            self._why_resized = action.reason
        elif isinstance(action, ReserveStart):
            self._note_reservation(action, at_ms)

    def _note_reservation(self, action: ReserveStart, at_ms: Millis) -> None:
        before, self._reserved = self._reserved, action if action.slots else None
        if not action.slots:
            self._add(at_ms, "unreserved", Reason("reservation-withdrawn"))
            return
        fields: dict[str, Value] = {"in_ms": action.start_ms - at_ms, "on": _on(action.slots)}
        if before is not None and action.start_ms > before.start_ms:
            fields["later_ms"] = action.start_ms - before.start_ms
            fields |= self._in_the_way(before)
        self._add(at_ms, "promised", Reason("promised", fields), action.slots)

    def _in_the_way(self, before: ReserveStart) -> dict[str, Value]:
        """Return why a reserved start was postponed: a lost node, or jobs that still run there."""
        nodes = {slot.node: None for slot in before.slots}
        for node_id in nodes:
            if self._fleet.states.get(node_id) != "up":
                return {"node": NodeRef(node_id)}
        running = self._fleet.running.values()
        held = [run for run in running if any(slot.node in nodes for slot in run.slots)]
        if not held:
            return {}
        # A job without a limit first: its end is a guess.
        first = min(held, key=lambda run: (run.job.limit_ms is not None, run.started_ms))
        fields: dict[str, Value] = {"job": JobRef(first.job.id, first.job.team)}
        fields["more"] = len(held) - 1
        if first.job.limit_ms is None:
            fields["guess"] = "yes"
        return fields

    def _note_change(self, event: JobResized | JobIdled | JobBusy) -> None:
        run, at_ms = self._fleet.running[self._job_id], event.at_ms
        if isinstance(event, JobResized):
            slots = run.becoming or run.slots
            fields: dict[str, Value] = {"before": _gpus(run.slots), "gpus": _gpus(slots)}
            fields["on"] = _on(slots)
            if self._why_resized is not None:
                fields["cause"] = Causes((self._why_resized,))
            self._add(at_ms, "resized", Reason("resized", fields), slots)
        elif isinstance(event, JobIdled):
            self._add(at_ms, "idled", Reason("idled", {"gpus": _gpus(run.slots)}))
        elif event.cause is not UNSET:
            self._add(at_ms, "busy", event.cause)

    def _note_end(self, event: JobEnded) -> None:
        run, at_ms = self._fleet.running[self._job_id], event.at_ms
        self._ran_ms += at_ms - run.started_ms
        since_ms = self._fleet.idle.get(self._job_id)
        if run.stopping and since_ms is not None and event.status == "cancelled":
            idle = Reason("idle-reclaimed", {"idle_ms": at_ms - since_ms})
            self._add(at_ms, "idle-reclaimed", idle, run.slots)
        fields = {"status": event.status, "ran_ms": self._ran_ms}
        self._finish(at_ms, "ended", Reason("ended", fields))

    def _note_start(self, at_ms: Millis) -> None:
        order = self._fleet.orders[self._job_id]
        self._state = "running"
        since = self._fleet.past.get(self._job_id, NEVER_RAN)
        fields: dict[str, Value] = {"on": _on(order.slots), "saved_ms": since.progress_ms}
        if since.runs:
            fields["run"] = since.runs + 1
        self._add(at_ms, "started", Reason("started", fields), order.slots)

    def _note_stop(self, event: JobStopped) -> None:
        run = self._fleet.running.get(self._job_id)
        held = run or self._fleet.orders[self._job_id]
        self._ran_ms += event.at_ms - run.started_ms if run else 0
        self._state, self._waits = "pending", True
        lost = [slot.node for slot in held.slots if slot.node in self._lost]
        fields: dict[str, Value] = {"cause": event.cause, "saved_ms": event.progress_ms}
        if event.cause == "node-lost" and lost:
            fields["node"], fields["note"] = NodeRef(lost[0]), Text(self._lost[lost[0]])
        self._add(event.at_ms, "stopped", Reason("stopped", fields), held.slots)

    @property
    def _team(self) -> TeamId | None:
        return None if self.job is None else self.job.team

    def _freed_by(self, job_id: JobId, how: str) -> Reason:
        return Reason("start-ordered", {"job": job_ref(self._fleet, job_id), "how": how})

    def _why_now(self, action: StartJob) -> Reason:
        freed = (self._freed.get(slot.node) for slot in action.slots)
        found = next((why for why in freed if why is not None), Reason("start-ordered"))
        if action.because is UNSET:
            return found
        return Reason("start-ordered", {**found.fields, "cause": Causes((action.because,))})

    def _finish(
        self, at_ms: Millis, state: Literal["ended", "refused", "cancelled"], why: Reason
    ) -> None:
        self._state, self._over_ms, self._waits = state, at_ms, False
        self._add(at_ms, state, why)


def _on(slots: tuple[Slot, ...]) -> tuple[NodeRef, ...]:
    return tuple(NodeRef(slot.node) for slot in slots)


def _gpus(slots: tuple[Slot, ...]) -> float:
    return sum(slot.gpus or slot.milli / WHOLE for slot in slots)


def _request_fields(job: Job) -> dict[str, Value]:
    fields: dict[str, Value] = {"gpus": job.shape.milli / WHOLE or job.shape.gpus}
    if job.team:
        fields["team"] = TeamRef(job.team)
    return fields
