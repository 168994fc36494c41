"""Find jobs to stop or move for a pending job, beyond what the rules allow the decider.

This uses the decider's own victim search with more candidates: every preemptible job, or every
job that could run elsewhere.
"""

from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from tenfold.decide.place.explain.settled import Settled
from tenfold.decide.place.preempt.reclaim import Level, OwnTeamVictims, Reclaim, priced
from tenfold.decide.place.preempt.victim_index import VictimIndex
from tenfold.decide.place.queue.pending_queues import JobClass, Option
from tenfold.decide.place.quota.allocations import PLAIN, Allocation, lost_ms
from tenfold.decide.place.quota.request import Amounts
from tenfold.decide.place.quota.team_tree import Team
from tenfold.decide.place.state.scheduler_state import SchedulerState
from tenfold.model.job.job import WHOLE, Job
from tenfold.model.units import Millis
from tenfold.study.why.changes import MoveJobs, NewSlots, StopJobs

MAX_MOVED_JOBS = 64
"""A plan that would move more jobs than this is dropped."""
MAX_GANG_NODES = 64
"""No search for larger gangs: too many jobs would have to stop."""


class UnrestrictedReclaim(Reclaim):
    """The victim search without the rules on who may preempt whom."""

    def __init__(self, settled: Settled) -> None:
        state = settled.state
        at_once = replace(settled.govern, delay_ms=Millis(0))
        super().__init__(
            at_once, state.tree, state.allocations, state.scratch, settled.view, settled.now_ms
        )

    def movable_jobs(self, job: Job, option: Option) -> list[Allocation] | None:
        """Return small jobs whose removal would free enough capacity, cheapest first."""
        found = [each for each in self._preemptible() if len(each.slots) == 1]
        victim_index = VictimIndex(self._scratch.capacity, priced(self, found))
        return victim_index.victims_for(job.shape, option.accelerator)

    def _candidates(self, own: OwnTeamVictims, levels: Iterable[Level]) -> Iterator[Allocation]:
        return self._preemptible()

    def _own(self, job: Job, team: Team, amounts: Amounts) -> OwnTeamVictims:
        return OwnTeamVictims([], (), ())

    def _preemptible(self) -> Iterator[Allocation]:
        for each in self._allocations.held.values():
            run = self._view.running.get(each.job.id)
            if run is None or run.becoming is not None or each.stopping:
                continue
            if (each.job.terms or PLAIN).preemptible:
                yield each


def lost_gpu_ms(settled: Settled, allocations: Iterable[Allocation]) -> int:
    """Return the GPU time lost by stopping jobs now: unsaved work and restarts."""
    cost_ms = settled.govern.restart_cost_ms
    return sum(
        each.gpus_milli * (lost_ms(each, settled.now_ms) + cost_ms) // WHOLE for each in allocations
    )


def find_stops(settled: Settled, job: Job, job_class: JobClass) -> StopJobs | None:
    """Return the cheapest jobs whose stops would free enough capacity and quota."""
    search = UnrestrictedReclaim(settled)
    for option in _small(settled, job_class):
        found = search.victims(job, job_class.team, option)
        if found:
            return StopJobs(tuple(each.job.id for each in found))
    return None


def find_moves(settled: Settled, job: Job, job_class: JobClass) -> MoveJobs | None:
    """Return small jobs that could move elsewhere and would free enough capacity."""
    search, state = UnrestrictedReclaim(settled), settled.state
    for option in _small(settled, job_class):
        if state.tree.obstacle(job_class.team, option.amounts) is not None:
            continue
        found = search.movable_jobs(job, option)
        if found and len(found) <= MAX_MOVED_JOBS:
            moves = _relocated(state, job, option, found)
            if moves:
                return MoveJobs(moves)
    return None


def _small(settled: Settled, job_class: JobClass) -> Iterator[Option]:
    """Yield the types of which a class needs few enough nodes for a victim search."""
    capacity = settled.state.capacity
    for option in job_class.options:
        splits = capacity.splits_in(job_class.shape, option.accelerator)
        if splits and all(split.members <= MAX_GANG_NODES for split in splits):
            yield option


def _relocated(
    state: SchedulerState, job: Job, option: Option, moved: Sequence[Allocation]
) -> tuple[NewSlots, ...] | None:
    """Return new placements for moved jobs after the pending job takes theirs; None if too few."""
    scratch = state.scratch
    placements: list[NewSlots] = []
    with scratch.trial():
        for each in moved:
            scratch.release(each.slots, each.job.shape)
        if scratch.claim_in(job.shape, option.accelerator) is None:
            return None
        for each in sorted(moved, key=_largest_first):
            # Another type could cost its team more than it holds now and exceed a quota.
            placement = scratch.claim_in(each.job.shape, type_of(state, each))
            if placement is None:
                return None
            placements.append(NewSlots(each.job.id, placement))
    held = state.allocations.held
    return tuple(
        placement for placement in placements if placement.slots != held[placement.job_id].slots
    )


def type_of(state: SchedulerState, allocation: Allocation) -> str:
    """Return the accelerator type that a job holds."""
    node_index, _ = state.capacity.place[allocation.slots[0].node]
    return next(kind[1] for kind, each in state.capacity.node_indexes.items() if each is node_index)


def _largest_first(allocation: Allocation) -> tuple[int, int]:
    return -allocation.gpus_milli, allocation.job.seq
