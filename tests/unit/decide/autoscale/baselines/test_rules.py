"""Each baseline does what the defaults of its system say."""

from collections.abc import Sequence
from typing import Any

import pytest

from tenfold.decide.autoscale.baselines.dynamo import Dynamo
from tenfold.decide.autoscale.baselines.hpa import Hpa
from tenfold.decide.autoscale.baselines.kpa import Kpa
from tenfold.decide.autoscale.baselines.ray_serve import RayServe
from tenfold.decide.autoscale.baselines.skyserve import SkyServe
from tenfold.decide.autoscale.baselines.static import Static
from tenfold.model.service.autoscale import AutoscalePolicy, ReplicaRates
from tenfold.model.service.load import LoadBucket, ReplicaCounts, ServiceLoad
from tenfold.model.units import Millis

RATES = ReplicaRates(slots=10, prefill_tokens_per_s=1_000, decode_tokens_per_s=100)
POLICY = AutoscalePolicy(rates=RATES, replicas_min=0, replicas_max=50)
REQUEST = LoadBucket(arrived=10, input_tokens=10_000, finished=10, output_tokens=1_000)
"""Ten requests of two slot-seconds each in ten seconds: two slots of work."""


def load(
    at_once: int, ready: int, starting: int = 0, history: Sequence[LoadBucket] = ()
) -> ServiceLoad:
    return ServiceLoad(
        replicas=ReplicaCounts(ready=ready, starting=starting),
        bucket_ms=Millis(10_000),
        history=history,
        in_flight=at_once,
    )


class Driven:
    """A baseline, asked again and again; what it orders is ready at once."""

    def __init__(self, baseline: Any, ready: int, policy: AutoscalePolicy = POLICY) -> None:
        self.baseline, self.policy, self.ready = baseline, policy, ready
        self.memory: Any = None
        self.now_ms = 0

    def ask(self, at_once: int = 0, history: Sequence[LoadBucket] = ()) -> int:
        self.now_ms += self.baseline.tick_ms
        seen = load(at_once, self.ready, history=history)
        decision, self.memory = self.baseline(seen, self.memory, Millis(self.now_ms), self.policy)
        self.ready = decision.target
        return decision.target

    def asked(self, times: int, at_once: int = 0, history: Sequence[LoadBucket] = ()) -> list[int]:
        return [self.ask(at_once, history) for _ in range(times)]


def test_knative_holds_concurrency_at_70_percent():
    driven = Driven(Kpa(), 1)
    assert driven.asked(60, 7)[-1] == 1
    assert driven.asked(60, 8)[-1] == 2


def test_knative_panics_within_seconds_and_removes_none_while_it_does():
    driven = Driven(Kpa(), 1)
    driven.asked(60, 7)
    assert driven.asked(3, 70)[-1] == 10
    # 60 s at a low load: the panic ends after a whole stable window.
    assert min(driven.asked(27, 7)) == 10
    assert driven.asked(5, 7)[-1] < 10


def test_knative_stops_at_most_half_at_a_time_and_waits_before_zero():
    driven = Driven(Kpa(), 1)
    driven.asked(60, 7)
    after = driven.asked(60, 0)
    # The window is empty after 60 s, and 30 s of grace follow.
    assert after.index(0) == 29 + 15


def test_the_hpa_doubles_at_most_and_waits_300_s_before_it_removes():
    driven = Driven(Hpa(), 2)
    assert driven.asked(3, 200) == [6, 12, 24]
    # 25 would be exact; 24 is within the tolerance.
    down = driven.asked(25, 16)
    assert down.index(2) == 300 // 15 - 1
    assert down[0] == 24


def test_the_hpa_tolerates_ten_percent():
    assert Driven(Hpa(), 10).ask(87) == 10
    assert Driven(Hpa(), 10).ask(89) == 12


def test_keda_goes_to_zero_after_its_cooldown_and_back_to_one_at_once():
    driven = Driven(Hpa(), 1)
    assert driven.asked(21)[-2:] == [1, 0]
    assert driven.ask(3) == 1


def test_ray_serve_waits_30_s_up_and_600_s_down():
    driven = Driven(RayServe(), 1)
    up = driven.asked(60, 8)
    assert up[29] == 1
    assert up[30] == 4
    down = driven.asked(700, 2)
    assert down[600] == 4
    # The look-back of 30 s still held some of the old load when the delay began.
    assert down[-1] == 1


def test_skyserve_counts_requests_of_a_minute_and_waits():
    driven = Driven(SkyServe(), 1)
    busy = [REQUEST, *([LoadBucket(arrived=100, input_tokens=100_000)] * 6)]
    up = driven.asked(20, history=busy)
    # 10 requests/s of about 2 s over 7 slots: 3 replicas, after 15 decisions.
    assert up[13] == 1
    assert up[14] == 3


def test_dynamo_follows_the_forecast_and_waits_for_starting_replicas():
    dynamo = Dynamo()
    history = [REQUEST] * 18
    _, memory = dynamo(load(0, 1, history=history), None, Millis(180_000), POLICY)
    grown = (
        history
        + [LoadBucket(arrived=100, input_tokens=100_000, finished=100, output_tokens=10_000)] * 18
    )
    waits, memory = dynamo(load(0, 1, 2, grown), memory, Millis(360_000), POLICY)
    assert waits.target == 1
    decision, _ = dynamo(load(0, 1, 0, grown), memory, Millis(540_000), POLICY)
    assert decision.target == 2


def test_static_replaces_what_is_missing():
    decision, _ = Static(replicas=4)(load(0, 3), None, Millis(0), POLICY)
    assert (decision.start, decision.drain) == (1, 0)


@pytest.mark.parametrize(
    "baseline", [Kpa(), Hpa(), RayServe(), SkyServe(), Dynamo(), Static(replicas=99)]
)
def test_no_baseline_exceeds_the_limits(baseline: Any):
    policy = AutoscalePolicy(rates=RATES, replicas_min=2, replicas_max=5)
    driven = Driven(baseline, 2, policy)
    targets = [*driven.asked(40, 500, [REQUEST] * 6), *driven.asked(40, 0, [LoadBucket()] * 6)]
    assert min(targets) >= 2
    assert max(targets) <= 5
