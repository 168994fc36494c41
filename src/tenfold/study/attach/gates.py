"""What keeps a job of Slurm out of its queue, computed from requests, settings and what runs.

Slurm's own reason is never read here. The checks come in the order of Slurm's: a hold, a
dependency, a begin time, a reservation, the partition, the nodes it names, and limits.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from tenfold.files.slurm.settings import (
    Booking,
    Limit,
    PartitionState,
    SlurmSettings,
    amounts_of,
)
from tenfold.model.ids import JobId, NodeId, TeamId
from tenfold.model.job.recorded import RecordedJob, RecordedNode
from tenfold.model.reason import JobRef, NodeRef, Reason, Text, UserRef, Value

RESOURCES: Mapping[str, str] = {"gres/gpu": "GPUs", "cpu": "CPUs", "node": "nodes"}
Usage = dict[str, int]


class Gates:
    """The checks at one moment."""

    def __init__(
        self,
        queue: Sequence[RecordedJob],
        nodes: Mapping[str, RecordedNode],
        settings: SlurmSettings,
        now_s: float,
    ) -> None:
        self._now_s = now_s
        self._nodes = nodes
        self._partitions = {one.name: one for one in settings.partitions}
        self._bookings = {one.name: one for one in settings.bookings}
        self._limits = settings.limits
        self._arrays: dict[str, int] = {}
        self._used: dict[tuple[str, str, str], Usage] = {}
        for job in queue:
            if job.started_s is not None and job.ended_s is None:
                self._count(job)

    def of(self, job: RecordedJob) -> Reason | None:
        """Return what keeps a pending job out of the queue; None if nothing does."""
        if job.is_held:
            return Reason("held-in-slurm")
        return (
            self._dependency(job)
            or self._begin(job)
            or self._reservation(job)
            or self._partition(job)
            or self._named_nodes(job)
            or self._array(job)
            or self._limit(job)
        )

    def _dependency(self, job: RecordedJob) -> Reason | None:
        if not job.dependency:
            return None
        code = "dependency-never-met" if "(failed)" in job.dependency else "dependency-open"
        return Reason(code, {"after": Text(job.dependency.replace("(unfulfilled)", "")[:200])})

    def _begin(self, job: RecordedJob) -> Reason | None:
        if job.eligible_s is None or job.eligible_s <= self._now_s:
            return None
        return Reason("begin-time", {"at": moment_text(job.eligible_s)})

    def _reservation(self, job: RecordedJob) -> Reason | None:
        booking = self._bookings.get(job.reservation)
        if booking is None or booking.start_s <= self._now_s < booking.end_s:
            return None
        fields: dict[str, Value] = {"name": booking.name, "at": moment_text(booking.start_s)}
        return Reason("reservation-not-active", fields)

    def _partition(self, job: RecordedJob) -> Reason | None:
        names = job.partitions or (job.partition,)
        found = [self._partitions[name] for name in names if name in self._partitions]
        if not found:
            return None
        reasons = [self._partition_reason(one, job) for one in found]
        return None if None in reasons else reasons[0]

    def _partition_reason(self, one: PartitionState, job: RecordedJob) -> Reason | None:
        if not one.starts_jobs:
            return Reason("partition-down", {"partition": one.name, "state": one.state.lower()})
        if one.time_max_s is not None and job.limit_s is not None and job.limit_s > one.time_max_s:
            return Reason("beyond-partition", {"partition": one.name, "what": "time"})
        if one.nodes_max is not None and job.nodes > one.nodes_max:
            return Reason("beyond-partition", {"partition": one.name, "what": "nodes"})
        return self._maintenance(one, job)

    def _maintenance(self, one: PartitionState, job: RecordedJob) -> Reason | None:
        """Return a reservation that leaves too few nodes for a job until its limit."""
        until_s = self._now_s + (job.limit_s or one.time_max_s or 365 * 86_400.0)
        blocking = [
            booking
            for booking in self._bookings.values()
            if booking.name != job.reservation
            and booking.start_s < until_s
            and booking.end_s > self._now_s
        ]
        if not blocking:
            return None
        taken = {node for booking in blocking for node in booking.nodes}
        free = sum(
            name not in taken and not known.why_unusable
            for name in one.nodes or self._nodes
            if (known := self._nodes.get(name)) is not None
        )
        if free >= job.nodes and not taken.intersection(job.required_nodes):
            return None
        first = min(blocking, key=lambda booking: booking.start_s)
        fields: dict[str, Value] = {"name": first.name, "at": moment_text(first.start_s)}
        return Reason("reserved-before-its-end", fields)

    def _named_nodes(self, job: RecordedJob) -> Reason | None:
        for name in job.required_nodes:
            known = self._nodes.get(name)
            if known is not None and known.why_unusable:
                fields: dict[str, Value] = {
                    "node": NodeRef(NodeId(name)),
                    "why": Text(known.why_unusable[:200]),
                }
                return Reason("required-node-unavailable", fields)
        return None

    def _array(self, job: RecordedJob) -> Reason | None:
        array = array_of(job.id)
        if not job.at_once_max or self._arrays.get(array, 0) < job.at_once_max:
            return None
        return Reason(
            "array-full",
            {"array": JobRef(JobId(array), TeamId(job.account)), "most": job.at_once_max},
        )

    def _limit(self, job: RecordedJob) -> Reason | None:
        requested = amounts_of(job.gpus_asked or job.gpus, job.cpus, job.nodes)
        for limit in self._limits:
            if not self._applies(limit, job):
                continue
            reason = self._beyond(limit, job, requested)
            if reason is not None:
                return reason
        return None

    def _applies(self, limit: Limit, job: RecordedJob) -> bool:
        if limit.kind in ("qos", "qos-user"):
            partition = self._partitions.get(job.partition)
            return limit.name in (job.qos, partition.qos if partition else "")
        if limit.kind == "user":
            return (limit.name, limit.user) == (job.account, job.user)
        return limit.name == job.account

    def _beyond(self, limit: Limit, job: RecordedJob, requested: Usage) -> Reason | None:
        for kind, most in limit.per_job.items():
            if requested.get(kind, 0) > most:
                return _limit_reason(limit, job, RESOURCES[kind], requested[kind], most, "job")
        used = self._used.get(_key(limit, job), {})
        if limit.jobs is not None and used.get("jobs", 0) >= limit.jobs:
            return _limit_reason(limit, job, "jobs", used["jobs"], limit.jobs, "all")
        for kind, most in limit.amounts.items():
            held = used.get(kind, 0)
            if requested.get(kind, 0) and held + requested[kind] > most:
                return _limit_reason(limit, job, RESOURCES[kind], held, most, "all")
        return None

    def _count(self, job: RecordedJob) -> None:
        array = array_of(job.id)
        self._arrays[array] = self._arrays.get(array, 0) + 1
        held = amounts_of(job.gpus, job.cpus, job.nodes)
        partition = self._partitions.get(job.partition)
        keys = [("account", job.account, ""), ("user", job.account, job.user)]
        for qos in dict.fromkeys((job.qos, partition.qos if partition else "")):
            if qos:
                keys += [("qos", qos, ""), ("qos-user", qos, job.user)]
        for key in keys:
            used = self._used.setdefault(key, {})
            used["jobs"] = used.get("jobs", 0) + 1
            for kind, amount in held.items():
                used[kind] = used.get(kind, 0) + amount


def closed_by(bookings: Sequence[Booking], now_s: float) -> dict[str, str]:
    """Return the reservation that holds each node now."""
    return {
        node: booking.name
        for booking in bookings
        if booking.start_s <= now_s < booking.end_s
        for node in booking.nodes
    }


def array_of(job_id: str) -> str:
    """Return the array of a member, or the job itself."""
    return job_id.partition("_")[0]


def moment_text(seconds: float) -> str:
    """Return a moment as a reason says it."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _key(limit: Limit, job: RecordedJob) -> tuple[str, str, str]:
    if limit.kind == "qos-user":
        return limit.kind, limit.name, job.user
    return limit.kind, limit.name, limit.user


def _limit_reason(
    limit: Limit, job: RecordedJob, what: str, used: int, most: int, scope: str
) -> Reason:
    kind = limit.kind.removesuffix("-user") if limit.kind == "qos-user" else limit.kind
    fields: dict[str, Value] = {
        "kind": "QOS" if kind == "qos" else kind,
        "name": Text(limit.name),
        "what": what,
        "used": used,
        "most": most,
    }
    if scope == "job":
        fields["scope"] = "job"
    if limit.kind in ("qos-user", "user"):
        fields["user"] = UserRef(job.user, TeamId(job.account))
    return Reason("slurm-limit", fields)
