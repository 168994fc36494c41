"""Changes that may let a waiting job start.

A change is data: it can be stored, sent and applied to a fork of the fleet.
"""

from collections.abc import Iterable
from typing import Literal

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from tenfold.fleet.fleet import NEVER_RAN, Fleet
from tenfold.fleet.relaxed_shape import with_where
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
    """Ask for something else; what is left out stays as it is."""

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
    """More of one resource for one team."""

    team: TeamId
    what: Literal["quota", "borrow", "lend"]
    resource: str
    by: int
    """Thousandths of a GPU, or micro-USD an hour."""


class RaiseLimits(Struct, frozen=True, tag="grant"):
    """Change what teams may hold."""

    raises: tuple[LimitRaise, ...]


class RentNodes(Struct, frozen=True, tag="rent-nodes"):
    """Add nodes like one that is there, next to each other."""

    like: NodeId
    nodes: int


class NewSlots(Struct, frozen=True):
    """A running job, and the slots it is to hold."""

    job_id: JobId
    slots: Slots


class ShrinkJobs(Struct, frozen=True, tag="shrink-jobs"):
    """Let elastic jobs go on with less."""

    jobs: tuple[NewSlots, ...]


class MoveJobs(Struct, frozen=True, tag="move-jobs"):
    """Stop jobs, and start them again elsewhere."""

    jobs: tuple[NewSlots, ...]


class StopJobs(Struct, frozen=True, tag="stop-jobs"):
    """Stop jobs that go back to the line."""

    jobs: tuple[JobId, ...]


Step = NoChange | RequestChange | RaiseLimits | RentNodes | ShrinkJobs | MoveJobs | StopJobs


class CombinedChange(Struct, frozen=True, tag="several"):
    """Changes that help only together."""

    steps: tuple[Step, ...]


Change = Step | CombinedChange


def apply_change(
    fleet: Fleet, govern: GovernanceRules, job_id: JobId, change: Change, now_ms: Millis
) -> tuple[Fleet, GovernanceRules]:
    """Return a fork of the fleet, and the rules, as they would be with a change."""
    fork = fleet.fork()
    for step in change.steps if isinstance(change, CombinedChange) else (change,):
        govern = _apply_step(fork, govern, job_id, step, now_ms)
    return fork, govern


def _apply_step(
    fork: Fleet, govern: GovernanceRules, job_id: JobId, change: Step, now_ms: Millis
) -> GovernanceRules:
    """Change a fork, and return the rules that then hold."""
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
    """Return a job as it would be with another request."""
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
    """Return a shape of fewer GPUs, with as much less of CPUs and memory."""
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
    """Return rules under which teams have more."""
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
