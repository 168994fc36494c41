"""Replicas fail, stop, start and are overloaded; requests that can be saved are."""

import asyncio
import json
from collections import Counter
from collections.abc import Callable

from contract.gateway.clients import CHAT, Clients, Got, chat, run
from patience import until
from tenfold.model.service.routing import Hold, Overflow, Rollback, Service, TeamLimits
from tests.rigs.gateway import GatewayProcess, chat_service, revision_of, state_of, token_for
from tests.rigs.openai_replica import ReplicaProcess

Start = Callable[..., ReplicaProcess]
Run = Callable[..., GatewayProcess]


def waits_for(front: GatewayProcess, requests: int) -> Callable[[], bool]:
    return lambda: front.service().waiting_requests == requests


async def in_thread(is_so: Callable[[], bool]) -> None:
    await asyncio.to_thread(until, is_so)


def test_killing_a_replica_loses_no_request_without_a_first_byte(replica: Start, gateway: Run):
    # Answers that are not streamed have no first byte before they are complete.
    slow = ("--tokens-per-s", "20", "--slots", "8")
    one, two = replica(*slow), replica(*slow)
    front = gateway(state_of(chat_service([one.url, two.url], slots_per_replica=8)))

    async def load() -> list[Got]:
        async with Clients(front.url) as clients:
            asked = [asyncio.create_task(clients.chat(f"text {at}")) for at in range(40)]
            await in_thread(lambda: one.stats()["running"] == 8)
            one.kill()
            return list(await asyncio.gather(*asked))

    assert Counter(got.status for got in run(load())) == {200: 40}
    counted = front.service()
    assert (counted.arrivals, counted.ended, counted.failed) == (40, 40, 0)
    assert 1 <= counted.retries <= 40
    assert counted.outstanding_tokens == 0


def test_a_stream_that_breaks_off_is_not_taken_for_a_whole_one(replica: Start, gateway: Run):
    one = replica()
    front = gateway(state_of(chat_service([one.url])))
    one.control("die", value=2)

    async def stream() -> Got:
        async with Clients(front.url) as clients:
            return await clients.chat(stream=True)

    got: Got = run(stream())
    assert not got.complete
    assert b"[DONE]" not in got.body
    last = json.loads(got.body.decode().rstrip().rpartition("data: ")[2])
    assert last["error"]["code"] == "replica_interrupted"
    until(lambda: front.service().failed == 1)


def test_a_failing_replica_is_ejected_and_returns(replica: Start, gateway: Run):
    good, bad = replica("--name", "good"), replica("--name", "bad")
    front = gateway(state_of(chat_service([good.url, bad.url], affinity="none")))
    bad.control("status", value=500)

    def breaker() -> str:
        return front.service().revisions[0].replicas[1].breaker

    # Each failed attempt is repeated on the other replica.
    while breaker() == "closed":
        assert front.post(CHAT, chat())[0] == 200
    seen = bad.stats()["requests"]
    assert 5 <= seen <= 12
    bad.control("ok")
    while breaker() != "closed":
        assert front.post(CHAT, chat())[0] == 200
    while bad.stats()["requests"] < seen + 3:
        assert front.post(CHAT, chat())[0] == 200
    assert "breaker of v1-1 of chat opened" in front.log()


def test_if_every_replica_answers_errors_the_client_sees_them(replica: Start, gateway: Run):
    one = replica()
    one.control("status", value=503)
    front = gateway(state_of(chat_service([one.url])))
    for _ in range(12):
        status, _, body = front.post(CHAT, chat())
        assert (status, json.loads(body)["error"]["message"]) == (503, "planted")


def test_requests_wait_at_zero_replicas_and_are_served_in_order(replica: Start, gateway: Run):
    empty = chat_service([], slots_per_replica=1)
    front = gateway(state_of(empty))
    one = replica("--slots", "1")

    async def load() -> list[Got]:
        async with Clients(front.url) as clients:
            asked: list[asyncio.Task[Got]] = []
            for at in range(12):
                asked.append(asyncio.create_task(clients.chat("hi", user=str(at))))
                await in_thread(waits_for(front, at + 1))
            front.write(state_of(chat_service([one.url], slots_per_replica=1), version=2))
            return list(await asyncio.gather(*asked))

    assert Counter(got.status for got in run(load())) == {200: 12}
    assert [seen["user"] for seen in one.stats()["seen"]] == [str(at) for at in range(12)]


def test_waits_are_bounded_in_number_and_time(gateway: Run):
    hold = Hold(requests_max=2, timeout_s=3)
    front = gateway(state_of(chat_service([], hold=hold)))

    async def load() -> list[Got]:
        async with Clients(front.url) as clients:
            asked = [asyncio.create_task(clients.chat()) for _ in range(2)]
            await in_thread(waits_for(front, 2))
            full = await clients.chat()
            return [full, *await asyncio.gather(*asked)]

    answers = run(load())
    assert [got.status for got in answers] == [503] * 3
    codes = [json.loads(got.body)["error"]["code"] for got in answers]
    assert codes == ["queue_full", "wait_timeout", "wait_timeout"]
    assert all(int(got.headers["Retry-After"]) >= 1 for got in answers)
    assert front.service().shed == 3


def test_two_teams_share_a_busy_service_by_weight(replica: Start, gateway: Run):
    one = replica("--slots", "2", "--tokens-per-s", "400")
    front = gateway(
        state_of(
            chat_service([one.url], slots_per_replica=2),
            teams=(TeamLimits(name="big", weight=1), TeamLimits(name="small", weight=3)),
            tokens=(token_for("tf_big", "big"), token_for("tf_small", "small")),
        )
    )

    async def load() -> None:
        async with Clients(front.url) as clients:
            asked = [
                asyncio.create_task(clients.chat(token=f"tf_{team}", user=team))
                for team, count in (("big", 300), ("small", 30))
                for _ in range(count)
            ]
            await asyncio.gather(*asked)

    run(load())
    order = [seen["user"] for seen in one.stats()["seen"]]
    assert Counter(order) == {"big": 300, "small": 30}
    # While both wait, three of four are of the team with three times the weight: it has ten times
    # fewer requests, and is done when about ten of the other have been served since it came.
    first = order.index("small")
    last = len(order) - order[::-1].index("small")
    between = Counter(order[first:last])
    assert between["small"] == 30
    assert between["big"] <= 20


def test_overflow_rises_and_falls_with_a_spike_and_has_a_price(replica: Start, gateway: Run):
    own = replica("--slots", "1", "--tokens-per-s", "20", "--name", "own")
    other = replica("--name", "other", "--model", "theirs")
    place = Overflow(
        name="elsewhere",
        url=other.url,
        model="theirs",
        usd_per_million_input_tokens=1_000_000,
        usd_per_million_output_tokens=2_000_000,
        after_wait_s=0.3,
        requests_max=5,
    )
    front = gateway(
        state_of(chat_service([own.url], slots_per_replica=1, overflow=(place,), affinity="none"))
    )
    assert front.post(CHAT, chat())[0] == 200
    assert front.service().overflow[0].requests == 0

    async def spike() -> list[Got]:
        async with Clients(front.url) as clients:
            return list(await asyncio.gather(*(clients.chat() for _ in range(30))))

    assert Counter(got.status for got in run(spike())) == {200: 30}
    counted = front.service()
    away = counted.overflow[0]
    assert away.requests > 5
    assert other.stats()["requests"] == away.requests
    # 10 tokens of prompt at 1 USD, and 4 of answer at 2, each time.
    per_request = away.usd_micros / away.requests
    assert per_request == 1_000_000 * (away.input_tokens + 2 * away.output_tokens) / away.requests
    assert front.post(CHAT, chat())[1]["X-Replica"] == "own"
    assert front.service().overflow[0].requests == away.requests
    assert front.service().overflow[0].outstanding == 0


def test_a_budget_bounds_what_overflows(replica: Start, gateway: Run):
    other = replica("--name", "other")
    place = Overflow(
        name="elsewhere",
        url=other.url,
        usd_per_million_input_tokens=1_000_000,
        usd_per_hour_max=25,
        after_wait_s=0,
    )
    hold = Hold(timeout_s=2)
    front = gateway(state_of(chat_service([], overflow=(place,), hold=hold)))
    answers = [front.post(CHAT, chat())[0] for _ in range(4)]
    # Each costs 9 or 10 USD.
    assert answers == [200, 200, 503, 503]


def test_a_bad_canary_is_rolled_back_and_a_changed_one_gets_its_share_again(
    replica: Start, gateway: Run
):
    good, bad = replica("--name", "good"), replica("--name", "bad")
    bad.control("status", value=500)

    def service(weight: float) -> Service:
        canary = revision_of("v2", [bad.url], weight=weight, is_canary=True)
        stable = revision_of("v1", [good.url], weight=1)
        rule = Rollback(requests_min=4, window_s=600)
        return Service(name="chat", models=("stub",), revisions=(stable, canary), rollback=rule)

    front = gateway(state_of(service(1)))
    while not front.traffic().rolled_back:
        assert front.post(CHAT, chat())[0] == 200
    found = front.traffic().rolled_back[0]
    assert (found.service, found.revision, found.cause) == ("chat", "v2", "errors")
    assert found.requests == 4
    seen = bad.stats()["requests"]
    assert seen == 4
    for _ in range(20):
        assert front.post(CHAT, chat())[0] == 200
    assert bad.stats()["requests"] == seen
    bad.control("ok")
    front.write(state_of(service(2), version=2))
    until(lambda: front.traffic().routing_version == 2)
    assert front.traffic().rolled_back == ()
    while bad.stats()["requests"] == seen:
        assert front.post(CHAT, chat())[0] == 200


def test_a_shadow_gets_copies_and_its_answers_are_discarded(replica: Start, gateway: Run):
    own, copy = replica("--name", "own"), replica("--name", "copy")
    copy.control("status", value=500)
    revisions = (
        revision_of("v1", [own.url]),
        revision_of("v2", [copy.url], weight=0, shadow_percent=100),
    )
    front = gateway(state_of(Service(name="chat", models=("stub",), revisions=revisions)))
    for _ in range(3):
        status, headers, _ = front.post(CHAT, chat())
        assert (status, headers["X-Replica"]) == (200, "own")
    until(lambda: front.service().revisions[1].requests == 3)
    assert front.service().revisions[1].errors == 3
    assert front.service().ended == 3


def test_a_slow_replica_is_hedged(replica: Start, gateway: Run):
    one, two = replica("--name", "one"), replica("--name", "two")
    one.control("hang")
    front = gateway(
        state_of(
            chat_service(
                [one.url, two.url], hedge_after_s=0.05, hedge_percent_max=100, affinity="none"
            )
        )
    )
    while not front.service().hedges:
        status, headers, _ = front.post(CHAT, chat())
        assert (status, headers["X-Replica"]) == (200, "two")
    assert front.service().outstanding_requests == 0


def test_a_session_stays_with_its_replica(replica: Start, gateway: Run):
    urls = [replica("--name", str(at)).url for at in range(3)]
    front = gateway(state_of(chat_service(urls, affinity="session")))

    def answered_by(session: str) -> set[str]:
        headers = {"X-Session-Id": session}
        return {front.post(CHAT, chat(), headers)[1]["X-Replica"] for _ in range(4)}

    homes = [answered_by(f"session-{at}") for at in range(8)]
    assert all(len(home) == 1 for home in homes)
    assert len(set.union(*homes)) > 1


def test_answers_are_finished_after_the_signal_to_end(replica: Start, gateway: Run):
    one = replica("--tokens-per-s", "20")
    front = gateway(state_of(chat_service([one.url])))

    async def end() -> None:
        front.terminate()
        await in_thread(lambda: "draining 1 requests" in front.log())

    async def load() -> tuple[Got, Got]:
        async with Clients(front.url) as clients:
            whole = await clients.chat(stream=True, max_tokens=40, begun=end)
            return whole, await clients.chat()

    whole, refused = run(load())
    assert whole.complete
    assert whole.body.endswith(b"data: [DONE]\n\n")
    assert not refused.complete
    assert front.process.wait() == 0


def test_a_client_that_leaves_frees_its_place(replica: Start, gateway: Run):
    one = replica("--slots", "1")
    one.control("hang", requests=1)
    front = gateway(state_of(chat_service([one.url], slots_per_replica=1)))

    async def leave() -> Got:
        async with Clients(front.url) as clients:
            first = asyncio.create_task(clients.chat())
            await in_thread(lambda: front.service().outstanding_requests == 1)
            second = asyncio.create_task(clients.chat())
            third = asyncio.create_task(clients.chat())
            await in_thread(waits_for(front, 2))
            second.cancel()
            await in_thread(waits_for(front, 1))
            first.cancel()
            return await third

    assert run(leave()).status == 200
    counted = front.service()
    assert (counted.outstanding_requests, counted.outstanding_tokens) == (0, 0)
