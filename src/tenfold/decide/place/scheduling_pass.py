"""One scheduling pass: admit jobs, allocate nodes in fair share order, preempt where allowed."""

from collections.abc import Iterable

from tenfold.decide.place.allocate.elastic import grow, shrink, sizes
from tenfold.decide.place.allocate.pipelined_starts import requeue_for_rest
from tenfold.decide.place.allocate.session import Session
from tenfold.decide.place.allocate.upkeep import clear_windows, end_idle, never_between
from tenfold.decide.place.misfit import never_fits
from tenfold.decide.place.queue.pending_queues import JobClass, Option
from tenfold.decide.place.quota.allocations import Allocation
from tenfold.decide.place.quota.request import Amounts
from tenfold.decide.place.quota.team_tree import Obstacle
from tenfold.decide.place.reserve.backfill_reservation import SHORTEST_GUESS_MS
from tenfold.decide.place.reserve.reservation_pass import ReservationPass, is_repair
from tenfold.decide.place.state.scheduler_state import ReservedGang, SchedulerState
from tenfold.fleet.capacity import Slots
from tenfold.fleet.fleet import FleetView
from tenfold.model.actions import RefuseJob, ReserveStart, StartJob
from tenfold.model.decision import Decision
from tenfold.model.job.job import BackfillReservation, Job, Shape
from tenfold.model.reason import JobRef, Reason, TeamRef
from tenfold.model.units import Millis

PlacedSlots = tuple[Slots, Amounts, ReservedGang | None]
"""Slots, what they take from quotas, and the reservation if the slots are not free yet."""


class SchedulingPass:
    """One cycle: pending jobs are offered free nodes in fair share order."""

    __slots__ = ("_met", "_no_capacity", "_session", "now_ms", "state", "view")

    def __init__(self, state: SchedulerState, view: FleetView, now_ms: Millis) -> None:
        self.state = state
        self.view = view
        self.now_ms = now_ms
        self._session = Session(state, view, now_ms)
        self._met: list[Obstacle] = []
        """Limits that the class being tried has hit."""
        self._no_capacity = False
        """Whether a size within quota did not fit on any nodes."""

    def start_single(self, job: Job) -> Decision | None:
        """Start the only job that can start now, without comparing it to others."""
        state, view = self.state, self.view
        job = state.residency.apply(job)
        if job.terms is not None or state.allocations.with_terms or state.govern.windows:
            return None
        if not state.is_unchanged(self.now_ms) or (view.past and job.id in view.past):
            return None
        queues, shape = state.queues, job.shape
        team, options = state.tree.team(job.team), state.options(shape)
        if len(options) > 1:
            return None
        if queues.count and queues.get(team, job.priority, shape, state.trait(job)) is not None:
            return None
        accelerator, amounts = next(iter(options))
        if state.tree.obstacle(team, amounts) is not None:
            return None
        slots = state.capacity.claim(shape)
        if slots is None:
            return None
        if len(slots) > 1:
            amounts = state.amounts(slots, accelerator)
        state.allocations.add(Allocation(job, slots, self.now_ms, team, amounts))
        if queues.count:
            queues.usage_changed(team)
            state.reconsider(team)
        self._session.actions.append(StartJob(job.id, slots))
        if queues.count:
            ReservationPass(self._session).reserve()
        return self._session.decision()

    def admit(self, fresh: Iterable[Job]) -> None:
        """Queue new jobs, as far as their terms allow.

        Reserved jobs come first: no member of an array takes the place of a reserved one.
        """
        state, past, reservations = self.state, self.view.past, self.view.reservations
        in_order = sorted(
            fresh, key=lambda job: (job.id not in reservations, job.submitted_ms, job.seq)
        )
        for submitted in in_order:
            job = state.residency.apply(submitted)
            if not state.capacity.could_hold(job.shape):
                self._refuse(job)
                continue
            if (never := state.never(job) or never_between(state, job)) is not None:
                self._session.actions.append(RefuseJob(job.id, (never,)))
                continue
            if job.terms is not None:
                answer = state.admission.check(self.view, job, job.terms, self.now_ms)
                if isinstance(answer, Reason):
                    self._session.actions.append(RefuseJob(job.id, (answer,)))
                elif answer is not True and job.id in reservations:
                    # Its off-peak hours are over: its reserved nodes are free again.
                    self._session.withdraw(job, reservations[job.id])
                if answer is not True:
                    continue
            if reservations and job.id in reservations:
                reservation = reservations[job.id]
                node = self.view.nodes[reservation.slots[0].node]
                state.reserve(job, reservation, node.accelerator)
            elif past and is_repair(self.view, job):
                job_class = state.class_of(job)
                job_class.queue.append((job.submitted_ms, job.seq, job))
                state.repairs.append(job_class)
            else:
                state.enqueue(job)

    def run(self) -> Decision:
        """Return the decision."""
        state, session = self.state, self._session
        end_idle(session)
        clear_windows(session)
        if state.queues.count or state.repairs or state.reserved:
            self._requeue()
            for allocation in state.allocations.stopping.values():
                session.release(allocation)
            if state.repairs:
                self._repair()
            reservations = ReservationPass(session)
            if state.reserved:
                reservations.start_reserved()
                if state.repairs:
                    # Reserved nodes may have become available to them.
                    self._repair()
            self._allocate()
            self._settle(reservations)
            reservations.reserve()
        else:
            # No pending job needed the capacity that was released.
            state.dirty = False
        if not (state.queues.count or state.repairs or state.reserved):
            grow(session)
        return session.decision()

    def _requeue(self) -> None:
        """Requeue the classes for which something may have changed."""
        state = self.state
        queues = state.queues
        if state.blocked_preemptors or state.reserved:
            self._session.newly_preemptible = state.allocations.newly_preemptible(self.now_ms)
        if state.allocations.stopping:
            # Releasing capacity may be assigned differently than when the stops were ordered.
            queues.requeue_all()
        elif state.blocked_preemptors and (state.dirty or self._time_passed()):
            for job_class in state.blocked_preemptors:
                queues.requeue(job_class)
            state.blocked_preemptors.clear()
        state.dirty = False

    def _time_passed(self) -> bool:
        """Return whether time alone may have made another job preemptible."""
        govern, now_ms = self.state.govern, self.now_ms
        if self._session.newly_preemptible or govern.stops_per_hour:
            return True
        return (
            any(
                now_ms - job_class.queue[0][0] >= govern.delay_ms
                for job_class in self.state.blocked_preemptors
                if job_class.queue
            )
            if govern.delay_ms
            else False
        )

    def _repair(self) -> None:
        """Restart gangs that lost a node, before any other job."""
        state = self.state
        left: list[JobClass] = []
        for job_class in sorted(state.repairs, key=_head):
            job = job_class.queue[0][2]
            found = self._place(job_class, job)
            if found is not None:
                self._session.start(job_class, job, *found)
            elif state.capacity.could_hold(job_class.shape):
                left.append(job_class)
            else:
                self._refuse(job)
        state.repairs = left

    def _allocate(self) -> None:
        """Offer nodes in fair share order until no pending job fits."""
        state = self.state
        queues = state.queues
        while (job_class := queues.best()) is not None:
            job = job_class.queue[0][2]
            found = self._place(job_class, job)
            if found is not None:
                queues.dequeue(job_class)
                self._session.start(job_class, job, *found)
            elif self._met or state.capacity.could_hold(job_class.shape):
                queues.set_aside(job_class, self._met, no_capacity=self._no_capacity)
            else:
                queues.dequeue(job_class)
                self._refuse(job)
                queues.usage_changed(job_class.team)

    def _place(self, job_class: JobClass, job: Job) -> PlacedSlots | None:
        """Claim nodes for a job; return the slots and what they take from quotas."""
        state, met = self.state, self._met
        met.clear()
        self._no_capacity = False
        found = self._place_as(job_class, job, job_class.shape, job_class.options)
        if found is None and job.terms is not None and job.terms.least_gpus:
            for smaller in sizes(job_class.shape, job.terms):
                found = found or self._place_as(job_class, job, smaller, state.options(smaller))
        if found is not None:
            return found
        return self._preempt(job_class, job) if state.govern.preempts else None

    def _place_as(
        self, job_class: JobClass, job: Job, shape: Shape, options: tuple[Option, ...]
    ) -> PlacedSlots | None:
        """Claim free nodes for a job in one of its sizes."""
        state = self.state
        for option in options:
            obstacle = state.tree.obstacle(job_class.team, option.amounts)
            if obstacle is not None:
                self._met.append(obstacle)
                continue
            slots = self._session.claim(shape, job, option)
            if slots is None and state.reserved and state.govern.backfill:
                slots = ReservationPass(self._session).backfill(job, option.accelerator)
            if slots is not None:
                return slots, state.amounts(slots, option.accelerator), None
            self._no_capacity = True
        return None

    def _preempt(self, job_class: JobClass, job: Job) -> PlacedSlots | None:
        """Order the stops that let a job fit, and reserve the releasing capacity for it."""
        state, session = self.state, self._session
        if state.resizing or not state.is_eligible(job_class):
            state.blocked_preemptors.pop(job_class, None)
            return None
        state.blocked_preemptors[job_class] = None
        if not session.may_stop_more():
            return None
        if not state.govern.windows:
            return self._shrink(job_class, job) or self._evict_cheapest(job_class, job)
        coming = state.windows.coming_for(job, self.now_ms)
        with session.own_windows(job), state.scratch.hiding(coming):
            return self._shrink(job_class, job) or self._evict_cheapest(job_class, job)

    def _evict_cheapest(self, job_class: JobClass, job: Job) -> PlacedSlots | None:
        """Order the cheapest stops that let a job fit."""
        state, reclaim = self.state, self._session.reclaim
        best: tuple[int, int, Option, list[Allocation]] | None = None
        for option in job_class.options:
            victims = reclaim.victims(job, job_class.team, option)
            if victims:
                found = (sum(map(reclaim.price, victims)), len(victims), option, victims)
                best = found if best is None or found[:2] < best[:2] else best
        if best is None:
            return None
        _, _, option, victims = best
        before = state.capacity.free_on(victims)
        for allocation in victims:
            self._session.preempt(allocation, _why(job, allocation))
        slots = state.capacity.claim_in(job_class.shape, option.accelerator)
        state.blocked_preemptors.pop(job_class, None)
        assert slots is not None, f"the stops for job `{job.id}` did not free enough"
        requeue_for_rest(state, before, state.capacity.free_on(victims))
        return self._reserve_releasing(job, slots, option)

    def _shrink(self, job_class: JobClass, job: Job) -> PlacedSlots | None:
        """Shrink elastic jobs where that is enough, and reserve what they release."""
        for option in job_class.options:
            if self.state.tree.obstacle(job_class.team, option.amounts) is None:
                slots = shrink(self._session, job_class.shape, option)
                if slots is not None:
                    self.state.resizing = True
                    self._session.stops += 1
                    _, amounts, reserved = self._reserve_releasing(job, slots, option)
                    return (), amounts, reserved
        return None

    def _reserve_releasing(self, job: Job, slots: Slots, option: Option) -> PlacedSlots:
        """Reserve releasing capacity for the job it is being freed for."""
        due_ms = Millis(self.now_ms + SHORTEST_GUESS_MS)
        reservation = BackfillReservation(slots, due_ms, self.now_ms)
        self._session.actions.append(ReserveStart(job.id, slots, due_ms, self.now_ms))
        amounts = self.state.amounts(slots, option.accelerator)
        return slots, amounts, ReservedGang(job, self.state.class_of(job), reservation, amounts)

    def _refuse(self, job: Job) -> None:
        why = never_fits(self.state.capacity, job.shape)
        self._session.actions.append(RefuseJob(job.id, why))

    def _settle(self, reservations: ReservationPass) -> None:
        """Stop counting releasing capacity as free; requeue the jobs that wait for it."""
        state = self.state
        for job_class, job, slots, _, reserved in self._session.settle():
            if reserved is not None:
                reservations.carry_over(reserved, slots)
            elif is_repair(self.view, job):
                state.repairs.append(job_class)
            else:
                state.enqueue(job)


def _head(job_class: JobClass) -> tuple[int, int]:
    return job_class.queue[0][:2]


def _why(job: Job, allocation: Allocation) -> Reason:
    if job.team == allocation.job.team:
        return Reason("outranked", {"job": JobRef(job.id, job.team)})
    fields = {"borrower": TeamRef(allocation.job.team), "job": JobRef(job.id, job.team)}
    return Reason("reclaimed", {**fields, "team": TeamRef(job.team)})
