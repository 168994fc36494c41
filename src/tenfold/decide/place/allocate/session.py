"""One cycle of the governed policy: its inputs, its orders so far, and how orders are made.

Every step of a cycle works on one `Session`: the scheduling pass, reservations, elastic jobs,
defragmentation and upkeep. The session itself does not depend on any of them.
"""

from collections.abc import Generator
from contextlib import contextmanager

from tenfold.decide.place.allocate.pipelined_starts import Pipelined, PipelinedStarts
from tenfold.decide.place.preempt.reclaim import Reclaim
from tenfold.decide.place.queue.pending_queues import JobClass, Option
from tenfold.decide.place.quota.allocations import Allocation
from tenfold.decide.place.quota.request import Amounts
from tenfold.decide.place.state.scheduler_state import ReservedGang, SchedulerState
from tenfold.fleet.capacity import Slots
from tenfold.fleet.fleet import FleetView
from tenfold.model.actions import Action, RefuseJob, ReserveStart, StartJob, StopJob
from tenfold.model.decision import NOTHING, Decision
from tenfold.model.ids import NodeId
from tenfold.model.job.job import BackfillReservation, Job, Shape, StopCause
from tenfold.model.reason import Reason
from tenfold.model.units import HOUR, Millis


class Session:
    """Inputs and orders of one cycle."""

    __slots__ = (
        "_pipelined",
        "_reclaim",
        "actions",
        "dirty",
        "newly_preemptible",
        "now_ms",
        "state",
        "stops",
        "view",
        "wakes",
    )

    def __init__(self, state: SchedulerState, view: FleetView, now_ms: Millis) -> None:
        self.state = state
        self.view = view
        self.now_ms = now_ms
        self.actions: list[Action] = []
        self.stops = 0
        """Orders that release capacity: they trigger another cycle immediately."""
        self.dirty = state.dirty
        """Whether capacity was released since the last cycle."""
        self.newly_preemptible = False
        """Whether a job became preemptible since the last cycle."""
        self.wakes: list[int] = []
        """Times at which the decision may change without an event."""
        self._pipelined: PipelinedStarts | None = None
        self._reclaim: Reclaim | None = None

    @property
    def reclaim(self) -> Reclaim:
        """The search for victims, created on first use."""
        if self._reclaim is None:
            state = self.state
            self._reclaim = Reclaim(
                state.govern, state.tree, state.allocations, state.scratch, self.view, self.now_ms
            )
        return self._reclaim

    def may_preempt(self) -> bool:
        """Return whether jobs may be preempted now."""
        state = self.state
        return state.govern.preempts and not state.resizing and self.may_stop_more()

    def may_stop_more(self) -> bool:
        """Return whether the policy allows another stop in this hour."""
        most = self.state.govern.stops_per_hour
        if not most:
            return True
        since = self.now_ms - HOUR
        recent = sum(1 for at_ms in self.view.evictions if at_ms > since)
        return recent + self.stops < most

    def claim(self, shape: Shape, job: Job, option: Option) -> Slots | None:
        """Claim slots for a shape on nodes that no window blocks for the job."""
        state, scratch = self.state, self.state.scratch
        if not state.govern.windows:
            return scratch.capacity.claim_in(shape, option.accelerator)
        with self.own_windows(job):
            mark = scratch.checkpoint()
            slots = scratch.claim_in(shape, option.accelerator)
            if slots is not None and state.windows.clashes(slots, job, self.now_ms):
                scratch.rollback(mark)
                with scratch.hiding(state.windows.coming_for(job, self.now_ms)):
                    slots = scratch.capacity.claim_in(shape, option.accelerator)
            scratch.commit(mark)
        return slots

    @contextmanager
    def own_windows(self, job: Job) -> Generator[None]:
        """Open the nodes of windows that are reserved for the team of a job."""
        states = self.view.states
        own: list[NodeId] = [
            node_id
            for node_id, team in self.state.windows.open.items()
            if team and team == job.team and states[node_id] == "up"
        ]
        with self.state.scratch.opening(own):
            yield

    def start(
        self,
        job_class: JobClass,
        job: Job,
        slots: Slots,
        amounts: Amounts,
        reserved: ReservedGang | None = None,
    ) -> None:
        """Start a job on claimed slots, or hold them until they are actually free."""
        state, pipelined = self.state, self._pipelined
        if reserved is not None and not slots:
            kept = reserved.reservation.slots
            state.reserve(job, reserved.reservation, state.accelerator(kept[0].node))
            return
        if pipelined is not None and pipelined.is_needed_by(job_class.team, slots, job, amounts):
            pipelined.add((job_class, job, slots, amounts, reserved))
            return
        state.blocked_preemptors.pop(job_class, None)
        state.allocations.add(Allocation(job, slots, self.now_ms, job_class.team, amounts))
        self.actions.append(StartJob(job.id, slots))
        if state.queues.count:
            state.queues.usage_changed(job_class.team)
            state.reconsider(job_class.team)

    def order_stop(self, allocation: Allocation, cause: StopCause, reason: Reason) -> None:
        """Order a stop; its capacity does not count as free yet."""
        self.state.allocations.stop(allocation)
        self.actions.append(StopJob(allocation.job.id, cause, reason))
        self.stops += 1

    def preempt(self, allocation: Allocation, reason: Reason) -> None:
        """Order a stop and count its capacity as free for the rest of the cycle."""
        self.order_stop(allocation, "preempted", reason)
        self.release(allocation)
        if self._reclaim is not None:
            self._reclaim.gone(allocation)

    def release(self, allocation: Allocation) -> None:
        """Count the capacity of a job being stopped as free for the rest of the cycle."""
        if self._pipelined is None:
            self._pipelined = PipelinedStarts(self.state)
        self._pipelined.release(allocation)

    def settle(self) -> list[Pipelined]:
        """Stop counting releasing capacity as free; return the starts that wait for it."""
        return [] if self._pipelined is None else self._pipelined.settle()

    def reserve(self, job: Job, reservation: BackfillReservation) -> None:
        """Order a reservation and hide its nodes."""
        accelerator = self.view.nodes[reservation.slots[0].node].accelerator
        self.state.reserve(job, reservation, accelerator)
        order = ReserveStart(job.id, reservation.slots, reservation.start_ms, reservation.since_ms)
        self.actions.append(order)

    def withdraw(self, job: Job, reservation: BackfillReservation) -> None:
        """Order the cancellation of a reservation."""
        self.actions.append(ReserveStart(job.id, (), self.now_ms, reservation.since_ms))

    def decision(self) -> Decision:
        """Return the orders, and when to wake up without an event."""
        assert not self.state.scratch.checkpoint(), "no tentative change is left after a cycle"
        wake_ms = self._wake_ms()
        return Decision(self.actions, wake_ms) if self.actions or wake_ms else NOTHING

    def _wake_ms(self) -> Millis | None:
        state, now_ms = self.state, self.now_ms
        if self.stops or any(
            isinstance(one, RefuseJob) and state.admission.is_waited_for(one.job_id)
            for one in self.actions
        ):
            return now_ms
        if not (state.blocked_preemptors or state.reserved or self.wakes):
            return None
        times = self.wakes
        blocked_preemptors = [
            job_class for job_class in state.blocked_preemptors if job_class.queue
        ]
        if (blocked_preemptors or state.reserved) and (
            preemptible_from_ms := state.allocations.next_preemptible_ms(now_ms)
        ):
            times.append(preemptible_from_ms)
        if delay_ms := state.govern.delay_ms:
            times += [job_class.queue[0][0] + delay_ms for job_class in blocked_preemptors]
        times += [each.reservation.start_ms for each in state.reserved.values()]
        if blocked_preemptors and (most := state.govern.stops_per_hour):
            times += [at_ms + HOUR for at_ms in list(self.view.evictions)[-most:]]
        return Millis(min((at_ms for at_ms in times if at_ms > now_ms), default=0)) or None
