"""Place jobs that users submitted held: release each on nodes that a policy chose.

Only jobs that their own users hold, in the partitions and accounts that the operator names, are
touched. An order is in the journal before it is carried out, and the comment of the job says who
released it, so a restart continues and does nothing twice. A job that Slurm does not start on its
nodes in time is held again and placed anew, and after some tries left to Slurm.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from msgspec import Struct, field
from msgspec.structs import replace

from tenfold.engine.loop import Decider
from tenfold.fleet.fleet import Fleet
from tenfold.live.slurm.attach.orders import OrderFailed
from tenfold.model.actions import StartJob
from tenfold.model.errors import Refused
from tenfold.model.events import ActionOrdered, ActionRefused, Event, JobChanged, JobReleased
from tenfold.model.ids import JobId
from tenfold.model.job.job import Job, shape_of
from tenfold.model.job.recorded import RecordedJob
from tenfold.model.reason import Reason, Text
from tenfold.model.units import SECOND, Millis
from tenfold.study.attach.gates import Gates
from tenfold.study.attach.observe import Reading
from tenfold.study.attach.recommend import startable

BY = "tenfold"
"""Who releases jobs, in events."""
TRIES_MOST = 3
"""Orders for one job that Slurm did not start in time; then it chooses the nodes itself."""
REFUSALS_MOST = 3
"""Orders for one job that Slurm refused; then the job is left held until a restart."""
OWN_HOLD = "JobHeldUser"
"""Slurm's word for a job that its user holds; an operator's hold has another."""
_MARK = re.compile(r"tenfold-act:(?P<home>[0-9a-f]{12}):(?P<tries>\d+|left)(?: |\Z)")


class ActScope(Struct, frozen=True, kw_only=True):
    """What the operator allows; what is not named is not touched."""

    partitions: tuple[str, ...] = ()
    """Empty: every partition, if accounts are named."""
    accounts: tuple[str, ...] = ()
    """Empty: every account, if partitions are named."""
    start_within_s: float = 60.0

    def has(self, record: RecordedJob) -> bool:
        """Return whether a job is held by its user, and in a partition and account named."""
        if not (self.partitions or self.accounts) or not is_held_by_user(record):
            return False
        return self.has_queue(record)

    def has_queue(self, record: RecordedJob) -> bool:
        """Return whether the partitions and the account of a job are named."""
        partitions = record.partitions or (record.partition,)
        return (not self.partitions or all(one in self.partitions for one in partitions)) and (
            not self.accounts or record.account in self.accounts
        )


class ActMark(Struct, frozen=True):
    """What the comment of a job says about orders of one attachment."""

    home: str
    tries: int = 0
    is_left: bool = False
    """Whether the job was left to Slurm."""

    def comment(self, before: str) -> str:
        """Return the comment of a job with this mark; what its user wrote stays."""
        tries = "left" if self.is_left else str(self.tries)
        return f"tenfold-act:{self.home}:{tries} {comment_without_mark(before)}".rstrip()


class ActCounts(Struct, kw_only=True):
    """What was done since the start."""

    released: int = 0
    started: int = 0
    refused: int = 0
    """Orders that Slurm refused."""
    late: int = 0
    """Orders that Slurm did not carry out in time."""
    left: int = 0
    """Jobs that were left to Slurm after some tries."""
    skipped: dict[str, str] = field(default_factory=dict)
    """Held jobs in scope that cannot be placed, and why."""


class JobOrders(Protocol):
    """What changes a job in Slurm; see `SlurmOrders`."""

    def release(self, job_id: str, nodes: Sequence[str], comment: str, before: str) -> None:
        """Release a held job on these nodes."""
        ...

    def hold(self, job_id: str, comment: str) -> None:
        """Hold a job again, without nodes."""
        ...

    def unbind(self, job_id: str, comment: str) -> None:
        """Let Slurm choose the nodes of a job."""
        ...


class Actor:
    """Follows readings, and places held jobs."""

    def __init__(
        self,
        home: str,
        scope: ActScope,
        decider_of: Callable[[], Decider],
        orders: JobOrders,
        emit: Callable[[Sequence[Event]], None],
    ) -> None:
        """`home` names this attachment in comments; `emit` records events before it returns."""
        self._home = home
        self._scope = scope
        self._decider_of = decider_of
        self._orders = orders
        self._emit = emit
        self._refusals: dict[JobId, int] = {}
        self._ordered: dict[JobId, None] = {}
        self.counts = ActCounts()

    def after(self, fleet: Fleet, reading: Reading, now_ms: Millis) -> None:
        """Carry out what is due after a reading that is recorded in `fleet`."""
        records = {JobId(one.id): one for one in reading.queue or () if one.state == "pending"}
        self._count_started(fleet)
        self._expire(fleet, records, now_ms)
        for job_id, record in records.items():
            self._recall(fleet, job_id, record)
        jobs = self._placeable(fleet, reading, records)
        for start in self._starts(fleet, jobs, reading, now_ms):
            self._release(start, records[start.job_id], now_ms)

    def _count_started(self, fleet: Fleet) -> None:
        for job_id in list(self._ordered):
            if job_id not in fleet.orders:
                del self._ordered[job_id]
                # It may have ended by now.
                self.counts.started += job_id in fleet.running or any(
                    one.job.id == job_id for one in fleet.history
                )

    def _expire(self, fleet: Fleet, records: Mapping[JobId, RecordedJob], now_ms: Millis) -> None:
        """Give up orders that Slurm did not carry out in time."""
        within_ms = round(self._scope.start_within_s * SECOND)
        for job_id, order in list(fleet.orders.items()):
            if job_id in records and now_ms - order.ordered_ms >= within_ms:
                self.counts.late += 1
                reason = Reason("not-started-in-time", {"within_ms": within_ms})
                self._emit([ActionRefused(now_ms, StartJob(job_id, order.slots), reason)])

    def _recall(self, fleet: Fleet, job_id: JobId, record: RecordedJob) -> None:
        """Hold a job again that waits on our nodes without an order, or leave it to Slurm."""
        mark = mark_of(record.comment, self._home)
        if mark is None or mark.is_left or record.is_held or job_id not in fleet.pending:
            return
        if not self._scope.has_queue(record):
            # Its user moved it, or the operator names less than before.
            return
        # One that ran and was requeued was placed well.
        tries = 0 if job_id in fleet.past else mark.tries
        is_left = tries >= TRIES_MOST
        comment = ActMark(self._home, tries, is_left).comment(record.comment)
        try:
            if is_left:
                self._orders.unbind(record.id, comment)
            else:
                self._orders.hold(record.id, comment)
        except OrderFailed:
            # It has started, or is over: the next reading says so.
            return
        self.counts.left += is_left

    def _placeable(
        self, fleet: Fleet, reading: Reading, records: Mapping[JobId, RecordedJob]
    ) -> dict[JobId, Job]:
        """Return the held jobs that may be placed now, each with the nodes that it asks for."""
        nodes = {node.name: node for node in reading.nodes}
        gates = Gates(reading.queue or (), nodes, reading.settings, reading.now_s)
        found: dict[JobId, Job] = {}
        skipped: dict[str, str] = {}
        for job_id, record in records.items():
            job = fleet.held.get(job_id)
            mark = mark_of(record.comment, self._home)
            if job is None or not self._scope.has(record) or (mark is not None and mark.is_left):
                continue
            why = self._why_not(job_id, record, is_marked=mark is not None)
            if why:
                skipped[record.id] = why
            elif gates.of(replace(record, is_held=False, required_nodes=())) is None:
                found[job_id] = _as_asked(job, record)
        self.counts.skipped = skipped
        return found

    def _why_not(self, job_id: JobId, record: RecordedJob, *, is_marked: bool) -> str:
        if _MARK.match(record.comment) and not is_marked:
            return "another attachment released it"
        if self._refusals.get(job_id, 0) >= REFUSALS_MOST:
            return f"Slurm refused {REFUSALS_MOST} orders"
        return why_not_placeable(record, is_marked=is_marked)

    def _starts(
        self, fleet: Fleet, jobs: Mapping[JobId, Job], reading: Reading, now_ms: Millis
    ) -> list[StartJob]:
        """Return the starts of held jobs, decided with all other jobs that wait."""
        if not jobs:
            return []
        trial = fleet.fork()
        for job_id, job in jobs.items():
            trial.apply(JobReleased(now_ms, job_id))
            trial.apply(JobChanged(now_ms, job))
        partitions = {one.name: one for one in reading.settings.partitions}
        records = {JobId(one.id): one for one in reading.queue or ()}
        return [
            one
            for one in startable(trial, self._decider_of(), partitions, now_ms)
            if one.job_id in jobs and len(one.slots) == records[one.job_id].nodes
        ]

    def _release(self, start: StartJob, record: RecordedJob, now_ms: Millis) -> None:
        mark = mark_of(record.comment, self._home)
        tries = 1 if mark is None else mark.tries + 1
        comment = ActMark(self._home, tries).comment(record.comment)
        self._emit([JobReleased(now_ms, start.job_id, BY), ActionOrdered(now_ms, start)])
        nodes = [str(slot.node) for slot in start.slots]
        try:
            self._orders.release(record.id, nodes, comment, record.comment)
        except OrderFailed as failure:
            reason = Reason("slurm-refused", {"said": Text(failure.said)})
            self._emit([ActionRefused(now_ms, start, reason)])
            self._note_refusal(start.job_id, failure)
        else:
            self.counts.released += 1
            self._ordered[start.job_id] = None

    def _note_refusal(self, job_id: JobId, failure: OrderFailed) -> None:
        self.counts.refused += 1
        self._refusals[job_id] = self._refusals.get(job_id, 0) + 1
        if failure.is_denied and not self.counts.released:
            raise Refused(
                "no-operator-rights",
                f"Slurm did not release job `{job_id}`: {failure.said}",
                "run it as an operator (`sacctmgr modify user NAME set adminlevel=Operator`) or "
                "as SlurmUser, name an account whose jobs are all yours, or use --recommend, which "
                "changes nothing",
            )


def is_held_by_user(record: RecordedJob) -> bool:
    """Return whether a pending job is held, and by its own user."""
    return record.state == "pending" and record.is_held and record.reason == OWN_HOLD


def mark_of(comment: str, home: str) -> ActMark | None:
    """Return the mark of an attachment in a comment, if it has one."""
    found = _MARK.match(comment)
    if found is None or found["home"] != home:
        return None
    if found["tries"] == "left":
        return ActMark(home, is_left=True)
    return ActMark(home, int(found["tries"]))


def comment_without_mark(comment: str) -> str:
    """Return what the user of a job wrote."""
    found = _MARK.match(comment)
    return comment if found is None else comment[found.end() :]


def why_not_placeable(record: RecordedJob, *, is_marked: bool) -> str:
    """Return what a job asks for that is not modelled, so that its nodes cannot be chosen."""
    if (record.required_nodes and not is_marked) or record.excluded_nodes:
        return "its user named nodes"
    if record.reservation:
        return "it asks for a reservation"
    if record.exclusive:
        return "it asks for whole nodes"
    if "+" in record.id:
        return "it is part of a heterogeneous job"
    names = record.features.split("&") if record.features else []
    if any(not name.replace("-", "").replace("_", "").isalnum() for name in names):
        return f"its constraint `{record.features}` is not a plain list"
    gpus = record.gpus_asked
    if record.nodes > 1 and gpus % record.nodes:
        return "its GPUs do not divide evenly among its nodes"
    return ""


def _as_asked(job: Job, record: RecordedJob) -> Job:
    """Return a job that starts on exactly as many nodes as it asks of Slurm."""
    shape = job.shape
    if shape.gpus_per_node is not None or shape.gpus < 1:
        return job
    whole = shape_of(
        shape.gpus,
        gpus_per_node=shape.gpus // max(1, record.nodes),
        accelerators=shape.accelerators,
        cpus=shape.cpus_milli / 1_000,
        memory_gib=shape.memory_mib / 1_024,
        where=shape.where,
    )
    return replace(job, shape=whole)
