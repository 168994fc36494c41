"""What holds for every placement, on every fleet and for every set of jobs."""

from collections.abc import Sequence
from functools import partial
from itertools import product

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from placement_builders import fleet, jobs, node
from tenfold.decide.place.ranked.fifo import StrictOrderPlacer
from tenfold.decide.place.ranked.orders import EarliestDeadline
from tenfold.decide.place.ranked.ranked import RankedPlacer
from tenfold.decide.place.score.node_arrays import NodeArrays, NodeRequest, node_request
from tenfold.decide.place.score.scored import ScoredCapacity, make_capacity
from tenfold.decide.place.score.usable import UsableCapacity
from tenfold.engine.loop import Decider, run
from tenfold.fleet.check import check
from tenfold.fleet.fleet import Fleet, FleetView
from tenfold.model.actions import StartJob
from tenfold.model.decision import Decision
from tenfold.model.events import (
    ActionOrdered,
    Event,
    JobEnded,
    JobStarted,
    JobSubmitted,
    NodeCordoned,
    NodeJoined,
    NodeReturned,
)
from tenfold.model.fleet.node import Node
from tenfold.model.ids import JobId
from tenfold.model.job.job import WHOLE, Job, Shape, shape_of
from tenfold.model.policy.policy import PLACEMENTS, Placement
from tenfold.model.units import Millis
from tenfold.sim.world import SimWorld
from tenfold.study.sim.fill import fill

NOW = Millis(0)
TYPES = ((), ("A",), ("B",), ("A", "B"))
placements = st.sampled_from(PLACEMENTS)
shapes = st.one_of(
    st.builds(
        shape_of,
        st.sampled_from([0, 0.1, 0.3, 0.5, 0.75, 1, 2, 4]),
        accelerators=st.sampled_from(TYPES),
        cpus=st.sampled_from([0, 1, 4, 10]),
        memory_gib=st.sampled_from([0, 8, 40]),
    ),
    st.builds(shape_of, st.integers(1, 12)),
)
nodes = st.lists(
    st.tuples(st.sampled_from([0, 2, 4, 8]), st.sampled_from([0, 16, 32]), st.sampled_from("AB")),
    min_size=1,
    max_size=6,
).map(
    lambda rows: [
        node(f"n{number}", gpus, cpus=cpus, memory_gib=cpus * 4, accelerator=kind)
        for number, (gpus, cpus, kind) in enumerate(rows)
    ]
)


class Mirror:
    """A fleet, and a capacity that is only told what changed in it."""

    def __init__(self, made: Fleet, placement: Placement) -> None:
        self.fleet, self.placement = made, placement
        self.warm = make_capacity(made, placement)

    def start(self, job: Job) -> None:
        self.warm.refresh(self.fleet)
        fresh = make_capacity(self.fleet, self.placement)
        slots = self.warm.claim(job.shape)
        assert fresh.claim(job.shape) == slots, "a rebuilt capacity chooses as a warm one"
        if slots is not None:
            self.fleet.apply(JobSubmitted(NOW, job))
            self.fleet.apply(ActionOrdered(NOW, StartJob(job.id, slots)))
            self.fleet.apply(JobStarted(NOW, job.id))
            check(self.fleet)

    def end(self, place: int) -> None:
        if self.fleet.running:
            job_id = list(self.fleet.running)[place % len(self.fleet.running)]
            held = self.fleet.running[job_id]
            self.warm.give(held.slots, held.job.shape)
            self.fleet.apply(JobEnded(NOW, job_id))
            check(self.fleet)

    def turn(self, place: int) -> None:
        node_id = list(self.fleet.nodes)[place % len(self.fleet.nodes)]
        closes = self.fleet.states[node_id] == "up"
        self.fleet.apply((NodeCordoned if closes else NodeReturned)(NOW, node_id))
        self.warm.set_open(node_id, not closes)


@given(
    nodes,
    placements,
    st.lists(st.one_of(shapes, shapes, st.integers(0, 9), st.integers(-6, -1)), max_size=40),
)
@settings(deadline=None, max_examples=150)
def test_what_is_kept_equals_what_is_rebuilt_and_nothing_is_over_allocated(
    given_nodes: list[Node], placement: Placement, steps: list[Shape | int]
):
    """A shape starts a job, a number ends one, a negative number turns a node off or on."""
    mirror = Mirror(fleet(*given_nodes), placement)
    for seq, step in enumerate(steps):
        if isinstance(step, Shape):
            mirror.start(Job(id=JobId(f"job-{seq}"), shape=step, submitted_ms=NOW, seq=seq))
        elif step >= 0:
            mirror.end(step)
        else:
            mirror.turn(-step)


@given(nodes, placements, st.lists(shapes, max_size=30))
@settings(deadline=None, max_examples=60)
def test_equal_jobs_fill_equal_nodes_equally(
    given_nodes: list[Node], placement: Placement, arrivals: list[Shape]
):
    result = fill(given_nodes, jobs(arrivals), placement)
    assert fill(given_nodes, jobs(arrivals), placement) == result
    assert result.placed + result.dropped == len(arrivals)
    assert 0 <= result.gpu_allocated_end <= 1


@given(nodes, st.lists(shapes, max_size=12), st.lists(shapes, min_size=1, max_size=6))
@settings(deadline=None, max_examples=80)
def test_spoilt_worth_is_what_the_usual_asks_could_use_no_more(
    given_nodes: list[Node], held: list[Shape], mix: list[Shape]
):
    """The tables against the definition: for each ask of the mix, devices it could use."""
    capacity = ScoredCapacity.of(fleet(*given_nodes), "best-fit")
    for shape in held:
        capacity.claim(shape)
    rows = NodeArrays(capacity.node_indexes, capacity.place)
    requests = [node_request(shape, rows.width) for shape in mix]
    usable = UsableCapacity(rows, [(request, 1.0) for request in requests])
    for request, row in product(requests, range(len(given_nodes))):
        at = np.array([row])
        fits = rows.fits(request, at)
        left, cpus = rows.left[row].tolist(), int(rows.cpus[row])
        if not fits[0] or not rows.allowed(request)[rows.kind[row]]:
            continue
        before = worth(rows, row, requests, left, cpus)
        cpus -= request.cpus_milli
        if 0 < request.milli < WHOLE:
            lost, _ = usable.lost_by_device(request, at, fits)
            for device, free in enumerate(left):
                if free >= request.milli:
                    after = [*left[:device], free - request.milli, *left[device + 1 :]]
                    expected = before - worth(rows, row, requests, after, cpus) - request.gpus_milli
                    assert abs(lost[0, device] - expected) < 1e-6
        else:
            full = [place for place, free in enumerate(left) if free == WHOLE][: request.gpus]
            after = [0 if place in full else free for place, free in enumerate(left)]
            expected = before - worth(rows, row, requests, after, cpus) - request.gpus_milli
            assert abs(usable.lost(request, at, fits)[0] - expected) < 1e-6


def worth(
    rows: NodeArrays, row: int, requests: Sequence[NodeRequest], left: list[int], cpus: int
) -> int:
    total = 0
    for request in requests:
        suits = (
            rows.allowed(request)[rows.kind[row]] and cpus >= request.cpus_milli and request.gpus
        )
        able = [free for free in left if free >= request.milli]
        if suits and len(able) >= request.gpus:
            total += sum(able)
    return total


class Fresh:
    """A decider that asks another, which knows nothing, each time before it answers."""

    name = "fresh beside warm"

    def __init__(self, kind: str, placement: Placement) -> None:
        self._make = partial(_decider, kind, placement)
        self._warm = self._make()

    def decide(self, view: FleetView, now_ms: Millis, news: Sequence[Event] | None) -> Decision:
        decision = self._warm.decide(view, now_ms, news)
        fresh = self._make().decide(view, now_ms, None)
        assert list(fresh.actions) == list(decision.actions)
        assert fresh.wake_at_ms == decision.wake_at_ms
        return decision


def _decider(kind: str, placement: Placement) -> Decider:
    capacity_of = partial(make_capacity, placement=placement)
    if kind == "fifo":
        return StrictOrderPlacer("fifo", lambda job: 0, capacity_of=capacity_of)
    return RankedPlacer(kind, EarliestDeadline(), capacity_of=capacity_of)


class Sound:
    """A witness that checks every invariant of the fleet after every cycle."""

    def cycle(self, fleet: Fleet, now_ms: Millis, decider: Decider, decision: Decision) -> None:
        check(fleet)


@given(
    nodes,
    placements,
    st.sampled_from(["fifo", "edf"]),
    st.lists(shapes, min_size=1, max_size=25),
    st.integers(0, 40),
)
@settings(deadline=None, max_examples=120)
def test_a_fresh_decider_decides_as_a_warm_one_and_every_job_ends_or_is_refused(
    given_nodes: list[Node], placement: Placement, kind: str, arrivals: list[Shape], apart_s: int
):
    before = [NodeJoined(NOW, one) for one in given_nodes]
    world = SimWorld(jobs(arrivals, apart_s=apart_s, lasting_s=100), initial_events=before)
    run(world, Fleet(), [Fresh(kind, placement)], witnesses=[Sound()])
    assert len(world.meters.ends) + len(world.meters.refused_jobs) == len(arrivals)
