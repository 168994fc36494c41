"""Chunked requests that two readers could read differently, and bodies that never end."""

import json
from collections.abc import Callable

import pytest

from contract.gateway.clients import CHAT, chat
from hostile.gateway.attacked import Attacked, Raw, head
from patience import until

HIDDEN = head("GET", "/services/plain/smuggled")
"""With a valid token: whoever reads it as a request gets an answer."""
CHUNKS = "Transfer-Encoding: chunked"
TO = "/services/plain/x"

REFUSED = {
    "a space in the size": head("POST", TO, CHUNKS) + b"5 5\r\nhello\r\n0\r\n\r\n",
    "a size with a prefix": head("POST", TO, CHUNKS) + b"0x5\r\nhello\r\n0\r\n\r\n",
    "a size with a sign": head("POST", TO, CHUNKS) + b"+5\r\nhello\r\n0\r\n\r\n",
    "a size with an underscore": head("POST", TO, CHUNKS) + b"0_5\r\nhello\r\n0\r\n\r\n",
    "an empty size": head("POST", TO, CHUNKS) + b"\r\nhello\r\n0\r\n\r\n",
    "a chunk longer than its size": head("POST", TO, CHUNKS) + b"3\r\nhello\r\n0\r\n\r\n",
    "chunks and an old version": head("POST", TO, CHUNKS).replace(b"HTTP/1.1", b"HTTP/1.0")
    + b"0\r\n\r\n",
    "chunks twice": head("POST", TO, CHUNKS, CHUNKS) + b"0\r\n\r\n",
    "chunks after a control character": head("POST", TO, "Transfer-Encoding: \x0bchunked")
    + b"0\r\n\r\n",
    "chunks and a zero byte": head("POST", TO, "Transfer-Encoding: chunked\x00") + b"0\r\n\r\n",
    "chunks in quotes": head("POST", TO, 'Transfer-Encoding: "chunked"') + b"0\r\n\r\n",
    "an empty name of a header": head("POST", TO, CHUNKS, ": x") + b"0\r\n\r\n",
    "a folded header": head("POST", TO, CHUNKS, "X-A: b", " c") + b"0\r\n\r\n",
    "a folded length": head("POST", TO, "Content-Length: 1", " 2") + b"0\r\n\r\n",
    "a bare line feed after the head": head("POST", TO, CHUNKS).replace(b"\r\n\r\n", b"\n\n")
    + b"0\r\n\r\n",
    "a bare line feed in a header": head("POST", TO, "X-A: b\nContent-Length: 5"),
    "a bare line feed after a size": head("POST", TO, CHUNKS) + b"5\nhello\r\n0\r\n\r\n",
    "a bare line feed in an extension": head("POST", TO, CHUNKS) + b"5;a\nb\r\nhello\r\n0\r\n\r\n",
    "an endless extension": head("POST", TO, CHUNKS) + b"5;" + b"a" * 200_000 + b"\r\nhello\r\n",
    "a length in the trailer": head("POST", TO, CHUNKS) + b"0\r\nContent-Length: 9\r\n\r\n",
    "a trailer that is none": head("POST", TO, CHUNKS) + b"0\r\nContent-Length 9\r\n\r\n",
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_request_that_is_framed_badly_hides_no_other(
    attacked: Attacked, raw: Callable[[], Raw], name: str
):
    sent = raw().send(REFUSED[name] + HIDDEN)
    sent.finish()
    answers = sent.read()
    assert b"smuggled" not in answers, answers
    assert answers == b"" or answers.startswith((b"HTTP/1.1 400", b"HTTP/1.0 400")), answers
    assert answers.count(b"HTTP/1.") <= 1, answers


def test_extensions_and_trailers_are_read_and_do_not_reach_the_replica(
    attacked: Attacked, raw: Callable[[], Raw]
):
    trailer = b"Authorization: Bearer tf_blue-secret\r\nX-Trailer: 1\r\n"
    body = b'5;a=b;c="d"\r\nhello\r\n0;x\r\n' + trailer + b"\r\n"
    answer = raw().send(head("POST", TO, CHUNKS, "Connection: close") + body).read()
    seen = json.loads(answer.partition(b"\r\n\r\n")[2])
    assert seen["bytes"] == 5
    names = {name.lower() for name, _ in seen["headers"]}
    assert not names & {"x-trailer", "authorization", "transfer-encoding"}
    assert ["Content-Length", "5"] in seen["headers"]


def test_requests_behind_one_another_are_each_answered_once_and_in_order(
    attacked: Attacked, raw: Callable[[], Raw]
):
    paths = [f"/services/plain/{at}" for at in range(20)]
    last = head("GET", "/services/plain/last", "Connection: close")
    answers = raw().send(b"".join(head("GET", one) for one in paths) + last).read()
    said = [one.partition(b"\r\n\r\n")[2] for one in answers.split(b"HTTP/1.1 200 OK\r\n")[1:]]
    assert [json.loads(one)["path"] for one in said] == [f"/{at}" for at in range(20)] + ["/last"]


def test_bodies_that_trickle_in_hold_nobody_up_and_little_memory(
    attacked: Attacked, raw: Callable[[], Raw]
):
    before = attacked.front.rss_bytes()
    slow = [raw() for _ in range(100)]
    for at, one in enumerate(slow):
        if at % 2:
            one.send(head("POST", CHAT, CHUNKS) + b"1\r\n{\r\n")
        else:
            one.send(head("POST", CHAT, "Content-Length: 1000000") + b"{")
    for _ in range(5):
        for one in slow:
            one.send(b"1\r\n \r\n")
        assert attacked.ask()[0] == 200
    assert attacked.front.rss_bytes() - before < 16 << 20
    descriptors = attacked.front.descriptors()
    for one in slow:
        one.close()
    until(lambda: attacked.front.descriptors() <= descriptors - 90)


def test_a_client_that_resets_in_the_middle_leaves_nothing(
    attacked: Attacked, raw: Callable[[], Raw]
):
    body = json.dumps(chat(stream=True, max_tokens=100_000)).encode()
    for _ in range(20):
        one = raw().send(head("POST", CHAT, f"Content-Length: {len(body)}") + body)
        one.read_until(b"data:")
        one.reset()
    until(lambda: attacked.front.service().outstanding_requests == 0)
    until(lambda: attacked.replica.stats()["running"] == 0)


def test_the_head_may_come_byte_by_byte_and_is_one_request(
    attacked: Attacked, raw: Callable[[], Raw]
):
    one = raw()
    one.nodelay()
    for byte in head("GET", "/services/plain/slow", "Connection: close"):
        one.send(bytes([byte]))
    assert one.read().count(b'"path": "/slow"') == 1
