"""Replicas that lie: about readiness, lengths, headers and event streams."""

import json
from collections.abc import Callable

import pytest

from contract.gateway.clients import CHAT, chat
from hostile.gateway.attacked import RED, Attacked, Raw, head
from tests.rigs.gateway import GatewayProcess, chat_service, state_of
from tests.rigs.openai_replica import ReplicaProcess


@pytest.mark.parametrize(
    ("mode", "values", "status"),
    [
        ("garbage", {}, 502),
        ("close", {}, 502),
        ("hang", {}, 504),
        ("split-header", {"value": "a\nSet-Cookie: evil=1"}, (200, 502)),
        ("split-header", {"value": "a\rSet-Cookie: evil=1"}, 502),
        ("split-header", {"value": "a\x00b"}, 502),
        ("split-header", {"value": "a\r\nTransfer-Encoding: chunked"}, 502),
        ("split-header", {"value": "a\r\nContent-Length: 50"}, 502),
        ("split-header", {"value": "x" * 100_000}, 502),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_is_no_valid_answer_is_not_passed_on(
    attacked: Attacked,
    raw: Callable[[], Raw],
    mode: str,
    values: dict[str, object],
    status: int | tuple[int, ...],
):
    attacked.replica.control(mode, **values)
    got, headers, body = attacked.front.post(CHAT, chat(model="hasty"), RED)
    assert got in (status if isinstance(status, tuple) else (status,))
    if got != 200:
        assert json.loads(body)["error"]["type"] == "replica_error"
        assert "evil" not in str(headers)
    attacked.replica.control("ok")
    # A connection that was not made opens the breaker; after a while it is tried again.
    while attacked.ask(model="hasty")[0] != 200:
        pass


def test_a_line_without_an_end_is_cut_off_and_uses_no_memory(
    attacked: Attacked, raw: Callable[[], Raw]
):
    attacked.replica.control("long-line", value=64 << 20, requests=1)
    before = attacked.front.rss_bytes()
    body = json.dumps(chat(stream=True)).encode()
    connection = raw().send(head("POST", CHAT, f"Content-Length: {len(body)}") + body)
    answer = connection.read()
    assert answer.startswith(b"HTTP/1.1 200")
    assert not answer.endswith(b"0\r\n\r\n")
    assert len(answer) < 8 << 20
    assert attacked.front.rss_bytes() - before < 48 << 20


@pytest.mark.parametrize("mode", ["die", "stall"])
def test_an_answer_that_stops_is_ended_as_incomplete(
    attacked: Attacked, raw: Callable[[], Raw], mode: str
):
    attacked.replica.control(mode, value=2, requests=1)
    body = json.dumps(chat(stream=True)).encode()
    connection = raw().send(head("POST", CHAT, f"Content-Length: {len(body)}") + body)
    answer = connection.read()
    assert not answer.endswith(b"0\r\n\r\n")
    assert b"[DONE]" not in answer
    assert b"replica_interrupted" in answer


def test_a_replica_that_is_said_to_be_ready_and_is_not_gets_no_requests_for_long():
    ready, absent = ReplicaProcess(), ReplicaProcess()
    absent.kill()
    front = GatewayProcess(state_of(chat_service([absent.url, ready.url], affinity="none")))
    try:
        statuses = [front.post(CHAT, chat())[0] for _ in range(20)]
        assert statuses == [200] * 20
        assert front.service().retries <= 10
    finally:
        front.close()
        ready.close()
        absent.close()


def test_a_compressed_answer_is_passed_on_and_not_unpacked(attacked: Attacked):
    headers = {**RED, "Accept-Encoding": "gzip", "X-Tenfold-Service": "plain"}
    seen = json.loads(attacked.front.send("GET", "/v1x", None, headers)[2])["headers"]
    assert ["Accept-Encoding", "gzip"] in seen
