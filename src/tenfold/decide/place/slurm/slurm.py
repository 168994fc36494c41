"""Schedule jobs as Slurm does: multifactor priority, a main pass, and backfill.

The main pass goes down the queue and stops, for a partition and its nodes, at the first job that
cannot start. Backfill then examines the jobs behind it. Both run at fixed periods counted from
time zero, as Slurm's loop batches events in between; so a restarted decider decides the same.
Where main passes have a minimum interval (`sched_min_interval`), a due pass waits for the next
multiple of it.
"""

from collections.abc import Sequence
from typing import NamedTuple

from tenfold.decide.place.misfit import never_fits
from tenfold.decide.place.slurm.backfill import BackfillPass, Candidate, Ending, Horizon
from tenfold.decide.place.slurm.partitions import Queue, Queues
from tenfold.decide.place.slurm.priority import NO_ACCOUNTS, Accounts, EndedUsage, Priorities
from tenfold.decide.place.slurm.select import NodeFilter, choose, could_hold
from tenfold.fleet.capacity import Capacity, Slots
from tenfold.fleet.fleet import FleetView
from tenfold.fleet.topology.topology import powered_capacity
from tenfold.model.actions import Action, RefuseJob, StartJob
from tenfold.model.decision import NOTHING, Decision
from tenfold.model.events import ActionOrdered, Event, JobEnded, JobStarted, JobSubmitted
from tenfold.model.ids import JobId
from tenfold.model.job.job import Job
from tenfold.model.policy.slurm import Backfill, SlurmPolicy
from tenfold.model.reason import Reason
from tenfold.model.units import SECOND, Millis


class PendingJob(NamedTuple):
    """A pending job with its sort key: tier, then priority, then arrival."""

    place: tuple[int, int, int, int]
    job: Job
    queue: Queue


class SlurmPlacer:
    """Decides as Slurm with this configuration does."""

    def __init__(self, policy: SlurmPolicy, accounts: Accounts = NO_ACCOUNTS) -> None:
        self.name = "slurm"
        self._policy = policy
        self._accounts = accounts
        self._ended = EndedUsage(policy.decay_half_life_ms)
        # The controller's loop runs once a second, whatever is configured.
        self._main_ms = max(SECOND, _seconds(policy, "batch_sched_delay", 3) * SECOND)
        self._full_ms = max(SECOND, policy.interval_ms)
        self._apart_ms = _apart_ms(policy)
        self._backfill_ms = 0
        if policy.scheduler == "backfill":
            self._backfill_ms = max(SECOND, policy.backfill.interval_ms)
        self._version = -1
        self._capacity = Capacity()
        self._queues = Queues(policy)
        self._held: dict[JobId, tuple[Slots, Job]] = {}
        self._starts_ordered = 0
        """Number of starts in the last decision, which the caches already include."""
        self._classes: dict[tuple[str, str], tuple[int, Job]] = {}
        """How many jobs of each shape and queue are pending, and one of them to try."""
        self._resizes = False
        """Whether a resize is in progress, whose slots only the view has."""

    @property
    def index(self) -> Capacity | None:
        """The index of free capacity; None during a resize, whose slots only the view has."""
        return None if self._resizes else self._capacity

    def decide(self, view: FleetView, now_ms: Millis, news: Sequence[Event] | None) -> Decision:
        """Return the starts of the passes due now, and when the next pass may be useful."""
        bridged = news is not None and self._version + len(news) == view.version
        if self._resizes or not (bridged and news is not None and self._apply_events(news)):
            self._rebuild(view)
        self._version = view.version
        self._starts_ordered = 0
        never = self._never()
        if not never and not self._any_fits():
            return NOTHING
        actions: list[Action] = []
        is_full = self._is_due(now_ms, self._full_ms)
        is_main = is_full or self._is_due(now_ms, self._main_ms)
        is_backfill = bool(self._backfill_ms) and now_ms % self._backfill_ms == 0
        if is_main or is_backfill:
            job_queue = self._job_queue(view, now_ms)
            if never:
                job_queue = self._refuse(job_queue, never, actions)
            if is_main:
                depth = len(job_queue) if is_full else self._policy.queue_depth
                job_queue = self._main_pass(job_queue, depth, actions)
            if is_backfill:
                self._backfill_pass(job_queue, view, now_ms, actions)
        return Decision(actions, self._next_pass(now_ms, is_main=is_main))

    def _next_pass(self, now_ms: Millis, *, is_main: bool) -> Millis:
        """Return when the next pass is due; after a main pass only time can change anything."""
        passes = [self._next_due(now_ms, self._full_ms)]
        if not is_main:
            passes.append(self._next_due(now_ms, self._main_ms))
        if self._backfill_ms:
            passes.append((now_ms // self._backfill_ms + 1) * self._backfill_ms)
        return Millis(min(passes))

    def _is_due(self, now_ms: Millis, period_ms: int) -> bool:
        """Return whether a main pass of this period is due now, given the minimum interval."""
        return now_ms % self._apart_ms == 0 and now_ms % period_ms < self._apart_ms

    def _next_due(self, now_ms: Millis, period_ms: int) -> int:
        last_ms = now_ms // period_ms * period_ms
        held_ms = _rounded_up(last_ms, self._apart_ms)
        if held_ms > now_ms:
            return held_ms
        return _rounded_up(last_ms + period_ms, self._apart_ms)

    def _job_queue(self, view: FleetView, now_ms: Millis) -> list[PendingJob]:
        priorities = Priorities(
            self._policy, self._accounts, view, self._capacity, now_ms, self._ended
        )
        job_queue: list[PendingJob] = []
        for job in view.pending.values():
            queue = self._queues.of(job)
            priority = priorities.of(job, queue.partition)
            job_queue.append(
                PendingJob((-queue.tier, -priority, job.submitted_ms, job.seq), job, queue)
            )
        job_queue.sort(key=lambda one: one.place)
        return job_queue

    def _refuse(
        self, job_queue: list[PendingJob], never: set[tuple[str, str]], actions: list[Action]
    ) -> list[PendingJob]:
        rest: list[PendingJob] = []
        for one in job_queue:
            if (one.job.shape.key, one.queue.name) in never:
                actions.append(RefuseJob(one.job.id, self._why_never(one)))
            else:
                rest.append(one)
        return rest

    def _why_never(self, one: PendingJob) -> tuple[Reason, ...]:
        shape = one.job.shape
        if not self._capacity.could_hold(shape):
            return never_fits(self._capacity, shape)
        return (Reason("larger-than-the-partition", {"partition": one.queue.name}),)

    def _main_pass(
        self, job_queue: list[PendingJob], depth: int, actions: list[Action]
    ) -> list[PendingJob]:
        """Start jobs in order; a job that cannot start closes its partition's nodes."""
        closed: list[Queue] = []
        left: list[PendingJob] = []
        starts_max = self._policy.jobs_started_max or len(job_queue)
        for place, one in enumerate(job_queue):
            slots = None
            if place < depth and one.queue not in closed and self._starts_ordered < starts_max:
                slots = choose(self._capacity, one.job.shape, _open(one.queue, closed))
                if slots is None:
                    closed.append(one.queue)
            if slots is None:
                left.append(one)
                continue
            self._capacity.take(slots, one.job.shape)
            self._order(one.job, slots, actions)
        return left

    def _backfill_pass(
        self, job_queue: list[PendingJob], view: FleetView, now_ms: Millis, actions: list[Action]
    ) -> None:
        limits = self._policy.backfill
        if not job_queue or not self._any_fits():
            return
        horizon = Horizon(limits.window_ms, limits.resolution_ms)
        backfill = BackfillPass(self._capacity, self._endings(view, now_ms), horizon, now_ms)
        job_queue = _tested(job_queue, limits)
        shortest = _shortest_behind(job_queue)
        planned, before = 0, self._starts_ordered
        for place, one in enumerate(job_queue):
            candidate = Candidate(one.job, one.queue.limit_ms(one.job), one.queue.holds)
            slots = backfill.place_or_reserve(candidate)
            if slots is not None:
                self._order(one.job, slots, actions)
                if self._starts_ordered - before == limits.jobs_started_max:
                    break
            elif len(backfill.reservations) == planned:
                continue
            planned = len(backfill.reservations)
            if not any(backfill.could_start(candidate) for candidate in shortest[place]):
                break

    def _order(self, job: Job, slots: Slots, actions: list[Action]) -> None:
        self._held[job.id] = (slots, job)
        self._count(job, -1)
        self._starts_ordered += 1
        actions.append(StartJob(job.id, slots))

    def _endings(self, view: FleetView, now_ms: Millis) -> list[Ending]:
        """Return what each started job releases at its limit, including this cycle's starts."""
        endings: list[Ending] = []
        for job_id, (slots, job) in self._held.items():
            run = view.running.get(job_id)
            order = view.orders.get(job_id)
            began_ms = run.started_ms if run else order.ordered_ms if order else now_ms
            # Slurm counts in whole seconds.
            began_ms = began_ms // SECOND * SECOND
            at_ms = max(began_ms + self._queues.of(job).limit_ms(job), now_ms + SECOND)
            endings.append(Ending(at_ms, (job.submitted_ms, job.seq, job_id), slots, job.shape))
        return endings

    def _any_fits(self) -> bool:
        """Return whether any pending shape fits now: if not, no pass can start a job."""
        return any(
            choose(self._capacity, job.shape, self._queues.of(job).holds) is not None
            for _, job in self._classes.values()
        )

    def _never(self) -> set[tuple[str, str]]:
        """Return the shapes and queues that even an empty fleet could not hold."""
        return {
            key
            for key, (_, job) in self._classes.items()
            if not could_hold(self._capacity, job.shape, self._queues.of(job).holds)
        }

    def _apply_events(self, news: Sequence[Event]) -> bool:
        """Apply events to the caches; False if they must be rebuilt."""
        orders_seen = 0
        for event in news:
            if type(event) is JobStarted:
                continue
            if type(event) is JobSubmitted:
                self._count(event.job, 1)
            elif type(event) is JobEnded:
                slots, job = self._held.pop(event.job_id)
                self._capacity.give(slots, job.shape)
            elif type(event) is ActionOrdered:
                action = event.action
                if type(action) is not StartJob or action.job_id not in self._held:
                    return False
                orders_seen += 1
            else:
                return False
        return orders_seen == self._starts_ordered

    def _rebuild(self, view: FleetView) -> None:
        self._capacity = powered_capacity(view) or Capacity.of(view)
        self._queues = Queues(self._policy, view)
        self._held = {
            job_id: (held.slots, held.job)
            for kept in (view.orders, view.running)
            for job_id, held in kept.items()
        }
        self._classes = {}
        self._resizes = any(run.becoming is not None for run in view.running.values())
        for job in view.pending.values():
            self._count(job, 1)

    def _count(self, job: Job, change: int) -> None:
        key = (job.shape.key, self._queues.of(job).name)
        count = self._classes.get(key, (0, job))[0] + change
        if count:
            self._classes[key] = (count, job)
        else:
            del self._classes[key]


def _open(queue: Queue, closed: list[Queue]) -> NodeFilter:
    if not closed:
        return queue.holds
    return lambda node: queue.holds(node) and not any(one.holds(node) for one in closed)


def _tested(job_queue: list[PendingJob], limits: Backfill) -> list[PendingJob]:
    """Return the jobs that backfill considers: limits in total, per user and per partition."""
    users: dict[str, int] = {}
    queues: dict[str, int] = {}
    tested: list[PendingJob] = []
    for one in job_queue:
        user, queue = one.job.user or one.job.team, one.queue.name
        if _full(users, user, limits.jobs_per_user_max):
            continue
        if _full(queues, queue, limits.jobs_per_partition_max):
            continue
        users[user] = users.get(user, 0) + 1
        queues[queue] = queues.get(queue, 0) + 1
        tested.append(one)
        if len(tested) == limits.jobs_tested_max:
            break
    return tested


def _shortest_behind(job_queue: list[PendingJob]) -> list[list[Candidate]]:
    """Return, for each place, one job of each shape and queue behind it: that with the least limit.

    If none of these could start now, no job behind that place could: the pass is over.
    """
    shortest: dict[tuple[str, str], Candidate] = {}
    behind: list[list[Candidate]] = [[] for _ in job_queue]
    now: list[Candidate] = []
    for place in range(len(job_queue) - 1, -1, -1):
        behind[place] = now
        one = job_queue[place]
        key, limit_ms = (one.job.shape.key, one.queue.name), one.queue.limit_ms(one.job)
        if key not in shortest or limit_ms < shortest[key].limit_ms:
            shortest[key] = Candidate(one.job, limit_ms, one.queue.holds)
            now = list(shortest.values())
    return behind


def _full(counts: dict[str, int], name: str, most: int) -> bool:
    return most > 0 and counts.get(name, 0) >= most


def _apart_ms(policy: SlurmPolicy) -> int:
    """Return the minimum time between main passes; up to a second the loop ensures it."""
    apart_ms = -(-policy.interval_min_us // 1_000)
    return _rounded_up(apart_ms, SECOND) if apart_ms > SECOND else 1


def _rounded_up(time_ms: int, step_ms: int) -> int:
    return -(-time_ms // step_ms) * step_ms


def _seconds(policy: SlurmPolicy, parameter: str, default: int) -> int:
    text = policy.parameters.get(parameter, "")
    return int(text) if text.isdigit() else default
