"""Start jobs in the order of a ranking, backfill small jobs, preempt where it pays.

A pass examines one head of each shape that may fit since its last try. Preemption takes two
cycles: first the stops, then, once they have happened, the start. Until then the releasing
capacity is held for the job.
"""

from collections.abc import Callable, Iterator, Sequence

from tenfold.decide.place.ranked.preemption_order import PreemptionOrder
from tenfold.decide.place.ranked.queue import Best, RankedQueue
from tenfold.decide.place.ranked.ranking import NEVER, RankedAllocation, Ranking, level_at
from tenfold.decide.place.ranked.victims import choose_victims
from tenfold.decide.place.releasing_capacity import ReleasingCapacity
from tenfold.fleet.capacity import Capacity, Slots
from tenfold.fleet.fleet import NEVER_RAN, FleetView
from tenfold.fleet.scratch import Scratch
from tenfold.model.actions import Action, RefuseJob, ResizeJob, StartJob, StopJob
from tenfold.model.decision import NOTHING, Decision
from tenfold.model.events import (
    ActionOrdered,
    Event,
    JobEnded,
    JobStarted,
    JobStopped,
    JobSubmitted,
)
from tenfold.model.ids import NodeId
from tenfold.model.job.job import Job
from tenfold.model.reason import JobRef, Reason
from tenfold.model.units import MINUTE, Millis

REVIEW_MS = 10 * MINUTE
"""Ranks that change with time are reviewed at multiples of this, not at every event."""


class RankedPlacer:
    """A decider driven by a `Ranking`."""

    def __init__(
        self,
        name: str,
        ranking: Ranking,
        *,
        keep_factor: float = 1.0,
        review_ms: int = REVIEW_MS,
        capacity_of: Callable[[FleetView], Capacity] = Capacity.of,
    ) -> None:
        self.name = name
        self._ranking = ranking
        self._keep_factor = keep_factor
        self._review_ms = review_ms
        self._capacity_of = capacity_of
        self._version = -1
        self._compared_ms = -1
        """The review that all ranks are up to date with; -1 after an event that changes ranks."""
        self._freed: dict[NodeId, None] = {}
        """Nodes with capacity released since ranks were last compared."""
        self._capacity = Capacity()
        self._preemption_order = PreemptionOrder(ranking, keep_factor, review_ms)
        self._queue = RankedQueue(ranking)
        self._resizes = False
        """Whether a resize is in progress, whose slots only the view has."""

    @property
    def index(self) -> Capacity | None:
        """The index of free capacity; None during a resize, whose slots only the view has."""
        return None if self._resizes else self._capacity

    def decide(self, view: FleetView, now_ms: Millis, news: Sequence[Event] | None) -> Decision:
        """Return starts and preemptions in order of rank."""
        fresh: list[Job] = []
        version = view.version
        if (
            news is None
            or self._resizes
            or self._version + len(news) != version
            or not self._apply_events(view, news, fresh)
        ):
            fresh = self._rebuild(view)
        self._version = version
        self._capacity.refresh(view)
        if not self._preemption_order.stopping:
            if not fresh and not self._queue.count:
                return NOTHING
            if len(fresh) == 1 and (decision := self._start_single(view, fresh[0], now_ms)):
                return decision
        past = view.past
        for job in fresh:
            self._queue.add(job, past.get(job.id, NEVER_RAN), self._capacity)
        return self._schedule(view, now_ms)

    def _start_single(self, view: FleetView, job: Job, now_ms: Millis) -> Decision | None:
        """Start the only job that can start now, without comparing it to others."""
        queue = self._queue
        if queue.count and (
            self._compared_ms != now_ms - now_ms % self._review_ms or queue.waits(job.shape)
        ):
            return None
        slots = self._capacity.claim(job.shape)
        if slots is None:
            return None
        self._hold(view, job, slots, now_ms)
        wake_ms = self._next_review_ms() if queue.count else NEVER
        return Decision((StartJob(job.id, slots),), None if wake_ms == NEVER else Millis(wake_ms))

    def _apply_events(self, view: FleetView, news: Sequence[Event], fresh: list[Job]) -> bool:
        """Apply events to the caches; False if they must be rebuilt."""
        preemption_order = self._preemption_order
        held = preemption_order.held
        for event in news:
            # Compare types directly: `isinstance` is slow for records of other classes.
            if type(event) is JobStarted:
                if held[event.job_id].started_ms != event.at_ms and not self._began(event):
                    return False
            elif type(event) is JobSubmitted:
                fresh.append(event.job)
            elif type(event) is JobEnded:
                self._compared_ms = -1
                self._ranking.ended(view, self._release(preemption_order.remove(event.job_id)))
            elif type(event) is ActionOrdered:
                action = event.action
                is_unknown = type(action) is StartJob and action.job_id not in held
                if is_unknown or type(action) is ResizeJob:
                    return False
            elif type(event) is JobStopped and event.cause == "preempted":
                self._compared_ms = -1
                allocation = self._release(preemption_order.remove(event.job_id))
                self._report_past(view, allocation.job, allocation.level)
                fresh.append(allocation.job)
            else:
                return False
        return True

    def _began(self, event: JobStarted) -> bool:
        """Count service from the actual start of a job; False if it was in a bucket before."""
        preemption_order = self._preemption_order
        allocation = preemption_order.held[event.job_id]
        if allocation.bucket is not None or allocation.stopping:
            return False
        self._compared_ms = -1
        preemption_order.remove(event.job_id)
        preemption_order.add(
            RankedAllocation(allocation.job, allocation.slots, event.at_ms, allocation.before)
        )
        return True

    def _rebuild(self, view: FleetView) -> list[Job]:
        """Rebuild from the view; return the pending jobs."""
        self._capacity = self._capacity_of(view)
        self._ranking.begin(view)
        self._preemption_order = PreemptionOrder(self._ranking, self._keep_factor, self._review_ms)
        self._queue = RankedQueue(self._ranking)
        self._compared_ms = -1
        self._freed.clear()
        self._resizes = any(run.becoming is not None for run in view.running.values())
        past = view.past
        allocations = [
            RankedAllocation(order.job, order.slots, order.ordered_ms, past.get(job_id, NEVER_RAN))
            for job_id, order in view.orders.items()
        ]
        allocations += [
            RankedAllocation(run.job, run.slots, run.started_ms, past.get(job_id, NEVER_RAN))
            for job_id, run in view.running.items()
        ]
        for allocation in sorted(allocations, key=_started):
            self._preemption_order.add(allocation)
            run = view.running.get(allocation.job.id)
            if run is not None and run.stopping:
                self._preemption_order.stop(allocation)
        for job_id in past:
            allocation = self._preemption_order.held.get(job_id)
            job = allocation.job if allocation else view.pending[job_id]
            self._report_past(view, job, 0)
        return list(view.pending.values())

    def _report_past(self, view: FleetView, job: Job, known: int) -> None:
        """Report the earlier runs of an unfinished job to the ranking, beyond the known level."""
        ranking = self._ranking
        level = level_at(ranking, job, view.past[job.id].ran_ms)
        if level > known:
            ranking.level_changed(job, ranking.family(job), known, level)

    def _hold(self, view: FleetView, job: Job, slots: Slots, now_ms: int) -> None:
        """Record a start that is about to be ordered."""
        before = view.past.get(job.id, NEVER_RAN) if view.past else NEVER_RAN
        self._preemption_order.add(RankedAllocation(job, slots, now_ms, before))

    def _release(self, allocation: RankedAllocation) -> RankedAllocation:
        """Release what a job held, and requeue the shapes that could use it."""
        capacity = self._capacity
        capacity.give(allocation.slots, allocation.job.shape)
        if self._queue.count:
            self._offer(allocation.slots)
        return allocation

    def _offer(self, slots: Slots) -> None:
        """Requeue the shapes that could use the nodes of these slots."""
        place = self._capacity.place
        most = 0
        for slot in slots:
            self._freed[slot.node] = None
            node_index, number = place[slot.node]
            most = max(most, node_index.free[number])
        self._queue.capacity_freed(most)

    def _schedule(self, view: FleetView, now_ms: Millis) -> Decision:
        """Offer free nodes in order of rank, and return when ranks next change by themselves."""
        queue, preemption_order = self._queue, self._preemption_order
        self._compare(view, now_ms)
        stopping = len(preemption_order.stopping)
        actions: list[Action] = []
        best = queue.best()
        if stopping or best is not None:
            actions = self._allocate(view, now_ms, best)
            if len(preemption_order.stopping) > stopping:
                return Decision(actions, now_ms)
        wake_ms = self._next_review_ms() if queue.count else NEVER
        if wake_ms == NEVER:
            return Decision(actions) if actions else NOTHING
        return Decision(actions, Millis(wake_ms))

    def _allocate(self, view: FleetView, now_ms: Millis, best: Best | None) -> list[Action]:
        """Offer free nodes in order of rank, best first, until no shape fits."""
        queue, preemption_order, capacity = self._queue, self._preemption_order, self._capacity
        actions: list[Action] = []
        pipelined: list[tuple[Job, Slots, int]] = []
        scratch = Scratch(capacity)
        releasing = ReleasingCapacity(scratch)
        for allocation in preemption_order.stopping.values():
            releasing.release(allocation)
        while (head := best or queue.best()) is not None:
            best, (each, group) = None, head
            job = group.jobs[0][3]
            if job.id not in view.pending:
                queue.dequeue(each, group)
                continue
            slots = capacity.claim(job.shape)
            if slots is None and self._ranking.preempts:
                candidates = self._candidates(view, group.rank, now_ms)
                slots = self._preempt(job, candidates, releasing, actions)
            if slots is None:
                if each.holdable or capacity.could_hold(job.shape):
                    each.holdable = each.parked = True
                else:
                    # Refusals are rare, and the module that explains them is slow to import.
                    from tenfold.decide.place.misfit import never_fits  # noqa: PLC0415

                    queue.dequeue(each, group)
                    actions.append(RefuseJob(job.id, never_fits(capacity, job.shape)))
                continue
            queue.dequeue(each, group)
            if releasing.needed_by(slots, job.shape):
                pipelined.append((job, slots, scratch.pipeline(slots, job.shape)))
            else:
                self._hold(view, job, slots, now_ms)
                actions.append(StartJob(job.id, slots))
        for job, slots, change in pipelined:
            scratch.undo(change)
            self._offer(slots)
            queue.add(job, view.past.get(job.id, NEVER_RAN), capacity)
        scratch.rollback()
        return actions

    def _next_review_ms(self) -> int:
        """Return the review at which an allocation reaches its next level."""
        change_ms = self._preemption_order.next_change_ms()
        return (
            change_ms if change_ms == NEVER else -(-change_ms // self._review_ms) * self._review_ms
        )

    def _compare(self, view: FleetView, now_ms: Millis) -> None:
        """Update ranks: levels reached by now, and what the ranking has learned."""
        preemption_order, queue = self._preemption_order, self._queue
        self._compared_ms = review_ms = now_ms - now_ms % self._review_ms
        preemption_order.settle(review_ms)
        families = self._ranking.changed(view)
        greatest = preemption_order.reorder(families)
        queue.reorder(families)
        if preemption_order.stopping:
            # Releasing capacity may be assigned differently than when the stops were ordered.
            queue.capacity_freed(NEVER)
        elif greatest:
            queue.requeue(preemption_order.limit(greatest))
        # Where capacity was released, fewer victims are needed.
        if queue.parked_before(preemption_order.worst()):
            for node in self._freed:
                if on_node := preemption_order.on_node(node):
                    node_index, number = self._capacity.place[node]
                    queue.requeue_for_node(node_index.free[number], on_node)
        self._freed.clear()

    def _candidates(
        self, view: FleetView, rank: float, now_ms: Millis
    ) -> Iterator[RankedAllocation]:
        """Yield preemptible allocations; a start in progress cannot be stopped yet."""
        running = view.running
        for allocation in self._preemption_order.candidates(rank, now_ms):
            if allocation.job.id in running:
                yield allocation

    def _preempt(
        self,
        job: Job,
        candidates: Iterator[RankedAllocation],
        releasing: ReleasingCapacity,
        actions: list[Action],
    ) -> Slots | None:
        """Order the stops that let a job fit, and return its slots."""
        preemption_order, shape = self._preemption_order, job.shape
        victims = choose_victims(self._capacity, shape, candidates)
        if not victims:
            return None
        why = Reason("gave-way", {"policy": self.name, "job": JobRef(job.id, job.team)})
        for allocation in victims:
            preemption_order.stop(allocation)
            releasing.release(allocation)
            actions.append(StopJob(allocation.job.id, "preempted", why))
        return self._capacity.claim(shape)


def _started(allocation: RankedAllocation) -> tuple[int, int, int]:
    return allocation.started_ms, allocation.job.submitted_ms, allocation.job.seq
