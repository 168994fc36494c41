"""How many replicas a service gets, and what is said about it."""

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from tenfold.decide.autoscale.autoscale import autoscale
from tenfold.model.service.autoscale import (
    AutoscalePolicy,
    ReplicaRates,
    ScalingDecision,
    SignalKind,
    SignalTarget,
)
from tenfold.model.service.load import LoadBucket, ReplicaCounts, ServiceLoad
from tenfold.model.units import HOUR, MINUTE, SECOND, Millis
from tenfold.report.reasons.render import render

BUCKET = 10 * SECOND
POLICY = AutoscalePolicy(
    # A request of 100 and 200 tokens takes 0.1 + 5 seconds of a slot.
    rates=ReplicaRates(slots=8, prefill_tokens_per_s=1_000, decode_tokens_per_s=40),
    replicas_max=20,
    ttft_objective_s=2.0,
)
ZERO = replace(POLICY, replicas_min=0)


def buckets(per_s: float, ms: int, *, answered: bool = True) -> list[LoadBucket]:
    """Return even traffic."""
    many = round(per_s * BUCKET / SECOND)
    done = many if answered else 0
    one = LoadBucket(arrived=many, input_tokens=100 * many, finished=done, output_tokens=200 * done)
    return [one] * (ms // BUCKET)


def load(
    history: Sequence[LoadBucket],
    ready: int = 1,
    starting: int = 0,
    queued: int = 0,
    arriving: int = 0,
) -> ServiceLoad:
    return ServiceLoad(
        replicas=ReplicaCounts(ready=ready, starting=starting),
        bucket_ms=Millis(BUCKET),
        history=history,
        queued=queued,
        arriving=arriving,
    )


def decided(seen: ServiceLoad, policy: AutoscalePolicy = POLICY) -> ScalingDecision:
    decision, _ = autoscale(seen, None, Millis(len(seen.history) * BUCKET), policy)
    return decision


def test_a_new_service_gets_its_minimum():
    decision = decided(load([], ready=0), replace(POLICY, replicas_min=2))
    assert (decision.target, decision.start) == (2, 2)
    assert render(decision.reason) == "2 replicas: no request for 0 s; the minimum is 2"


def test_steady_load_gets_the_slots_that_it_keeps_busy_and_some_for_chance():
    decision = decided(load(buckets(8, HOUR), ready=6))
    # 8 requests a second keep 41 slots busy: at least 6 replicas.
    assert 6 <= decision.target <= 8


def test_the_reason_of_a_forecast_says_how_much_is_expected_and_by_when():
    decision = decided(load(buckets(4, 20 * MINUTE), ready=3))
    assert decision.reason.code in ("load-needs-replicas", "scale-in-held")
    assert str(decision.target) in render(decision.reason)


@pytest.mark.parametrize("least", [0, 1, 3])
def test_a_service_without_any_request_yet_stays_at_its_minimum(least: int):
    policy = replace(POLICY, replicas_min=least)
    for seen_ms in (BUCKET, 2 * MINUTE, HOUR):
        assert decided(load(buckets(0, seen_ms), ready=least), policy).target == least


def test_a_stated_idle_time_is_kept_exactly_also_by_a_new_service():
    stated = replace(ZERO, zero_after_ms=Millis(20 * SECOND))
    called = buckets(2, 30 * SECOND)
    assert decided(load(called + buckets(0, BUCKET), ready=2), stated).target >= 1
    decision = decided(load(called + buckets(0, 2 * BUCKET), ready=2), stated)
    assert (decision.target, decision.drain) == (0, 2)
    # Where nothing is stated, a request is expected for longer.
    assert decided(load(called + buckets(0, 2 * BUCKET), ready=2), ZERO).target >= 1


def test_a_stated_idle_time_is_enough_for_a_control_plane_that_has_just_started():
    stated = replace(ZERO, zero_after_ms=Millis(20 * SECOND))
    assert decided(load(buckets(0, BUCKET), ready=4), stated).target == 4
    assert decided(load(buckets(0, 2 * BUCKET), ready=4), stated).target == 0


def test_a_stated_idle_time_is_waited_for_even_where_requests_could_wait_for_a_start():
    patient = replace(ZERO, ttft_objective_s=600.0, zero_after_ms=Millis(15 * MINUTE))
    history = buckets(1, 2 * HOUR) + buckets(0, 14 * MINUTE)
    assert decided(load(history), patient).target >= 1
    assert decided(load(history + buckets(0, MINUTE)), patient).target == 0


@pytest.mark.parametrize("zero_after_ms", [None, Millis(20 * SECOND)])
def test_what_served_requests_that_no_bucket_shows_yet_is_kept(zero_after_ms: Millis | None):
    policy = replace(ZERO, zero_after_ms=zero_after_ms)
    history = buckets(2, 30 * MINUTE) + buckets(0, 3 * HOUR)
    assert decided(load(history, ready=2), policy).target == 0
    decision = decided(load(history, ready=2, arriving=12), policy)
    assert (decision.target, decision.drain) == (2, 0)
    assert render(decision.reason).startswith("2 replicas: 0 needed now, scale-in waits")


def test_an_idle_service_scales_to_zero_and_says_how_long_it_was_idle():
    history = buckets(2, 30 * MINUTE) + buckets(0, 3 * HOUR)
    decision = decided(load(history, ready=1), ZERO)
    assert (decision.target, decision.drain) == (0, 1)
    assert render(decision.reason) == "0 replicas: no request for 3h 00m"


def test_a_service_is_not_scaled_to_zero_before_the_time_that_it_asks_for():
    history = buckets(2, 30 * MINUTE) + buckets(0, 4 * MINUTE)
    assert decided(load(history, ready=1), ZERO).target == 1


def test_a_service_with_a_minimum_keeps_it_while_idle():
    history = buckets(2, 30 * MINUTE) + buckets(0, 3 * HOUR)
    decision = decided(load(history, ready=1))
    assert decision.target == 1
    assert render(decision.reason) == "1 replica: no request for 3h 00m; the minimum is 1"


def test_a_request_at_zero_replicas_starts_one():
    history = buckets(2, 30 * MINUTE) + buckets(0, 3 * HOUR)
    decision = decided(load(history, ready=0, queued=1), ZERO)
    assert (decision.target, decision.start) == (1, 1)
    assert render(decision.reason) == "1 replica to drain the queue of 1 request"


def test_a_burst_gets_more_replicas_at_once():
    before = decided(load(buckets(1, HOUR), ready=1))
    after = decided(load(buckets(1, HOUR) + buckets(10, MINUTE), ready=1))
    assert after.target >= 6 > before.target


def test_a_queue_gets_replicas_that_drain_it():
    history = buckets(1, HOUR)
    decision = decided(replace(load(history, queued=400), in_flight=8))
    assert decision.target > decided(load(history)).target + 2
    assert render(decision.reason).endswith("to drain the queue of 400 requests")


def test_a_queue_that_the_ready_replicas_drain_in_time_starts_none():
    history = buckets(1, HOUR)
    many = decided(replace(load(history, ready=10, queued=60), in_flight=80))
    assert many.start == 0


def test_a_longer_cold_start_that_was_measured_looks_further_ahead():
    rising = [one for per_s in range(1, 9) for one in buckets(per_s, 5 * MINUTE)]
    soon = replace(load(rising, ready=6), cold_starts_ms=[20_000] * 5)
    late = replace(load(rising, ready=6), cold_starts_ms=[600_000] * 5)
    assert decided(late).target > decided(soon).target


def test_few_measured_cold_starts_only_prolong_the_assumed_one():
    history = buckets(4, HOUR)
    policy = replace(POLICY, cold_start_ms=Millis(120_000))
    assumed = decided(load(history, ready=3), policy)
    measured = replace(load(history, ready=3), cold_starts_ms=[1_000])
    assert decided(measured, policy) == assumed


def test_starting_replicas_count_and_are_cancelled_before_any_is_drained():
    steady = buckets(4, 20 * MINUTE)
    target = decided(load(steady, ready=10)).target
    some = decided(load(steady, ready=target - 1, starting=1))
    assert (some.start, some.cancel, some.drain) == (0, 0, 0)
    many = decided(load(steady, ready=target, starting=3))
    assert (many.start, many.cancel, many.drain) == (0, 3, 0)
    more = decided(load(steady, ready=target + 1, starting=3))
    assert (more.start, more.cancel, more.drain) == (0, 3, 1)


def test_scale_in_waits_and_says_for_how_long():
    falls = buckets(8, HOUR) + buckets(1, 40 * SECOND)
    decision = decided(load(falls, ready=7))
    assert decision.target >= 5


def test_replicas_are_kept_while_the_history_is_short():
    decision = decided(load(buckets(0, MINUTE), ready=5))
    assert decision.target == 5
    assert render(decision.reason) == "5 replicas: no scale-in with only 1 min of history"


def test_the_reason_names_the_maximum_that_it_ran_into():
    decision = decided(load(buckets(8, HOUR), ready=3), replace(POLICY, replicas_max=3))
    assert decision.target == 3
    decision = decided(load(buckets(8, HOUR), ready=3, queued=500), replace(POLICY, replicas_max=3))
    assert decision.target == 3
    assert render(decision.reason).endswith("replicas needed, but the maximum is 3")


@pytest.mark.parametrize(
    ("kind", "target", "replicas"),
    [("concurrency", 4, 15), ("queue", 10, 4), ("requests-per-s", 0.5, 8), ("mean", 0.2, 10)],
)
def test_the_signal_that_needs_the_most_replicas_decides(
    kind: SignalKind, target: float, replicas: int
):
    signal = SignalTarget(kind=kind, target=target, name="gpu-utilisation")
    seen = load(buckets(4, HOUR), ready=2, queued=20)
    seen = replace(seen, in_flight=40, signals={"gpu-utilisation": 1.0})
    without, decision = decided(seen), decided(seen, replace(POLICY, signals=(signal,)))
    assert decision.target == max(replicas, without.target)
    if replicas > without.target:
        assert decision.reason.code == "signal-above-target"
        assert ("gpu-utilisation" if kind == "mean" else kind) in render(decision.reason)


def test_a_signal_that_is_missing_blocks_nothing():
    signal = SignalTarget(kind="mean", target=0.5, name="gpu-utilisation")
    without = decided(load(buckets(4, HOUR), ready=0, starting=2))
    policy = replace(POLICY, signals=(signal,))
    assert decided(load(buckets(4, HOUR), ready=0, starting=2), policy) == without


def test_answers_that_still_run_count_as_longer_than_those_that_ended():
    # A minute after a start: nothing has ended, so the answers are long.
    running = buckets(4, 2 * MINUTE, answered=False)
    short = [LoadBucket(arrived=40, input_tokens=4_000, finished=40, output_tokens=400)] * 12
    assert decided(load(running)).target > decided(load(short)).target


def test_caution_costs_replicas():
    noisy = [one for _ in range(30) for one in buckets(2, MINUTE) + buckets(6, MINUTE)]
    careful = decided(load(noisy, ready=5), replace(POLICY, caution=8.0)).target
    daring = decided(load(noisy, ready=5), replace(POLICY, caution=0.05)).target
    assert careful > daring


def test_fixed_replicas_run_where_following_the_load_is_dearer():
    """Bursts shorter than a cold start, and as frequent: whoever follows them is always late."""
    period = buckets(1, 90 * SECOND) + buckets(12, 30 * SECOND)
    decision = decided(
        replace(load(period * 120, ready=8), cold_starts_ms=[120_000] * 5),
        replace(POLICY, ttft_objective_s=1.0),
    )
    assert decision.target >= 6
