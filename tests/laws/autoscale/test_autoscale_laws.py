"""What holds for every service, load and policy."""

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tenfold.decide.autoscale.autoscale import autoscale
from tenfold.decide.autoscale.memory import Memory
from tenfold.model.service.autoscale import AutoscalePolicy, ReplicaRates, SignalTarget
from tenfold.model.service.load import LoadBucket, ReplicaCounts, ServiceLoad
from tenfold.model.units import Millis

rates = st.builds(
    ReplicaRates,
    slots=st.integers(1, 200),
    prefill_tokens_per_s=st.floats(10, 1e5),
    decode_tokens_per_s=st.floats(1, 500),
)
signals = st.builds(
    SignalTarget,
    kind=st.sampled_from(["concurrency", "requests-per-s", "queue", "mean"]),
    target=st.floats(0.01, 1e3),
    name=st.just("gpu-utilisation"),
)


@st.composite
def policies(draw: st.DrawFn) -> AutoscalePolicy:
    least = draw(st.integers(0, 5))
    return AutoscalePolicy(
        rates=draw(rates),
        replicas_min=least,
        replicas_max=draw(st.integers(max(least, 1), 300)),
        ttft_objective_s=draw(st.floats(0.05, 120)),
        attainment=draw(st.floats(0.5, 0.9999)),
        cold_start_ms=Millis(draw(st.integers(0, 900_000))),
        zero_after_ms=draw(st.none() | st.integers(0, 600_000).map(Millis)),
        signals=tuple(draw(st.lists(signals, max_size=2))),
        caution=draw(st.floats(0.05, 20)),
    )


@st.composite
def traffic(draw: st.DrawFn) -> list[LoadBucket]:
    """Return stretches of even traffic, some without any, some without an answer."""
    history: list[LoadBucket] = []
    for _ in range(draw(st.integers(0, 5))):
        arrived = draw(st.integers(0, 500))
        finished = draw(st.integers(0, arrived))
        one = LoadBucket(
            arrived=arrived,
            input_tokens=arrived * draw(st.integers(0, 20_000)),
            finished=finished,
            output_tokens=finished * draw(st.integers(0, 2_000)),
            missed=draw(st.integers(0, arrived)),
        )
        history += [one] * draw(st.integers(1, 40))
    return history


@st.composite
def loads(draw: st.DrawFn) -> ServiceLoad:
    return ServiceLoad(
        replicas=ReplicaCounts(ready=draw(st.integers(0, 300)), starting=draw(st.integers(0, 50))),
        bucket_ms=Millis(10_000),
        first_bucket=draw(st.integers(0, 10_000)),
        history=draw(traffic()),
        arriving=draw(st.integers(0, 1_000)),
        in_flight=draw(st.integers(0, 1_000)),
        queued=draw(st.integers(0, 1_000)),
        cold_starts_ms=draw(st.lists(st.integers(0, 900_000), max_size=6)),
        signals={"gpu-utilisation": draw(st.floats(0, 5))},
    )


def upto(load: ServiceLoad, buckets: int) -> ServiceLoad:
    return replace(load, history=load.history[:buckets])


NOW = Millis(0)


@settings(max_examples=40)
@given(loads(), policies())
def test_bounds_are_kept_and_steps_lead_to_the_target(load: ServiceLoad, policy: AutoscalePolicy):
    decision, _ = autoscale(load, None, NOW, policy)
    assert policy.replicas_min <= decision.target <= policy.replicas_max
    have = load.replicas.wanted
    assert have + decision.start - decision.cancel - decision.drain == decision.target
    assert not decision.start or not decision.cancel + decision.drain
    # Starting replicas go before ready ones.
    assert not decision.drain or decision.cancel == load.replicas.starting
    assert decision.reason.fields["replicas"] == decision.target


@settings(max_examples=40)
@given(loads(), policies(), st.lists(st.integers(0, 200), max_size=6), st.data())
def test_a_fresh_memory_decides_as_a_warm_one(
    load: ServiceLoad, policy: AutoscalePolicy, stops: list[int], data: st.DataObject
):
    """Whatever the memory saw before: other cold starts, another policy, other replicas."""
    memory = Memory()
    for stop in sorted(stops):
        seen = upto(load, stop)
        if data.draw(st.booleans()):
            measured = data.draw(st.lists(st.integers(0, 900_000), max_size=4))
            seen = replace(seen, cold_starts_ms=measured)
        if data.draw(st.integers(0, 4)) == 0:
            autoscale(seen, memory, NOW, replace(policy, caution=policy.caution * 2))
        autoscale(seen, memory, NOW, policy)
    warm, _ = autoscale(load, memory, NOW, policy)
    fresh, _ = autoscale(load, None, NOW, policy)
    assert warm == fresh


@settings(max_examples=40)
@given(loads(), policies(), st.integers(1, 500))
def test_a_longer_queue_never_needs_fewer_replicas(
    load: ServiceLoad, policy: AutoscalePolicy, more: int
):
    before, memory = autoscale(load, None, NOW, policy)
    after, _ = autoscale(replace(load, queued=load.queued + more), memory, NOW, policy)
    assert after.target >= before.target


@settings(max_examples=40)
@given(loads(), policies(), signals)
def test_a_further_signal_never_needs_fewer_replicas(
    load: ServiceLoad, policy: AutoscalePolicy, signal: SignalTarget
):
    before, _ = autoscale(load, None, NOW, replace(policy, signals=()))
    after, _ = autoscale(load, None, NOW, replace(policy, signals=(signal,)))
    assert after.target >= before.target


@settings(max_examples=40)
@given(loads(), policies())
def test_replicas_that_are_there_change_only_what_is_to_be_done(
    load: ServiceLoad, policy: AutoscalePolicy
):
    """The forecast, the queue aside: what runs already is no reason to run more or fewer."""
    quiet = replace(load, queued=0, arriving=0, history=[*load.history, *[LoadBucket()] * 100])
    alone = replace(policy, signals=())
    other = replace(quiet, replicas=ReplicaCounts(ready=3, starting=1))
    if len(quiet.history) < 200:
        return
    before, memory = autoscale(quiet, None, NOW, alone)
    assert autoscale(other, memory, NOW, alone)[0].target == before.target
