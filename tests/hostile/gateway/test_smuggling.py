"""Requests that a gateway and a replica could read differently, and paths and headers that lie."""

import json
from collections.abc import Callable

import pytest

from hostile.gateway.attacked import RED, Attacked, Raw, head

BODY = b'{"model":"stub","messages":[]}'
REFUSED = (b"HTTP/1.1 4", b"HTTP/1.0 4")
HIDDEN = b"GET /smuggled HTTP/1.1\r\nHost: x\r\nX-Tenfold-Service: plain\r\n\r\n"

AMBIGUOUS = {
    "length and chunks": head(
        "POST", "/v1/x", f"Content-Length: {len(BODY)}", "Transfer-Encoding: chunked"
    )
    + BODY
    + HIDDEN,
    "two lengths": head("POST", "/v1/x", "Content-Length: 3", "Content-Length: 30") + BODY + HIDDEN,
    "a list of lengths": head("POST", "/v1/x", "Content-Length: 3, 30") + BODY + HIDDEN,
    "a signed length": head("POST", "/v1/x", "Content-Length: +30") + BODY + HIDDEN,
    "a hexadecimal length": head("POST", "/v1/x", "Content-Length: 0x1e") + BODY + HIDDEN,
    "a negative length": head("POST", "/v1/x", "Content-Length: -1") + BODY + HIDDEN,
    "chunks by another name": head("POST", "/v1/x", "Transfer-Encoding: xchunked") + HIDDEN,
    "chunks not last": head("POST", "/v1/x", "Transfer-Encoding: chunked, identity") + HIDDEN,
    "chunks with a space": head("POST", "/v1/x", "Transfer-Encoding : chunked") + HIDDEN,
    "chunks folded": head("POST", "/v1/x", "Transfer-Encoding:\r\n chunked")
    + b"0\r\n\r\n"
    + HIDDEN,
    "a bad chunk size": head("POST", "/v1/x", "Transfer-Encoding: chunked") + b"zz\r\n" + HIDDEN,
    "a huge chunk size": head("POST", "/v1/x", "Transfer-Encoding: chunked")
    + b"ffffffffffffffffff\r\n"
    + HIDDEN,
    "a bare line feed": b"POST /v1/x HTTP/1.1\nHost: x\nContent-Length: 0\n\n" + HIDDEN,
    "a carriage return in a header": head("POST", "/v1/x", "X-A: b\rContent-Length: 0"),
    "a zero byte in a header": head("POST", "/v1/x", "X-A: b\x00c"),
    "no colon": head("POST", "/v1/x", "Content-Length 3"),
    "a space before the first header": b"GET / HTTP/1.1\r\n Host: x\r\n\r\n" + HIDDEN,
    "an unknown version": b"GET /v1/models HTTP/9.9\r\nHost: x\r\n\r\n" + HIDDEN,
    "no HTTP": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" * 20 + b"\r\n\r\n",
    "a long line": b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n",
    "a long header": head("GET", "/v1/models", f"X-A: {'a' * 70_000}"),
    "many headers": head("GET", "/v1/models", *(f"X-{at}: 1" for at in range(3_000))),
}


@pytest.mark.parametrize("name", AMBIGUOUS)
def test_an_ambiguous_request_is_refused_and_nothing_behind_it_is_read(
    attacked: Attacked, raw: Callable[[], Raw], name: str
):
    before = attacked.replica.stats()["requests"]
    answers = raw().send(AMBIGUOUS[name]).read()
    assert answers.count(b"HTTP/1.") <= 1, answers
    assert answers == b"" or answers.startswith(REFUSED), answers
    assert b"smuggled" not in answers
    assert attacked.replica.stats()["requests"] == before


def test_the_rest_of_a_refused_body_is_no_request(attacked: Attacked, raw: Callable[[], Raw]):
    before = attacked.replica.stats()["requests"]
    refused = head(
        "POST", "/v1/chat/completions", f"Content-Length: {len(HIDDEN)}", "Connection: close"
    )
    refused = refused.replace(b"tf_red-secret", b"nobody")
    answers = raw().send(refused + HIDDEN).read()
    assert answers.startswith(b"HTTP/1.1 401")
    assert answers.count(b"HTTP/1.1 ") == 1
    assert attacked.replica.stats()["requests"] == before


def test_what_reaches_the_replica_has_one_length_and_the_bytes_that_were_sent(
    attacked: Attacked, raw: Callable[[], Raw]
):
    chunks = b"5\r\nhello\r\n6;x=y\r\n world\r\n0\r\nX-Trailer: 1\r\n\r\n"
    sent = head(
        "POST", "/services/plain/a", "Transfer-Encoding: chunked", "Connection: close, X-Hop",
        "X-Hop: 1",
    )  # fmt: skip
    answer = raw().send(sent + chunks).read()
    seen = json.loads(answer.partition(b"\r\n\r\n")[2])
    names = [name.lower() for name, _ in seen["headers"]]
    assert seen["bytes"] == 11
    assert names.count("content-length") == 1
    for gone in ("transfer-encoding", "x-hop", "x-trailer", "authorization"):
        assert gone not in names


@pytest.mark.parametrize(
    "path",
    [
        "/v1/../stats",
        "/v1/%2e%2e/stats",
        "/v1/./stats",
        "//stats",
        "/v1//stats",
        "/v1/..",
        "/v1/x%0d%0aHost:evil",
        "/v1/x%00",
        "/services/chat/../../stats",
        "/services/plain/a/../b",
        "/v1\\..\\stats",
        "http://elsewhere.example/stats",
        "/services/chat/stats",
        "/services/chat/control",
        "/services//stats",
        "/services/../stats",
        "/stats",
        "*",
    ],
)
def test_a_path_does_not_leave_its_service(attacked: Attacked, raw: Callable[[], Raw], path: str):
    before = attacked.replica.stats()["requests"]
    answer = raw().send(head("GET", path, "Connection: close")).read()
    assert answer.startswith(REFUSED), answer
    assert attacked.replica.stats()["requests"] == before


@pytest.mark.parametrize("method", ["CONNECT", "TRACE", "PRI", "PURGE"])
def test_other_methods_are_refused(attacked: Attacked, raw: Callable[[], Raw], method: str):
    target = "elsewhere:443" if method == "CONNECT" else "/services/plain/x"
    answer = raw().send(head(method, target, "Connection: close")).read()
    assert answer.startswith(REFUSED), answer


def test_a_connection_is_not_upgraded(attacked: Attacked, raw: Callable[[], Raw]):
    upgrade = ("Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Key: x")
    connection = raw().send(head("GET", "/services/plain/x", *upgrade))
    answer = connection.read_until(b"}")
    assert answer.startswith(b"HTTP/1.1 200"), answer
    assert b'"Upgrade"' not in answer


def test_spoofed_headers_and_credentials_do_not_reach_the_replica(attacked: Attacked):
    spoofed = {
        "X-Forwarded-For": "10.0.0.1",
        "X-Real-IP": "10.0.0.1",
        "Forwarded": "for=10.0.0.1",
        "Cookie": "session=secret",
        "X-Api-Key": "secret",
        "Proxy-Authorization": "Basic secret",
        "X-Request-Id": 'x" injected',
    }
    _, headers, body = attacked.front.send("GET", "/services/plain/x", None, {**RED, **spoofed})
    said = json.loads(body)
    names = {name.lower(): value for name, value in said["headers"]}
    assert "secret" not in str(names)
    assert "10.0.0.1" not in str(names)
    assert "injected" not in names["x-request-id"]
    assert "injected" not in headers["X-Request-Id"]
