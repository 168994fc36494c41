"""Changes that may let a pending job start.

A change is data: it can be stored, sent and applied to a fork of the fleet.
"""

from collections.abc import Iterable
from typing import Literal

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from tenfold.fleet.fleet import NEVER_RAN, Fleet
from tenfold.fleet.obstacle import with_where
from tenfold.model.actions import ResizeJob, StartJob, StopJob
from tenfold.model.events import (
    ActionOrdered,
    JobResized,
    JobStarted,
    JobStopped,
    NodeJoined,
)
from tenfold.model.fleet.constraints import TopologyMode
from tenfold.model.ids import JobId, NodeId, TeamId
from tenfold.model.job.job import Job, Shape, Slot, StopCause
from tenfold.model.job.terms import Terms
from tenfold.model.policy.governance import Amounts, GovernanceRules, TeamRules
from tenfold.model.reason import Reason
from tenfold.model.units import Millis

REMEDY = Reason("advised")
Slots = tuple[Slot, ...]


class NoChange(Struct, frozen=True, tag="nothing"):
    """It starts without any change."""


class RequestChange(Struct, frozen=True, kw_only=True, tag="ask-for", omit_defaults=True):
    """Change the request; unset fields stay as they are."""

    gpus: int | UnsetType = UNSET
    accelerators: tuple[str, ...] | UnsetType = UNSET
    how: TopologyMode | UnsetType = UNSET
    needs: tuple[str, ...] | UnsetType = UNSET
    avoids: tuple[str, ...] | UnsetType = UNSET
    limit_ms: Millis | UnsetType = UNSET
    priority: int | UnsetType = UNSET
    after: tuple[JobId, ...] | UnsetType = UNSET
    off_peak: bool | UnsetType = UNSET
    array_most: int | UnsetType = UNSET


class LimitRaise(Struct, frozen=True):
    """Raise one limit of one team for one resource."""

    team: TeamId
    what: Literal["quota", "borrow", "lend"]
    resource: str
    by: int
    """Milli-GPUs, or micro-USD an hour."""


class RaiseLimits(Struct, frozen=True, tag="grant"):
    """Raise limits of teams."""

    raises: tuple[LimitRaise, ...]


class RentNodes(Struct, frozen=True, tag="rent-nodes"):
    """Add nodes like an existing one, in one rack."""

    like: NodeId
    nodes: int


class NewSlots(Struct, frozen=True):
    """A running job, and the slots it is to hold."""

    job_id: JobId
    slots: Slots


class ShrinkJobs(Struct, frozen=True, tag="shrink-jobs"):
    """Shrink elastic jobs."""

    jobs: tuple[NewSlots, ...]


class MoveJobs(Struct, frozen=True, tag="move-jobs"):
    """Stop jobs and restart them elsewhere."""

    jobs: tuple[NewSlots, ...]


class StopJobs(Struct, frozen=True, tag="stop-jobs"):
    """Stop jobs and requeue them."""

    jobs: tuple[JobId, ...]


Step = NoChange | RequestChange | RaiseLimits | RentNodes | ShrinkJobs | MoveJobs | StopJobs


class CombinedChange(Struct, frozen=True, tag="several"):
    """Changes that help only together."""

    steps: tuple[Step, ...]


Change = Step | CombinedChange


def apply_change(
    fleet: Fleet, govern: GovernanceRules, job_id: JobId, change: Change, now_ms: Millis
) -> tuple[Fleet, GovernanceRules]:
    """Return a fork of the fleet and the rules with a change applied."""
    fork = fleet.fork()
    for step in change.steps if isinstance(change, CombinedChange) else (change,):
        govern = _apply_step(fork, govern, job_id, step, now_ms)
    return fork, govern


def _apply_step(
    fork: Fleet, govern: GovernanceRules, job_id: JobId, change: Step, now_ms: Millis
) -> GovernanceRules:
    """Apply one step to a fork, and return the resulting rules."""
    match change:
        case NoChange():
            pass
        case RequestChange():
            fork.pending[job_id] = with_request(fork.pending[job_id], change)
            fork.reservations.pop(job_id, None)
            fork.version += 1
        case RaiseLimits():
            return with_raises(govern, change.raises)
        case RentNodes():
            _rent(fork, change, now_ms)
        case ShrinkJobs():
            for each in change.jobs:
                order = ResizeJob(each.job_id, each.slots, REMEDY)
                fork.apply(ActionOrdered(now_ms, order))
                fork.apply(JobResized(now_ms, each.job_id))
        case StopJobs():
            _stop(fork, change.jobs, "preempted", now_ms)
        case MoveJobs():
            _stop(fork, [each.job_id for each in change.jobs], "moved", now_ms)
            for each in change.jobs:
                fork.apply(ActionOrdered(now_ms, StartJob(each.job_id, each.slots)))
                fork.apply(JobStarted(now_ms, each.job_id))
    return govern


def with_request(job: Job, change: RequestChange) -> Job:
    """Return a job with a changed request."""
    shape = sized(job.shape, job.shape.gpus if change.gpus is UNSET else change.gpus)
    if change.accelerators is not UNSET:
        key = f"{shape.key} @@{'|'.join(change.accelerators)}"
        shape = replace(shape, key=key, accelerators=change.accelerators)
    where = shape.where
    if where is not None:
        where = replace(
            where,
            how=where.how if change.how is UNSET else change.how,
            needs=where.needs if change.needs is UNSET else change.needs,
            avoids=where.avoids if change.avoids is UNSET else change.avoids,
        )
        shape = with_where(shape, where)
    return replace(
        job,
        shape=shape,
        limit_ms=job.limit_ms if change.limit_ms is UNSET else change.limit_ms,
        priority=job.priority if change.priority is UNSET else change.priority,
        terms=None if job.terms is None else _terms(job.terms, change),
    )


def sized(shape: Shape, gpus: int) -> Shape:
    """Return a shape with fewer GPUs, and CPUs and memory scaled down with them."""
    if gpus == shape.gpus:
        return shape
    return replace(
        shape,
        key=f"{gpus} of {shape.key}",
        gpus=gpus,
        cpus_milli=-(-shape.cpus_milli * gpus // shape.gpus),
        memory_mib=-(-shape.memory_mib * gpus // shape.gpus),
    )


def with_raises(govern: GovernanceRules, raises: Iterable[LimitRaise]) -> GovernanceRules:
    """Return rules with raised limits."""
    teams = {team.id: team for team in govern.teams}
    for each in raises:
        teams[each.team] = _raise_limit(teams[each.team], each)
    return replace(govern, teams=tuple(teams.values()))


def _raise_limit(team: TeamRules, limit_raise: LimitRaise) -> TeamRules:
    def added(amounts: Amounts) -> Amounts:
        return {
            **amounts,
            limit_raise.resource: amounts.get(limit_raise.resource, 0) + limit_raise.by,
        }

    if limit_raise.what == "quota":
        hours = tuple((part, added(quota)) for part, quota in team.hours)
        return replace(team, quota=added(team.quota), hours=hours)
    if limit_raise.what == "borrow":
        return replace(team, borrow=added(team.borrow))
    return replace(team, lend=added(team.lend))


def _terms(terms: Terms, change: RequestChange) -> Terms:
    return replace(
        terms,
        after=terms.after if change.after is UNSET else change.after,
        off_peak=terms.off_peak if change.off_peak is UNSET else change.off_peak,
        array_most=terms.array_most if change.array_most is UNSET else change.array_most,
    )


def _rent(fork: Fleet, change: RentNodes, now_ms: Millis) -> None:
    like = fork.nodes[change.like]
    for number in range(change.nodes):
        name = NodeId(f"rented-{number + 1}")
        node = replace(
            like,
            id=name,
            rack="rented",
            leaf="rented",
            pod="rented",
            scaleup="rented",
            rack_watts=0,
            domains=(),
        )
        fork.apply(NodeJoined(now_ms, node))


def _stop(fork: Fleet, jobs: Iterable[JobId], cause: StopCause, now_ms: Millis) -> None:
    for job_id in jobs:
        saved_ms = fork.past.get(job_id, NEVER_RAN).progress_ms
        fork.apply(ActionOrdered(now_ms, StopJob(job_id, cause, REMEDY)))
        fork.apply(JobStopped(now_ms, job_id, cause, saved_ms))
