"""When a waiting job will start: what the forecasts rest on, and that they hold."""

from itertools import pairwise
from random import Random

import pytest

from tenfold.compose.policies import placing_decider
from tenfold.compose.simulation import SimRequest, simulate
from tenfold.engine.loop import Decider
from tenfold.engine.recording import Recording
from tenfold.fleet.fleet import Fleet
from tenfold.model.actions import ReserveStart, StartJob
from tenfold.model.decision import Decision
from tenfold.model.events import (
    ActionOrdered,
    JobCancelled,
    JobEnded,
    JobStarted,
    JobSubmitted,
    NodeCordoned,
    NodeJoined,
)
from tenfold.model.ids import JobId
from tenfold.model.job.job import Job, Slot, shape_of
from tenfold.model.policy.policy import Policy, PolicyName
from tenfold.model.units import HOUR, MINUTE, Millis
from tenfold.study.eta.eta import MIN_JUDGED, Eta, NoForecast, error_factor, eta, eta_of
from tenfold.study.eta.levels import QuantileLevels
from tenfold.study.eta.past_waits import PastWaits, WaitFeatures
from tenfold.study.eta.queued_work import QueuedWork
from tenfold.study.eta.recorded import wait_log_of
from tenfold.study.eta.run_times import RunTimeModel
from tenfold.study.eta.wait_log import Outcome, WaitLog
from tenfold.testing.builders import nodes

NOWHERE = WaitFeatures(gpus=0.0, ran=0.0, pending=0.0, drain=20.0, team_priority=0.0)
UNSAID = (0, 0)


def busy_jobs(count: int, seed: int = 1) -> list[Job]:
    """Jobs of 1 to 8 GPUs for two nodes, about as many as these can take."""
    dice = Random(seed)
    jobs: list[Job] = []
    now = 0.0
    for number in range(count):
        now += dice.expovariate(1 / (13 * MINUTE))
        lasts = dice.lognormvariate(0, 1.2) * 20 * MINUTE
        jobs.append(
            Job(
                id=JobId(f"job-{number}"),
                shape=shape_of(dice.choice((1, 2, 4, 8))),
                submitted_ms=Millis(round(now)),
                seq=number,
                duration_ms=Millis(round(lasts)),
            )
        )
    return jobs


def tracked(policy: PolicyName, wait_log: WaitLog, jobs: list[Job]) -> None:
    simulate(
        SimRequest(nodes=nodes(2), jobs=jobs, policy=Policy(name=policy)), witnesses=[wait_log]
    )


class Asking:
    """Asks about the last in the queue at one cycle, with and without a book."""

    def __init__(self, at_cycle: int) -> None:
        self.wait_log = WaitLog()
        self.left = at_cycle
        self.asked_ms = 0
        self.answers: list[Eta | None] = []

    def cycle(self, fleet: Fleet, now_ms: Millis, decider: Decider, decision: Decision) -> None:
        self.wait_log.cycle(fleet, now_ms, decider, decision)
        self.left -= 1
        if self.left <= 0 and not self.answers and fleet.pending:
            job = next(reversed(fleet.pending.values()))
            before = fleet.version, dict(fleet.pending), dict(fleet.running)
            self.asked_ms = now_ms
            self.answers = [
                eta(fleet, job, now_ms, self.wait_log),
                eta_of(fleet, job.id, now_ms, lambda: placing_decider(Policy(name="fifo"))),
                eta_of(fleet, job.id, now_ms, lambda: placing_decider(Policy(name="fifo"))),
            ]
            assert before == (fleet.version, dict(fleet.pending), dict(fleet.running))


@pytest.mark.parametrize("policy", ["fifo", "tenfold", "fair", "las"])
def test_about_half_start_by_p50_and_nine_in_ten_by_p90(policy: PolicyName):
    wait_log = WaitLog(outcomes=10_000)
    tracked(policy, wait_log, busy_jobs(3_000))
    outcomes = list(wait_log.outcomes)
    assert len(outcomes) > 500
    by_p50 = sum(each.started_ms <= each.p50_ms for each in outcomes) / len(outcomes)
    by_p90 = sum(each.started_ms <= each.p90_ms for each in outcomes) / len(outcomes)
    assert 0.45 <= by_p50 <= 0.55
    assert 0.86 <= by_p90 <= 0.94


def test_a_book_changes_nothing_and_repeats_itself():
    jobs = busy_jobs(600)
    request = SimRequest(nodes=nodes(2), jobs=jobs)
    alone = simulate(request)
    wait_logs = WaitLog(), WaitLog()
    watched = [simulate(request, witnesses=[wait_log]) for wait_log in wait_logs]
    assert [each.summary for each in watched] == [alone.summary] * 2
    assert list(wait_logs[0].outcomes) == list(wait_logs[1].outcomes)


def test_durations_are_never_read_before_they_are_over():
    jobs = busy_jobs(400)
    until = jobs[200].submitted_ms
    wait_log = WaitLog()
    tracked("fifo", wait_log, jobs)
    shorter = WaitLog()
    tracked("fifo", shorter, jobs[:201])
    known = [each for each in wait_log.outcomes if each.began_ms <= until]
    assert known
    forecasts = {each.job_id: (each.p50_ms, each.p90_ms) for each in shorter.outcomes}
    assert all(forecasts[each.job_id] == (each.p50_ms, each.p90_ms) for each in known)


def test_thinning_follows_a_part_of_the_waits():
    whole, part = WaitLog(outcomes=10_000), WaitLog(every=5, outcomes=10_000)
    jobs = busy_jobs(600)
    tracked("fifo", whole, jobs)
    tracked("fifo", part, jobs)
    assert len(part.outcomes) == len(whole.outcomes) // 5


def test_an_answer_lies_ahead_and_says_what_it_rests_on():
    asking = Asking(at_cycle=800)
    request = SimRequest(nodes=nodes(2), jobs=busy_jobs(1_000), policy=Policy(name="fifo"))
    simulate(request, witnesses=[asking])
    by_book, by_state, again = asking.answers
    assert by_book is not None
    assert by_state is not None
    for answer in (by_book, by_state):
        assert asking.asked_ms <= answer.p50_ms <= answer.p90_ms
    assert "started by their P50 and" in by_book.basis
    assert by_book.calibrated
    assert "uncalibrated" in by_state.basis
    assert not by_state.calibrated
    assert by_state == again


def test_a_wait_that_goes_on_moves_its_forecast_on():
    waits = PastWaits()
    for number in range(200):
        waits.begin(NOWHERE, number, UNSAID)
        waits.end(number, number + MINUTE * (1 + number), started=True)
    now_ms = 1_000 * HOUR
    similar = waits.similar(NOWHERE, now_ms)
    assert similar is not None
    bounds = [similar.curve.wait(1.0, waited * MINUTE) for waited in (0, 60, 120, 180, 1_000)]
    assert all(earlier < later for earlier, later in pairwise(bounds))
    assert 2 ** bounds[0] == pytest.approx(100 * MINUTE, rel=0.5)
    assert 2 ** bounds[-1] > 1_000 * MINUTE


def test_those_who_still_wait_make_a_forecast_later():
    started, waiting = PastWaits(), PastWaits()
    for number in range(40):
        for waits in (started, waiting):
            waits.begin(NOWHERE, number, UNSAID)
        started.end(number, number + HOUR, started=True)
        if number % 2:
            waiting.end(number, number + HOUR, started=True)
    now_ms = 10 * HOUR
    short, long = started.similar(NOWHERE, now_ms), waiting.similar(NOWHERE, now_ms)
    assert short is not None
    assert long is not None
    assert long.curve.wait(3.0) > short.curve.wait(3.0)


def test_too_few_waits_say_nothing_and_the_basis_admits_it():
    fleet, wait_log = Fleet(), WaitLog()
    fleet.apply_all([NodeJoined(Millis(0), node) for node in nodes(1)])
    job = Job(id=JobId("a"), shape=shape_of(1), submitted_ms=Millis(0))
    fleet.apply(JobSubmitted(Millis(0), job))
    answer = eta(fleet, job, Millis(MINUTE), wait_log)
    assert MINUTE <= answer.p50_ms <= answer.p90_ms
    assert "uncalibrated" in answer.basis
    assert not answer.calibrated


def test_a_job_that_no_simulation_starts_has_no_expected_start():
    fleet = Fleet()
    fleet.apply_all([NodeJoined(Millis(0), node) for node in nodes(1)])
    fleet.apply(NodeCordoned(Millis(0), next(iter(fleet.nodes))))
    job = Job(id=JobId("a"), shape=shape_of(1), submitted_ms=Millis(0))
    fleet.apply(JobSubmitted(Millis(0), job))
    found = eta_of(fleet, job.id, Millis(MINUTE), lambda: placing_decider(Policy()))
    assert found == NoForecast(
        "the job started in none of 5 simulations: no job has finished yet, so run times are not"
        " known"
    )


def busy_node(*, limit_ms: int | None, finished: int = 0) -> tuple[Fleet, Job]:
    """A node that one job holds since time 0, another job that waits for it, and some history."""
    fleet = Fleet()
    fleet.apply_all([NodeJoined(Millis(0), node) for node in nodes(1)])
    slots = (Slot(next(iter(fleet.nodes)), 8),)
    for number in range(finished + 1):
        is_last = number == finished
        limit = None if limit_ms is None or not is_last else Millis(limit_ms)
        one = Job(
            id=JobId(f"held-{number}"),
            shape=shape_of(8),
            submitted_ms=Millis(0),
            seq=number,
            limit_ms=limit,
        )
        fleet.apply(JobSubmitted(Millis(0), one))
        fleet.apply(ActionOrdered(Millis(0), StartJob(one.id, slots)))
        fleet.apply(JobStarted(Millis(0), one.id))
        if not is_last:
            fleet.apply(JobEnded(Millis(0), one.id))
    job = Job(id=JobId("asked"), shape=shape_of(8), submitted_ms=Millis(0), seq=99)
    fleet.apply(JobSubmitted(Millis(0), job))
    return fleet, job


def test_without_finished_jobs_only_time_limits_say_when_a_job_starts():
    def ask(limit_ms: int | None) -> Eta | NoForecast:
        fleet, job = busy_node(limit_ms=limit_ms)
        return eta_of(fleet, job.id, Millis(MINUTE), lambda: placing_decider(Policy(name="fifo")))

    known, unknown = ask(3 * HOUR), ask(None)
    assert isinstance(known, Eta)
    assert (known.p50_ms, known.p90_ms) == (3 * HOUR, 3 * HOUR)
    assert known.basis == (
        "5 simulations of the queue with the time limits of jobs (no job has finished yet);"
        " uncalibrated: forecast error not yet measured"
    )
    assert isinstance(unknown, NoForecast)
    assert "no job has finished yet" in unknown.reason


def test_a_start_months_ahead_is_unknown():
    fleet, job = busy_node(limit_ms=107 * 24 * HOUR)
    found = eta_of(fleet, job.id, Millis(24 * HOUR), lambda: placing_decider(Policy(name="fifo")))
    assert isinstance(found, NoForecast)
    assert found.reason.startswith("more than 30 days ahead, too far for a forecast")


def outcome(number: int, forecast_min: int, waited_min: int) -> Outcome:
    return Outcome(
        job_id=JobId(f"job-{number}"),
        first=True,
        began_ms=Millis(0),
        p50_ms=forecast_min * MINUTE,
        p90_ms=9 * HOUR,
        started_ms=Millis(waited_min * MINUTE),
    )


def test_the_error_of_forecasts_is_a_factor_over_the_latest_starts():
    early = [outcome(number, 100, 10) for number in range(50)]
    late = [outcome(number, 10, 14 if number % 2 else 7) for number in range(30)]
    assert error_factor(early + late) == pytest.approx(1.4, abs=0.03)
    assert error_factor(late[:5]) is None


def test_a_promise_bounds_the_answer():
    fleet, wait_log = Fleet(), WaitLog()
    fleet.apply_all([NodeJoined(Millis(0), node) for node in nodes(1)])
    job = Job(id=JobId("a"), shape=shape_of(1), submitted_ms=Millis(0))
    fleet.apply(JobSubmitted(Millis(0), job))
    promised, slots = Millis(2 * MINUTE), (Slot(next(iter(fleet.nodes)), 1),)
    fleet.apply(ActionOrdered(Millis(0), ReserveStart(job.id, slots, promised, Millis(0))))
    answer = eta(fleet, job, Millis(MINUTE), wait_log)
    assert answer.p90_ms == promised
    assert answer.basis.startswith("P90 from its reservation")


def test_a_job_that_was_taken_back_is_let_go():
    fleet, wait_log = Fleet(), WaitLog()
    fleet.apply_all([NodeJoined(Millis(0), node) for node in nodes(1)])
    decider = placing_decider(Policy(name="fifo"))
    wait_log.cycle(fleet, Millis(0), decider, Decision())
    for number in range(3):
        job = Job(id=JobId(f"{number}"), shape=shape_of(1), submitted_ms=Millis(1), seq=number)
        fleet.apply(JobSubmitted(Millis(1), job))
    wait_log.cycle(fleet, Millis(1), decider, Decision())
    assert wait_log.known == 3
    fleet.apply(JobCancelled(Millis(2), JobId("1")))
    wait_log.cycle(fleet, Millis(2), decider, Decision())
    assert not wait_log.outcomes
    assert eta(fleet, fleet.pending[JobId("2")], Millis(3), wait_log).p50_ms >= 3


def test_a_length_that_is_drawn_lies_beyond_what_was_served():
    run_times = RunTimeModel(Fleet(), Millis(0))
    job = Job(id=JobId("a"), shape=shape_of(4), submitted_ms=Millis(0))
    for served in (0, MINUTE, 5 * HOUR, 10**12):
        drawn = [run_times.draw(job, served, chance / 10) for chance in range(10)]
        assert all(each > served for each in drawn)
        assert drawn == sorted(drawn)


def test_a_record_gives_the_book_that_was_kept_while_it_was_written():
    hit_share, record = WaitLog(), Recording()
    request = SimRequest(nodes=nodes(2), jobs=busy_jobs(600))
    simulate(request, journal=record, witnesses=[hit_share, record])
    again = wait_log_of(record.lines)
    assert len(hit_share.outcomes) > MIN_JUDGED
    assert list(again.outcomes) == list(hit_share.outcomes)


def test_of_a_long_record_only_a_part_of_the_waits_is_followed(monkeypatch: pytest.MonkeyPatch):
    record = Recording()
    request = SimRequest(nodes=nodes(2), jobs=busy_jobs(600), policy=Policy(name="fifo"))
    simulate(request, journal=record, witnesses=[record])
    whole = wait_log_of(record.lines)
    monkeypatch.setattr("tenfold.study.eta.recorded.MAX_WAITS", whole.known // 3)
    assert whole.known // 5 < wait_log_of(record.lines).known < whole.known // 2


def test_what_waits_keeps_the_fleet_busy_for_as_long_as_jobs_of_its_size_have_run():
    fleet, work = Fleet(), QueuedWork()
    fleet.apply_all([NodeJoined(Millis(0), node) for node in nodes(1)])
    assert work.drain_ms(fleet, Millis(0)) == 0
    [node_id] = fleet.nodes
    for number in range(400):
        job = Job(id=JobId(f"{number}"), shape=shape_of(8), submitted_ms=Millis(0), seq=number)
        now_ms = Millis(number * HOUR)
        order = StartJob(job.id, (Slot(node_id, 8),))
        ends_ms = Millis(now_ms + HOUR)
        fleet.apply_all([JobSubmitted(now_ms, job), ActionOrdered(now_ms, order)])
        fleet.apply_all([JobStarted(now_ms, job.id), JobEnded(ends_ms, job.id)])
    for number in range(3):
        job = Job(id=JobId(f"new-{number}"), shape=shape_of(8), submitted_ms=Millis(0))
        fleet.apply(JobSubmitted(Millis(0), job))
    assert work.drain_ms(fleet, Millis(400 * HOUR)) == pytest.approx(3 * HOUR, rel=0.02)


def test_waits_at_one_time_share_a_fate_and_tell_less_than_waits_that_follow_each_other():
    together, apart = PastWaits(), PastWaits()
    for number in range(40):
        for waits, began in ((together, number), (apart, number * HOUR)):
            waits.begin(NOWHERE, began, UNSAID)
            waits.end(number, began + HOUR + number, started=True)
    now_ms = 100 * HOUR
    one, many = together.similar(NOWHERE, now_ms), apart.similar(NOWHERE, now_ms)
    assert one is not None
    assert many is not None
    assert one.curve.wait(1.0) == pytest.approx(many.curve.wait(1.0), abs=0.01)
    assert one.curve.wait(3.3) > many.curve.wait(3.3) + 1


def test_open_forecasts_count_as_far_as_the_curve_believes_in_them():
    waits = PastWaits()
    for number in range(100):
        began = number * HOUR
        early, late = began + MINUTE, began + 1_000 * HOUR
        waits.begin(NOWHERE, began, (early, late))
        if number < 90:
            waits.end(number, began + HOUR, started=True)
    similar = waits.similar(NOWHERE, 99 * HOUR + MINUTE // 2)
    assert similar is not None
    assert similar.hit_share(0, 0.5) < 0.2
    assert similar.hit_share(1, 0.9) > 0.95


def test_a_level_rises_with_those_who_are_late_and_ends_somewhere():
    waits, levels = PastWaits(), QuantileLevels()
    for number in range(40):
        waits.begin(NOWHERE, number * HOUR, (number * HOUR + HOUR, number * HOUR + 2 * HOUR))
        waits.end(number, number * HOUR + HOUR, started=True)
    similar = waits.similar(NOWHERE, 100 * HOUR)
    assert similar is not None
    before = levels.halvings(similar)
    for _ in range(10_000):
        levels.learn(0, late=True)
    after = levels.halvings(similar)
    assert after[0] > before[0] + 1
    assert after[1] == before[1]
    assert after[0] < 10
