"""Why a job is pending: what it needs, what is free, and which jobs are ahead of it.

The decider says whether other jobs go first, or whether it can ever start; the fleet's own index
counts what is short, as it does for the policy `governed`.
"""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from tenfold.engine.loop import Decider
from tenfold.engine.queue_position import (
    AloneOutcome,
    decide_alone,
    jobs_ahead,
    next_start_ms,
)
from tenfold.fleet.fleet import Fleet, FleetView
from tenfold.fleet.obstacle import FreeCapacity, fits, free_capacity, obstacle_to
from tenfold.fleet.topology.topology import TopologyCapacity
from tenfold.fleet.view import job_ref
from tenfold.model.ids import JobId
from tenfold.model.job.job import Job
from tenfold.model.reason import JobRef, Reason, joined
from tenfold.model.units import Millis


class Obstacle(Struct, frozen=True, kw_only=True):
    """What blocks a pending job."""

    reason: Reason
    room: FreeCapacity | None = None
    """None if it can never start."""
    ahead: int | None = None
    """Jobs that would start before it if all nodes were free; None if unknown."""
    never: bool = False
    """Whether it can never start."""


def obstacle_of(fleet: Fleet, job: Job, now_ms: Millis, decider: Decider | None = None) -> Obstacle:
    """Return why a pending job does not run now; `decider` is a new one."""
    capacity = TopologyCapacity.of(fleet)
    types = capacity.accelerators_for(job.shape)
    if types and (dependency := dependency_reason(fleet, job)) is not None:
        return Obstacle(reason=dependency, room=free_capacity(capacity, job.shape, types))
    if_alone = None if decider is None else decide_alone(fleet, job, now_ms, decider)
    refused = () if if_alone is None else if_alone.refused
    if not types or refused or (if_alone is None and not capacity.could_hold(job.shape)):
        return Obstacle(reason=_never(job, refused), never=True)
    room = free_capacity(capacity, job.shape, types)
    reason = _others_first(room, if_alone)
    if not (if_alone is not None and if_alone.starts) and not fits(capacity, job.shape, types):
        reason = obstacle_to(capacity, job.shape, types, room)
    ahead = None if decider is None else jobs_ahead(fleet, job.id, now_ms, decider)
    if reason.code == "others-first" and (soon := _next_pass(fleet, job, now_ms, decider)):
        return Obstacle(reason=soon, room=room, ahead=ahead)
    if ahead:
        reason = replace(reason, fields={**reason.fields, "ahead": ahead})
    return Obstacle(reason=reason, room=room, ahead=ahead)


def dependency_reason(fleet: FleetView, job: Job) -> Reason | None:
    """Return the reason of a job that waits for unfinished dependencies; None if it has none."""
    after = (*job.terms.after, *job.terms.ended_first) if job.terms is not None else ()
    lives = (fleet.pending, fleet.orders, fleet.running, fleet.held)
    left = [name for name in after if any(name in jobs for jobs in lives)]
    if left:
        return Reason("after-others", {"job": job_ref(fleet, left[0]), "more": len(left) - 1})
    return _array_reason(fleet, job)


def _array_reason(fleet: FleetView, job: Job) -> Reason | None:
    """Return that its array's task limit (`%N`) is reached; None if it is in no such array."""
    terms = job.terms
    if terms is None or not terms.array_most or terms.array_most_always is not True:
        return None
    active = 0
    for held in (*fleet.orders.values(), *fleet.running.values()):
        active += held.job.terms is not None and held.job.terms.array == terms.array
    if active < terms.array_most:
        return None
    array = JobRef(JobId(terms.array), job.team)
    return Reason("array-full", {"array": array, "most": terms.array_most})


def _next_pass(fleet: Fleet, job: Job, now_ms: Millis, decider: Decider | None) -> Reason | None:
    """Return that a job for which there is room only waits for the decider to run, if so."""
    if decider is None:
        return Reason("next-pass") if fleet.pending.keys() <= {job.id} else None
    start_ms = next_start_ms(fleet, job.id, now_ms, decider)
    if start_ms is None:
        return None
    return Reason("next-pass", {"in_ms": start_ms - now_ms} if start_ms > now_ms else {})


def _never(job: Job, refused: Sequence[Reason]) -> Reason:
    """Return why a job can never start: the decider's reasons, if it gave any."""
    return joined(refused) if refused else Reason("never-fits")


def _others_first(room: FreeCapacity, if_alone: AloneOutcome | None) -> Reason:
    """Return that it fits: other jobs go first, or the policy would not start it at all."""
    fields = {
        "with_room": room.nodes_with_room,
        "alike": room.nodes_alike,
        "away": room.nodes_away,
    }
    return Reason("others-first" if if_alone is None or if_alone.starts else "held-back", fields)
