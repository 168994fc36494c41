"""Bugs to plant in the governed decider on purpose, each as a patch: do its laws find them?"""

from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from planted_bugs import FRESH, INDEX, Planted
from tenfold.decide.place import scheduling_pass
from tenfold.decide.place.governed import GovernedPlacer
from tenfold.decide.place.preempt import reclaim
from tenfold.decide.place.preempt.reclaim import Reclaim
from tenfold.decide.place.queue import admission
from tenfold.decide.place.queue.admission import Admission
from tenfold.decide.place.quota.allocations import Allocation, Allocations
from tenfold.decide.place.quota.team_tree import Tree
from tenfold.decide.place.reserve import reservation_pass as reservations
from tenfold.decide.place.scheduling_pass import SchedulingPass
from tenfold.decide.place.state.scratch import QuotaScratch
from tenfold.fleet.capacity import Capacity
from tenfold.fleet.topology import topology
from tenfold.fleet.topology.node_index import TopologyNodeIndex
from tenfold.model.actions import ResizeJob
from tenfold.model.job.job import Slot
from tenfold.model.reason import Reason


def _with_teams(patch: pytest.MonkeyPatch, **terms: Any) -> None:
    """Let the tree believe that all teams have other terms."""
    make = Tree.__init__

    def wrong(self: Any, govern: Any, *others: Any) -> None:
        teams = tuple(replace(team, **terms) for team in govern.teams)
        make(self, replace(govern, teams=teams), *others)

    patch.setattr(Tree, "__init__", wrong)


def lending_is_ignored(patch: pytest.MonkeyPatch) -> None:
    _with_teams(patch, lend={})


def borrowing_is_not_limited(patch: pytest.MonkeyPatch) -> None:
    _with_teams(patch, borrow={})


def anybody_may_be_stopped(patch: pytest.MonkeyPatch) -> None:
    is_free = Reclaim._is_preemptible

    def wrong(self: Any, allocation: Allocation) -> bool:
        terms = allocation.job.terms
        if terms is None or terms.preemptible:
            return is_free(self, allocation)
        ready = self._now_ms >= self._allocations.preemptible_from_ms(allocation)
        return ready and not allocation.stopping and allocation.job.id in self._view.running

    patch.setattr(Reclaim, "_is_preemptible", wrong)


def one_too_many_is_stopped(patch: pytest.MonkeyPatch) -> None:
    minimal = reclaim.Trial.minimal

    def wrong(self: Any, victim_index: Any) -> Any:
        found = minimal(self, victim_index)
        more = [each for _, each in victim_index.priced if found and each not in found]
        return found and [*found, *(each for each in more[:1] if not each.stopping)]

    patch.setattr(reclaim.Trial, "minimal", wrong)


def holes_are_open_to_all(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(reservations, "ends_in_time", lambda *_: True)


def broken_gangs_queue(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(scheduling_pass, "is_repair", lambda *_: False)


def quota_is_not_given_back(patch: pytest.MonkeyPatch) -> None:
    remove = Allocations.remove

    def wrong(self: Any, job_id: Any) -> Allocation:
        allocation = remove(self, job_id)
        self._tree.add(allocation.team, allocation.amounts, 1)
        return allocation

    patch.setattr(Allocations, "remove", wrong)


def gangs_stand_anywhere(patch: pytest.MonkeyPatch) -> None:
    strategies = topology.strategies
    patch.setattr(topology, "strategies", lambda _: strategies(None))


def runs_are_shrunk_too_far(patch: pytest.MonkeyPatch) -> None:
    decide = GovernedPlacer.decide

    def wrong(self: Any, view: Any, now_ms: Any, news: Any) -> Any:
        decision = decide(self, view, now_ms, news)
        acted = [one.job_id for one in decision.actions]
        for job_id, run in view.running.items():
            least = run.job.terms.least_gpus if run.job.terms else 0
            if least > 1 and not run.stopping and run.becoming is None and job_id not in acted:
                fewer = (Slot(run.slots[0].node, 1),)
                shrunk = ResizeJob(job_id, fewer, Reason("shrunk", sentence="others want its room"))
                return replace(decision, actions=[*decision.actions, shrunk])
        return decision

    patch.setattr(GovernedPlacer, "decide", wrong)


def it_is_always_off_peak(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(admission, "is_off_peak", lambda *_: True)


def runs_are_preemptible_at_once(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Allocations, "preemptible_from_ms", lambda _, allocation: allocation.started_ms)


def racks_feed_anything(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(TopologyNodeIndex, "show_fed", lambda *_: None)


def everything_is_borrowed(patch: pytest.MonkeyPatch) -> None:
    def wrong(self: Any, team: Any) -> Iterator[Allocation]:
        yield from sorted(self.of(team), key=lambda one: (one.started_ms, one.job.seq))

    patch.setattr(Allocations, "borrowed", wrong)


def arrays_have_no_most(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Admission, "_may_enter", lambda *_: True)


def nothing_is_preempted(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SchedulingPass, "_preempt", lambda *_: None)


def a_rollback_forgets_evictions(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(QuotaScratch, "_reinstate", lambda *_: None)


def cpus_given_back_are_rounded_up(patch: pytest.MonkeyPatch) -> None:
    """Jobs ask for whole CPUs: thousandths too many let nobody in for a long time."""
    hold = Capacity._hold

    def wrong(self: Any, slots: Any, shape: Any, sign: int) -> None:
        hold(self, slots, shape, sign)
        for slot in slots if sign > 0 else ():
            node_index, number = self.place[slot.node]
            node_index.cpus[number] += int(node_index.counts_cpus)

    patch.setattr(Capacity, "_hold", wrong)


INDEX_BUGS = (
    Planted("CPUs rounded up", "governed", cpus_given_back_are_rounded_up, INDEX),
    *(
        Planted(f"CPUs rounded up, {name}", name, cpus_given_back_are_rounded_up, INDEX)
        for name in ("fifo", "slurm", "srtf", "tenfold")
    ),
)
"""Bugs that spoil what is kept and no decision, or none for long."""

TWICE = "deciding-twice-is-the-same"
VAIN, QUOTA, OWED = "nobody-is-stopped-in-vain", "quotas-are-kept", "who-is-owed-room-gets-it"

RARE = {"lending is ignored": 37, "holes open to all": 17, "gangs stand anywhere": 74}
"""By bug, the first world that finds it, where dozens before it do not."""
GOVERNED_BUGS = tuple(
    Planted(bug, "governed", patch, law, world=RARE.get(bug, 0))
    for bug, patch, law in (
        ("lending is ignored", lending_is_ignored, QUOTA),
        ("borrowing not limited", borrowing_is_not_limited, QUOTA),
        ("anybody may be stopped", anybody_may_be_stopped, "who-may-not-be-stopped-is-not"),
        ("one too many stopped", one_too_many_is_stopped, VAIN),
        ("holes open to all", holes_are_open_to_all, "who-fills-a-hole-is-gone-in-time"),
        ("broken gangs queue", broken_gangs_queue, "broken-gangs-go-first"),
        ("quota not given back", quota_is_not_given_back, FRESH),
        ("gangs stand anywhere", gangs_stand_anywhere, "gangs-stand-where-they-may"),
        ("shrunk too far", runs_are_shrunk_too_far, "a-resize-keeps-its-bounds"),
        ("always off-peak", it_is_always_off_peak, "off-peak-jobs-wait-for-it"),
        ("preemptible at once", runs_are_preemptible_at_once, "runs-have-their-least-time"),
        ("racks feed anything", racks_feed_anything, INDEX),
        ("everything is borrowed", everything_is_borrowed, "only-who-owes-room-is-stopped"),
        ("arrays have no most", arrays_have_no_most, "arrays-keep-to-their-most"),
        ("nothing is preempted", nothing_is_preempted, FRESH),
        ("rollback forgets evictions", a_rollback_forgets_evictions, INDEX),
    )
)

SECOND_LOOKS = (
    Planted("nothing is preempted, by law", "governed", nothing_is_preempted, OWED, (FRESH, TWICE)),
)
"""Bugs that two laws find: the one that is slower is asked alone."""
