"""Requests, replicas and charges of a simulated service, by hand-made cases."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from msgspec.structs import replace

from tenfold.model.reason import Reason
from tenfold.model.service.autoscale import ReplicaRates, ScalingDecision, steps_to
from tenfold.model.service.load import ServiceLoad
from tenfold.model.service.simulated import RequestTrace
from tenfold.model.units import HOUR, Millis
from tenfold.sim.service.replica import DRAINING, SimReplica
from tenfold.sim.service.run import FAILED, SHED, ServiceRun, figures
from tenfold.sim.service.world import Decide, ServiceSettings, simulate_service

RATES = ReplicaRates(slots=1, prefill_tokens_per_s=1_000, decode_tokens_per_s=10)
BASE = ServiceSettings(
    rates=RATES,
    cold_starts_ms=[60_000],
    replicas_min=0,
    replicas_max=10,
    objective_ms=2_000,
    replicas_warm=1,
    tick_ms=10_000,
)


def requests(*rows: tuple[int, int, int]) -> RequestTrace:
    return RequestTrace(*(list(column) for column in zip(*rows, strict=True)))


def wanting(target: Callable[[int], int]) -> Decide:
    """Return a policy that wants a number of replicas by the time."""

    def decide(load: ServiceLoad, now_ms: Millis) -> ScalingDecision:
        wanted = target(now_ms)
        start, cancel, drain = steps_to(wanted, load.replicas.ready, load.replicas.starting)
        reason = Reason("baseline-target", {"policy": "test", "replicas": wanted})
        return ScalingDecision(
            target=wanted, start=start, cancel=cancel, drain=drain, reason=reason
        )

    return decide


def simulated(
    trace: RequestTrace,
    settings: ServiceSettings = BASE,
    target: Callable[[int], int] = lambda _: 1,
) -> ServiceRun:
    return simulate_service(trace, settings, wanting(target))


def test_the_first_token_comes_after_the_wait_and_the_prompt():
    run = simulated(requests((0, 500, 10), (100, 500, 10)))
    # The first occupies the only slot for 0.5 + 1 s.
    assert run.ttft_ms == [500, 1_400 + 500]


def test_a_second_slot_serves_at_once():
    settings = replace(BASE, rates=replace(RATES, slots=2))
    assert simulated(requests((0, 500, 10), (100, 500, 10)), settings).ttft_ms == [500, 500]


def test_requests_wait_for_a_cold_start_and_are_served_in_order():
    settings = replace(BASE, replicas_warm=0)
    run = simulated(requests((0, 1_000, 0), (1, 1_000, 0)), settings)
    # Ordered at the first decision, ready a minute later.
    assert run.ttft_ms == [71_000, 71_999]


def test_a_request_that_waits_too_long_is_shed_and_misses():
    run = simulated(requests((0, 0, 1_000), (0, 0, 10)), replace(BASE, hold_ms=5_000))
    assert run.ttft_ms == [0, SHED]
    assert figures(run).attainment == 0.5
    assert figures(run).shed == 1


def test_a_full_queue_sheds_at_once():
    run = simulated(requests((0, 0, 10), (1, 0, 10), (2, 0, 10)), replace(BASE, hold_max=1))
    assert run.ttft_ms == [0, 999, SHED]


def test_replicas_are_charged_from_their_order_to_the_last_arrival():
    run = simulated(requests((0, 0, 1), (HOUR, 0, 1)), target=lambda now: 2 if now > 100 else 1)
    # One for the hour, one from the first decision at 10 s.
    assert figures(run).replica_hours == pytest.approx(2 - 10 / 3_600)
    assert figures(run, HOUR // 2).replica_hours == pytest.approx(1)


def test_a_starting_replica_is_cancelled_before_a_ready_one_drains_and_is_charged():
    run = simulated(
        requests((0, 0, 1), (100_000, 0, 1)), target=lambda now: 3 if now < 20_000 else 1
    )
    assert [one.stopped_ms for one in run.replicas] == [-1, 20_000, 20_000]
    assert figures(run).starts == figures(run).stops == 2
    assert figures(run).replica_hours == pytest.approx((100 + 10 + 10) / 3_600)


def test_a_draining_replica_finishes_its_request_and_takes_no_other():
    settings = replace(BASE, replicas_warm=2)
    run = simulated(requests((9_000, 0, 50), (9_000, 0, 500), (12_000, 0, 10)), settings)
    drained = next(one for one in run.replicas if one.stopped_ms > 0)
    assert drained.stopped_ms in (14_000, 59_000)
    assert drained.state != DRAINING
    other = [14_000, 59_000][drained.stopped_ms == 14_000]
    assert run.ttft_ms[2] == other - 12_000


def test_requests_of_a_failed_replica_move_on_before_their_first_token_and_fail_after_it():
    settings = replace(BASE, rates=replace(RATES, slots=50), failures_per_replica_day=1_000, seed=3)
    trace = requests(*((at * 1_000, 1_000, 200) for at in range(600)))
    run = simulated(trace, settings, target=lambda _: 3)
    failed = [one for one in run.replicas if one.has_failed]
    assert failed
    for one in failed:
        at_ms = one.stopped_ms
        # Each failed request had its first token, and was not yet done.
        assert any(
            ttft == FAILED and arrived + 1_000 <= at_ms
            for arrived, ttft in zip(run.arrived_ms, run.ttft_ms, strict=True)
        )
    assert all(ttft >= 0 or ttft in (FAILED, SHED) for ttft in run.ttft_ms)
    assert figures(run).stops == 0


def test_replicas_stay_within_the_limits():
    settings = replace(BASE, replicas_max=3, replicas_min=2, replicas_warm=2)
    trace = requests((0, 0, 1), (200_000, 0, 1))
    run = simulated(trace, settings, target=lambda now: 9 if now < 100_000 else 0)
    assert len(run.replicas) == 3
    assert sum(one.stopped_ms < 0 for one in run.replicas) == 2


def test_the_autoscaler_sees_closed_buckets_and_nothing_of_the_future():
    def seen(trace: RequestTrace) -> Sequence[tuple[int, tuple[int, ...], int]]:
        loads: list[tuple[int, tuple[int, ...], int]] = []

        def decide(load: ServiceLoad, now_ms: Millis) -> ScalingDecision:
            assert len(load.history) * load.bucket_ms <= now_ms
            arrived = tuple(one.arrived for one in load.history)
            loads.append((now_ms, arrived, load.in_flight + load.queued))
            return wanting(lambda _: 1)(load, now_ms)

        simulate_service(trace, replace(BASE, tick_ms=3_000), decide)
        return loads

    past = [(at * 700, 100, 20) for at in range(60)]
    one = seen(requests(*past, (60_000, 100, 5)))
    other = seen(requests(*past, *((50_000 + at, 900, 90) for at in range(40))))
    both = [pair for pair in zip(one, other, strict=False) if pair[0][0] <= 42_000]
    assert len(both) == 14
    assert all(first == second for first, second in both)


def test_the_same_seed_gives_the_same_run_and_another_draws_other_cold_starts():
    settings = replace(BASE, cold_starts_ms=[10_000, 40_000, 90_000])
    trace = requests(*((at * 500, 100, 30) for at in range(400)))

    def ready(seed: int) -> list[int]:
        run = simulated(trace, replace(settings, seed=seed), target=lambda _: 8)
        return [one.ready_ms for one in run.replicas]

    assert ready(1) == ready(1)
    assert ready(1) != ready(2)


def test_waits_agree_with_erlang_c():
    """M/M/c at 80% load: the mean wait is P(wait) / (c mu - lambda)."""
    draws = np.random.default_rng(7)
    many, slots, mean_s, rate = 60_000, 8, 1.0, 6.4
    arrived = np.cumsum(draws.exponential(1 / rate, many)) * 1_000
    made = draws.exponential(mean_s, many) * 1_000
    trace = RequestTrace(
        np.rint(arrived).astype(int).tolist(), [0] * many, np.rint(made).astype(int).tolist()
    )
    settings = replace(
        BASE,
        rates=ReplicaRates(slots=4, prefill_tokens_per_s=1, decode_tokens_per_s=1_000),
        replicas_warm=2,
        hold_max=10**6,
    )
    run = simulated(trace, settings, target=lambda _: 2)
    offered = rate * mean_s
    term, terms = 1.0, [1.0]
    for servers in range(1, slots):
        term *= offered / servers
        terms.append(term)
    waiting = term * offered / slots / (1 - offered / slots)
    expected_s = waiting / (sum(terms) + waiting) / (slots / mean_s - rate)
    assert np.mean(run.ttft_ms) / 1_000 == pytest.approx(expected_s, rel=0.12)


def test_a_replica_is_open_only_while_a_slot_is_free():
    replicas = [SimReplica(number=at, ordered_ms=Millis(0)) for at in range(2)]
    assert replicas[0] != replicas[1]


def test_a_request_whose_last_token_is_late_misses():
    settings = replace(BASE, latency_objective_ms=2_000)
    # Both have their first token in time; the second waits for the first, and ends after 2.9 s.
    run = simulated(requests((0, 500, 10), (100, 500, 10)), settings)
    assert run.latency_ms == [1_500, 2_900]
    assert figures(run).attainment == 0.5
    assert figures(simulated(requests((0, 500, 10), (100, 500, 10)))).attainment == 1.0


def test_a_miss_by_the_last_token_is_seen_when_it_comes():
    seen: list[int] = []

    def decide(load: ServiceLoad, now_ms: Millis) -> ScalingDecision:
        seen[:] = [one.missed for one in load.history]
        return wanting(lambda _: 1)(load, now_ms)

    settings = replace(BASE, latency_objective_ms=10_000)
    simulate_service(requests((0, 500, 150), (30_000, 1, 1)), settings, decide)
    assert seen[:3] == [0, 1, 0]


def test_a_policy_hears_of_requests_that_no_closed_bucket_shows_yet():
    seen: list[tuple[int, int, int]] = []
    decide = wanting(lambda _: 1)

    def watched(load: ServiceLoad, now_ms: Millis) -> ScalingDecision:
        seen.append((now_ms, sum(one.arrived for one in load.history), load.arriving))
        return decide(load, now_ms)

    trace = requests((0, 10, 1), (11_000, 10, 1), (13_000, 10, 1), (19_999, 10, 1), (25_000, 10, 1))
    simulate_service(trace, replace(BASE, tick_ms=4_000), watched)
    assert seen[:5] == [
        (4_000, 0, 1),
        (8_000, 0, 1),
        (12_000, 1, 1),
        (16_000, 1, 2),
        (20_000, 4, 0),
    ]
