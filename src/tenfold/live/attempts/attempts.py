"""Active attempts: turn orders into launches, and observations into events.

A job has at most one attempt at a time. An observation of another attempt is outdated and ignored.
An attempt that ended before its start was observed counts as started.
"""

from collections.abc import Set
from typing import Protocol, runtime_checkable

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from tenfold.fleet.failure_log import after_crash
from tenfold.fleet.retries import counts_against_job, retries_crash, retries_loss
from tenfold.fleet.view import FleetView
from tenfold.live.attempts.active import (
    ActiveAttempt,
    CheckpointTime,
    StopReason,
    earlier_stop_status,
    start_event,
)
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
    JobStopped,
)
from tenfold.model.ids import JobId, NodeId
from tenfold.model.job.failures import AttemptFailure
from tenfold.model.job.job import Job, JobStatus, Slot, StopCause, own_speed, per_member
from tenfold.model.reason import Causes, Reason, UserRef
from tenfold.model.units import Millis

LATE_MS = 100
"""An end observed within this time is recorded at the time of observation."""
STALE = "stale-order"
"""The executor's code for an attempt that was superseded."""


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
        self.registry = registry
        self.view = view
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
        if active is None or self.registry.run_spec(active.job.id).checkpoint is None:
            return None
        return active

    def note_saved(self, observed: AttemptEnded | AttemptLost, saved_ms: Millis | None) -> None:
        """Record when the job of an ended attempt last saved."""
        active = self._current(observed.job_id, observed.attempt)
        if active is not None:
            active.saved_ms = saved_ms

    def must_wait(self, observed: AttemptEnded | AttemptLost) -> bool:
        """Tell whether an end waits for `note_saved`."""
        return self._saved_at is None and self.awaits_saved(observed) is not None

    def add(self, active: ActiveAttempt, state: AttemptState | None) -> None:
        """Add an attempt of an earlier control plane; its devices are not assigned again."""
        self._active[active.job.id] = active
        if state is None:
            return
        active.launched = True
        if state.end is not None or len(state.members) != len(active.slots):
            # It ended, and its devices may be reassigned by now; or its record was cut off and it
            # never began. Either way it holds nothing.
            return
        active.numbers = tuple(member.gpus for member in state.members)
        for slot, numbers in zip(active.slots, active.numbers, strict=True):
            self._devices.mark_held(slot, numbers)

    def finish(self, reported: Set[tuple[JobId, int]]) -> None:
        """Forget what the executor reported, except attempts that are active."""
        under_way = {(active.job.id, active.attempt) for active in self._active.values()}
        self._finished = sorted({*self._finished, *reported} - under_way)

    def settle(self) -> None:
        """Settle attempts whose ends are recorded."""
        if self._finished:
            self._executor.settle(self._finished)
            self._finished = []

    def order(self, job: Job, slots: tuple[Slot, ...]) -> ActiveAttempt:
        """Register an order to start a job, and number it."""
        active = self._active[job.id] = ActiveAttempt(job, slots, self.registry.begin(job.id))
        return active

    def resize(self, active: ActiveAttempt, slots: tuple[Slot, ...]) -> None:
        """Register a resize: this attempt stops, and another follows."""
        active.next_slots, active.next_attempt = slots, self.registry.begin(active.job.id)
        self.stop(active, "resize")

    def cancel_delayed(self, active: ActiveAttempt, by: str, now_ms: Millis) -> list[Event]:
        """Cancel a delayed start, and its job."""
        active.by = by
        return self.cancelled_start(active, now_ms)

    def request_cancel(self, active: ActiveAttempt, by: str, now_ms: Millis) -> list[Event]:
        """Register a cancellation; the caller stops the attempt once the event is recorded."""
        if active.stop_reason == "cancelled":
            return []
        active.by, active.stop_reason = by, "cancelled"
        return [JobCancelRequested(now_ms, active.job.id, by or UNSET)]

    def cancelled_start(self, active: ActiveAttempt, now_ms: Millis) -> list[Event]:
        """Return the events of a start that was cancelled before it was sent, and of its job."""
        by = active.by
        reason = Reason("cancelled", {"by": UserRef(by, active.job.team)} if by else {})
        self._release(active)
        self.registry.close(active.job.id)
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
                run_spec=self.registry.run_spec(active.job.id),
                members=members,
                limit_ms=active.job.limit_ms,
            )
        )

    def stop(self, active: ActiveAttempt, stop_reason: StopReason) -> None:
        """Stop an attempt. A cancellation overrides any other reason."""
        if active.stop_reason != "cancelled":
            active.stop_reason = stop_reason
        if active.launched:
            grace_ms = self.registry.run_spec(active.job.id).grace_ms
            self._executor.stop(active.job.id, active.attempt, grace_ms)

    def quarantine(
        self, job_id: JobId, reason: Reason, now_ms: Millis, *, is_over: bool
    ) -> list[Event]:
        """Hold a job that cannot be handled; an attempt that is not over is stopped first."""
        active = self._active.get(job_id)
        if active is not None and not is_over:
            active.quarantine = active.quarantine or reason
            grace_ms = self.registry.run_spec(job_id).grace_ms
            self._executor.stop(job_id, active.attempt, grace_ms)
            return []
        view = self.view
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
                self.registry.close(job_id)
                events.append(JobCancelled(now_ms, job_id, active.by or UNSET))
        return events

    def started(self, observed: AttemptStarted, now_ms: Millis) -> list[Event]:
        """Handle the start of all members."""
        active = self._current(observed.job_id, observed.attempt)
        if active is None or active.started_ms is not None or active.quarantine is not None:
            return []
        active.started_ms = now_ms
        self.registry.note_start(active.job.id, refused=False)
        return [start_event(active, now_ms)]

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
            self.registry.note_start(active.job.id, refused=False)
            events.append(start_event(active, now_ms))
        began_ms = active.started_ms
        if (
            observed.how == "stopped"
            and active.stop_reason == "resize"
            and active.next_slots is not None
        ):
            done_ms = self._done_ms(active, now_ms)
            self._release(active)
            follows = ActiveAttempt(
                active.job, active.next_slots, active.next_attempt, is_resize=True, done_ms=done_ms
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
            losses = after_crash(self.view.failure_log.crashes.get(job_id), failure.saved_ms)
            if not retries_loss(losses, active.attempt):
                times, cause = losses.count, Causes((observed.reason,))
                reason = Reason("attempts-lost", {"times": times, "cause": cause})
                return self._ended_lost(active, now_ms, "failed", replace(failure, reason=reason))
        return [replace(self._stopped(active, now_ms, "node-lost"), failure=failure)]

    def _is_node_lost(self, active: ActiveAttempt) -> bool:
        """Return whether an attempt was lost together with one of its nodes."""
        return active.stop_reason == "node-lost" or any(
            self.view.states.get(slot.node) == "down" for slot in active.slots
        )

    def _ended_lost(
        self,
        active: ActiveAttempt,
        now_ms: Millis,
        status: JobStatus,
        failure: AttemptFailure | UnsetType = UNSET,
    ) -> list[Event]:
        """Return the end of a job with its lost attempt, which counts as started."""
        started = [] if active.started_ms is not None else [start_event(active, now_ms)]
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
            return self.cancelled_start(active, now_ms)
        self._release(active)
        self.registry.note_start(active.job.id, refused=True)
        if active.is_resize:
            return [self._stopped(active, now_ms, "start-failed")]
        order, failure = StartJob(active.job.id, active.slots), refusal_of(observed, active.slots)
        events: list[Event] = [ActionRefused(now_ms, order, observed.reason, failure)]
        if not observed.is_transient and observed.reason.code != STALE:
            events.append(JobRefused(now_ms, active.job.id, (observed.reason,)))
            self.registry.close(active.job.id)
        return events

    def _outcome(
        self, active: ActiveAttempt, observed: AttemptEnded, now_ms: Millis
    ) -> JobEnded | JobStopped:
        if observed.how == "stopped":
            match active.stop_reason:
                case None:
                    return self._end(active, now_ms, earlier_stop_status(active, observed))
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
        crashes = after_crash(self.view.failure_log.crashes.get(job_id), failure.saved_ms)
        saves = self.registry.run_spec(job_id).checkpoint is not None
        if retries_crash(crashes, active.attempt, saves=saves):
            if active.stop_reason == "cancelled":
                return self._end(active, now_ms, "cancelled")
            return replace(self._stopped(active, now_ms, "crashed"), failure=failure)
        return replace(self._end(active, now_ms, "failed"), failure=failure)

    def _end(self, active: ActiveAttempt, now_ms: Millis, status: JobStatus) -> JobEnded:
        self._release(active)
        self.registry.close(active.job.id)
        by = active.by if status == "cancelled" and active.by else UNSET
        return JobEnded(now_ms, active.job.id, status, by=by)

    def _stopped(self, active: ActiveAttempt, now_ms: Millis, cause: StopCause) -> JobStopped:
        past = self.view.past.get(active.job.id)
        before_ms = 0 if past is None else past.progress_ms
        done_ms = Millis(before_ms + self._done_ms(active, now_ms))
        self._release(active)
        return JobStopped(now_ms, active.job.id, cause, done_ms)

    def _done_ms(self, active: ActiveAttempt, now_ms: Millis) -> Millis:
        """Return the work of a run that is saved, as time on the GPUs that its job requested."""
        saved_ms, started_ms = self._saved_ms(active, now_ms), active.started_ms
        if saved_ms is None or started_ms is None or saved_ms <= started_ms:
            return active.done_ms
        speed = own_speed(active.job, active.slots)
        return Millis(active.done_ms + int((saved_ms - started_ms) * speed))

    def _saved_ms(self, active: ActiveAttempt, now_ms: Millis) -> Millis | None:
        """Return when a job last saved. The job wrote this, so it is limited to the past."""
        saved_ms = active.saved_ms
        if self._saved_at is not None:
            saved_ms = self._saved_at(active.job, self.registry.run_spec(active.job.id))
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
