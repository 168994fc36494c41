"""Starts that wait for stops: placed on nodes and quota that running jobs still release.

Releasing capacity counts as free during one pass. A job placed on it keeps it until the stops
have happened, and nothing else is stopped for that job in the meantime.
"""

from collections.abc import Sequence

from tenfold.decide.place.queue.pending_queues import JobClass
from tenfold.decide.place.quota.allocations import Allocation
from tenfold.decide.place.quota.request import Amounts
from tenfold.decide.place.quota.team_tree import Team
from tenfold.decide.place.releasing_capacity import ReleasingCapacity
from tenfold.decide.place.state.scheduler_state import ReservedGang, SchedulerState
from tenfold.decide.place.state.scratch import QuotaScratch
from tenfold.fleet.capacity import Slots
from tenfold.fleet.topology.topology import FreeOnNode
from tenfold.model.job.job import Job

Pipelined = tuple[JobClass, Job, Slots, Amounts, ReservedGang | None]
"""A job to start once its slots are free, what it takes from quotas, and its reservation."""


class PipelinedStarts:
    """What is being released during one pass, and the starts that need it."""

    def __init__(self, state: SchedulerState) -> None:
        self._state = state
        self._released: list[Allocation] = []
        self._releases = QuotaScratch(state.capacity, state.tree)
        self._releasing = ReleasingCapacity(self._releases)
        self._starts: list[Pipelined] = []
        self._allocations = QuotaScratch(state.capacity, state.tree)

    def release(self, allocation: Allocation) -> None:
        """Count what a job being stopped holds as free until the end of the pass."""
        self._releasing.release(allocation)
        self._releases.count(allocation.team, allocation.amounts, -1)
        self._released.append(allocation)
        self._state.usage_dropped(allocation.team)

    def add(self, start: Pipelined) -> None:
        """Hold slots claimed for a job until they are actually free."""
        job_class, job, slots, amounts, _ = start
        self._allocations.pipeline(slots, job.shape)
        self._allocations.count(job_class.team, amounts, 1)
        self._starts.append(start)
        self._state.usage_grew(job_class.team)

    def settle(self) -> list[Pipelined]:
        """Stop counting releasing capacity as free; return the starts that wait for it."""
        state = self._state
        # Undo the starts first: they occupy the capacity that the releases gave.
        self._allocations.rollback()
        for job_class, *_ in self._starts:
            state.usage_dropped(job_class.team)
        self._releases.rollback()
        for allocation in self._released:
            state.usage_grew(allocation.team)
        return self._starts

    def is_needed_by(self, team: Team, slots: Slots, job: Job, amounts: Amounts) -> bool:
        """Return whether a start needs nodes or quota that are still being released."""
        capacity = self._state.capacity
        if job.shape.milli or (
            capacity.limits_power
            and any(capacity.share_power(slots, each.slots) for each in self._released)
        ):
            # Counts of free GPUs are not enough here: try with everything still running.
            if not self._fits_while_running(slots, job):
                self._releasing.needed_by(slots, job.shape)
                return True
        elif self._releasing.needed_by(slots, job.shape):
            return True
        return self._state.tree.is_beyond(team, amounts)

    def _fits_while_running(self, slots: Slots, job: Job) -> bool:
        """Return whether slots, just claimed, are free even before anything has stopped."""
        scratch = self._state.scratch
        with scratch.trial():
            scratch.release(slots, job.shape)
            for _, other, held, _, _ in self._starts:
                scratch.release(held, other.shape)
            for allocation in self._released:
                scratch.allocate(allocation.slots, allocation.job.shape)
            return scratch.capacity.has_free_hidden(slots, job.shape)


def requeue_for_rest(
    state: SchedulerState, before: Sequence[FreeOnNode], after: Sequence[FreeOnNode]
) -> None:
    """Requeue others for what the stops free beyond the job they were ordered for."""
    more = [
        now[0]
        for was, now in zip(before, after, strict=True)
        if any(mine > theirs for mine, theirs in zip(now, was, strict=True))
    ]
    if more:
        state.queues.capacity_freed(max(more))
        for job_class in state.blocked_preemptors:
            state.queues.requeue(job_class)
