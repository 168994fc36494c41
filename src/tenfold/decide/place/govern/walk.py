"""One cycle of the governed decider: who starts, who gives way, who is promised what."""

from collections.abc import Iterable

from tenfold.decide.place.govern.asks import Amounts
from tenfold.decide.place.govern.books import Books, Promised
from tenfold.decide.place.govern.elastic import grow, shrink, sizes
from tenfold.decide.place.govern.holdings import Holding
from tenfold.decide.place.govern.lent import Lent, offer_rest
from tenfold.decide.place.govern.lines import Class, Option
from tenfold.decide.place.govern.promises import SHORTEST_GUESS_MS
from tenfold.decide.place.govern.promising import Promising, is_repair, withdrawn
from tenfold.decide.place.govern.reclaim import Reclaim
from tenfold.decide.place.govern.tree import Obstacle
from tenfold.decide.place.govern.upkeep import (
    claim,
    clear_windows,
    end_idle,
    kept_from,
    never_between,
    open_to,
)
from tenfold.decide.place.misfit import never_fits
from tenfold.fleet.capacity import Slots
from tenfold.fleet.fleet import FleetView
from tenfold.model.actions import Action, PromiseStart, RefuseJob, StartJob, StopJob
from tenfold.model.decision import NOTHING, Decision
from tenfold.model.job import Job, Promise, Shape
from tenfold.model.reason import Reason
from tenfold.model.units import HOUR, Millis

Seated = tuple[Slots, Amounts, Promised | None]
"""Room, what it takes from quotas, and the promise of it where it is still to come."""


class Walk:
    """What is decided at one moment."""

    def __init__(self, books: Books, view: FleetView, now_ms: Millis) -> None:
        self.books = books
        self.view = view
        self.now_ms = now_ms
        self.actions: list[Action] = []
        self._met: list[Obstacle] = []
        """Limits that the class which is being tried has met."""
        self._no_room = False
        """Whether it found no room in a size that quotas would let in."""
        self._leaving = Lent(books)
        self._reclaim: Reclaim | None = None
        self.stops = 0
        """Orders whose outcome gives room back: they call for another look at once."""
        self.stirred = books.stirred
        """Whether room was given back since the last walk."""
        self.ripened = False
        """Whether anybody may be displaced who could not be at the last walk."""
        self.wakes: list[int] = []
        """Moments at which time alone may change something."""

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
        self.actions.append(StartJob(job.id, slots))
        if lines.count:
            Promising(self).make()
        return Decision(self.actions, self._wake_ms())

    def admit(self, fresh: Iterable[Job]) -> None:
        """Let jobs into the lines, as far as their terms allow."""
        books, past, promises = self.books, self.view.past, self.view.promises
        for job in fresh:
            if not books.capacity.could_hold(job.shape):
                self._refuse(job)
                continue
            if (never := books.never(job) or never_between(books, job)) is not None:
                self.actions.append(RefuseJob(job.id, (never,)))
                continue
            if job.terms is not None:
                answer = books.admission.ask(self.view, job, job.terms, self.now_ms)
                if isinstance(answer, Reason):
                    self.actions.append(RefuseJob(job.id, (answer,)))
                elif answer is not True and job.id in promises:
                    # Its hours are over: what was kept for it is free again.
                    self.actions.append(withdrawn(job, promises[job.id], self.now_ms))
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

    def go(self) -> Decision:
        """Return the decision."""
        books = self.books
        end_idle(self)
        clear_windows(self)
        lines, stopping = books.lines, books.holdings.stopping
        if lines.count or books.repairs or books.promised:
            self._rouse()
            for holding in stopping.values():
                self._leaving.lend(holding)
            if books.repairs:
                self._repair()
            promising = Promising(self)
            if books.promised:
                promising.keep()
                if books.repairs:
                    # Nodes may be open to them that were kept for others.
                    self._repair()
            self._take_turns()
            self._settle()
            promising.make()
        else:
            # Nobody waited for what was given back.
            books.stirred = False
            grow(self)
        wake_ms = self._wake_ms()
        return Decision(self.actions, wake_ms) if self.actions or wake_ms else NOTHING

    def _rouse(self) -> None:
        """Let those try again for whom something may have changed."""
        books = self.books
        lines = books.lines
        if books.wanting or books.promised:
            self.ripened = books.holdings.ripened(self.now_ms)
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
        if self.ripened or govern.stops_per_hour:
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
            found = self.seat(cls, job)
            if found is not None:
                self.start(cls, job, *found)
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
            found = self.seat(cls, job)
            if found is not None:
                lines.leave(cls)
                self.start(cls, job, *found)
            elif self._met or books.capacity.could_hold(cls.shape):
                lines.set_aside(cls, self._met, no_room=self._no_room)
            else:
                lines.leave(cls)
                self._refuse(job)
                lines.touch(cls.team)

    def seat(self, cls: Class, job: Job) -> Seated | None:
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
            slots = claim(self, shape, job, option)
            if slots is None and books.promised and books.govern.backfill:
                slots = Promising(self).hole(job, option.accelerator)
            if slots is not None:
                return slots, books.amounts(slots, option.accelerator), None
            self._no_room = True
        return None

    def start(
        self,
        cls: Class,
        job: Job,
        slots: Slots,
        amounts: Amounts,
        promised: Promised | None = None,
    ) -> None:
        """Start a job on room that was taken for it, or keep that until it is really free."""
        books = self.books
        if promised is not None and not slots:
            kept = promised.promise.slots
            books.promise(job, promised.promise, books.accelerator(kept[0].node))
            return
        if self._leaving.is_needed_by(cls.team, slots, job, amounts):
            self._leaving.reserve((cls, job, slots, amounts, promised))
            return
        books.wanting.pop(cls, None)
        books.holdings.add(Holding(job, slots, self.now_ms, cls.team, amounts))
        self.actions.append(StartJob(job.id, slots))
        if books.lines.count:
            books.lines.touch(cls.team)
            books.reconsider(cls.team)

    def stop(self, holding: Holding, reason: Reason) -> None:
        """Order a stop, and count the room as coming."""
        self.books.holdings.stop(holding)
        self._leaving.lend(holding)
        if self._reclaim is not None:
            self._reclaim.gone(holding)
        self.actions.append(StopJob(holding.job.id, "preempted", reason))
        self.stops += 1

    def _displace(self, cls: Class, job: Job) -> Seated | None:
        """Order the stops that make room for a job, and promise it the room to come."""
        books = self.books
        if books.resizing or not books.is_owed(cls):
            books.wanting.pop(cls, None)
            return None
        books.wanting[cls] = None
        if not self._may_stop_more():
            return None
        if not books.govern.windows:
            return self._shrink(cls, job) or self._make_room(cls, job)
        with open_to(self, job), kept_from(self, job):
            return self._shrink(cls, job) or self._make_room(cls, job)

    @property
    def reclaim(self) -> Reclaim:
        """The search for those who must give way, begun when somebody first asks."""
        if self._reclaim is None:
            books = self.books
            self._reclaim = Reclaim(
                books.govern, books.tree, books.holdings, books.scratch, self.view, self.now_ms
            )
        return self._reclaim

    def may_displace(self) -> bool:
        """Return whether anybody may be told to stop for another now."""
        books = self.books
        return books.govern.preempts and not books.resizing and self._may_stop_more()

    def _make_room(self, cls: Class, job: Job) -> Seated | None:
        """Order the cheapest stops that make room for a job."""
        books, reclaim = self.books, self.reclaim
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
            self.stop(holding, _why(job, holding))
        slots = books.capacity.claim_in(cls.shape, option.accelerator)
        books.wanting.pop(cls, None)
        assert slots is not None, f"stops for job `{job.id}` made no room"
        offer_rest(books, before, books.capacity.room_on(victims))
        return self._promised(job, slots, option)

    def _shrink(self, cls: Class, job: Job) -> Seated | None:
        """Order elastic jobs to shrink where that is enough, and promise what they give."""
        for option in cls.options:
            if self.books.tree.obstacle(cls.team, option.amounts) is None:
                slots = shrink(self, cls.shape, option)
                if slots is not None:
                    self.books.resizing = True
                    self.stops += 1
                    _, amounts, promised = self._promised(job, slots, option)
                    return (), amounts, promised
        return None

    def _promised(self, job: Job, slots: Slots, option: Option) -> Seated:
        """Promise room that is still to come to the job that it is made for."""
        due_ms = Millis(self.now_ms + SHORTEST_GUESS_MS)
        promise = Promise(slots, due_ms, self.now_ms)
        self.actions.append(PromiseStart(job.id, slots, due_ms, self.now_ms))
        amounts = self.books.amounts(slots, option.accelerator)
        return slots, amounts, Promised(job, self.books.class_of(job), promise, amounts)

    def _may_stop_more(self) -> bool:
        most = self.books.govern.stops_per_hour
        if not most:
            return True
        since = self.now_ms - HOUR
        recent = sum(1 for at_ms in self.view.evictions if at_ms > since)
        return recent + self.stops < most

    def _refuse(self, job: Job) -> None:
        self.actions.append(RefuseJob(job.id, never_fits(self.books.capacity, job.shape)))

    def _settle(self) -> None:
        """Stop counting what is not free yet; those who need it come back to the lines."""
        books = self.books
        for cls, job, slots, _, promised in self._leaving.settle():
            if promised is not None:
                Promising(self).go_on(promised, slots)
            elif is_repair(self.view, job):
                books.repairs.append(cls)
            else:
                books.enter(job)

    def _wake_ms(self) -> Millis | None:
        """Return when time alone may change the decision."""
        books, now_ms = self.books, self.now_ms
        if self.stops or any(
            isinstance(one, RefuseJob) and books.admission.is_waited_for(one.job_id)
            for one in self.actions
        ):
            return now_ms
        if not (books.wanting or books.promised or self.wakes):
            return None
        times = self.wakes
        wanting = [cls for cls in books.wanting if cls.line]
        if (wanting or books.promised) and (ripe_ms := books.holdings.next_ripe_ms(now_ms)):
            times.append(ripe_ms)
        if delay_ms := books.govern.delay_ms:
            times += [cls.line[0][0] + delay_ms for cls in wanting]
        times += [each.promise.start_ms for each in books.promised.values()]
        if wanting and (most := books.govern.stops_per_hour):
            times += [at_ms + HOUR for at_ms in list(self.view.evictions)[-most:]]
        return Millis(min((at_ms for at_ms in times if at_ms > now_ms), default=0)) or None


def _head(cls: Class) -> tuple[int, int]:
    return cls.line[0][:2]


def _why(job: Job, holding: Holding) -> Reason:
    if job.team == holding.job.team:
        return Reason("outranked", f"job `{job.id}` of the same team has a higher priority")
    return Reason(
        "reclaimed",
        f"team `{holding.job.team}` had borrowed its room, "
        f"and job `{job.id}` of team `{job.team}` is within its quota",
    )
