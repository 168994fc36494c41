"""Shortest remaining first, with every job free to move: the published SRTF and SRSF.

At each event jobs are chosen in order of remaining time while their GPUs fit by count; the rest
wait. Running jobs stay in place if possible; a job moves only where the chosen jobs fit by count
but not on actual nodes.
"""

from collections.abc import Callable, Iterable, Sequence
from heapq import heapify, heappop, heappush
from math import inf

from tenfold.decide.place.misfit import never_fits
from tenfold.decide.place.ranked.orders import ShortestRemaining
from tenfold.decide.place.ranked.ranking import RankedAllocation
from tenfold.fleet.capacity import Capacity, FreeNodeIndex
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
from tenfold.model.ids import JobId
from tenfold.model.job.job import Job, Order, Run, Shape, StopCause
from tenfold.model.reason import Reason
from tenfold.model.units import Millis

Place = tuple[int, int, int, Job]
STOPS: tuple[StopCause, ...] = ("preempted", "moved")


class RepackPlacer:
    """Choose jobs by count and key, then find nodes; move what is in the way."""

    def __init__(
        self,
        name: str,
        order: ShortestRemaining,
        *,
        capacity_of: Callable[[FleetView], Capacity] = Capacity.of,
    ) -> None:
        self.name = name
        self._order = order
        self._capacity_of = capacity_of
        self._version = -1
        self._capacity = Capacity()
        self._held: dict[JobId, RankedAllocation] = {}
        self._queues: dict[str, list[Place]] = {}
        self._latest_ms = self._stopped_ms = -1
        """When a job last arrived or ended, and when an unfinished job was last stopped."""
        self._resizes = False
        """Whether a resize is in progress, whose slots only the view has."""

    @property
    def index(self) -> Capacity | None:
        """The index of free capacity; None during a resize, whose slots only the view has."""
        return None if self._resizes else self._capacity

    def decide(self, view: FleetView, now_ms: Millis, news: Sequence[Event] | None) -> Decision:
        """Return the stops that the chosen jobs need, otherwise their starts."""
        bridged = news is not None and self._version + len(news) == view.version
        if self._resizes or not (bridged and news is not None and self._apply_events(view, news)):
            self._rebuild(view)
        self._version = view.version
        self._capacity.refresh(view)
        if any(allocation.stopping for allocation in self._held.values()):
            return NOTHING
        actions: list[Action] = []
        kept, chosen = self._choose(view, now_ms, actions)
        if not chosen:
            return Decision(actions) if actions else NOTHING
        stops: list[RankedAllocation] = []
        # One round of stops per arrival or end: a stop must not cause further stops.
        if may_stop := self._stopped_ms < self._latest_ms:
            stops = [allocation for job_id, allocation in self._held.items() if job_id not in kept]
            stops.sort(key=lambda allocation: (allocation.job.submitted_ms, allocation.job.seq))
        if may_stop and not self._all_fit(chosen, stops):
            settled = [each for each in kept.values() if not self._is_fixed(view, each)]
            moves = self._in_the_way(settled, chosen, stops)
            actions += [self._stop(allocation, "moved") for allocation in moves]
        actions += [self._stop(allocation, "preempted") for allocation in stops]
        if any(isinstance(action, StopJob) for action in actions):
            self._wait_on(chosen)
            return Decision(actions, now_ms)
        self._start_all(view, chosen, now_ms, actions)
        return Decision(actions)

    def _start_all(
        self, view: FleetView, chosen: Sequence[Job], now_ms: Millis, actions: list[Action]
    ) -> None:
        """Start chosen jobs that fit; the others keep waiting."""
        for job in chosen:
            if not self._start(view, job, now_ms, actions):
                self._wait_on([job])
        if not self._held:
            # Nothing chosen by count fits: start any job that does, or all would wait.
            heads = sorted((jobs[0], jobs) for jobs in self._queues.values() if jobs)
            for (*_, job), jobs in heads:
                if self._start(view, job, now_ms, actions):
                    heappop(jobs)

    def _start(self, view: FleetView, job: Job, now_ms: Millis, actions: list[Action]) -> bool:
        slots = self._capacity.claim(job.shape)
        if slots is None:
            return False
        before = view.past.get(job.id, NEVER_RAN)
        self._held[job.id] = RankedAllocation(job, slots, now_ms, before)
        actions.append(StartJob(job.id, slots))
        return True

    def _apply_events(self, view: FleetView, news: Sequence[Event]) -> bool:
        for event in news:
            if isinstance(event, JobSubmitted):
                self._enqueue(view, event.job)
                self._latest_ms = max(self._latest_ms, event.job.submitted_ms)
            elif isinstance(event, JobEnded):
                allocation = self._held.pop(event.job_id)
                self._capacity.give(allocation.slots, allocation.job.shape)
                self._latest_ms = max(self._latest_ms, event.at_ms)
                if allocation.before.stopped_ms == self._stopped_ms:
                    self._stopped_ms = _last_stop(view)
            elif isinstance(event, JobStopped) and event.cause in STOPS:
                allocation = self._held.pop(event.job_id)
                self._capacity.give(allocation.slots, allocation.job.shape)
                self._stopped_ms = event.at_ms
                self._enqueue(view, allocation.job)
            elif isinstance(event, ActionOrdered):
                action = event.action
                is_unknown = isinstance(action, StartJob) and action.job_id not in self._held
                if is_unknown or isinstance(action, ResizeJob):
                    return False
            elif isinstance(event, JobStarted):
                self._held[event.job_id].started_ms = event.at_ms
            else:
                return False
        return True

    def _rebuild(self, view: FleetView) -> None:
        self._capacity, self._held, self._queues = self._capacity_of(view), {}, {}
        self._latest_ms, self._stopped_ms = _latest(view), _last_stop(view)
        self._resizes = any(run.becoming is not None for run in view.running.values())
        for order in view.orders.values():
            before = view.past.get(order.job.id, NEVER_RAN)
            self._held[order.job.id] = RankedAllocation(
                order.job, order.slots, order.ordered_ms, before
            )
        for run in view.running.values():
            before = view.past.get(run.job.id, NEVER_RAN)
            allocation = self._held[run.job.id] = RankedAllocation(
                run.job, run.slots, run.started_ms, before
            )
            allocation.stopping = run.stopping
        for job in view.pending.values():
            self._enqueue(view, job)

    def _enqueue(self, view: FleetView, job: Job) -> None:
        key = self._order.key(job, view.past.get(job.id, NEVER_RAN))
        jobs = self._queues.setdefault(job.shape.key, [])
        heappush(jobs, (key, job.submitted_ms, job.seq, job))

    def _wait_on(self, jobs: Iterable[Job]) -> None:
        """Requeue chosen jobs that do not start yet: their keys have not changed."""
        for job in jobs:
            heappush(self._queues[job.shape.key], self._chosen_places.pop(job.id))

    def _choose(
        self, view: FleetView, now_ms: Millis, actions: list[Action]
    ) -> tuple[dict[JobId, RankedAllocation], list[Job]]:
        """Choose allocations and heads in order of key while their GPUs fit by count."""
        left = {
            id(node_index): _gpus(node_index) for node_index in self._capacity.node_indexes.values()
        }
        rank_of = self._order.allocation_rank
        ranked: list[tuple[float, int, int, int, RankedAllocation | list[Place]]] = [
            (
                -inf if self._is_fixed(view, each) else rank_of(each, now_ms),
                0,
                each.job.submitted_ms,
                each.job.seq,
                each,
            )
            for each in self._held.values()
        ]
        for jobs in self._queues.values():
            self._show(view, jobs, ranked, actions)
        heapify(ranked)
        kept: dict[JobId, RankedAllocation] = {}
        chosen: list[Job] = []
        self._chosen_places: dict[JobId, Place] = {}
        while ranked:
            *_, what = heappop(ranked)
            if isinstance(what, RankedAllocation):
                node_index = id(self._capacity.place[what.slots[0].node][0])
                if left[node_index] >= what.gpus:
                    left[node_index] -= what.gpus
                    kept[what.job.id] = what
            elif self._count_in(what[0][3].shape, left):
                place = heappop(what)
                chosen.append(place[3])
                self._chosen_places[place[3].id] = place
                self._show(view, what, ranked, actions)
        chosen.sort(key=lambda job: -job.shape.gpus)
        return kept, chosen

    def _is_fixed(self, view: FleetView, allocation: RankedAllocation) -> bool:
        """Return whether an allocation is neither stopped nor moved, and counted before all others.

        A start in progress cannot be stopped yet, a job on a cordoned node may end there, and
        some jobs are not preemptible.
        """
        terms = allocation.job.terms
        return (
            (terms is not None and not terms.rerank_preemptible)
            or allocation.job.id in view.orders
            or any(view.states[slot.node] != "up" for slot in allocation.slots)
        )

    def _show(
        self,
        view: FleetView,
        jobs: list[Place],
        ranked: list[tuple[float, int, int, int, RankedAllocation | list[Place]]],
        actions: list[Action],
    ) -> None:
        """Add the head of a queue to the candidates, refusing jobs that can never fit."""
        while jobs:
            key, submitted, number, job = jobs[0]
            if job.id not in view.pending:
                heappop(jobs)
            elif not self._capacity.could_hold(job.shape):
                heappop(jobs)
                actions.append(RefuseJob(job.id, never_fits(self._capacity, job.shape)))
            else:
                heappush(ranked, (key, 1, submitted, number, jobs))
                return

    def _count_in(self, shape: Shape, left: dict[int, int]) -> bool:
        for split in self._capacity.splits(shape):
            need = split.members * split.gpus + split.rest
            if left[id(split.node_index)] >= need:
                left[id(split.node_index)] -= need
                return True
        return False

    def _all_fit(self, chosen: Sequence[Job], stops: Sequence[RankedAllocation]) -> bool:
        """Return whether all chosen jobs fit once the others have stopped."""
        scratch = Scratch(self._capacity)
        with scratch.trial():
            for allocation in stops:
                scratch.release(allocation.slots, allocation.job.shape)
            return all(scratch.claim(job.shape) is not None for job in chosen)

    def _in_the_way(
        self,
        kept: Sequence[RankedAllocation],
        chosen: Sequence[Job],
        stops: Sequence[RankedAllocation],
    ) -> list[RankedAllocation]:
        """Pack everything again, largest first, and return the jobs that end up elsewhere."""
        scratch = Scratch(self._capacity)
        moved: list[RankedAllocation] = []
        everything: list[RankedAllocation | Job] = [*kept, *chosen]
        everything.sort(
            key=lambda one: -(one.gpus if isinstance(one, RankedAllocation) else one.shape.gpus)
        )
        with scratch.trial():
            for allocation in (*stops, *kept):
                scratch.release(allocation.slots, allocation.job.shape)
            for one in everything:
                if not isinstance(one, RankedAllocation):
                    scratch.claim(one.shape)
                elif self._capacity.has(one.slots, one.job.shape):
                    scratch.allocate(one.slots, one.job.shape)
                else:
                    scratch.claim(one.job.shape)
                    moved.append(one)
        return moved

    def _stop(self, allocation: RankedAllocation, cause: StopCause) -> StopJob:
        allocation.stopping = True
        return StopJob(allocation.job.id, cause, Reason("gave-way", {"policy": self.name}))


def _gpus(node_index: FreeNodeIndex) -> int:
    """Return the GPUs on open nodes, plus those still held on closed ones."""
    return sum(
        node_index.size if is_open else node_index.size - free
        for free, is_open in zip(node_index.free, node_index.is_open, strict=True)
    )


def _latest(view: FleetView) -> int:
    """Return when a job last arrived or ended, as far as it still matters."""
    live = (view.pending.values(), (held.job for held in _allocations(view)))
    came = max((job.submitted_ms for jobs in live for job in jobs), default=-1)
    return max(came, view.history[-1].ended_ms) if view.history else came


def _allocations(view: FleetView) -> Iterable[Order | Run]:
    yield from view.orders.values()
    yield from view.running.values()


def _last_stop(view: FleetView) -> int:
    """Return when an unfinished job was last stopped by this policy."""
    return max((past.stopped_ms for past in view.past.values() if past.cause in STOPS), default=-1)
