"""What holds for the `slurm` policy on every fleet and for every set of jobs."""

from hypothesis import given, settings
from hypothesis import strategies as st

from slurm_builders import node, policy
from tenfold.decide.place.slurm.slurm import SlurmPlacer
from tenfold.engine.loop import Decider, run
from tenfold.fleet.check import check
from tenfold.fleet.fleet import Fleet
from tenfold.model.decision import Decision
from tenfold.model.events import NodeJoined
from tenfold.model.ids import JobId, TeamId
from tenfold.model.job.job import Job, Shape, shape_of
from tenfold.model.policy.slurm import PriorityWeights, SlurmPartition, SlurmPolicy
from tenfold.model.units import MINUTE, SECOND, Millis
from tenfold.sim.world import SimWorld

POLICY = policy(
    weights=PriorityWeights(age=500, fairshare=1_000, job_size=200, partition=400),
    partitions=(
        SlurmPartition(name="all", nodes="ALL", is_default=True, priority_job_factor=1),
        SlurmPartition(name="some", nodes="n[1-2]", priority_job_factor=3, priority_tier=2),
    ),
)

shapes = st.one_of(
    st.builds(shape_of, st.integers(1, 20)),
    st.builds(shape_of, st.sampled_from([0.25, 0.5])),
    st.builds(
        lambda each, times: shape_of(each * times, gpus_per_node=each), *[st.integers(1, 4)] * 2
    ),
)


@st.composite
def job_lists(draw: st.DrawFn) -> list[Job]:
    """Jobs of a few minutes in order of submission; limits may be missing or overrun."""
    rows = draw(
        st.lists(
            st.tuples(
                shapes,
                st.integers(0, 300),
                st.integers(1, 240),
                st.none() | st.integers(1, 6),
                st.sampled_from(["a", "b"]),
                st.sampled_from(["", "all", "some"]),
                st.integers(-200, 200),
            ),
            min_size=1,
            max_size=25,
        )
    )
    rows.sort(key=lambda row: row[1])
    return [
        Job(
            id=JobId(f"job-{seq}"),
            shape=shape,
            submitted_ms=Millis(at_s * SECOND + 250),
            seq=seq,
            team=TeamId(team),
            qos=qos,
            priority=priority,
            limit_ms=None if limit is None else Millis(limit * MINUTE),
            duration_ms=Millis(seconds * SECOND),
        )
        for seq, (shape, at_s, seconds, limit, team, qos, priority) in enumerate(rows)
    ]


class Fresh:
    """A witness that asks a decider which knows nothing, before the orders were carried out."""

    def __init__(self, by: SlurmPolicy) -> None:
        self.name = "fresh beside warm"
        self._by = by
        self._warm = SlurmPlacer(by)

    def decide(self, view: Fleet, now_ms: Millis, news: list[object] | None) -> Decision:
        decision = self._warm.decide(view, now_ms, news)  # pyright: ignore[reportArgumentType]
        fresh = SlurmPlacer(self._by)
        assert fresh.decide(view, now_ms, None) == decision
        assert fresh.decide(view, now_ms, None) == decision, "the same decider, asked twice"
        return decision


class Sound:
    """A witness that checks every invariant of the fleet after every cycle."""

    def cycle(self, fleet: Fleet, now_ms: Millis, decider: Decider, decision: Decision) -> None:
        check(fleet)


def world(jobs: list[Job], nodes: int, gpus: int) -> SimWorld:
    before = [NodeJoined(Millis(0), node(number, gpus)) for number in range(1, nodes + 1)]
    return SimWorld(jobs, initial_events=before)


@given(job_lists(), st.integers(1, 4), st.sampled_from([4, 8]))
@settings(deadline=None, max_examples=60)
def test_a_fresh_decider_decides_as_a_warm_one_and_twice_the_same(
    jobs: list[Job], nodes: int, gpus: int
):
    run(world(jobs, nodes, gpus), Fleet(), [Fresh(POLICY)])  # pyright: ignore[reportArgumentType]


@given(job_lists(), st.integers(1, 4), st.sampled_from([4, 8]))
@settings(deadline=None, max_examples=60)
def test_nothing_is_over_allocated_and_every_job_ends_or_is_refused(
    jobs: list[Job], nodes: int, gpus: int
):
    simulated = world(jobs, nodes, gpus)
    run(simulated, Fleet(), [SlurmPlacer(POLICY)], witnesses=[Sound()])
    meters = simulated.meters
    assert len(meters.ends) + len(meters.refused_jobs) == len(jobs)


def without_overruns(jobs: list[Job]) -> list[Job]:
    return [
        Job(
            id=one.id,
            shape=one.shape,
            submitted_ms=Millis(250),
            seq=one.seq,
            limit_ms=Millis(-(-(one.duration_ms or 1) // MINUTE) * MINUTE),
            duration_ms=one.duration_ms,
        )
        for one in jobs
    ]


def start_of_widest(jobs: list[Job], by: SlurmPolicy) -> int:
    """When the first job of the line starts, which is the widest and asks for every node."""
    simulated = world(jobs, 3, 8)
    run(simulated, Fleet(), [SlurmPlacer(by)])
    ends = simulated.meters.ends
    return next(end - held for one, _, _, held, end in ends if one.id == jobs[1].id)


@given(job_lists())
@settings(deadline=None, max_examples=40)
def test_backfill_never_delays_the_head_of_the_line(jobs: list[Job]):
    """A first job holds a node to its limit; the head then waits for the whole fleet."""
    whole: Shape = shape_of(24)
    first = Job(
        id=JobId("first"),
        shape=shape_of(8),
        submitted_ms=Millis(0),
        limit_ms=Millis(3 * MINUTE),
        duration_ms=Millis(3 * MINUTE),
    )
    head = Job(
        id=JobId("head"),
        shape=whole,
        submitted_ms=Millis(100),
        priority=10_000,
        limit_ms=Millis(MINUTE),
        duration_ms=Millis(MINUTE),
    )
    job_queue = [first, head, *without_overruns(jobs)]
    alone = start_of_widest([first, head], policy())
    assert start_of_widest(job_queue, policy()) <= alone + 2 * SECOND
