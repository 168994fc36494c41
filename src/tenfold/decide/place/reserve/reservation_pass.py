"""Backfill reservations: started when their nodes are free, made anew, and filled before."""

from collections.abc import Iterable, Iterator

from tenfold.decide.place.allocate.session import Session
from tenfold.decide.place.queue.pending_queues import Class
from tenfold.decide.place.quota.allocations import PLAIN, Holding
from tenfold.decide.place.reserve.backfill_reservation import (
    SHORTEST_GUESS_MS,
    Leaving,
    ends_in_time,
    plan_promise,
    start_ms_of,
)
from tenfold.decide.place.reserve.defragment import moves_for
from tenfold.decide.place.state.scheduler_state import Promised
from tenfold.fleet.capacity import Slots
from tenfold.fleet.fleet import FleetView
from tenfold.model.actions import StartJob
from tenfold.model.ids import NodeId
from tenfold.model.job.job import Job, Promise, Slot
from tenfold.model.reason import JobRef, Reason
from tenfold.model.units import Millis

REPAIRED = ("node-lost", "moved", "start-failed")
"""Jobs that were stopped by these go before all others."""


class ReservationPass:
    """The reservations of one cycle."""

    __slots__ = ("_books", "_now_ms", "_session", "_view")

    def __init__(self, session: Session) -> None:
        self._session = session
        self._books = session.books
        self._view = session.view
        self._now_ms = session.now_ms

    def start_reserved(self) -> None:
        """Start gangs whose reserved nodes are free, and change reservations that cannot hold."""
        books, view = self._books, self._view
        stirred = self._session.stirred or self._session.ripened or bool(books.holdings.stopping)
        self._pass_on()
        for promised in self._in_order():
            slots = promised.promise.slots
            if books.promised.get(promised.job.id) is not promised:
                continue
            if books.windows.clashes(slots, promised.job, self._now_ms) or any(
                view.states[slot.node] != "up" or books.windows.bars(slot.node, promised.job)
                for slot in slots
            ):
                books.unpromise(promised)
                books.enter(promised.job)
                self._session.withdraw(promised.job, promised.promise)
                books.lines.rouse_all()
                continue
            is_due = self._now_ms >= promised.promise.start_ms
            if stirred or is_due:
                self._try(promised, is_due=is_due)

    def _pass_on(self) -> None:
        """Let those alike who came before have the promises of those who came later."""
        books = self._books
        for promised in self._in_order():
            job, promise = promised.job, promised.promise
            team, trait = promised.cls.team, books.trait(job)
            cls = books.lines.get(team, job.priority, job.shape, trait)
            if cls is None or cls.line[0][:2] > (job.submitted_ms, job.seq):
                continue
            if is_repair(self._view, job):
                continue
            if books.windows.clashes(promise.slots, cls.line[0][2], self._now_ms):
                continue
            books.unpromise(promised)
            self._session.withdraw(job, promise)
            self._session.reserve(books.lines.leave(cls), promise)
            books.enter(job)

    def reserve(self) -> None:
        """Reserve nodes for the first gangs that found no room."""
        books, govern, now_ms = self._books, self._books.govern, self._now_ms
        if len(books.promised) >= govern.reservations:
            return
        ready: list[Class] = []
        for cls in books.lines.parked():
            if cls.is_gang and self._owed_types(cls):
                from_ms = cls.line[0][0] + govern.reserve_after_ms
                if from_ms <= now_ms:
                    ready.append(cls)
                else:
                    self._session.wakes.append(from_ms)
        if not ready:
            return
        leaving = Leaving(books.holdings.held.values(), now_ms)
        busy = self._being_started()
        for cls in sorted(ready, key=self._turn):
            if len(books.promised) >= govern.reservations:
                return
            coming = dict.fromkeys(books.windows.coming_for(cls.line[0][2], now_ms))
            types = self._owed_types(cls)
            plan = plan_promise(books.scratch, cls.shape, types, leaving, busy | coming)
            if plan is None:
                continue
            slots, start_ms = plan
            moves = moves_for(self._session, cls, start_ms) if govern.defragment else None
            job = books.lines.leave(cls)
            if moves is not None:
                self._move(job, moves.movers)
                slots, start_ms = moves.slots, Millis(now_ms + SHORTEST_GUESS_MS)
            start_ms = max(start_ms, Millis(now_ms + 1))
            self._session.reserve(job, Promise(slots, start_ms, now_ms))

    def _move(self, job: Job, movers: Iterable[Holding]) -> None:
        """Stop small jobs that leave whole nodes to a gang and go on elsewhere."""
        why = Reason("defragmented", {"job": JobRef(job.id, job.team)})
        for holding in movers:
            self._session.order_stop(holding, "moved", why)

    def _being_started(self) -> dict[NodeId, None]:
        """Return nodes of starts under way: who starts later than a promise fills its hole."""
        starts = [action for action in self._session.actions if isinstance(action, StartJob)]
        return {
            slot.node: None
            for start in (*self._view.orders.values(), *starts)
            for slot in start.slots
        }

    def backfill(self, job: Job, accelerator: str) -> Slots | None:
        """Return room, taken, on a node that is kept for later, if the job is gone by then."""
        books, shape = self._books, job.shape
        if shape.milli or shape.cpus_milli or shape.memory_mib or not shape.gpus:
            return None
        if job.id in self._view.past or (job.limit_ms is None and not books.govern.preempts):
            # Who was stopped once is not let in where it may have to go again.
            return None
        closed: dict[NodeId, None] = {}
        around = self._books.capacity.around
        for promised in self._in_order():
            if not self._may_fill(job, promised):
                closed.update(dict.fromkeys(around(promised.promise.slots)))
        for promised in self._in_order():
            for node_id in around(promised.promise.slots):
                if node_id not in closed:
                    found = self._on_kept(job, node_id, accelerator)
                    if found is not None:
                        return found
        return None

    def _may_fill(self, job: Job, promised: Promised) -> bool:
        """Return whether a job may use the time until a promise."""
        if job.team == promised.job.team and job.priority > promised.job.priority:
            # It could displace the gang in turn.
            return False
        least_ms = max(SHORTEST_GUESS_MS, self._books.govern.min_run_ms)
        return ends_in_time(job, promised.promise, self._now_ms, least_ms)

    def _on_kept(self, job: Job, node_id: NodeId, accelerator: str) -> Slots | None:
        """Return room, taken, for a job on one node that is kept."""
        capacity = self._books.capacity
        bank, number = capacity.place[node_id]
        for seat in capacity.seats_in(job.shape, accelerator):
            alone = seat.members == 1 and not seat.rest
            if alone and seat.bank is bank and bank.free[number] >= seat.gpus:
                slots = (Slot(node_id, seat.gpus),)
                clashes = self._books.windows.clashes(slots, job, self._now_ms)
                if not clashes and capacity.has_kept(slots, job.shape):
                    capacity.take(slots, job.shape)
                    return slots
        return None

    def _in_order(self) -> list[Promised]:
        return sorted(self._books.promised.values(), key=_made)

    def _try(self, promised: Promised, *, is_due: bool) -> None:
        """Start a gang on its reserved nodes, or wherever there is room."""
        books, job, slots = self._books, promised.job, promised.promise.slots
        capacity, first = books.capacity, self._first_alike(promised, slots)
        suspended = books.suspend(promised)
        with self._session.own_windows(job):
            is_free = capacity.has_kept(slots, job.shape) or self._cleared(promised, is_due=is_due)
            if is_free:
                capacity.take(slots, job.shape)
                if first is not promised:
                    first = self._swap(first, promised)
                self._session.start(first.cls, first.job, slots, first.amounts, first)
        if is_free:
            books.scratch.commit(suspended)
        elif (found := self._anywhere(promised)) is not None:
            books.scratch.rollback(suspended)
            first = self._first_alike(promised, found)
            books.unpromise(first)
            amounts = books.amounts(found, books.accelerator(found[0].node))
            self._session.start(first.cls, first.job, found, amounts, first)
        elif is_due:
            books.scratch.commit(suspended)
            self._renew(promised)
        else:
            books.scratch.rollback(suspended)

    def _anywhere(self, promised: Promised) -> Slots | None:
        """Return room, taken, for a promised gang wherever there is some."""
        tree, cls = self._books.tree, promised.cls
        for option in cls.options:
            if tree.obstacle(cls.team, option.amounts) is None:
                slots = self._session.claim(promised.job.shape, promised.job, option)
                if slots is not None:
                    return slots
        return None

    def _renew(self, promised: Promised) -> None:
        """Put a promise off that could not be kept, or take it back if it never can be."""
        books, job, promise = self._books, promised.job, promised.promise
        # The room of those who are being stopped counts as free already.
        holders = (each for each in books.holdings.held.values() if not each.stopping)
        leaving = Leaving(holders, self._now_ms)
        start_ms = start_ms_of(books.scratch, promise.slots, job.shape, leaving)
        if start_ms is None:
            books.enter(job)
            self._session.withdraw(job, promise)
        else:
            start_ms = max(start_ms, Millis(self._now_ms + SHORTEST_GUESS_MS))
            self._session.reserve(job, Promise(promise.slots, start_ms, promise.since_ms))
        # The hole before it has grown.
        books.lines.rouse_all()

    def _first_alike(self, promised: Promised, slots: Slots) -> Promised:
        """Return who came first of those with promises who are alike and may take these slots."""
        windows = self._books.windows
        alike = (
            each
            for each in self._books.promised.values()
            if each is promised
            or (_is_alike(each, promised) and not windows.clashes(slots, each.job, self._now_ms))
        )
        return min(alike, key=_arrival)

    def _swap(self, first: Promised, promised: Promised) -> Promised:
        """Let two that are alike exchange what they were promised; the second keeps waiting."""
        self._books.unpromise(first)
        self._session.reserve(first.job, promised.promise)
        self._books.unpromise(self._books.promised[first.job.id])
        self._session.reserve(promised.job, first.promise)
        return Promised(first.job, first.cls, promised.promise, promised.amounts)

    def _cleared(self, promised: Promised, *, is_due: bool) -> bool:
        """Stop those who only filled the time until a promise, if nobody else is in the way."""
        late = self._late(promised, is_due=is_due)
        if late is None or not self._fits_without(late, promised):
            return False
        why = Reason("promise-due", {"job": JobRef(promised.job.id, promised.job.team)})
        for holding in late:
            self._session.preempt(holding, why)
        return True

    def _fits_without(self, late: list[Holding], promised: Promised) -> bool:
        """Return whether a promised gang would find its room if these were gone."""
        scratch = self._books.scratch
        with scratch.trial():
            for holding in late:
                scratch.release(holding.slots, holding.job.shape)
            return scratch.capacity.has_kept(promised.promise.slots, promised.job.shape)

    def carry_over(self, promised: Promised, slots: Slots) -> None:
        """Go on with a reservation, or reserve the room instead that the gang is to get before."""
        promise = promised.promise
        if slots == promise.slots:
            accelerator = self._view.nodes[slots[0].node].accelerator
            self._books.promise(promised.job, promise, accelerator)
        else:
            due_ms = min(promise.start_ms, Millis(self._now_ms + SHORTEST_GUESS_MS))
            self._session.reserve(promised.job, Promise(slots, due_ms, self._now_ms))

    def _late(self, promised: Promised, *, is_due: bool) -> list[Holding] | None:
        """Return those who only fill a hole and must go now; None where others stand there too."""
        books, promise = self._books, promised.promise
        if books.resizing or not books.govern.preempts:
            return None
        going: dict[int, Holding] = {}
        for slot in promise.slots:
            bank, number = books.capacity.place[slot.node]
            short = slot.gpus - bank.free[number]
            for holding in self._fillers(slot, promise, is_due=is_due):
                if short <= 0:
                    break
                going[id(holding)] = holding
                short -= max(1, holding.slots[0].gpus)
            if short > 0:
                return None
        return list(going.values()) or None

    def _fillers(self, slot: Slot, promise: Promise, *, is_due: bool) -> Iterator[Holding]:
        """Yield, newest first, those on a kept node who came after it was promised."""
        holdings, running = self._books.holdings, self._view.running
        for holding in sorted(holdings.on(slot.node), key=_started, reverse=True):
            run = running.get(holding.job.id)
            if (
                holding.started_ms > promise.since_ms
                and (holding.job.terms or PLAIN).preemptible
                and not holding.stopping
                and run is not None
                and run.becoming is None
                and (is_due or self._now_ms >= holdings.ripe_ms(holding))
            ):
                yield holding

    def _owed_types(self, cls: Class) -> list[str]:
        """Return the accelerator types of which a class would stay within its quota."""
        tree = self._books.tree
        return [
            accelerator
            for accelerator, amounts in cls.options
            if tree.obstacle(cls.team, amounts) is None
            and all(tree.is_within(node, amounts) for node in cls.team.path[:-1])
        ]

    def _turn(self, cls: Class) -> tuple[object, ...]:
        submitted, seq, _ = cls.line[0]
        turn = self._books.tree.turn(cls.team.path[:-1], cls.amounts)
        return turn, -cls.priority, submitted, seq


def is_repair(view: FleetView, job: Job) -> bool:
    """Return whether a job waits because something broke, and so goes before all others."""
    past = view.past.get(job.id)
    return past is not None and past.cause in REPAIRED


def _made(promised: Promised) -> tuple[int, int, int]:
    return promised.promise.since_ms, promised.job.submitted_ms, promised.job.seq


def _arrival(promised: Promised) -> tuple[int, int]:
    return promised.job.submitted_ms, promised.job.seq


def _is_alike(one: Promised, other: Promised) -> bool:
    mine, theirs = one.job, other.job
    return (
        mine.shape.key == theirs.shape.key
        and mine.team == theirs.team
        and mine.priority == theirs.priority
    )


def _started(holding: Holding) -> tuple[int, int, int]:
    return holding.started_ms, holding.job.submitted_ms, holding.job.seq
