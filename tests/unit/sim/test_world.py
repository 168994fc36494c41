"""The simulated world alone: what happens when, to whom."""

from collections.abc import Sequence

from msgspec.structs import replace

from tenfold.compose.simulation import SimRequest, SimResult, simulate
from tenfold.engine.recording import Recording, events_of
from tenfold.model.events import JobEnded
from tenfold.model.fault import Fault
from tenfold.model.ids import NodeId
from tenfold.model.job.job import Job
from tenfold.model.policy.policy import Policy, PolicyName
from tenfold.model.units import HOUR, SECOND, Millis
from tenfold.sim.world import SimSettings
from tenfold.testing.builders import job, nodes


def run(
    jobs: Sequence[Job],
    *,
    policy: PolicyName = "fifo",
    count: int = 1,
    faults: Sequence[Fault] = (),
    **settings: object,
) -> SimResult:
    request = SimRequest(
        nodes=nodes(count),
        jobs=jobs,
        policy=Policy(name=policy),
        faults=faults,
        settings=SimSettings(**settings),  # pyright: ignore[reportArgumentType]
    )
    return simulate(request)


def test_a_job_alone_takes_its_duration():
    summary = run([job(0, 8, runs_s=100)]).summary
    assert (summary.avg_jct_s, summary.avg_wait_s, summary.makespan_s) == (100, 0, 100)
    assert summary.gpu_utilization == 1


def test_the_second_waits_for_the_first():
    summary = run([job(0, 8, runs_s=100), job(1, 8, at_s=40, runs_s=10)]).summary
    assert summary.avg_jct_s == (100 + 70) / 2
    assert summary.avg_wait_s == 60 / 2


def test_strict_order_holds_back_what_would_fit():
    jobs = [job(0, 6, runs_s=100), job(1, 8, at_s=1, runs_s=10), job(2, 2, at_s=2, runs_s=5)]
    assert run(jobs, policy="fifo").summary.makespan_s == 115
    assert run(jobs, policy="fair").summary.avg_wait_s < run(jobs).summary.avg_wait_s


def test_a_larger_gang_takes_whole_nodes():
    result = run([job(0, 12, runs_s=10)], count=2)
    assert result.summary.gpu_hours * 3600 == 16 * 10


def test_impossible_jobs_are_refused_and_the_rest_goes_on():
    result = run([job(0, 64, runs_s=10), job(1, 1, runs_s=10)])
    assert (result.summary.refused, result.summary.finished) == (1, 1)


def ends_of(jobs: Sequence[Job], **named: object) -> dict[str, tuple[float, str]]:
    """Return when each job ends, in seconds, and how."""
    kept = Recording()
    request = SimRequest(nodes=nodes(1), jobs=jobs, **named)  # pyright: ignore[reportArgumentType]
    simulate(request, journal=kept)
    ended = [one for one in events_of(kept.lines) if isinstance(one, JobEnded)]
    return {one.job_id: (one.at_ms / SECOND, one.status) for one in ended}


def limited(number: int, limit_s: float, **named: float) -> Job:
    return replace(job(number, 8, **named), limit_ms=Millis(round(limit_s * SECOND)))  # pyright: ignore[reportArgumentType]


def test_a_job_that_needs_longer_than_its_time_limit_ends_there():
    jobs = [limited(0, 60, runs_s=100), limited(1, 100, at_s=1, runs_s=100)]
    assert ends_of(jobs) == {"job-0": (60, "timeout"), "job-1": (160, "completed")}


def test_a_restart_counts_towards_the_time_limit_of_an_attempt():
    fault = Fault(Millis(50 * SECOND), NodeId("n0"), Millis(60 * SECOND), "test")
    settings = SimSettings(restart_cost_ms=Millis(30 * SECOND))
    lost = [limited(0, 90, runs_s=80)]
    found = ends_of(lost, faults=(fault,), settings=settings)
    assert found == {"job-0": (150, "timeout")}
    free = ends_of(lost, faults=(fault,), settings=SimSettings())
    assert free == {"job-0": (140, "completed")}


def test_a_displaced_job_pays_to_come_back():
    jobs = [job(0, 8, runs_s=100), job(1, 8, at_s=10, runs_s=5)]
    free = run(jobs, policy="srtf").summary
    paid = run(jobs, policy="srtf", restart_cost_ms=Millis(20 * SECOND)).summary
    assert (free.preemptions, paid.preemptions) == (1, 1)
    assert free.makespan_s == 105
    assert paid.makespan_s == 125
    assert paid.gpu_hours_lost * 3600 == 8 * 20


def test_a_lost_node_costs_the_work_since_the_checkpoint():
    fault = Fault(Millis(2 * HOUR + HOUR // 2), NodeId("n0"), Millis(3 * HOUR), "xid")
    result = run([job(0, 8, runs_s=3 * 3600)], faults=[fault])
    # Two hours were saved; the third begins when the node is back.
    assert result.summary.makespan_s == 3 * 3600 + 3600
    assert result.summary.failures == 1


def test_work_goes_on_elsewhere_when_a_node_is_lost():
    fault = Fault(Millis(HOUR), NodeId("n0"), Millis(100 * HOUR))
    result = run([job(0, 8, runs_s=2 * 3600)], count=2, faults=[fault])
    assert result.summary.makespan_s == 2 * 3600


def test_a_delay_before_the_start_is_waiting():
    summary = run([job(0, 8, runs_s=100)], start_delay_ms=Millis(30 * SECOND)).summary
    assert (summary.avg_jct_s, summary.avg_wait_s) == (130, 30)


def test_starts_that_fail_are_tried_again_until_they_hold():
    jobs = [job(number, 1, at_s=number, runs_s=10) for number in range(40)]
    result = run(jobs, start_failure_share=0.5, start_delay_ms=Millis(SECOND))
    assert result.summary.finished == 40
    assert result.summary.avg_wait_s > 1


def test_every_policy_finishes_every_job():
    jobs = [
        job(number, (1, 2, 4, 8, 16)[number % 5], at_s=7 * number, runs_s=30 + 13 * (number % 11))
        for number in range(120)
    ]
    names: list[PolicyName] = [
        "tenfold",
        "fifo",
        "sjf",
        "srtf",
        "srsf",
        "las",
        "edf",
        "fair",
        "slurm",
    ]
    for name in names:
        summary = run(jobs, policy=name, count=2).summary
        assert (name, summary.finished, summary.refused) == (name, 120, 0)


def test_knowing_durations_helps():
    jobs = [
        job(number, 8, at_s=number, runs_s=1000 if number % 4 == 0 else 10) for number in range(60)
    ]
    assert (
        run(jobs, policy="srtf").summary.avg_jct_s < run(jobs, policy="fifo").summary.avg_jct_s / 3
    )


def test_figures_of_teams_add_up():
    jobs = [
        job(0, 4, runs_s=60, team="a"),
        job(1, 4, runs_s=30, team="b"),
        job(2, 8, runs_s=10, team="b"),
    ]
    result = run(jobs)
    assert list(result.teams) == ["a", "b"]
    assert sum(part.finished for part in result.teams.values()) == result.summary.finished
    whole = sum(part.gpu_hours for part in result.teams.values())
    assert abs(whole - result.summary.gpu_hours) < 1e-9
    assert 0 < result.summary.jain <= 1
