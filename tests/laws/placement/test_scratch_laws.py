"""Whatever is tried and rolled back leaves the scheduler's state as it was.

A world is run to some cycle, and its state as that cycle left it is changed tentatively: by
operations drawn at random, with checkpoints and rollbacks in between. At every rollback all of
free room, what nodes offer, what teams hold and what is reserved is compared with a copy made at
the checkpoint.
"""

from collections.abc import Callable, Sequence
from copy import deepcopy
from functools import cache
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenfold.decide.place.governed import GovernedPlacer
from tenfold.decide.place.scheduling_pass import SchedulingPass
from tenfold.decide.place.state.scheduler_state import SchedulerState
from tenfold.decide.place.state.scratch import QuotaScratch
from tenfold.engine.loop import Decider, run
from tenfold.fleet.fleet import Fleet
from tenfold.fleet.topology.domains import Tally
from tenfold.fleet.topology.node_index import TopologyNodeIndex
from tenfold.model.decision import Decision
from tenfold.model.ids import NodeId
from tenfold.model.policy.governance import GovernanceRules
from tenfold.model.units import Millis
from tests.rigs.soak import simulated
from tests.rigs.worlds import drawn_world

Step = tuple[int, int]
"""(Which operation, on what), each taken modulo how many there are."""
steps = st.lists(st.tuples(st.integers(0, 63), st.integers(0, 63)), min_size=1, max_size=40)
seeds = st.integers(0, 47)


class Moments:
    """A witness that keeps the fleet of every fifth cycle."""

    def __init__(self) -> None:
        self.kept: list[tuple[Fleet, Millis]] = []
        self._cycles = 0

    def cycle(self, fleet: Fleet, now_ms: Millis, decider: Decider, decision: Decision) -> None:
        self._cycles += 1
        if self._cycles % 5 == 0 and fleet.running:
            self.kept.append((fleet.fork(), now_ms))


@cache
def moments(seed: int) -> tuple[GovernanceRules, list[tuple[Fleet, Millis]]]:
    world = drawn_world(Random(seed), governed=True)
    govern, witness = world.govern or GovernanceRules(), Moments()
    run(simulated(world), Fleet(), [GovernedPlacer(govern)], witnesses=[witness])
    return govern, witness.kept


def state_of(seed: int, number: int) -> SchedulerState | None:
    """Return the state that a cycle of a world leaves; None where nothing ever ran."""
    govern, kept = moments(seed)
    if not kept:
        return None
    view, now_ms = kept[number % len(kept)]
    state = SchedulerState(govern, view, now_ms)
    this = SchedulingPass(state, view, now_ms)
    this.admit(sorted(view.pending.values(), key=lambda job: (job.submitted_ms, job.seq)))
    this.run()
    return state


def snapshot(state: SchedulerState) -> dict[str, Any]:
    """Return a deep copy of all that tentative work changes."""
    capacity = state.capacity
    found: dict[str, Any] = {
        "closed": capacity._closed,
        "hidden": capacity._hidden,
        "racks": [rack.left for rack in capacity._racks.values()],
        "reserved": {job_id: id(each) for job_id, each in state.reserved.items()},
        "teams": {
            (team.id, len(team.path)): (team.held, team.usage, team.taken)
            for leaf in state.tree.teams.values()
            for team in leaf.path
        },
    }
    for kind, node_index in capacity.node_indexes.items():
        assert isinstance(node_index, TopologyNodeIndex)
        for what in ("free", "is_open", "exact", "summary", "counts", "cpus", "memory", "given"):
            found[f"{what} of {kind}"] = getattr(node_index, what)
        found[f"shown of {kind}"] = node_index.shown
        for (level, gpus), tally in node_index.tallies.items():
            built = Tally(node_index.groups(level), node_index.each(gpus))
            for what in ("counts", "buckets", "filled"):
                assert getattr(tally, what) == getattr(built, what), (what, level, gpus)
    return deepcopy(found)


class Trier:
    """Tentative operations on one state, each checked when it is rolled back."""

    def __init__(self, state: SchedulerState) -> None:
        self._state = state
        self._scratch = state.scratch
        self._out: dict[str, int] = {}
        """Jobs whose room is released, with the change."""
        self._hidden: list[NodeId] = []
        self._marks: list[tuple[int, Any, dict[str, Any]]] = []
        self._checkpoint(0)
        self._nodes = list(state.capacity.place)
        shapes = [job_class.shape for job_class in state.queues] or [
            each.job.shape for each in state.allocations.held.values()
        ]
        self._shapes = list({shape.key: shape for shape in shapes}.values())
        self._operations: Sequence[Callable[[int], None]] = (
            self._evict,
            self._release,
            self._claim,
            self._allocate,
            self._hide,
            self._unhide,
            self._open,
            self._count,
            self._suspend,
            self._undo,
            self._checkpoint,
            self._rollback,
        )

    def take(self, taken: Sequence[Step]) -> None:
        for which, what in taken:
            self._operations[which % len(self._operations)](what)
        while len(self._marks) > 1:
            self._rollback(0)
        self._rollback(0)
        assert self._scratch.checkpoint() == 0

    def _held(self, what: int) -> Any:
        held = [
            each for job_id, each in self._state.allocations.held.items() if job_id not in self._out
        ]
        return held[what % len(held)] if held else None

    def _evict(self, what: int) -> None:
        if (each := self._held(what)) is not None:
            self._out[each.job.id] = self._scratch.evict(each)

    def _release(self, what: int) -> None:
        if (each := self._held(what)) is not None:
            self._out[each.job.id] = self._scratch.release(each.slots, each.job.shape)

    def _claim(self, what: int) -> None:
        if self._shapes:
            shape = self._shapes[what % len(self._shapes)]
            accelerators = self._state.capacity.accelerators_for(shape)
            self._scratch.claim_in(shape, accelerators[what % len(accelerators)])

    def _allocate(self, what: int) -> None:
        held = list(self._state.allocations.held.values())
        if held:
            each = held[what % len(held)]
            if self._state.capacity.has_free(each.slots, each.job.shape):
                self._scratch.allocate(each.slots, each.job.shape)

    def _hide(self, what: int) -> None:
        chosen = [self._nodes[what % len(self._nodes)], self._nodes[what * 7 % len(self._nodes)]]
        self._scratch.hide(chosen)
        self._hidden += chosen

    def _unhide(self, what: int) -> None:
        if self._hidden:
            self._scratch.unhide([self._hidden.pop(what % len(self._hidden))])

    def _open(self, what: int) -> None:
        self._scratch.open(self._nodes[: what % (len(self._nodes) + 1)])

    def _count(self, what: int) -> None:
        if (each := self._held(what)) is not None:
            self._scratch.count(each.team, each.amounts, 1 if what % 2 else -1)

    def _suspend(self, what: int) -> None:
        reserved = list(self._state.reserved.values())
        if reserved:
            self._state.suspend(reserved[what % len(reserved)])

    def _undo(self, what: int) -> None:
        """Undo a release out of order, where its room is still free; only since the last mark."""
        newest = self._marks[-1][0]
        held = self._state.allocations.held
        for job_id, change in list(self._out.items()):
            each = held[job_id]
            if change >= newest and self._state.capacity.has_free(each.slots, each.job.shape):
                self._scratch.undo(change)
                del self._out[job_id]
                return

    def _checkpoint(self, what: int) -> None:
        kept = (self._out.copy(), self._hidden.copy())
        self._marks.append((self._scratch.checkpoint(), kept, snapshot(self._state)))

    def _rollback(self, what: int) -> None:
        mark, (out, hidden), before = self._marks.pop()
        self._scratch.rollback(mark)
        self._out, self._hidden = out, hidden
        assert snapshot(self._state) == before
        if not self._marks:
            self._checkpoint(0)


def try_out(seed: int, number: int, taken: Sequence[Step]) -> None:
    state = state_of(seed, number)
    if state is not None:
        Trier(state).take(taken)


@settings(max_examples=150, deadline=None)
@given(seeds, st.integers(0, 30), steps)
def test_a_rollback_leaves_the_state_as_it_was(seed: int, number: int, taken: list[Step]):
    try_out(seed, number, taken)


FORGOTTEN = (
    (QuotaScratch, "evict"),
    (QuotaScratch, "release"),
    (QuotaScratch, "pipeline"),
    (QuotaScratch, "allocate"),
    (QuotaScratch, "hide"),
    (QuotaScratch, "unhide"),
    (QuotaScratch, "open"),
    (QuotaScratch, "count"),
    (SchedulerState, "suspend"),
)


@pytest.mark.parametrize(("owner", "kind"), FORGOTTEN, ids=str)
def test_a_rollback_that_forgets_one_kind_of_operation_is_found(
    owner: type, kind: str, monkeypatch: pytest.MonkeyPatch
):
    operation = getattr(owner, kind)

    def forgotten(self: Any, *given: Any) -> int:
        number = operation(self, *given)
        scratch = self.scratch if isinstance(self, SchedulerState) else self
        scratch._log[number] = (len, ((),))
        return number

    states = [state_of(seed, 2) for seed in range(24)]
    monkeypatch.setattr(owner, kind, forgotten)
    found = 0
    for seed, state in enumerate(states):
        random = Random(seed)
        drawn = [(random.randrange(9), random.randrange(64)) for _ in range(40)]
        if state is not None:
            try:
                Trier(state).take(drawn)
            except (AssertionError, IndexError, KeyError):
                found += 1
    assert found
