"""One cycle of the governed decider: what it sees, what it has ordered so far, and how it orders.

Every step of a cycle works on one `Session`: the scheduling pass, reservations, elastic jobs,
defragmentation and upkeep. A session knows none of them.
"""

from collections.abc import Generator
from contextlib import contextmanager

from tenfold.decide.place.allocate.pipelined_starts import Pipelined, PipelinedStarts
from tenfold.decide.place.preempt.reclaim import Reclaim
from tenfold.decide.place.queue.pending_queues import Class, Option
from tenfold.decide.place.quota.allocations import Holding
from tenfold.decide.place.quota.request import Amounts
from tenfold.decide.place.state.scheduler_state import Books, Promised
from tenfold.fleet.capacity import Slots
from tenfold.fleet.fleet import FleetView
from tenfold.model.actions import Action, PromiseStart, RefuseJob, StartJob, StopJob
from tenfold.model.decision import NOTHING, Decision
from tenfold.model.ids import NodeId
from tenfold.model.job.job import Job, Promise, Shape, StopCause
from tenfold.model.reason import Reason
from tenfold.model.units import HOUR, Millis


class Session:
    """What is decided at one moment."""

    __slots__ = (
        "_pipelined",
        "_reclaim",
        "actions",
        "books",
        "now_ms",
        "ripened",
        "stirred",
        "stops",
        "view",
        "wakes",
    )

    def __init__(self, books: Books, view: FleetView, now_ms: Millis) -> None:
        self.books = books
        self.view = view
        self.now_ms = now_ms
        self.actions: list[Action] = []
        self.stops = 0
        """Orders whose outcome gives room back: they call for another look at once."""
        self.stirred = books.stirred
        """Whether room was given back since the last cycle."""
        self.ripened = False
        """Whether a job may be displaced that could not be at the last cycle."""
        self.wakes: list[int] = []
        """Moments at which time alone may change something."""
        self._pipelined: PipelinedStarts | None = None
        self._reclaim: Reclaim | None = None

    @property
    def reclaim(self) -> Reclaim:
        """The search for jobs to stop, begun when it is first needed."""
        if self._reclaim is None:
            books = self.books
            self._reclaim = Reclaim(
                books.govern, books.tree, books.holdings, books.scratch, self.view, self.now_ms
            )
        return self._reclaim

    def may_displace(self) -> bool:
        """Return whether any job may be stopped for another now."""
        books = self.books
        return books.govern.preempts and not books.resizing and self.may_stop_more()

    def may_stop_more(self) -> bool:
        """Return whether the policy allows one more stop in this hour."""
        most = self.books.govern.stops_per_hour
        if not most:
            return True
        since = self.now_ms - HOUR
        recent = sum(1 for at_ms in self.view.evictions if at_ms > since)
        return recent + self.stops < most

    def claim(self, shape: Shape, job: Job, option: Option) -> Slots | None:
        """Take room for a shape on nodes that no window keeps from the job."""
        books, scratch = self.books, self.books.scratch
        if not books.govern.windows:
            return scratch.capacity.claim_in(shape, option.accelerator)
        with self.own_windows(job):
            mark = scratch.checkpoint()
            slots = scratch.claim_in(shape, option.accelerator)
            if slots is not None and books.windows.clashes(slots, job, self.now_ms):
                scratch.rollback(mark)
                with scratch.hiding(books.windows.coming_for(job, self.now_ms)):
                    slots = scratch.capacity.claim_in(shape, option.accelerator)
            scratch.commit(mark)
        return slots

    @contextmanager
    def own_windows(self, job: Job) -> Generator[None]:
        """Offer the nodes of open windows that are for the team of a job."""
        states = self.view.states
        own: list[NodeId] = [
            node_id
            for node_id, team in self.books.windows.open.items()
            if team and team == job.team and states[node_id] == "up"
        ]
        with self.books.scratch.opening(own):
            yield

    def start(
        self,
        cls: Class,
        job: Job,
        slots: Slots,
        amounts: Amounts,
        promised: Promised | None = None,
    ) -> None:
        """Start a job on room that was taken for it, or keep that until it is really free."""
        books, pipelined = self.books, self._pipelined
        if promised is not None and not slots:
            kept = promised.promise.slots
            books.promise(job, promised.promise, books.accelerator(kept[0].node))
            return
        if pipelined is not None and pipelined.is_needed_by(cls.team, slots, job, amounts):
            pipelined.add((cls, job, slots, amounts, promised))
            return
        books.wanting.pop(cls, None)
        books.holdings.add(Holding(job, slots, self.now_ms, cls.team, amounts))
        self.actions.append(StartJob(job.id, slots))
        if books.lines.count:
            books.lines.touch(cls.team)
            books.reconsider(cls.team)

    def order_stop(self, holding: Holding, cause: StopCause, reason: Reason) -> None:
        """Order a stop; what the job holds is not counted as free yet."""
        self.books.holdings.stop(holding)
        self.actions.append(StopJob(holding.job.id, cause, reason))
        self.stops += 1

    def preempt(self, holding: Holding, reason: Reason) -> None:
        """Order a stop, and count what the job holds as free for the rest of the cycle."""
        self.order_stop(holding, "preempted", reason)
        self.release(holding)
        if self._reclaim is not None:
            self._reclaim.gone(holding)

    def release(self, holding: Holding) -> None:
        """Count what a job that is being stopped holds as free for the rest of the cycle."""
        if self._pipelined is None:
            self._pipelined = PipelinedStarts(self.books)
        self._pipelined.release(holding)

    def settle(self) -> list[Pipelined]:
        """Stop counting what is not free yet, and return the starts that have to wait for it."""
        return [] if self._pipelined is None else self._pipelined.settle()

    def reserve(self, job: Job, promise: Promise) -> None:
        """Order a reservation, and keep its nodes."""
        accelerator = self.view.nodes[promise.slots[0].node].accelerator
        self.books.promise(job, promise, accelerator)
        order = PromiseStart(job.id, promise.slots, promise.start_ms, promise.since_ms)
        self.actions.append(order)

    def withdraw(self, job: Job, promise: Promise) -> None:
        """Order that a reservation is given up."""
        self.actions.append(PromiseStart(job.id, (), self.now_ms, promise.since_ms))

    def decision(self) -> Decision:
        """Return what was ordered, and when time alone may change it."""
        assert not self.books.scratch.checkpoint(), "nothing tentative is left after a cycle"
        wake_ms = self._wake_ms()
        return Decision(self.actions, wake_ms) if self.actions or wake_ms else NOTHING

    def _wake_ms(self) -> Millis | None:
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
