"""The scheduling pass: jobs are admitted, take turns at room, and preempt where they may."""

from collections.abc import Iterable

from tenfold.decide.place.allocate.elastic import grow, shrink, sizes
from tenfold.decide.place.allocate.pipelined_starts import offer_rest
from tenfold.decide.place.allocate.session import Session
from tenfold.decide.place.allocate.upkeep import clear_windows, end_idle, never_between
from tenfold.decide.place.misfit import never_fits
from tenfold.decide.place.queue.pending_queues import Class, Option
from tenfold.decide.place.quota.allocations import Holding
from tenfold.decide.place.quota.request import Amounts
from tenfold.decide.place.quota.team_tree import Obstacle
from tenfold.decide.place.reserve.backfill_reservation import SHORTEST_GUESS_MS
from tenfold.decide.place.reserve.reservation_pass import ReservationPass, is_repair
from tenfold.decide.place.state.scheduler_state import Books, Promised
from tenfold.fleet.capacity import Slots
from tenfold.fleet.fleet import FleetView
from tenfold.model.actions import PromiseStart, RefuseJob, StartJob
from tenfold.model.decision import Decision
from tenfold.model.job.job import Job, Promise, Shape
from tenfold.model.reason import JobRef, Reason, TeamRef
from tenfold.model.units import Millis

Seated = tuple[Slots, Amounts, Promised | None]
"""Room, what it takes from quotas, and the promise of it where it is still to come."""


class SchedulingPass:
    """One cycle: jobs that wait are offered room in order of turn."""

    __slots__ = ("_met", "_no_room", "_session", "books", "now_ms", "view")

    def __init__(self, books: Books, view: FleetView, now_ms: Millis) -> None:
        self.books = books
        self.view = view
        self.now_ms = now_ms
        self._session = Session(books, view, now_ms)
        self._met: list[Obstacle] = []
        """Limits that the class which is being tried has met."""
        self._no_room = False
        """Whether it found no room in a size that quotas would let in."""

    def alone(self, job: Job) -> Decision | None:
        """Start the only job that could start now, without comparing it to anybody."""
        books, view = self.books, self.view
        if job.terms is not None or books.holdings.on_terms or books.govern.windows:
            return None
        if not books.is_still(self.now_ms) or (view.past and job.id in view.past):
            return None
        lines, shape = books.lines, job.shape
        team, options = books.tree.team(job.team), books.options(shape)
        if len(options) > 1:
            return None
        if lines.count and lines.get(team, job.priority, shape, books.trait(job)) is not None:
            return None
        accelerator, amounts = next(iter(options))
        if books.tree.obstacle(team, amounts) is not None:
            return None
        slots = books.capacity.claim(shape)
        if slots is None:
            return None
        if len(slots) > 1:
            amounts = books.amounts(slots, accelerator)
        books.holdings.add(Holding(job, slots, self.now_ms, team, amounts))
        if lines.count:
            lines.touch(team)
            books.reconsider(team)
        self._session.actions.append(StartJob(job.id, slots))
        if lines.count:
            ReservationPass(self._session).reserve()
        return self._session.decision()

    def admit(self, fresh: Iterable[Job]) -> None:
        """Let jobs into the lines, as far as their terms allow."""
        books, past, promises = self.books, self.view.past, self.view.promises
        for job in fresh:
            if not books.capacity.could_hold(job.shape):
                self._refuse(job)
                continue
            if (never := books.never(job) or never_between(books, job)) is not None:
                self._session.actions.append(RefuseJob(job.id, (never,)))
                continue
            if job.terms is not None:
                answer = books.admission.ask(self.view, job, job.terms, self.now_ms)
                if isinstance(answer, Reason):
                    self._session.actions.append(RefuseJob(job.id, (answer,)))
                elif answer is not True and job.id in promises:
                    # Its hours are over: what was kept for it is free again.
                    self._session.withdraw(job, promises[job.id])
                if answer is not True:
                    continue
            if promises and job.id in promises:
                promise = promises[job.id]
                node = self.view.nodes[promise.slots[0].node]
                books.promise(job, promise, node.accelerator)
            elif past and is_repair(self.view, job):
                cls = books.class_of(job)
                cls.line.append((job.submitted_ms, job.seq, job))
                books.repairs.append(cls)
            else:
                books.enter(job)

    def run(self) -> Decision:
        """Return the decision."""
        books, session = self.books, self._session
        end_idle(session)
        clear_windows(session)
        if books.lines.count or books.repairs or books.promised:
            self._requeue()
            for holding in books.holdings.stopping.values():
                session.release(holding)
            if books.repairs:
                self._repair()
            reservations = ReservationPass(session)
            if books.promised:
                reservations.start_reserved()
                if books.repairs:
                    # Nodes may be open to them that were kept for others.
                    self._repair()
            self._take_turns()
            self._settle(reservations)
            reservations.reserve()
        else:
            # Nothing waited for what was given back.
            books.stirred = False
            grow(session)
        return session.decision()

    def _requeue(self) -> None:
        """Let those try again for whom something may have changed."""
        books = self.books
        lines = books.lines
        if books.wanting or books.promised:
            self._session.ripened = books.holdings.ripened(self.now_ms)
        if books.holdings.stopping:
            # Room to come may be shared out another way than when it was made.
            lines.rouse_all()
        elif books.wanting and (books.stirred or self._time_passed()):
            for cls in books.wanting:
                lines.rouse(cls)
            books.wanting.clear()
        books.stirred = False

    def _time_passed(self) -> bool:
        """Return whether the clock alone may let somebody be displaced who could not be."""
        govern, now_ms = self.books.govern, self.now_ms
        if self._session.ripened or govern.stops_per_hour:
            return True
        return (
            any(
                now_ms - cls.line[0][0] >= govern.delay_ms for cls in self.books.wanting if cls.line
            )
            if govern.delay_ms
            else False
        )

    def _repair(self) -> None:
        """Put broken gangs together again before anybody else is served."""
        books = self.books
        left: list[Class] = []
        for cls in sorted(books.repairs, key=_head):
            job = cls.line[0][2]
            found = self._seat(cls, job)
            if found is not None:
                self._session.start(cls, job, *found)
            elif books.capacity.could_hold(cls.shape):
                left.append(cls)
            else:
                self._refuse(job)
        books.repairs = left

    def _take_turns(self) -> None:
        """Offer room in order of turn until nobody can use any."""
        books = self.books
        lines = books.lines
        while (cls := lines.best()) is not None:
            job = cls.line[0][2]
            found = self._seat(cls, job)
            if found is not None:
                lines.leave(cls)
                self._session.start(cls, job, *found)
            elif self._met or books.capacity.could_hold(cls.shape):
                lines.set_aside(cls, self._met, no_room=self._no_room)
            else:
                lines.leave(cls)
                self._refuse(job)
                lines.touch(cls.team)

    def _seat(self, cls: Class, job: Job) -> Seated | None:
        """Return room for a job, taken, and what it takes from quotas."""
        books, met = self.books, self._met
        met.clear()
        self._no_room = False
        found = self._seat_as(cls, job, cls.shape, cls.options)
        if found is None and job.terms is not None and job.terms.least_gpus:
            for smaller in sizes(cls.shape, job.terms):
                found = found or self._seat_as(cls, job, smaller, books.options(smaller))
        if found is not None:
            return found
        return self._displace(cls, job) if books.govern.preempts else None

    def _seat_as(
        self, cls: Class, job: Job, shape: Shape, options: tuple[Option, ...]
    ) -> Seated | None:
        """Return free room for a job in one size of it."""
        books = self.books
        for option in options:
            obstacle = books.tree.obstacle(cls.team, option.amounts)
            if obstacle is not None:
                self._met.append(obstacle)
                continue
            slots = self._session.claim(shape, job, option)
            if slots is None and books.promised and books.govern.backfill:
                slots = ReservationPass(self._session).backfill(job, option.accelerator)
            if slots is not None:
                return slots, books.amounts(slots, option.accelerator), None
            self._no_room = True
        return None

    def _displace(self, cls: Class, job: Job) -> Seated | None:
        """Order the stops that make room for a job, and promise it the room to come."""
        books, session = self.books, self._session
        if books.resizing or not books.is_owed(cls):
            books.wanting.pop(cls, None)
            return None
        books.wanting[cls] = None
        if not session.may_stop_more():
            return None
        if not books.govern.windows:
            return self._shrink(cls, job) or self._make_room(cls, job)
        coming = books.windows.coming_for(job, self.now_ms)
        with session.own_windows(job), books.scratch.hiding(coming):
            return self._shrink(cls, job) or self._make_room(cls, job)

    def _make_room(self, cls: Class, job: Job) -> Seated | None:
        """Order the cheapest stops that make room for a job."""
        books, reclaim = self.books, self._session.reclaim
        best: tuple[int, int, Option, list[Holding]] | None = None
        for option in cls.options:
            victims = reclaim.victims(job, cls.team, option)
            if victims:
                found = (sum(map(reclaim.price, victims)), len(victims), option, victims)
                best = found if best is None or found[:2] < best[:2] else best
        if best is None:
            return None
        _, _, option, victims = best
        before = books.capacity.room_on(victims)
        for holding in victims:
            self._session.preempt(holding, _why(job, holding))
        slots = books.capacity.claim_in(cls.shape, option.accelerator)
        books.wanting.pop(cls, None)
        assert slots is not None, f"stops for job `{job.id}` made no room"
        offer_rest(books, before, books.capacity.room_on(victims))
        return self._promised(job, slots, option)

    def _shrink(self, cls: Class, job: Job) -> Seated | None:
        """Order elastic jobs to shrink where that is enough, and promise what they give."""
        for option in cls.options:
            if self.books.tree.obstacle(cls.team, option.amounts) is None:
                slots = shrink(self._session, cls.shape, option)
                if slots is not None:
                    self.books.resizing = True
                    self._session.stops += 1
                    _, amounts, promised = self._promised(job, slots, option)
                    return (), amounts, promised
        return None

    def _promised(self, job: Job, slots: Slots, option: Option) -> Seated:
        """Promise room that is still to come to the job that it is made for."""
        due_ms = Millis(self.now_ms + SHORTEST_GUESS_MS)
        promise = Promise(slots, due_ms, self.now_ms)
        self._session.actions.append(PromiseStart(job.id, slots, due_ms, self.now_ms))
        amounts = self.books.amounts(slots, option.accelerator)
        return slots, amounts, Promised(job, self.books.class_of(job), promise, amounts)

    def _refuse(self, job: Job) -> None:
        why = never_fits(self.books.capacity, job.shape)
        self._session.actions.append(RefuseJob(job.id, why))

    def _settle(self, reservations: ReservationPass) -> None:
        """Stop counting what is not free yet; those who need it come back to the lines."""
        books = self.books
        for cls, job, slots, _, promised in self._session.settle():
            if promised is not None:
                reservations.carry_over(promised, slots)
            elif is_repair(self.view, job):
                books.repairs.append(cls)
            else:
                books.enter(job)


def _head(cls: Class) -> tuple[int, int]:
    return cls.line[0][:2]


def _why(job: Job, holding: Holding) -> Reason:
    if job.team == holding.job.team:
        return Reason("outranked", {"job": JobRef(job.id, job.team)})
    fields = {"borrower": TeamRef(holding.job.team), "job": JobRef(job.id, job.team)}
    return Reason("reclaimed", {**fields, "team": TeamRef(job.team)})
