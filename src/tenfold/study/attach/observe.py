"""The events that lead from the state of a journal to what Slurm's commands say.

A reading holds the nodes, the queue and a part of accounting. Each job has a list of runs by time
of submission; what the journal has of them already is skipped, and the rest becomes the steps of
that job. The steps of all jobs are merged by time, so that at every moment the fleet could hold
what it holds.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

from msgspec import UNSET, Struct
from msgspec.structs import replace

from tenfold.files.slurm.settings import SlurmSettings
from tenfold.fleet.fleet import Fleet, more_than
from tenfold.model.actions import StartJob
from tenfold.model.events import (
    ActionOrdered,
    ActionRefused,
    Event,
    JobCancelled,
    JobChanged,
    JobEnded,
    JobHeld,
    JobReleased,
    JobStarted,
    JobStopped,
    JobSubmitted,
    NodeCordoned,
    NodeJoined,
    NodeLost,
    NodeReturned,
)
from tenfold.model.fleet.node import Node
from tenfold.model.ids import JobId, NodeId, PoolId, SiteId
from tenfold.model.job.failures import AttemptFailure
from tenfold.model.job.job import Job, Slot
from tenfold.model.job.recorded import RecordedJob, RecordedNode
from tenfold.model.reason import JobRef, Reason, Text
from tenfold.model.units import SECOND, Millis
from tenfold.study.attach.gates import Gates, closed_by
from tenfold.study.attach.records import (
    STATUSES,
    STOPS,
    ClusterTerms,
    allocated,
    failure_of,
    has_gpus,
    is_over,
    job_from,
    members_of,
    millis,
    slots_of,
    that_fits,
)

DEFERRED_MOST = 3
"""Readings for which a start waits whose GPUs still count as held: accounting may be late."""
ABSENT_MOST = 2
"""Readings after which a job that is nowhere counts as ended without a result, once accounting had
the time to show it."""
UNKNOWN_USER = "unknown"
FREES = (True, False)
"""At each moment, what frees GPUs comes first."""
FREEING = ("end", "stop", "cancel", "refuse")
GONE_POOL = PoolId("gone")
Step = Literal["submit", "hold", "release", "change", "refuse", "start", "end", "stop", "cancel"]


class Reading(Struct, frozen=True, kw_only=True):
    """What Slurm's commands said at one moment."""

    now_s: float
    nodes: tuple[RecordedNode, ...]
    joining: Mapping[str, Node]
    """The nodes as the fleet counts them, by name."""
    queue: tuple[RecordedJob, ...] | None
    """None if it was not read; then only accounting counts."""
    accounting: tuple[RecordedJob, ...] = ()
    settings: SlurmSettings = SlurmSettings()
    terms: ClusterTerms
    accounting_lag_s: float = 0.0
    """How long accounting may take to show a job that left the queue; infinite while it does not
    answer."""
    is_last: bool = False
    """Whether no reading follows, as with saved files."""


class Absence(NamedTuple):
    """How often, and since when, an unfinished job was nowhere."""

    readings: int
    since_ms: Millis


class Memory(Struct):
    """What the observer knows beyond the fleet; all of it can be rebuilt from a journal."""

    over_ms: dict[JobId, Millis]
    """When the last run of a job ended, of jobs that may be read again."""
    holds: dict[JobId, Reason]
    """Why held jobs are held."""
    seq: int
    """Number of the last job."""
    deferred: dict[JobId, int] = {}
    absent: dict[JobId, Absence] = {}
    """Unfinished jobs that are nowhere."""
    clipped: int = 0
    """Allocations recorded with less than Slurm says."""

    def copy(self) -> "Memory":
        """Return an independent copy."""
        return replace(
            self,
            over_ms=dict(self.over_ms),
            holds=dict(self.holds),
            deferred=dict(self.deferred),
            absent=dict(self.absent),
        )


class _Todo(NamedTuple):
    """One step of a job."""

    at_ms: Millis
    kind: Step
    record: RecordedJob
    reason: Reason | None = None


class Observer:
    """Turns readings into events."""

    def __init__(self, fleet: Fleet, memory: Memory) -> None:
        self.fleet = fleet
        self.memory = memory

    def missing(self, reading: Reading) -> list[JobId]:
        """Return unfinished jobs that a reading does not have, to be looked up."""
        if reading.queue is None:
            return []
        seen = {job.id for job in reading.queue}
        over = {job.id for job in reading.accounting if is_over(job)}
        fleet = self.fleet
        open_jobs = (*fleet.pending, *fleet.held, *fleet.orders, *fleet.running)
        return [job for job in open_jobs if job not in seen and job not in over]

    def events(self, reading: Reading) -> list[Event]:
        """Return the events that a reading adds, and apply them to the fleet."""
        return _Pass(self, reading).run()


class _Pass:
    """One reading."""

    def __init__(self, observer: Observer, reading: Reading) -> None:
        self._fleet, self._memory = observer.fleet, observer.memory
        self._reading = reading
        self._now_ms = millis(reading.now_s)
        self._nodes = {node.name: node for node in reading.nodes}
        self._gates = Gates(reading.queue or (), self._nodes, reading.settings, reading.now_s)
        self._out: list[Event] = []

    def run(self) -> list[Event]:
        runs = self._runs()
        todo: dict[JobId, list[_Todo]] = {}
        for job_id, records in runs.items():
            steps = self._steps(job_id, records)
            if steps:
                todo[job_id] = steps
        for job_id, step in list(self._absent(todo)):
            todo[job_id] = [step]
        self._join(todo)
        self._merge(todo)
        self._node_states()
        return self._out

    def _emit(self, event: Event) -> None:
        self._fleet.apply(event)
        self._out.append(event)

    # Runs of each job.

    def _runs(self) -> dict[JobId, list[RecordedJob]]:
        """Return the runs of each job by time; the queue is newer than accounting."""
        reading = self._reading
        found: dict[tuple[str, float, float], RecordedJob] = {}
        for record in reading.queue or ():
            found[record.id, record.submitted_s, 0.0] = record
        for record in self._accounting():
            again_s = record.started_s or 0.0 if record.state == "requeued" else 0.0
            key = record.id, record.submitted_s, again_s
            is_stale = reading.queue is not None and not is_over(record)
            if is_over(record) or (key not in found and not is_stale):
                found[key] = record
        runs: dict[JobId, list[RecordedJob]] = {}
        for record in sorted(found.values(), key=_run_order):
            runs.setdefault(JobId(record.id), []).append(record)
        return runs

    def _accounting(self) -> Iterable[RecordedJob]:
        """Yield the rows of accounting, with those of whole arrays by member."""
        for record in self._reading.accounting:
            if "+" in record.id or ("[" in record.id and not is_over(record)):
                # One row for the pending members of an array: the queue has each of them.
                continue
            yield from members_of(record)

    def _steps(self, job_id: JobId, records: Sequence[RecordedJob]) -> list[_Todo]:
        fleet = self._fleet
        over_ms = self._memory.over_ms.get(job_id, Millis(-1))
        running = fleet.running.get(job_id)
        is_held = job_id in fleet.held
        is_open = is_held or self._is_queued(job_id) or running is not None
        steps: list[_Todo] = []
        for place, record in enumerate(records):
            if _is_recorded(record, over_ms, is_open=is_open):
                continue
            began = None if record.started_s is None else millis(record.started_s)
            if running is not None and (began is None or began > running.started_ms):
                # It runs in the journal and not any more: its end was not seen.
                steps.append(self._unseen_stop(job_id, record))
                running = None
            if not is_open:
                steps.append(_Todo(millis(record.submitted_s), "submit", record))
                is_open, is_held = True, False
            if running is None:
                more, is_held = self._waiting(job_id, record, is_held=is_held)
                steps += more
                if began is not None:
                    steps.append(_Todo(began, "start", record))
                    is_held = False
            if not is_over(record):
                continue
            is_last = place + 1 == len(records)
            if began is None and not is_last:
                # A pending job that was requeued never left the queue.
                continue
            kind: Step = "cancel" if began is None else "end" if is_last else "stop"
            steps.append(_Todo(millis(record.ended_s or 0.0), kind, record))
            is_open = kind == "stop"
            running, is_held = None, False
        return steps

    def _is_queued(self, job_id: JobId) -> bool:
        """Return whether a job may start, or is ordered to."""
        return job_id in self._fleet.pending or job_id in self._fleet.orders

    def _waiting(
        self, job_id: JobId, record: RecordedJob, *, is_held: bool
    ) -> tuple[list[_Todo], bool]:
        """Return what a waiting run adds: a hold, its release or a change; and if it is held."""
        if record.started_s is None and not is_over(record):
            if job_id in self._fleet.orders:
                return self._still_ordered(record)
            return self._still_waiting(job_id, record, is_held=is_held)
        if is_held:
            return [_Todo(self._released_ms(record), "release", record)], False
        eligible, started = record.eligible_s, record.started_s
        if (
            eligible is not None
            and started is not None
            and record.submitted_s + 1 < eligible <= started
            and not self._is_queued(job_id)
        ):
            held = _Todo(millis(record.submitted_s), "hold", record, Reason("not-eligible"))
            return [held, _Todo(millis(eligible), "release", record)], False
        return [], False

    def _still_ordered(self, record: RecordedJob) -> tuple[list[_Todo], bool]:
        """Return what is due if a job that was ordered to start is held."""
        if not record.is_held:
            return [], False
        refused = _Todo(self._now_ms, "refuse", record, Reason("order-not-carried-out"))
        return [refused, _Todo(self._now_ms, "hold", record, self._gates.of(record))], True

    def _still_waiting(
        self, job_id: JobId, record: RecordedJob, *, is_held: bool
    ) -> tuple[list[_Todo], bool]:
        reason = self._gates.of(record)
        is_known = job_id in self._fleet.held or job_id in self._fleet.pending
        steps: list[_Todo] = []
        if is_held and (reason is None or not self._same_hold(job_id, reason)):
            steps.append(_Todo(self._released_ms(record), "release", record))
            is_held = False
        if is_known and self._changed(job_id, record):
            steps.append(_Todo(self._now_ms, "change", record))
        if reason is not None and not is_held:
            # A job that is already open is seen to be held now, a new one since its submission.
            at_ms = self._now_ms if is_known else millis(record.submitted_s)
            steps.append(_Todo(at_ms, "hold", record, reason))
            is_held = True
        return steps, is_held

    def _same_hold(self, job_id: JobId, reason: Reason) -> bool:
        """Return whether a job is held for the same; counts that change are no new reason."""
        known = self._memory.holds.get(job_id)
        return known is not None and known.code == reason.code

    def _released_ms(self, record: RecordedJob) -> Millis:
        """Return when a hold ended: when the job became eligible, if Slurm says so."""
        eligible, at_s = record.eligible_s, self._reading.now_s
        if eligible is not None and record.submitted_s < eligible <= at_s:
            at_s = eligible
        return millis(at_s if record.started_s is None else min(at_s, record.started_s))

    def _changed(self, job_id: JobId, record: RecordedJob) -> bool:
        known = self._fleet.pending.get(job_id) or self._fleet.held.get(job_id)
        if known is None:
            return False
        now = job_from(record, known.seq, self._reading.terms)
        return _what_counts(now) != _what_counts(known)

    def _unseen_stop(self, job_id: JobId, record: RecordedJob) -> _Todo:
        at_ms = min(self._now_ms, millis(record.submitted_s))
        run = self._fleet.running[job_id]
        return _Todo(max(at_ms, run.started_ms), "stop", record, Reason("end-not-seen"))

    def _absent(self, todo: Mapping[JobId, Sequence[_Todo]]) -> Iterable[tuple[JobId, _Todo]]:
        """Yield the end of jobs that were nowhere for some readings."""
        if self._reading.queue is None:
            return
        fleet, before = self._fleet, self._memory.absent
        there = {record.id for record in self._reading.queue}
        absent: dict[JobId, Absence] = {}
        for job_id in (*fleet.pending, *fleet.held, *fleet.orders, *fleet.running):
            if job_id not in there and job_id not in todo:
                readings, since_ms = before.get(job_id, (0, self._now_ms))
                absent[job_id] = Absence(readings + 1, since_ms)
        self._memory.absent = absent
        for job_id, absence in absent.items():
            if not self._reading.is_last and not self._is_gone(absence):
                continue
            run = fleet.running.get(job_id)
            job = run.job if run else self._waiting_job(job_id)
            record = RecordedJob(
                id=job_id,
                user=job.user,
                submitted_s=job.submitted_ms / SECOND,
                state="unknown",
                cancelled_by=UNKNOWN_USER if run is None else "",
            )
            kind: Step = "cancel" if run is None else "end"
            yield job_id, _Todo(self._now_ms, kind, record, Reason("end-not-seen"))

    def _is_gone(self, absence: Absence) -> bool:
        waited_s = (self._now_ms - absence.since_ms) / SECOND
        return absence.readings >= ABSENT_MOST and waited_s >= self._reading.accounting_lag_s

    def _waiting_job(self, job_id: JobId) -> Job:
        fleet = self._fleet
        if job_id in fleet.orders:
            return fleet.orders[job_id].job
        return fleet.pending.get(job_id) or fleet.held[job_id]

    # Merge.

    def _merge(self, todo: Mapping[JobId, list[_Todo]]) -> None:
        """Emit the steps of all jobs by time; within a second, ends come before starts."""
        by_second: dict[int, list[tuple[JobId, int]]] = {}
        for job_id, steps in todo.items():
            last_ms = 0
            for place, step in enumerate(steps):
                # The steps of a job stay in order, whatever their times say.
                last_ms = max(last_ms, step.at_ms)
                steps[place] = step._replace(at_ms=Millis(last_ms))
                by_second.setdefault(last_ms, []).append((job_id, place))
        at: dict[JobId, int] = {}
        """The next step of each job."""
        due: dict[JobId, int] = {}
        """Its last step that is due."""
        blocked: dict[JobId, None] = {}
        for moment in sorted(by_second):
            due |= dict(by_second[moment])
            jobs = dict.fromkeys((*blocked, *(job_id for job_id, _ in by_second[moment])))
            while any([self._advance(jobs, todo, at, due, blocked, frees=each) for each in FREES]):
                pass
        for job_id in blocked:
            self._forced(todo[job_id], at.get(job_id, 0))

    def _advance(
        self,
        jobs: Iterable[JobId],
        todo: Mapping[JobId, Sequence[_Todo]],
        at: dict[JobId, int],
        due: Mapping[JobId, int],
        blocked: dict[JobId, None],
        *,
        frees: bool,
    ) -> bool:
        """Emit steps that are due; a start whose GPUs are held waits for an end."""
        moved = False
        for job_id in jobs:
            steps = todo[job_id]
            while (place := at.get(job_id, 0)) <= due[job_id]:
                step = steps[place]
                if frees and step.kind not in FREEING:
                    break
                if step.kind == "start" and not self._has_gpus(job_id, step.record):
                    blocked[job_id] = None
                    break
                self._step(job_id, step)
                blocked.pop(job_id, None)
                at[job_id], moved = place + 1, True
        return moved

    def _has_gpus(self, job_id: JobId, record: RecordedJob) -> bool:
        """Return whether the GPUs of a start are free, or ordered for this job."""
        order = self._fleet.orders.get(job_id)
        return has_gpus(self._fleet, more_than(slots_of(record), order.slots if order else ()))

    def _forced(self, steps: Sequence[_Todo], place: int) -> None:
        """Emit what is left of a job whose GPUs still count as held: later, or with less."""
        job_id = JobId(steps[place].record.id)
        tries = self._memory.deferred.get(job_id, 0) + 1
        is_over = any(step.kind in ("end", "stop") for step in steps[place:])
        if tries < DEFERRED_MOST and not is_over and not self._reading.is_last:
            self._memory.deferred[job_id] = tries
            return
        self._memory.deferred.pop(job_id, None)
        for step in steps[place:]:
            if step.kind == "start":
                self._refuse_orders(job_id, step)
            self._step(job_id, step)

    def _refuse_orders(self, job_id: JobId, step: _Todo) -> None:
        """Refuse the orders whose GPUs another job got."""
        nodes = {slot.node for slot in slots_of(step.record)}
        for other, order in list(self._fleet.orders.items()):
            if other != job_id and any(slot.node in nodes for slot in order.slots):
                self._refuse(other, step.at_ms, Reason("started-there", {"job": JobRef(job_id)}))

    # Single steps.

    def _step(self, job_id: JobId, step: _Todo) -> None:
        match step.kind:
            case "submit":
                self._submit(step)
            case "hold":
                self._hold(job_id, step)
            case "release":
                self._release(job_id, step)
            case "change":
                self._change(job_id, step)
            case "refuse":
                self._refuse(job_id, step.at_ms, step.reason)
            case "start":
                self._start(job_id, step)
            case "end" | "stop":
                self._over(job_id, step)
            case "cancel":
                self._cancel(job_id, step)

    def _submit(self, step: _Todo) -> None:
        self._memory.seq += 1
        job = job_from(step.record, self._memory.seq, self._reading.terms)
        self._emit(JobSubmitted(step.at_ms, job))

    def _hold(self, job_id: JobId, step: _Todo) -> None:
        if step.reason is not None and job_id in self._fleet.pending:
            self._memory.holds[job_id] = step.reason
            self._emit(JobHeld(step.at_ms, job_id, step.reason))

    def _change(self, job_id: JobId, step: _Todo) -> None:
        known = self._fleet.pending.get(job_id) or self._fleet.held.get(job_id)
        if known is not None:
            now = job_from(step.record, known.seq, self._reading.terms)
            self._emit(JobChanged(step.at_ms, replace(now, submitted_ms=known.submitted_ms)))

    def _release(self, job_id: JobId, step: _Todo) -> None:
        if job_id in self._fleet.held:
            self._memory.holds.pop(job_id, None)
            self._emit(JobReleased(step.at_ms, job_id))

    def _refuse(self, job_id: JobId, at_ms: Millis, reason: Reason | None) -> None:
        """Record that an order has no effect, if there is one."""
        order = self._fleet.orders.get(job_id)
        if order is not None and reason is not None:
            at_ms = max(at_ms, order.ordered_ms)
            self._emit(ActionRefused(at_ms, StartJob(job_id, order.slots), reason))

    def _start_ordered(self, job_id: JobId, step: _Todo) -> bool:
        """Record the start of a job as ordered; return whether it started so."""
        order = self._fleet.orders.get(job_id)
        if order is None:
            return False
        slots = slots_of(step.record)
        given = allocated(order.job, step.record, slots, self._reading.terms)
        if given == order.job and sorted(slots, key=_node) == sorted(order.slots, key=_node):
            # Slurm's times are whole seconds.
            self._emit(JobStarted(max(step.at_ms, order.ordered_ms), job_id))
            return True
        self._refuse(job_id, step.at_ms, Reason("started-otherwise"))
        return False

    def _start(self, job_id: JobId, step: _Todo) -> None:
        if self._start_ordered(job_id, step):
            return
        self._release(job_id, step)
        record = step.record
        slots = slots_of(record)
        known = self._fleet.pending[job_id]
        given = allocated(known, record, slots, self._reading.terms)
        job, held = that_fits(self._fleet, given, slots)
        self._memory.clipped += held != slots
        if job != known:
            self._emit(JobChanged(step.at_ms, job))
        self._emit(ActionOrdered(step.at_ms, StartJob(job_id, held)))
        self._emit(JobStarted(step.at_ms, job_id))
        self._memory.deferred.pop(job_id, None)

    def _over(self, job_id: JobId, step: _Todo) -> None:
        record, reason = step.record, step.reason
        self._memory.over_ms[job_id] = step.at_ms
        failure = failure_of(record)
        if reason is not None:
            failure = AttemptFailure(
                attempt=1, kind="lost", last_alive_ms=step.at_ms, reason=reason
            )
        if step.kind == "stop":
            cause = "moved" if reason is not None else STOPS.get(record.state, "moved")
            self._emit(
                JobStopped(
                    step.at_ms,
                    job_id,
                    cause,
                    Millis(0),
                    UNSET if record.exit_code is None else record.exit_code,
                    UNSET if failure is None or cause == "preempted" else failure,
                )
            )
            return
        self._emit(
            JobEnded(
                step.at_ms,
                job_id,
                STATUSES.get(record.state, "failed"),
                UNSET if record.exit_code is None else record.exit_code,
                UNSET if failure is None else failure,
                record.cancelled_by or UNSET,
            )
        )

    def _cancel(self, job_id: JobId, step: _Todo) -> None:
        self._refuse(job_id, step.at_ms, Reason("order-not-carried-out"))
        self._memory.over_ms[job_id] = step.at_ms
        self._memory.holds.pop(job_id, None)
        self._emit(JobCancelled(step.at_ms, job_id, step.record.cancelled_by or UNSET))

    # Nodes.

    def _join(self, todo: Mapping[JobId, Sequence[_Todo]]) -> None:
        """Emit nodes that are new, before the first job that needs them."""
        first_ms = min(
            (step.at_ms for steps in todo.values() for step in steps), default=self._now_ms
        )
        at_ms = min(first_ms, self._now_ms) if not self._fleet.nodes else self._now_ms
        for name, node in self._reading.joining.items():
            if NodeId(name) not in self._fleet.nodes:
                self._emit(NodeJoined(at_ms, node))
        unknown: dict[NodeId, int] = {}
        for steps in todo.values():
            for step in steps:
                if step.kind == "start":
                    for slot in slots_of(step.record):
                        if slot.node not in self._fleet.nodes:
                            unknown[slot.node] = max(unknown.get(slot.node, 0), slot.gpus)
        for name, gpus in unknown.items():
            # It ran jobs and is gone; only what it held is known.
            node = Node(id=name, pool=GONE_POOL, site=SiteId("main"), gpus=gpus)
            self._emit(NodeJoined(at_ms, node))

    def _node_states(self) -> None:
        closed = closed_by(self._reading.settings.bookings, self._reading.now_s)
        for name, state in list(self._fleet.states.items()):
            known = self._nodes.get(name)
            if known is None or known.is_lost:
                if state != "down":
                    cause = "removed from the cluster" if known is None else known.why_unusable
                    self._emit(NodeLost(self._now_ms, name, cause))
            elif known.why_unusable or name in closed:
                if state != "cordoned":
                    self._emit(NodeCordoned(self._now_ms, name, _why_closed(known, closed)))
            elif state != "up":
                self._emit(NodeReturned(self._now_ms, name))


def remembered(fleet: Fleet, holds: Mapping[JobId, Reason], seq: int) -> Memory:
    """Return the memory of an observer for a restored fleet, without what ended long ago."""
    over = {job_id: past.stopped_ms for job_id, past in fleet.past.items()}
    for ended in fleet.history:
        over[ended.job.id] = max(over.get(ended.job.id, Millis(0)), ended.ended_ms)
    return Memory(over_ms=over, holds=dict(holds), seq=seq, deferred={}, absent={})


def _is_recorded(record: RecordedJob, over_ms: Millis, *, is_open: bool) -> bool:
    """Return whether the journal has all of a run: it began or ended before the last end."""
    if record.ended_s is not None and is_over(record) and millis(record.ended_s) <= over_ms:
        return True
    if record.started_s is not None:
        is_ending = record.state == "completing" and not is_open
        return millis(record.started_s) < over_ms or is_ending
    return is_over(record) and not is_open and millis(record.submitted_s) < over_ms


def _why_closed(node: RecordedNode, closed: Mapping[str, str]) -> Reason:
    if node.why_unusable:
        return Reason("closed-in-engine", {"said": Text(f"Slurm: {node.why_unusable}"[:300])})
    return Reason("closed-in-engine", {"said": Text(f"Slurm reservation {closed[node.name]}")})


def _what_counts(job: Job) -> tuple[object, ...]:
    return job.shape.key, job.limit_ms, job.qos, job.team, job.priority


def _node(slot: Slot) -> NodeId:
    return slot.node


def _run_order(record: RecordedJob) -> tuple[float, float]:
    return record.submitted_s, record.started_s or float("inf")
