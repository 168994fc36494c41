"""Clients that are too slow, too large, or want what belongs to another team."""

import json
from collections.abc import Callable

import pytest

from contract.gateway.clients import CHAT, chat
from hostile.gateway.attacked import RED, Attacked, Raw, head
from patience import until
from tests.rigs.gateway import digest_of


def test_a_head_that_does_not_end_is_cut_off(attacked: Attacked, raw: Callable[[], Raw]):
    half = raw().send(b"GET /v1/models HTTP/1.1\r\nHost: x\r\nX-Slow:")
    assert half.read() == b""


def test_a_body_beyond_the_limit_is_refused_before_it_is_read(
    attacked: Attacked, raw: Callable[[], Raw]
):
    answer = raw().send(head("POST", CHAT, "Content-Length: 99999999999")).read()
    assert answer.startswith(b"HTTP/1.1 413")
    chunked = raw().send(head("POST", CHAT, "Transfer-Encoding: chunked"))
    for _ in range(40):
        chunked.send(b"10000\r\n" + b"x" * 65_536 + b"\r\n")
    assert chunked.read().startswith(b"HTTP/1.1 413")
    assert attacked.front.post(CHAT, b"x" * (2 << 20), RED)[0] == 413


def test_a_client_that_takes_nothing_does_not_hold_up_others(
    attacked: Attacked, raw: Callable[[], Raw]
):
    before = attacked.front.rss_bytes()
    body = json.dumps(chat(stream=True, max_tokens=400_000)).encode()
    lazy = [raw() for _ in range(3)]
    for one in lazy:
        one.narrow()
        one.send(head("POST", CHAT, f"Content-Length: {len(body)}") + body)
    until(lambda: attacked.front.service().outstanding_requests == 3)
    assert [attacked.ask()[0] for _ in range(5)] == [200] * 5
    # What they do not take stays with the replica, not in the memory of the gateway.
    assert attacked.front.rss_bytes() - before < 32 << 20
    for one in lazy:
        one.close()
    until(lambda: attacked.front.service().outstanding_requests == 0)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b'"stub"',
        b'{"model": null}',
        b'{"model": ["stub"]}',
        b'{"model": "stub", "model": 3}',
        b'{"model": "\xff"}',
        b"[" * 200_000,
        b'{"model": "stub", "max_tokens": 1e999}',
        b'{"model":"' + b"x" * 100_000 + b'"}',
    ],
    ids=lambda body: repr(body[:20]),
)
def test_a_body_that_is_no_request_is_refused(attacked: Attacked, body: bytes):
    status, _, answer = attacked.front.post(CHAT, body, RED)
    assert status in (400, 404)
    assert len(answer) < 1_000
    assert attacked.ask()[0] == 200


def test_a_token_does_not_open_what_belongs_to_another_team(attacked: Attacked):
    front = attacked.front
    before = attacked.replica.stats()["requests"]
    absent = front.post(CHAT, chat(model="nothing"), RED)
    for asked, headers in (
        (chat(model="secret"), RED),
        (chat(model="secret"), {**RED, "X-Team": "blue", "X-Tenfold-Team": "blue"}),
        (chat(), {**RED, "X-Tenfold-Service": "secret"}),
    ):
        status, _, body = front.post(CHAT, asked, headers)
        # The same answer as for what does not exist.
        assert status == 404
        assert json.loads(body)["error"]["type"] == json.loads(absent[2])["error"]["type"]
    assert front.post("/services/secret/v1/chat/completions", chat(), RED)[0] == 404
    stolen = {"Authorization": f"Bearer {digest_of('tf_blue-secret')}"}
    assert front.post(CHAT, chat(model="secret"), stolen)[0] == 401
    two = {"Authorization": "Bearer tf_red-secret, Bearer tf_blue-secret"}
    assert front.post(CHAT, chat(model="secret"), two)[0] == 401
    assert attacked.replica.stats()["requests"] == before
    blue = {"Authorization": "Bearer tf_blue-secret"}
    assert front.post(CHAT, chat(model="secret"), blue)[0] == 200


def test_nothing_that_a_client_sends_is_in_the_log_or_the_metrics(
    attacked: Attacked, raw: Callable[[], Raw]
):
    evil = "evil\\n2026 error forged \x1b[31m"
    attacked.front.post(CHAT, chat(model=f"{evil}\n"), RED)
    attacked.front.post(CHAT, chat(user=evil), {**RED, "X-Request-Id": "evil"})
    raw().send(head("GET", "/v1/evil", "X-Evil: \x1b[31m", "Connection: close")).read()
    raw().send(b"evil \x1b[31m evil\r\n\r\n").read()
    log = attacked.front.log()
    for line in log.splitlines():
        assert set(json.loads(line)) == {"at", "level", "message"}
    seen = (
        log + attacked.front.get("/metrics").decode() + attacked.front.get("/gateway/load").decode()
    )
    for secret in ("evil", "tf_red-secret", "tf_blue-secret", digest_of("tf_red-secret"), "\x1b"):
        assert secret not in seen


def test_many_connections_that_say_nothing_are_no_harm(attacked: Attacked, raw: Callable[[], Raw]):
    before = attacked.front.descriptors()
    idle = [raw() for _ in range(300)]
    assert attacked.ask()[0] == 200
    for one in idle:
        one.close()
    until(lambda: attacked.front.descriptors() <= before + 5)
