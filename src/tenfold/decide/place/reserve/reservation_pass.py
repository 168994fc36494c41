"""Start reserved gangs when their nodes are free, renew reservations, and backfill."""

from collections.abc import Iterable, Iterator

from tenfold.decide.place.allocate.session import Session
from tenfold.decide.place.queue.pending_queues import JobClass
from tenfold.decide.place.quota.allocations import PLAIN, Allocation
from tenfold.decide.place.reserve.backfill_reservation import (
    SHORTEST_GUESS_MS,
    ExpectedEnds,
    ends_in_time,
    plan_reservation,
    start_ms_of,
)
from tenfold.decide.place.reserve.defragment import moves_for
from tenfold.decide.place.state.scheduler_state import ReservedGang
from tenfold.fleet.capacity import Slots
from tenfold.fleet.fleet import FleetView
from tenfold.model.actions import StartJob
from tenfold.model.ids import NodeId
from tenfold.model.job.job import BackfillReservation, Job, Slot
from tenfold.model.reason import JobRef, Reason
from tenfold.model.units import Millis

REPAIRED = ("node-lost", "moved", "start-failed")
"""Jobs stopped for these causes start before all others."""


class ReservationPass:
    """The reservations of one cycle."""

    __slots__ = ("_now_ms", "_session", "_state", "_view")

    def __init__(self, session: Session) -> None:
        self._session = session
        self._state = session.state
        self._view = session.view
        self._now_ms = session.now_ms

    def start_reserved(self) -> None:
        """Start gangs whose reserved nodes are free; change reservations that cannot be kept."""
        state, view = self._state, self._view
        dirty = (
            self._session.dirty
            or self._session.newly_preemptible
            or bool(state.allocations.stopping)
        )
        self._reassign_to_earlier()
        for made in self._in_order():
            reserved = self._holder(made)
            if reserved is None:
                continue
            slots = reserved.reservation.slots
            if state.windows.clashes(slots, reserved.job, self._now_ms) or any(
                view.states[slot.node] != "up" or state.windows.bars(slot.node, reserved.job)
                for slot in slots
            ):
                state.unreserve(reserved)
                state.enqueue(reserved.job)
                self._session.withdraw(reserved.job, reserved.reservation)
                state.queues.requeue_all()
                continue
            is_due = self._now_ms >= reserved.reservation.start_ms
            if dirty or is_due:
                self._try(reserved, is_due=is_due)

    def _holder(self, made: ReservedGang) -> ReservedGang | None:
        """Return the gang that holds a reservation after swaps in this cycle; None if none does."""
        reserved = self._state.reserved
        if reserved.get(made.job.id) is made:
            return made
        holders = (each for each in reserved.values() if each.reservation is made.reservation)
        return next(holders, None)

    def _reassign_to_earlier(self) -> None:
        """Give reservations to equivalent gangs that were submitted earlier."""
        state = self._state
        for reserved in self._in_order():
            job, reservation = reserved.job, reserved.reservation
            team, trait = reserved.job_class.team, state.trait(job)
            job_class = state.queues.get(team, job.priority, job.shape, trait)
            if job_class is None or job_class.queue[0][:2] > (job.submitted_ms, job.seq):
                continue
            if is_repair(self._view, job):
                continue
            if state.windows.clashes(reservation.slots, job_class.queue[0][2], self._now_ms):
                continue
            state.unreserve(reserved)
            self._session.withdraw(job, reservation)
            self._session.reserve(state.queues.dequeue(job_class), reservation)
            state.enqueue(job)

    def reserve(self) -> None:
        """Reserve nodes for the first gangs that did not fit."""
        state, govern, now_ms = self._state, self._state.govern, self._now_ms
        if len(state.reserved) >= govern.reservations:
            return
        ready: list[JobClass] = []
        for job_class in state.queues.parked():
            if job_class.is_gang and self._types_within_quota(job_class):
                from_ms = job_class.queue[0][0] + govern.reserve_after_ms
                if from_ms <= now_ms:
                    ready.append(job_class)
                else:
                    self._session.wakes.append(from_ms)
        if not ready:
            return
        expected_ends = ExpectedEnds(state.allocations.held.values(), now_ms)
        busy = self._being_started()
        for job_class in sorted(ready, key=self._fair_share_order):
            if len(state.reserved) >= govern.reservations:
                return
            coming = dict.fromkeys(state.windows.coming_for(job_class.queue[0][2], now_ms))
            types = self._types_within_quota(job_class)
            plan = plan_reservation(
                state.scratch, job_class.shape, types, expected_ends, busy | coming
            )
            if plan is None:
                continue
            slots, start_ms = plan
            moves = moves_for(self._session, job_class, start_ms) if govern.defragment else None
            job = state.queues.dequeue(job_class)
            if moves is not None:
                self._move(job, moves.moved)
                slots, start_ms = moves.slots, Millis(now_ms + SHORTEST_GUESS_MS)
            start_ms = max(start_ms, Millis(now_ms + 1))
            self._session.reserve(job, BackfillReservation(slots, start_ms, now_ms))

    def _move(self, job: Job, moved: Iterable[Allocation]) -> None:
        """Stop small jobs that move off whole nodes for a gang."""
        why = Reason("defragmented", {"job": JobRef(job.id, job.team)})
        for allocation in moved:
            self._session.order_stop(allocation, "moved", why)

    def _being_started(self) -> dict[NodeId, None]:
        """Return nodes of starts in progress: a job that starts later than this backfills them."""
        starts = [action for action in self._session.actions if isinstance(action, StartJob)]
        return {
            slot.node: None
            for start in (*self._view.orders.values(), *starts)
            for slot in start.slots
        }

    def backfill(self, job: Job, accelerator: str) -> Slots | None:
        """Claim a reserved node for a job that is gone before the reservation is due."""
        state, shape = self._state, job.shape
        if shape.milli or shape.cpus_milli or shape.memory_mib or not shape.gpus:
            return None
        if job.id in self._view.past or (job.limit_ms is None and not state.govern.preempts):
            # A job that was stopped once is not placed where it may be stopped again.
            return None
        closed: dict[NodeId, None] = {}
        around = self._state.capacity.around
        for reserved in self._in_order():
            if not self._may_fill(job, reserved):
                closed.update(dict.fromkeys(around(reserved.reservation.slots)))
        for reserved in self._in_order():
            for node_id in around(reserved.reservation.slots):
                if node_id not in closed:
                    found = self._on_reserved_node(job, node_id, accelerator)
                    if found is not None:
                        return found
        return None

    def _may_fill(self, job: Job, reserved: ReservedGang) -> bool:
        """Return whether a job may backfill before a reservation."""
        if job.team == reserved.job.team and job.priority > reserved.job.priority:
            # It could preempt the gang in turn.
            return False
        least_ms = max(SHORTEST_GUESS_MS, self._state.govern.min_run_ms)
        return ends_in_time(job, reserved.reservation, self._now_ms, least_ms)

    def _on_reserved_node(self, job: Job, node_id: NodeId, accelerator: str) -> Slots | None:
        """Claim slots for a job on one reserved node."""
        capacity = self._state.capacity
        node_index, number = capacity.place[node_id]
        for split in capacity.splits_in(job.shape, accelerator):
            alone = split.members == 1 and not split.rest
            if alone and split.node_index is node_index and node_index.free[number] >= split.gpus:
                slots = (Slot(node_id, split.gpus),)
                clashes = self._state.windows.clashes(slots, job, self._now_ms)
                if not clashes and capacity.has_free_hidden(slots, job.shape):
                    capacity.take(slots, job.shape)
                    return slots
        return None

    def _in_order(self) -> list[ReservedGang]:
        return sorted(self._state.reserved.values(), key=_made)

    def _try(self, reserved: ReservedGang, *, is_due: bool) -> None:
        """Start a gang on its reserved nodes, or wherever it fits."""
        state, job, slots = self._state, reserved.job, reserved.reservation.slots
        capacity, first = state.capacity, self._first_alike(reserved, slots)
        suspended = state.suspend(reserved)
        with self._session.own_windows(job):
            is_free = capacity.has_free_hidden(slots, job.shape) or self._clear_backfill(
                reserved, is_due=is_due
            )
            if is_free:
                capacity.take(slots, job.shape)
                if first is not reserved:
                    first = self._swap(first, reserved)
                self._session.start(first.job_class, first.job, slots, first.amounts, first)
        if is_free:
            state.scratch.commit(suspended)
        elif (found := self._anywhere(reserved)) is not None:
            state.scratch.rollback(suspended)
            first = self._first_alike(reserved, found)
            state.unreserve(first)
            amounts = state.amounts(found, state.accelerator(found[0].node))
            self._session.start(first.job_class, first.job, found, amounts, first)
        elif is_due:
            state.scratch.commit(suspended)
            self._renew(reserved)
        else:
            state.scratch.rollback(suspended)

    def _anywhere(self, reserved: ReservedGang) -> Slots | None:
        """Claim any free slots for a reserved gang."""
        tree, job_class = self._state.tree, reserved.job_class
        for option in job_class.options:
            if tree.obstacle(job_class.team, option.amounts) is None:
                slots = self._session.claim(reserved.job.shape, reserved.job, option)
                if slots is not None:
                    return slots
        return None

    def _renew(self, reserved: ReservedGang) -> None:
        """Postpone a reservation that could not be kept, or cancel it if it never can be."""
        state, job, reservation = self._state, reserved.job, reserved.reservation
        # Jobs being stopped already count as free.
        holders = (each for each in state.allocations.held.values() if not each.stopping)
        expected_ends = ExpectedEnds(holders, self._now_ms)
        start_ms = start_ms_of(state.scratch, reservation.slots, job.shape, expected_ends)
        if start_ms is None:
            state.enqueue(job)
            self._session.withdraw(job, reservation)
        else:
            start_ms = max(start_ms, Millis(self._now_ms + SHORTEST_GUESS_MS))
            self._session.reserve(
                job, BackfillReservation(reservation.slots, start_ms, reservation.since_ms)
            )
        # The gap before it has grown.
        state.queues.requeue_all()

    def _first_alike(self, reserved: ReservedGang, slots: Slots) -> ReservedGang:
        """Return the first submitted of the equivalent reserved gangs that may use these slots."""
        windows = self._state.windows
        alike = (
            each
            for each in self._state.reserved.values()
            if each is reserved
            or (_is_alike(each, reserved) and not windows.clashes(slots, each.job, self._now_ms))
        )
        return min(alike, key=_arrival)

    def _swap(self, first: ReservedGang, reserved: ReservedGang) -> ReservedGang:
        """Swap the reservations of two equivalent gangs; the second keeps waiting."""
        self._state.unreserve(first)
        self._session.reserve(first.job, reserved.reservation)
        self._state.unreserve(self._state.reserved[first.job.id])
        self._session.reserve(reserved.job, first.reservation)
        return ReservedGang(first.job, first.job_class, reserved.reservation, reserved.amounts)

    def _clear_backfill(self, reserved: ReservedGang, *, is_due: bool) -> bool:
        """Stop backfilled jobs on reserved nodes, if nothing else is in the way."""
        backfill_victims = self._backfill_victims(reserved, is_due=is_due)
        if backfill_victims is None or not self._fits_without(backfill_victims, reserved):
            return False
        why = Reason("promise-due", {"job": JobRef(reserved.job.id, reserved.job.team)})
        for allocation in backfill_victims:
            self._session.preempt(allocation, why)
        return True

    def _fits_without(self, backfill_victims: list[Allocation], reserved: ReservedGang) -> bool:
        """Return whether a reserved gang would fit without these jobs."""
        scratch = self._state.scratch
        with scratch.trial():
            for allocation in backfill_victims:
                scratch.release(allocation.slots, allocation.job.shape)
            return scratch.capacity.has_free_hidden(reserved.reservation.slots, reserved.job.shape)

    def carry_over(self, reserved: ReservedGang, slots: Slots) -> None:
        """Keep a reservation, or reserve the slots that the gang gets earlier."""
        reservation = reserved.reservation
        if slots == reservation.slots:
            accelerator = self._view.nodes[slots[0].node].accelerator
            self._state.reserve(reserved.job, reservation, accelerator)
        else:
            due_ms = min(reservation.start_ms, Millis(self._now_ms + SHORTEST_GUESS_MS))
            self._session.reserve(reserved.job, BackfillReservation(slots, due_ms, self._now_ms))

    def _backfill_victims(self, reserved: ReservedGang, *, is_due: bool) -> list[Allocation] | None:
        """Return backfilled jobs that must stop now; None where other jobs are in the way too."""
        state, reservation = self._state, reserved.reservation
        if state.resizing or not state.govern.preempts:
            return None
        victims: dict[int, Allocation] = {}
        for slot in reservation.slots:
            node_index, number = state.capacity.place[slot.node]
            short = slot.gpus - node_index.free[number]
            for allocation in self._backfilled_on(slot, reservation, is_due=is_due):
                if short <= 0:
                    break
                victims[id(allocation)] = allocation
                short -= max(1, allocation.slots[0].gpus)
            if short > 0:
                return None
        return list(victims.values()) or None

    def _backfilled_on(
        self, slot: Slot, reservation: BackfillReservation, *, is_due: bool
    ) -> Iterator[Allocation]:
        """Yield jobs on a reserved node that started after the reservation, newest first."""
        allocations, running = self._state.allocations, self._view.running
        for allocation in sorted(allocations.on(slot.node), key=_started, reverse=True):
            run = running.get(allocation.job.id)
            if (
                allocation.started_ms > reservation.since_ms
                and (allocation.job.terms or PLAIN).preemptible
                and not allocation.stopping
                and run is not None
                and run.becoming is None
                and (is_due or self._now_ms >= allocations.preemptible_from_ms(allocation))
            ):
                yield allocation

    def _types_within_quota(self, job_class: JobClass) -> list[str]:
        """Return the accelerator types with which a class stays within its quota."""
        tree = self._state.tree
        return [
            accelerator
            for accelerator, amounts in job_class.options
            if tree.obstacle(job_class.team, amounts) is None
            and all(tree.is_within(node, amounts) for node in job_class.team.path[:-1])
        ]

    def _fair_share_order(self, job_class: JobClass) -> tuple[object, ...]:
        submitted, seq, _ = job_class.queue[0]
        key = self._state.tree.path_key(job_class.team.path[:-1], job_class.amounts)
        return key, -job_class.priority, submitted, seq


def is_repair(view: FleetView, job: Job) -> bool:
    """Return whether a job waits after a failure, and therefore starts before all others."""
    past = view.past.get(job.id)
    return past is not None and past.cause in REPAIRED


def _made(reserved: ReservedGang) -> tuple[int, int, int]:
    return reserved.reservation.since_ms, reserved.job.submitted_ms, reserved.job.seq


def _arrival(reserved: ReservedGang) -> tuple[int, int]:
    return reserved.job.submitted_ms, reserved.job.seq


def _is_alike(one: ReservedGang, other: ReservedGang) -> bool:
    mine, theirs = one.job, other.job
    return (
        mine.shape.key == theirs.shape.key
        and mine.team == theirs.team
        and mine.priority == theirs.priority
    )


def _started(allocation: Allocation) -> tuple[int, int, int]:
    return allocation.started_ms, allocation.job.submitted_ms, allocation.job.seq
