"""`sched_min_interval`: main passes of the `slurm` policy that keep apart."""

from msgspec.structs import replace

from slurm_builders import decided, fleet, job, node, policy, starts, submit
from tenfold.decide.place.slurm.slurm import SlurmPlacer
from tenfold.engine.loop import run
from tenfold.fleet.fleet import Fleet
from tenfold.model.events import NodeJoined
from tenfold.model.job.job import Job
from tenfold.model.policy.slurm import SlurmPolicy
from tenfold.model.units import SECOND, Millis
from tenfold.sim.world import SimWorld


def every(seconds: int, *, apart_s: float, starts_most: int = 0) -> SlurmPolicy:
    """A Slurm whose main pass is due after so many seconds and must keep apart."""
    return replace(
        policy(backfills=False),
        interval_min_us=round(apart_s * 1e6),
        jobs_started_max=starts_most,
        parameters={"batch_sched_delay": str(seconds)},
    )


def passes(by: SlurmPolicy, until_s: int) -> list[int]:
    """The seconds at which a waiting job would be started."""
    made = fleet(1)
    submit(made, job("a", 1))
    return [second for second in range(1, until_s) if starts(made, by, second)]


def test_a_pass_that_is_due_too_early_waits_for_the_next_multiple():
    assert passes(every(3, apart_s=2), 14) == [4, 6, 10, 12]


def test_a_longer_least_time_than_the_period_is_the_period():
    assert passes(every(1, apart_s=5), 21) == [5, 10, 15, 20]


def test_parts_of_a_second_wait_for_the_loop_to_turn():
    assert passes(every(1, apart_s=1.2), 9) == [2, 4, 6, 8]


def test_up_to_a_second_nothing_changes():
    for apart_s in (2e-6, 0.001, 0.7, 1.0):
        assert passes(every(3, apart_s=apart_s), 11) == [3, 6, 9]


def test_between_passes_the_next_that_may_be_made_is_asked_for():
    made = fleet(1)
    submit(made, job("a", 1))
    by = every(3, apart_s=2)
    for second, following in ((1, 4), (3, 4), (5, 6), (7, 10), (59, 60)):
        assert decided(made, by, second).wake_at_ms == following * SECOND


def started_s(by: SlurmPolicy, jobs: int) -> list[float]:
    """When each of many short jobs starts that come at once on more room than they need."""
    many = [
        Job(
            id=one.id,
            shape=one.shape,
            submitted_ms=Millis(250),
            seq=one.seq,
            duration_ms=Millis(100),
        )
        for one in (job(f"job-{n}", 1, seq=n) for n in range(jobs))
    ]
    world = SimWorld(many, initial_events=[NodeJoined(Millis(0), node(n)) for n in range(1, 9)])
    run(world, Fleet(), [SlurmPlacer(by)])
    return sorted((end - held) / SECOND for _, _, _, held, end in world.meters.ends)


def test_four_starts_a_pass_every_two_seconds_are_two_a_second():
    at = started_s(every(1, apart_s=2, starts_most=4), 40)
    assert len(at) / (at[-1] - at[0] + 2) == 2.0


def test_without_it_they_are_four_a_second():
    at = started_s(every(1, apart_s=0, starts_most=4), 40)
    assert len(at) / (at[-1] - at[0] + 1) == 4.0
