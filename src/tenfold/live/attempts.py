"""Active attempts: turn orders into launches, and observations into events.

A job has at most one attempt at a time. An observation of another attempt is outdated and ignored.
An attempt that ended before its start was observed counts as started.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Literal, Protocol, runtime_checkable

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from tenfold.fleet.failure_log import after_crash
from tenfold.fleet.retries import counts_against_job, retries_crash, retries_loss
from tenfold.fleet.view import FleetView
from tenfold.live.devices import DeviceAllocator
from tenfold.live.executor import (
    AttemptEnded,
    AttemptLost,
    AttemptStarted,
    AttemptState,
    Executor,
    Launch,
    Member,
    OrderRefused,
)
from tenfold.live.failures import crash_of, loss_of, refusal_of
from tenfold.live.job_registry import JobRegistry
from tenfold.model.actions import StartJob
from tenfold.model.events import (
    ActionRefused,
    Event,
    JobCancelled,
    JobCancelRequested,
    JobEnded,
    JobHeld,
    JobRefused,
    JobResized,
    JobStarted,
    JobStopped,
)
from tenfold.model.ids import JobId, NodeId
from tenfold.model.job.failures import AttemptFailure
from tenfold.model.job.job import Job, JobStatus, Slot, StopCause, per_member
from tenfold.model.job.run_spec import RunSpec
from tenfold.model.reason import Causes, Reason, UserRef
from tenfold.model.units import Millis

StopReason = StopCause | Literal["cancelled", "timeout", "resize"]
CheckpointTime = Callable[[Job, RunSpec], Millis | None]
"""Returns the time of the newest valid checkpoint of a job."""
LATE_MS = 100
"""An end observed within this time is recorded at the time of observation."""
STALE = "stale-order"
"""The executor's code for an attempt that was superseded."""


class ActiveAttempt(Struct):
    """The active attempt of a job."""

    job: Job
    slots: tuple[Slot, ...]
    attempt: int
    started_ms: Millis | None = None
    launched: bool = False
    """False while a start is delayed."""
    numbers: tuple[tuple[int, ...], ...] = ()
    """DeviceAllocator by slot."""
    stop_reason: StopReason | None = None
    """Why it is being stopped."""
    by: str = ""
    """The user who cancelled its job."""
    next_slots: tuple[Slot, ...] | None = None
    """The slots of the next attempt, after a resize."""
    next_attempt: int = 0
    """The number of that attempt."""
    is_resize: bool = False
    """Whether this attempt continues a job that was stopped for a resize."""
    saved_ms: Millis | None = None
    """When its job last saved, where that is read before its end is handled."""
    quarantine: Reason | None = None
    """Why its job is held once it has ended."""


Guard = Callable[[JobId, Callable[[], list[Event]], bool], Sequence[Event]]
"""Handles one job, which may fail: its work, and whether none of its processes is left."""


def _unguarded(job_id: JobId, work: Callable[[], list[Event]], is_over: bool) -> Sequence[Event]:
    return work()


@runtime_checkable
class AheadClock(Protocol):
    """A clock that knows its offset from the system clock."""

    def ahead_ms(self) -> int:
        """Return how far it is ahead."""
        ...


class Attempts:
    """All active attempts."""

    def __init__(
        self,
        executor: Executor,
        registry: JobRegistry,
        view: FleetView,
        saved_at: CheckpointTime | None,
    ) -> None:
        """Without `saved_at`, `note_saved` says when a job last saved, before its end."""
        self._executor = executor
        self._registry = registry
        self._view = view
        self._saved_at = saved_at
        self.waiting: list[AttemptEnded | AttemptLost] = []
        """Ends found at startup that wait for `note_saved`."""
        self.clock: AheadClock | None = None
        """Converts end times to the loop's clock; without it, ends count when observed."""
        self._devices = DeviceAllocator({node.id: node.gpus for node in view.nodes.values()})
        self._active: dict[JobId, ActiveAttempt] = {}
        self._finished: list[tuple[JobId, int]] = []
        """Attempts whose ends became events; the executor may forget them once recorded."""

    @property
    def devices(self) -> DeviceAllocator:
        """The free devices."""
        return self._devices

    def get(self, job_id: JobId) -> ActiveAttempt | None:
        """Return the active attempt of a job, if any."""
        return self._active.get(job_id)

    def awaits_saved(self, observed: AttemptEnded | AttemptLost) -> ActiveAttempt | None:
        """Return the attempt that ended, if its end depends on when its job last saved."""
        active = self._current(observed.job_id, observed.attempt)
        if active is None or self._registry.run_spec(active.job.id).checkpoint is None:
            return None
        return active

    def note_saved(self, observed: AttemptEnded | AttemptLost, saved_ms: Millis | None) -> None:
        """Record when the job of an ended attempt last saved."""
        active = self._current(observed.job_id, observed.attempt)
        if active is not None:
            active.saved_ms = saved_ms

    def settle(self) -> None:
        """Settle attempts whose ends are recorded."""
        if self._finished:
            self._executor.settle(self._finished)
            self._finished = []

    def order(self, job: Job, slots: tuple[Slot, ...]) -> ActiveAttempt:
        """Register an order to start a job, and number it."""
        active = self._active[job.id] = ActiveAttempt(job, slots, self._registry.begin(job.id))
        return active

    def resize(self, active: ActiveAttempt, slots: tuple[Slot, ...]) -> None:
        """Register a resize: this attempt stops, and another follows."""
        active.next_slots, active.next_attempt = slots, self._registry.begin(active.job.id)
        self.stop(active, "resize")

    def cancel_delayed(self, active: ActiveAttempt, by: str, now_ms: Millis) -> list[Event]:
        """Cancel a delayed start, and its job."""
        active.by = by
        return self._cancelled_start(active, now_ms)

    def request_cancel(self, active: ActiveAttempt, by: str, now_ms: Millis) -> list[Event]:
        """Register a cancellation; the caller stops the attempt once the event is recorded."""
        if active.stop_reason == "cancelled":
            return []
        active.by, active.stop_reason = by, "cancelled"
        return [JobCancelRequested(now_ms, active.job.id, by or UNSET)]

    def _cancelled_start(self, active: ActiveAttempt, now_ms: Millis) -> list[Event]:
        by = active.by
        reason = Reason("cancelled", {"by": UserRef(by, active.job.team)} if by else {})
        self._release(active)
        self._registry.close(active.job.id)
        return [
            ActionRefused(now_ms, StartJob(active.job.id, active.slots), reason),
            JobCancelled(now_ms, active.job.id, by or UNSET),
        ]

    def stop_on_node(self, node: NodeId) -> None:
        """Stop everything on a lost node immediately."""
        for active in list(self._active.values()):
            if active.launched and any(slot.node == node for slot in active.slots):
                active.stop_reason = (
                    active.stop_reason if active.stop_reason == "cancelled" else "node-lost"
                )
                self._executor.stop(active.job.id, active.attempt, Millis(0))

    def launch(self, active: ActiveAttempt) -> None:
        """Pass an ordered attempt to the executor."""
        if not active.numbers:
            active.numbers = tuple(self._devices.allocate(slot) for slot in active.slots)
        cpus, memory = per_member(active.job.shape, len(active.slots))
        members = tuple(
            Member(node=slot.node, gpus=numbers, cpus_milli=cpus, memory_mib=memory)
            for slot, numbers in zip(active.slots, active.numbers, strict=True)
        )
        active.launched = True
        self._executor.start(
            Launch(
                job_id=active.job.id,
                attempt=active.attempt,
                team=active.job.team,
                run_spec=self._registry.run_spec(active.job.id),
                members=members,
            )
        )

    def stop(self, active: ActiveAttempt, stop_reason: StopReason) -> None:
        """Stop an attempt. A cancellation overrides any other reason."""
        if active.stop_reason != "cancelled":
            active.stop_reason = stop_reason
        if active.launched:
            grace_ms = self._registry.run_spec(active.job.id).grace_ms
            self._executor.stop(active.job.id, active.attempt, grace_ms)

    def quarantine(
        self, job_id: JobId, reason: Reason, now_ms: Millis, *, is_over: bool
    ) -> list[Event]:
        """Hold a job that cannot be handled; an attempt that is not over is stopped first."""
        active = self._active.get(job_id)
        if active is not None and not is_over:
            active.quarantine = active.quarantine or reason
            grace_ms = self._registry.run_spec(job_id).grace_ms
            self._executor.stop(job_id, active.attempt, grace_ms)
            return []
        view = self._view
        events: list[Event] = []
        if active is not None or job_id in view.orders or job_id in view.running:
            done_ms = view.past[job_id].progress_ms if job_id in view.past else Millis(0)
            events.append(JobStopped(now_ms, job_id, "crashed", done_ms))
        elif job_id not in view.pending:
            return []
        events.append(JobHeld(now_ms, job_id, (active and active.quarantine) or reason))
        if active is not None:
            self._release(active)
            if active.stop_reason == "cancelled":
                self._registry.close(job_id)
                events.append(JobCancelled(now_ms, job_id, active.by or UNSET))
        return events

    def adopt(
        self, states: Iterable[AttemptState], now_ms: Millis, guard: Guard = _unguarded
    ) -> list[Event]:
        """Take over the attempts of an earlier control plane; return the events since then.

        Orders that the executor does not know are sent again: they are in the journal. Held devices
        are registered first, so they are not assigned again.
        """
        known: dict[JobId, dict[int, AttemptState]] = {}
        for state in states:
            known.setdefault(state.job_id, {})[state.attempt] = state
        ours: dict[JobId, AttemptState | None] = {}
        events: list[Event] = []

        def register(job_id: JobId) -> list[Event]:
            find = self._ordered if job_id in self._view.orders else self._running
            active, state = find(job_id, known)
            self._active[job_id], ours[job_id] = active, state
            if state is not None:
                self._hold_devices(active, state)
            return []

        for job_id in (*self._view.orders, *self._view.running):
            over = all(state.end is not None for state in known.get(job_id, {}).values())
            events += guard(job_id, partial(register, job_id), over)
        for job_id, state in ours.items():
            active = self._active.get(job_id)
            if active is not None and active.quarantine is None:
                work = partial(self._adopt_one, active, state, now_ms)
                events += guard(job_id, work, state is None or state.end is not None)
        under_way = {(active.job.id, active.attempt) for active in self._active.values()}
        reported = {(job_id, number) for job_id, attempts in known.items() for number in attempts}
        self._finished = sorted({*self._finished, *reported} - under_way)
        return events

    def _ordered(
        self, job_id: JobId, known: Mapping[JobId, Mapping[int, AttemptState]]
    ) -> tuple[ActiveAttempt, AttemptState | None]:
        order, attempt = self._view.orders[job_id], self._registry.attempt(job_id)
        active = ActiveAttempt(order.job, order.slots, attempt)
        self._resume_cancel(active)
        return active, known.get(job_id, {}).get(attempt)

    def _running(
        self, job_id: JobId, known: Mapping[JobId, Mapping[int, AttemptState]]
    ) -> tuple[ActiveAttempt, AttemptState | None]:
        """Return the newest attempt of a running job; a resize may be half done."""
        run, last = self._view.running[job_id], self._registry.attempt(job_id)
        attempts = known.get(job_id, {})
        newest = max((number for number in attempts if number <= last), default=last)
        active = ActiveAttempt(run.job, run.slots, newest, run.started_ms)
        if run.becoming is not None and newest == last:
            active.slots, active.started_ms, active.is_resize = run.becoming, None, True
        elif run.becoming is not None:
            active.next_slots, active.next_attempt, active.stop_reason = (
                run.becoming,
                last,
                "resize",
            )
        elif run.stopping:
            active.stop_reason = "preempted" if run.reclaimed is UNSET else "idle"
        self._resume_cancel(active)
        return active, attempts.get(newest)

    def _resume_cancel(self, active: ActiveAttempt) -> None:
        """Continue a cancellation that an earlier control plane accepted."""
        by = self._view.cancel_requests.get(active.job.id)
        if by is not None:
            active.by, active.stop_reason = by, "cancelled"

    def _hold_devices(self, active: ActiveAttempt, state: AttemptState) -> None:
        active.launched = True
        if state.end is not None or len(state.members) != len(active.slots):
            # It ended, and its devices may be reassigned by now; or its record was cut off and it
            # never began. Either way it holds nothing.
            return
        active.numbers = tuple(member.gpus for member in state.members)
        for slot, numbers in zip(active.slots, active.numbers, strict=True):
            self._devices.mark_held(slot, numbers)

    def _adopt_one(
        self, active: ActiveAttempt, state: AttemptState | None, now_ms: Millis
    ) -> list[Event]:
        job_id = active.job.id
        if state is None:
            if active.started_ms is None and active.stop_reason == "cancelled":
                return self._cancelled_start(active, now_ms)
            if active.started_ms is None:
                self.launch(active)
                return []
            reason = Reason("attempt-unknown")
            return self.lost(AttemptLost(now_ms, job_id, active.attempt, reason), now_ms)
        if state.end is not None and self._saved_at is None and self.awaits_saved(state.end):
            self.waiting.append(state.end)
            return []
        if isinstance(state.end, AttemptEnded):
            return self.ended(state.end, now_ms)
        if isinstance(state.end, AttemptLost):
            return self.lost(state.end, now_ms)
        if active.stop_reason is not None:
            # The order is in the journal, but it may not have been sent.
            self.stop(active, active.stop_reason)
        if state.started_ms is not None:
            return self.started(AttemptStarted(state.started_ms, job_id, active.attempt), now_ms)
        return []

    def started(self, observed: AttemptStarted, now_ms: Millis) -> list[Event]:
        """Handle the start of all members."""
        active = self._current(observed.job_id, observed.attempt)
        if active is None or active.started_ms is not None or active.quarantine is not None:
            return []
        active.started_ms = now_ms
        self._registry.note_start(active.job.id, refused=False)
        return [_start_event(active, now_ms)]

    def ended(self, observed: AttemptEnded, now_ms: Millis) -> list[Event]:
        """Handle the end of all processes: return what it means for the job."""
        active = self._current(observed.job_id, observed.attempt)
        if active is None:
            return []
        if active.quarantine is not None:
            return self.quarantine(active.job.id, active.quarantine, now_ms, is_over=True)
        events: list[Event] = []
        if active.started_ms is None:
            active.started_ms = now_ms
            self._registry.note_start(active.job.id, refused=False)
            events.append(_start_event(active, now_ms))
        began_ms = active.started_ms
        if (
            observed.how == "stopped"
            and active.stop_reason == "resize"
            and active.next_slots is not None
        ):
            self._release(active)
            follows = ActiveAttempt(
                active.job, active.next_slots, active.next_attempt, is_resize=True
            )
            self._active[active.job.id] = follows
            self.launch(follows)
            return events
        outcome = self._outcome(active, observed, now_ms)
        code = 128 + observed.signal if observed.signal is not None else observed.exit_code
        if self.clock is not None:
            # Executors use the system clock, which may differ from the loop's.
            ended_ms = max(began_ms, Millis(observed.at_ms + self.clock.ahead_ms()))
            if now_ms - ended_ms >= LATE_MS:
                outcome = replace(outcome, ended_ms=ended_ms)
        return [*events, outcome if code is None else replace(outcome, exit_code=code)]

    def lost(self, observed: AttemptLost, now_ms: Millis) -> list[Event]:
        """Handle a lost attempt: the job runs again from its last checkpoint."""
        active = self._current(observed.job_id, observed.attempt)
        if active is None:
            return []
        if active.quarantine is not None:
            return self.quarantine(active.job.id, active.quarantine, now_ms, is_over=True)
        if active.stop_reason in ("cancelled", "idle"):
            return self._ended_lost(active, now_ms, "cancelled")
        if active.stop_reason == "timeout":
            return self._ended_lost(active, now_ms, "timeout")
        job_id, node_is_lost = active.job.id, self._is_node_lost(active)
        saved_ms = None if node_is_lost else self._saved_ms(active, now_ms)
        failure = loss_of(observed, active.slots, saved_ms, node_is_lost=node_is_lost)
        if counts_against_job(failure):
            losses = after_crash(self._view.failure_log.crashes.get(job_id), failure.saved_ms)
            if not retries_loss(losses, active.attempt):
                times, cause = losses.count, Causes((observed.reason,))
                reason = Reason("attempts-lost", {"times": times, "cause": cause})
                return self._ended_lost(active, now_ms, "failed", replace(failure, reason=reason))
        return [replace(self._stopped(active, now_ms, "node-lost"), failure=failure)]

    def _is_node_lost(self, active: ActiveAttempt) -> bool:
        """Return whether an attempt was lost together with one of its nodes."""
        return active.stop_reason == "node-lost" or any(
            self._view.states.get(slot.node) == "down" for slot in active.slots
        )

    def _ended_lost(
        self,
        active: ActiveAttempt,
        now_ms: Millis,
        status: JobStatus,
        failure: AttemptFailure | UnsetType = UNSET,
    ) -> list[Event]:
        """Return the end of a job with its lost attempt, which counts as started."""
        started = [] if active.started_ms is not None else [_start_event(active, now_ms)]
        return [*started, replace(self._end(active, now_ms, status), failure=failure)]

    def refused(self, observed: OrderRefused, now_ms: Millis) -> list[Event]:
        """Handle a refused order. A start that can never succeed ends the job."""
        active = self._current(observed.job_id, observed.attempt)
        if active is None or active.started_ms is not None:
            return []
        if active.quarantine is not None:
            return self.quarantine(active.job.id, active.quarantine, now_ms, is_over=True)
        if active.is_resize and active.stop_reason == "cancelled":
            return [self._end(active, now_ms, "cancelled")]
        if active.stop_reason == "cancelled":
            return self._cancelled_start(active, now_ms)
        self._release(active)
        self._registry.note_start(active.job.id, refused=True)
        if active.is_resize:
            return [self._stopped(active, now_ms, "start-failed")]
        order, failure = StartJob(active.job.id, active.slots), refusal_of(observed, active.slots)
        events: list[Event] = [ActionRefused(now_ms, order, observed.reason, failure)]
        if not observed.is_transient and observed.reason.code != STALE:
            events.append(JobRefused(now_ms, active.job.id, (observed.reason,)))
            self._registry.close(active.job.id)
        return events

    def _outcome(
        self, active: ActiveAttempt, observed: AttemptEnded, now_ms: Millis
    ) -> JobEnded | JobStopped:
        if observed.how == "stopped":
            match active.stop_reason:
                case None:
                    return self._end(active, now_ms, _earlier_stop_status(active, observed))
                case "cancelled" | "timeout" as status:
                    return self._end(active, now_ms, status)
                case "idle":
                    # An idle session ends; it is not queued again.
                    return self._end(active, now_ms, "cancelled")
                case "resize":
                    return self._stopped(active, now_ms, "moved")
                case cause:
                    return self._stopped(active, now_ms, cause)
        if observed.how == "exited" and observed.exit_code == 0:
            return self._end(active, now_ms, "completed")
        return self._crashed(active, observed, now_ms)

    def _crashed(
        self, active: ActiveAttempt, observed: AttemptEnded, now_ms: Millis
    ) -> JobEnded | JobStopped:
        job_id = active.job.id
        failure = crash_of(observed, active.slots, self._saved_ms(active, now_ms))
        crashes = after_crash(self._view.failure_log.crashes.get(job_id), failure.saved_ms)
        saves = self._registry.run_spec(job_id).checkpoint is not None
        if retries_crash(crashes, active.attempt, saves=saves):
            if active.stop_reason == "cancelled":
                return self._end(active, now_ms, "cancelled")
            return replace(self._stopped(active, now_ms, "crashed"), failure=failure)
        return replace(self._end(active, now_ms, "failed"), failure=failure)

    def _end(self, active: ActiveAttempt, now_ms: Millis, status: JobStatus) -> JobEnded:
        self._release(active)
        self._registry.close(active.job.id)
        by = active.by if status == "cancelled" and active.by else UNSET
        return JobEnded(now_ms, active.job.id, status, by=by)

    def _stopped(self, active: ActiveAttempt, now_ms: Millis, cause: StopCause) -> JobStopped:
        past = self._view.past.get(active.job.id)
        done_ms = Millis(0) if past is None else past.progress_ms
        saved_ms = self._saved_ms(active, now_ms)
        if saved_ms is not None and active.started_ms is not None and saved_ms > active.started_ms:
            done_ms = Millis(done_ms + saved_ms - active.started_ms)
        self._release(active)
        return JobStopped(now_ms, active.job.id, cause, done_ms)

    def _saved_ms(self, active: ActiveAttempt, now_ms: Millis) -> Millis | None:
        """Return when a job last saved. The job wrote this, so it is limited to the past."""
        saved_ms = active.saved_ms
        if self._saved_at is not None:
            saved_ms = self._saved_at(active.job, self._registry.run_spec(active.job.id))
        return None if saved_ms is None else max(Millis(0), min(saved_ms, now_ms))

    def _release(self, active: ActiveAttempt) -> None:
        for slot, numbers in zip(active.slots, active.numbers, strict=False):
            self._devices.release(slot, numbers)
        active.numbers = ()
        self._finished.append((active.job.id, active.attempt))
        self._active.pop(active.job.id, None)

    def _current(self, job_id: JobId, attempt: int) -> ActiveAttempt | None:
        active = self._active.get(job_id)
        return active if active is not None and active.attempt == attempt else None


def _start_event(active: ActiveAttempt, now_ms: Millis) -> JobStarted | JobResized:
    if active.is_resize:
        return JobResized(now_ms, active.job.id)
    return JobStarted(now_ms, active.job.id)


def _earlier_stop_status(active: ActiveAttempt, observed: AttemptEnded) -> JobStatus:
    """Return why an earlier control plane stopped an attempt: time limit or cancellation."""
    limit_ms, started_ms = active.job.limit_ms, active.started_ms
    if limit_ms is None or started_ms is None or observed.at_ms < started_ms + limit_ms:
        return "cancelled"
    return "timeout"
