"""Bugs to plant in the core on purpose, each as a patch: do the laws find them?"""

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from msgspec.structs import replace

from tenfold.decide.place import misfit
from tenfold.decide.place.ranked.orders import BaseOrder
from tenfold.decide.place.ranked.queue import RankedQueue
from tenfold.decide.place.ranked.ranking import RankedAllocation
from tenfold.decide.place.ranked.repack import RepackPlacer
from tenfold.decide.place.slurm import select as slurm_select
from tenfold.fleet.capacity import Capacity, FreeNodeIndex
from tenfold.fleet.fleet import Fleet
from tenfold.model.events import JobStopped
from tenfold.model.policy.policy import PolicyName
from tenfold.sim.world import SimWorld

Patch = Callable[[pytest.MonkeyPatch], None]


class Planted(NamedTuple):
    bug: str
    policy: PolicyName
    patch: Patch
    law: str
    """What finds it first; a crash is named by its exception."""
    beside: tuple[str, ...] = ()
    """Laws that would find it sooner, and are overlooked to see that this one does."""
    world: int = 0
    """Run first, then all others: a world that is known to find it where few do."""


def give_forgets_a_node(patch: pytest.MonkeyPatch) -> None:
    give = Capacity.give
    patch.setattr(Capacity, "give", lambda self, slots, shape: give(self, slots[:1], shape))


def claim_ignores_cpus(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(slurm_select, "per_member", lambda *_: (0, 0))


def cpus_are_not_taken(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Capacity, "_hold", lambda *_: None)


def parked_shapes_are_never_woken(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(RankedQueue, "capacity_freed", lambda *_: None)


def an_old_end_counts_for_a_new_run(patch: pytest.MonkeyPatch) -> None:
    begin = SimWorld._begin
    numbers: dict[str, int] = {}

    def wrong(self: Any, action: Any, now: int) -> None:
        begin(self, action, now)
        run = self._runs[action.job_id]
        number = numbers.setdefault(action.job_id, run.number)
        self._runs[action.job_id] = replace(run, number=number)

    patch.setattr(SimWorld, "_begin", wrong)


def stops_are_ordered_twice(patch: pytest.MonkeyPatch) -> None:
    never = property(lambda _: False, lambda *_: None)
    patch.setattr(RankedAllocation, "stopping", never)


def terms_forbid_no_stop(patch: pytest.MonkeyPatch) -> None:
    begin = RankedAllocation.__init__

    def wrong(self: Any, *held: Any) -> None:
        begin(self, *held)
        self.preemptible = True

    patch.setattr(RankedAllocation, "__init__", wrong)


def terms_forbid_no_move(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(RepackPlacer, "_is_fixed", lambda self, view, each: each.job.id in view.orders)


def lost_nodes_stay_open(patch: pytest.MonkeyPatch) -> None:
    add = FreeNodeIndex.add

    def wrong(self: Any, node: Any, **amounts: Any) -> int:
        return add(self, node, **{**amounts, "is_open": True})

    patch.setattr(FreeNodeIndex, "add", wrong)


def a_gang_loses_a_member(patch: pytest.MonkeyPatch) -> None:
    claim = Capacity._claim_many

    def wrong(self: Any, split: Any, shape: Any) -> Any:
        slots = claim(self, split, shape)
        return slots and slots[:-1]

    patch.setattr(Capacity, "_claim_many", wrong)


def a_stop_loses_the_work(patch: pytest.MonkeyPatch) -> None:
    halt = SimWorld._interrupt

    def wrong(self: Any, run: Any, now: Any, cause: Any, *, saved: bool) -> JobStopped:
        stopped = halt(self, run, now, cause, saved=saved)
        self._progress[run.job.id] = (0.0, self._progress[run.job.id][1])
        return replace(stopped, progress_ms=0)

    patch.setattr(SimWorld, "_interrupt", wrong)


def the_version_skips_a_fact(patch: pytest.MonkeyPatch) -> None:
    apply_all = Fleet.apply_all

    def wrong(self: Any, events: Any) -> None:
        apply_all(self, events)
        self.version -= len(events) > 3

    patch.setattr(Fleet, "apply_all", wrong)


def a_failed_start_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    stopped = Fleet._job_stopped

    def wrong(self: Any, event: Any) -> None:
        stopped(self, event)
        if event.cause == "start-failed":
            del self.pending[event.job_id], self.past[event.job_id]

    patch.setattr(Fleet, "_job_stopped", wrong)


def ties_go_to_the_last(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(BaseOrder, "key", lambda self, job, past: -job.seq)


def what_does_not_fit_now_is_refused(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Capacity, "could_hold", lambda *_: False)
    patch.setattr(misfit, "_fits_without", lambda *_: False)


def a_fork_shares_the_queue(patch: pytest.MonkeyPatch) -> None:
    fork = Fleet.fork

    def wrong(self: Any) -> Any:
        copy = fork(self)
        copy.pending = self.pending
        return copy

    patch.setattr(Fleet, "fork", wrong)


def the_world_wakes_nobody(patch: pytest.MonkeyPatch) -> None:
    wait = SimWorld.wait
    patch.setattr(SimWorld, "wait", lambda self, until_ms: wait(self, None))


FRESH = "fresh-decides-as-warm"
INDEX, ONCE = "kept-index-is-the-built-one", "an-order-is-not-repeated"
LOST = "no-job-is-lost"
ASSERTED, MISSING = "AssertionError", "KeyError"
STAYS = "who-may-not-be-stopped-is-not"

BUGS = (
    Planted("give forgets a node", "edf", give_forgets_a_node, INDEX),
    Planted("claim ignores CPUs", "slurm", claim_ignores_cpus, ASSERTED),
    Planted("CPUs are not taken", "fair", cpus_are_not_taken, INDEX),
    Planted("parked never woken", "edf", parked_shapes_are_never_woken, FRESH),
    Planted("old end counts", "las", an_old_end_counts_for_a_new_run, LOST),
    Planted("stops ordered twice", "srtf", stops_are_ordered_twice, ONCE),
    Planted("terms forbid no stop", "las", terms_forbid_no_stop, STAYS),
    Planted("terms forbid no move", "srsf", terms_forbid_no_move, STAYS),
    Planted("lost nodes stay open", "sjf", lost_nodes_stay_open, "no-start-on-a-lost-node"),
    Planted("gang loses a member", "fair", a_gang_loses_a_member, "gangs-are-whole"),
    Planted("stop loses the work", "las", a_stop_loses_the_work, "saved-work-is-kept"),
    Planted("version skips a fact", "fifo", the_version_skips_a_fact, "the-version-counts-facts"),
    Planted("failed start forgotten", "edf", a_failed_start_is_forgotten, LOST),
    Planted("ties go to the last", "fair", ties_go_to_the_last, "alike-jobs-keep-their-order"),
    Planted("refused too soon", "fifo", what_does_not_fit_now_is_refused, "a-refusal-is-true"),
    Planted("fork shares the queue", "edf", a_fork_shares_the_queue, MISSING),
    Planted("nobody is woken", "slurm", the_world_wakes_nobody, LOST),
)
