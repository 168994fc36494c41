"""The load of a service from readings of its gateways, some of which are missing."""

from msgspec.structs import replace

from tenfold.decide.serve.load import LATE_MS, LoadHistory
from tenfold.model.service.load import LoadBucket
from tenfold.model.service.traffic import GatewayTraffic, ServiceTraffic
from tenfold.model.units import Millis

BUCKET = Millis(10_000)
NOTHING = ServiceTraffic(
    name="chat",
    arrivals=0,
    arrived_input_tokens=0,
    arrived_output_tokens=0,
    output_tokens=0,
    ended=0,
    ended_output_tokens=0,
    late=0,
    failed=0,
    shed=0,
    limited=0,
    retries=0,
    hedges=0,
    busy_request_ms=0,
    outstanding_requests=0,
    outstanding_tokens=0,
    waiting_requests=0,
    waiting_tokens=0,
    oldest_wait_ms=0,
    tokens_per_request=0.0,
    input_tokens_per_request=0.0,
    output_tokens_per_request=0.0,
    revisions=(),
    overflow=(),
)


def traffic(at_ms: int, arrivals: int, gateway: str = "g1", started_ms: int = 0) -> GatewayTraffic:
    return GatewayTraffic(
        gateway_id=gateway,
        started_ms=started_ms,
        at_ms=at_ms,
        routing_version=1,
        services=(replace(NOTHING, arrivals=arrivals),),
        rolled_back=(),
    )


def history(*readings: tuple[int, int], since_ms: int = 0) -> LoadHistory:
    made = LoadHistory(Millis(since_ms), BUCKET)
    for at_ms, arrivals in readings:
        made.read("a", traffic(at_ms, arrivals), "chat", Millis(at_ms))
    return made


def arrived(made: LoadHistory, at_ms: int) -> list[int]:
    load = made.load(Millis(at_ms))
    assert load is not None
    return [bucket.arrived for bucket in load.history]


def test_differences_of_counters_fall_into_the_buckets_of_their_time():
    made = history((0, 100), (5_000, 105), (10_000, 115), (15_000, 116), (20_000, 116))
    assert arrived(made, 20_000) == [15, 1]


def test_the_first_reading_only_sets_the_mark():
    assert arrived(history((0, 1_000), (10_000, 1_000)), 10_000) == [0]


def test_what_no_closed_bucket_shows_yet_is_arriving():
    made = history((0, 0), (10_000, 20), (13_000, 26))
    load = made.load(Millis(13_000))
    assert load is not None
    assert ([one.arrived for one in load.history], load.arriving) == ([20], 6)


def test_a_service_without_a_reading_has_no_load():
    assert LoadHistory(Millis(0)).load(Millis(60_000)) is None


def test_missed_readings_make_neither_a_hole_nor_a_spike():
    assert arrived(history((0, 0), (25_000, 250), (30_000, 300)), 30_000) == [100, 100, 100]


def test_a_bucket_waits_for_a_gateway_that_does_not_answer_but_not_for_ever():
    made = history((0, 0), (10_000, 10))
    assert arrived(made, 25_000) == [10]
    assert arrived(made, 10_000 + LATE_MS) == [10, 0, 0, 0]


def test_what_is_counted_after_too_long_a_silence_keeps_its_rate():
    made = history((0, 0), (10_000, 0))
    assert arrived(made, 110_000) == [0] * 11
    made.read("a", traffic(120_000, 110), "chat", Millis(120_000))
    assert arrived(made, 120_000)[-1] == 10


def test_a_restarted_gateway_counts_from_zero_since_it_started():
    made = history((0, 500), (10_000, 520))
    again = traffic(20_000, 8, gateway="g2", started_ms=16_000)
    made.read("a", again, "chat", Millis(20_000))
    assert arrived(made, 20_000) == [20, 8]


def test_gateways_are_added_up():
    made = history((0, 0), (10_000, 10))
    made.read("b", traffic(0, 70, gateway="g9"), "chat", Millis(0))
    made.read("b", traffic(10_000, 75, gateway="g9"), "chat", Millis(10_000))
    assert arrived(made, 10_000) == [15]


def test_misses_are_late_failed_and_shed_requests_together():
    before = traffic(0, 0)
    one = replace(
        NOTHING,
        arrivals=9,
        arrived_input_tokens=900,
        ended=4,
        # Those of answers under way are in no mean yet.
        output_tokens=70,
        ended_output_tokens=40,
        late=3,
        failed=1,
        shed=2,
    )
    made = LoadHistory(Millis(0), BUCKET)
    made.read("a", before, "chat", Millis(0))
    made.read("a", replace(before, services=(one,)), "chat", Millis(10_000))
    load = made.load(Millis(10_000))
    assert load is not None
    assert list(load.history) == [
        LoadBucket(arrived=9, input_tokens=900, finished=4, output_tokens=40, missed=6)
    ]


def test_requests_in_service_and_waiting_are_those_of_the_last_reading():
    one = replace(
        NOTHING, outstanding_requests=3, waiting_requests=2, input_tokens_per_request=50.0
    )
    made = LoadHistory(Millis(0), BUCKET)
    made.read("a", replace(traffic(0, 0), services=(one,)), "chat", Millis(0))
    load = made.load(Millis(1_000))
    assert load is not None
    assert (load.in_flight, load.queued, load.queued_input_tokens) == (3, 2, 100)
    silent = made.load(Millis(120_000))
    assert silent is not None
    assert (silent.in_flight, silent.queued) == (0, 0)
