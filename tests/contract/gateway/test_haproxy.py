"""A real HAProxy as the data plane: it answers the same, and what it cannot decide it leaves."""

import http.client
import json
import os
import signal
import tempfile
import time
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any
from urllib.error import URLError
from urllib.parse import urlsplit

import pytest
from msgspec.structs import replace

from patience import until
from tenfold.model.service.routing import Hold, RoutingState, Service, TeamLimits
from tests.engines.haproxy import HaproxyWatch, require_haproxy
from tests.rigs.gateway import (
    GatewayProcess,
    chat_service,
    revision_of,
    state_of,
    token_for,
)
from tests.rigs.openai_replica import ReplicaProcess

CHAT = "/v1/chat/completions"
BODY = {"model": "stub", "messages": [{"role": "user", "content": "hello"}], "max_tokens": 4}
RED = {"Authorization": "Bearer red-token"}
HAPROXY = ("--data-plane", "haproxy")
Start = Callable[..., ReplicaProcess]


@pytest.fixture(autouse=True)
def _haproxy() -> None:
    require_haproxy()


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Generator[HaproxyWatch, None, None]:
    # Sockets have short paths: not the folder of the test.
    with tempfile.TemporaryDirectory(prefix="hx-") as folder:
        monkeypatch.setenv("TMPDIR", folder)
        monkeypatch.setattr(tempfile, "tempdir", folder)
        yield HaproxyWatch(Path(folder))


def of_red(*services: Service, **fields: Any) -> RoutingState:
    return state_of(*services, tokens=(token_for("red-token", "red"),), **fields)


def spread(urls: list[str], **fields: Any) -> Service:
    return chat_service(urls, **{"affinity": "none", **fields})


def chat(
    gateway: GatewayProcess, headers: dict[str, str] = RED, **fields: Any
) -> tuple[int, dict[str, str], bytes]:
    return gateway.post(CHAT, {**BODY, **fields}, headers)


def served(gateway: GatewayProcess, watch: HaproxyWatch, requests: int = 20) -> int:
    """Send requests, which are all answered; return how many HAProxy served by itself."""
    before = watch.served()
    for _ in range(requests):
        status, _, body = chat(gateway)
        assert status == 200, body
    return watch.served() - before


def hot(gateway: GatewayProcess, watch: HaproxyWatch) -> int:
    """Send requests until HAProxy serves some by itself; return how many."""
    sent = 3
    while served(gateway, watch, 3) == 0:
        sent += 3
    return sent


def test_it_answers_like_the_gateway_and_counts_for_it(
    watch: HaproxyWatch, replica: Start, gateway: Callable[..., GatewayProcess]
):
    urls = [replica("--name", name).url for name in ("a", "b")]
    front = gateway(of_red(spread(urls)), *HAPROXY)
    sent = hot(front, watch)
    # One request in a hundred takes the gateway, so that it learns the lengths of answers.
    assert served(front, watch, 30) > 20
    until(lambda: front.service().ended == sent + 30, explain=lambda: f"{sent} {front.service()}")
    after = front.service()
    assert after.arrivals == sent + 30
    assert after.outstanding_requests == after.failed == 0
    assert sum(one.requests for one in after.revisions) == after.ended
    plain = gateway(of_red(spread(urls)))
    for body in ({}, {"stream": True}):
        told = [chat(one, **body) for one in (front, plain)]
        assert told[0][2] == told[1][2]
        heads = [{name.lower() for name in one[1]} for one in told]
        assert heads[0] - {"connection"} == heads[1] - {"connection"}
    seen = replica("--name", "c")
    front.write(of_red(spread([seen.url])))
    secrets = {**RED, "Cookie": "c", "X-Api-Key": "k"}
    until(lambda: chat(front, secrets)[0] == 200 and bool(seen.stats()["seen"]))
    assert all(not one["credentials"] for one in seen.stats()["seen"])
    assert all(one["request_id"] for one in seen.stats()["seen"])


def test_tokens_are_not_delayed(
    watch: HaproxyWatch, replica: Start, gateway: Callable[..., GatewayProcess]
):
    """By default, HAProxy holds back small chunks: at 20 ms a token, gaps were 217 ms."""
    one = replica("--tokens-per-s", "50")
    front = gateway(of_red(spread([one.url])), *HAPROXY)
    hot(front, watch)
    assert "option http-no-delay" in watch.config
    address = urlsplit(front.url)
    connection = http.client.HTTPConnection(address.hostname or "", address.port or 0)
    body = json.dumps({**BODY, "stream": True, "max_tokens": 40})
    connection.request("POST", CHAT, body, {"Content-Type": "application/json", **RED})
    answer = connection.getresponse()
    at: list[float] = []
    while line := answer.readline():
        if line.startswith(b"data: {"):
            at.append(time.monotonic())
    connection.close()
    gaps = [after - before for before, after in pairwise(at)]
    assert len(gaps) == 40
    # Held back, most would arrive together: the median gap would be 0 or many tokens long.
    assert 0.005 < median(gaps) < 0.1


def test_servers_come_drain_and_go_without_a_reload(
    watch: HaproxyWatch, replica: Start, gateway: Callable[..., GatewayProcess]
):
    slow, other = replica("--tokens-per-s", "20"), replica()
    front = gateway(of_red(spread([slow.url])), *HAPROXY)
    hot(front, watch)
    worker = watch.pid()
    with ThreadPoolExecutor(1) as pool:
        long = pool.submit(chat, front, max_tokens=60)
        until(lambda: slow.stats()["running"] == 1)
        front.write(of_red(spread([other.url])))
        until(lambda: other.stats()["requests"] > 0 or chat(front)[0] != 200)
        before = slow.stats()["requests"]
        assert served(front, watch) > 10
        assert slow.stats()["requests"] == before
        assert long.result()[0] == 200
    until(lambda: len(watch.servers()) == 1)
    front.write(of_red(spread([slow.url, other.url])))
    until(lambda: len(watch.servers()) == 2)
    state = of_red(spread([slow.url, other.url]))
    [revision] = state.services[0].revisions
    heavy = replace(revision, replicas=tuple(replace(r, weight=2.0) for r in revision.replicas))
    front.write(replace(state, services=(replace(state.services[0], revisions=(heavy,)),)))
    until(lambda: ",32," in watch.ask("show stat"))
    assert watch.pid() == worker
    front.write(of_red(spread([slow.url, other.url], slots_per_replica=4)))
    until(lambda: watch.pid() != worker)
    assert served(front, watch) > 10


def test_a_killed_replica_costs_no_request_and_its_breaker_opens(
    watch: HaproxyWatch, replica: Start, gateway: Callable[..., GatewayProcess]
):
    bad, good = replica(), replica()
    front = gateway(of_red(spread([bad.url, good.url])), *HAPROXY)
    hot(front, watch)
    bad.kill()
    assert served(front, watch, 40) > 30
    breakers = lambda: {  # noqa: E731 - read again and again
        one.id: one.breaker for each in front.service().revisions for one in each.replicas
    }
    until(lambda: breakers()["v1-0"] == "open" or chat(front)[0] != 200)
    until(lambda: ",MAINT," in watch.ask("show stat") or breakers()["v1-0"] != "open")
    bad.restart()
    until(lambda: chat(front)[0] != 200 or breakers() == {"v1-0": "closed", "v1-1": "closed"})
    assert served(front, watch) > 10


def test_what_needs_a_decision_goes_to_the_gateway(
    watch: HaproxyWatch, replica: Start, gateway: Callable[..., GatewayProcess]
):
    one = replica("--slots", "1", "--tokens-per-s", "100")
    limits = TeamLimits(name="blue", requests_per_minute=2)
    tokens = (token_for("red-token", "red"), token_for("blue-token", "blue"))
    tokens += (token_for("narrow", "red", "other"),)
    service = spread([one.url], slots_per_replica=1, hold=Hold(requests_max=50, timeout_s=60))
    services = (service, Service(name="other"))
    front = gateway(state_of(*services, tokens=tokens, teams=(limits,)), *HAPROXY)
    hot(front, watch)
    before = watch.served()
    assert chat(front, {"Authorization": "Bearer nobody"})[0] == 401
    assert chat(front, {})[0] == 401
    assert chat(front, {"Authorization": "Bearer narrow"})[0] == 404
    assert chat(front, model="unknown")[0] == 404
    blue = {"Authorization": "Bearer blue-token"}
    assert [chat(front, blue)[0] for _ in range(3)] == [200, 200, 429]
    assert front.get("/readyz")
    assert front.send("GET", "/v1/models", None, RED)[0] == 200
    assert front.post(f"{CHAT}/../x", BODY, RED)[0] == 400
    assert watch.served() == before
    # More than there are slots: the others wait in the gateway's queue, and none is lost.
    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(lambda _: chat(front, max_tokens=8)[0], range(24)))
    assert answers == [200] * 24
    assert one.stats()["running_most"] <= 2


def test_a_service_without_replicas_is_held_by_the_gateway(
    watch: HaproxyWatch, replica: Start, gateway: Callable[..., GatewayProcess]
):
    front = gateway(of_red(spread([])), *HAPROXY)
    with ThreadPoolExecutor(3) as pool:
        held = [pool.submit(chat, front) for _ in range(3)]
        until(lambda: front.service().waiting_requests == 3)
        front.write(of_red(spread([replica().url])))
        assert [one.result()[0] for one in held] == [200] * 3
    hot(front, watch)


def test_a_canary_takes_the_gateway_until_it_is_over(
    watch: HaproxyWatch, replica: Start, gateway: Callable[..., GatewayProcess]
):
    urls = [replica().url, replica().url]
    front = gateway(of_red(spread(urls[:1])), *HAPROXY)
    hot(front, watch)
    both = (
        revision_of("v1", urls[:1], weight=9.0),
        revision_of("v2", urls[1:], weight=1.0, is_canary=True),
    )
    front.write(of_red(replace(spread(urls[:1]), revisions=both)))
    until(lambda: not watch.servers())
    assert chat(front)[0] == 200
    front.write(of_red(spread(urls[:1])))
    hot(front, watch)


def test_a_session_stays_on_one_replica(
    watch: HaproxyWatch, replica: Start, gateway: Callable[..., GatewayProcess]
):
    ones = [replica("--name", name) for name in ("a", "b", "c")]
    front = gateway(of_red(spread([one.url for one in ones], affinity="session")), *HAPROXY)
    hot(front, watch)
    before = [one.stats()["requests"] for one in ones]
    for _ in range(20):
        assert chat(front, {**RED, "X-Session-Id": "mine"})[0] == 200
    grown = [one.stats()["requests"] - was for one, was in zip(ones, before, strict=True)]
    # Requests that teach the gateway may go elsewhere.
    assert max(grown) >= 15


def test_the_same_beginning_of_a_prompt_finds_the_same_replica(
    watch: HaproxyWatch, replica: Start, gateway: Callable[..., GatewayProcess]
):
    ones = [replica("--name", name) for name in ("a", "b", "c")]
    front = gateway(of_red(spread([one.url for one in ones], affinity="prefix")), *HAPROXY)
    hot(front, watch)
    before = [one.stats()["requests"] for one in ones]
    for turn in range(20):
        messages = [{"role": "system", "content": "x" * 2_000}, {"role": "user", "content": turn}]
        assert chat(front, messages=messages)[0] == 200
    grown = [one.stats()["requests"] - was for one, was in zip(ones, before, strict=True)]
    assert max(grown) >= 15


def test_bodies_that_are_large_or_odd_reach_the_right_place(
    watch: HaproxyWatch, replica: Start, gateway: Callable[..., GatewayProcess]
):
    front = gateway(of_red(spread([replica().url])), *HAPROXY, "--body-max-mib", "1")
    hot(front, watch)
    large = [{"role": "user", "content": "x" * 500_000}]
    for body in (
        {"model": "stub", "messages": large, "max_tokens": 2},
        {"messages": large, "max_tokens": 2, "model": "stub"},
    ):
        assert front.post(CHAT, body, RED)[0] == 200
    with suppress(URLError):
        assert front.post(CHAT, {"model": "stub", "x": "x" * (2 << 20)}, RED)[0] == 413
    for odd in (b"", b"{", b"[]", b'{"model": 5}', b'{"model": "stub;x y"}', b"\xff\xfe"):
        assert front.post(CHAT, odd, RED)[0] in (400, 404)
    twice = front.send("POST", CHAT, json.dumps(BODY).encode(), {**RED, "Content-Encoding": "gzip"})
    assert twice[0] == 400


def test_it_drains_and_a_killed_haproxy_comes_back(
    watch: HaproxyWatch, replica: Start, gateway: Callable[..., GatewayProcess]
):
    one = replica("--tokens-per-s", "20")
    front = gateway(of_red(spread([one.url])), *HAPROXY)
    hot(front, watch)
    os.kill(watch.pid(), signal.SIGKILL)

    def answers() -> bool:
        with suppress(OSError, URLError, ValueError):
            return chat(front)[0] == 200
        return False

    until(answers)
    hot(front, watch)
    with ThreadPoolExecutor(1) as pool:
        long = pool.submit(chat, front, max_tokens=30)
        until(lambda: one.stats()["running"] == 1)
        front.terminate()
        assert long.result()[0] == 200
    assert front.process.wait() == 0
    assert not list(Path(tempfile.gettempdir()).glob("tenfold-haproxy-*"))


def test_haproxy_ends_with_a_killed_gateway(
    watch: HaproxyWatch, replica: Start, gateway: Callable[..., GatewayProcess]
):
    front = gateway(of_red(spread([replica().url])), *HAPROXY)
    hot(front, watch)
    worker = watch.pid()
    front.process.kill()
    front.process.wait()
    until(lambda: not Path(f"/proc/{worker}").exists())
