"""Replicas that send any bytes: second answers, two lengths, event streams that are none."""

import json
from collections.abc import Callable, Generator
from typing import NamedTuple

import pytest
from msgspec.structs import replace

from contract.gateway.clients import CHAT, chat
from hostile.gateway.attacked import Raw
from hostile.gateway.liar import CHUNKED, ENDLESS, Liar, chunk, whole
from patience import until
from tests.rigs.gateway import GatewayProcess, chat_service, state_of

EVENT = b'data: {"choices":[{"delta":{"content":"a"}}]}\n\n'
LAST = chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n"
BODY = json.dumps(chat(stream=True)).encode()
ASK = (
    f"POST {CHAT} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    f"Content-Length: {len(BODY)}\r\nConnection: close\r\n\r\n"
).encode() + BODY


class Fooled(NamedTuple):
    """A gateway and its lying replica."""

    front: GatewayProcess
    liar: Liar

    def honest(self) -> bytes:
        """Return the answer to an honest request; the breaker may first have to close."""
        while True:
            status, _, body = self.front.post(CHAT, chat())
            if status == 200:
                return body


@pytest.fixture(scope="module")
def fooled() -> Generator[Fooled, None, None]:
    liar = Liar()
    service = chat_service([liar.url], retries_max=0, first_byte_timeout_s=3, idle_timeout_s=3)
    front = GatewayProcess(state_of(replace(service, affinity="none")))
    yield Fooled(front, liar)
    front.close()
    liar.close()
    assert "Traceback" not in front.log(), front.log()


@pytest.fixture
def stream(fooled: Fooled) -> Generator[Callable[[], Raw], None, None]:
    """Asks for an event stream over a connection of its own."""
    opened: list[Raw] = []

    def ask() -> Raw:
        opened.append(Raw(fooled.front.url).send(ASK))
        return opened[-1]

    yield ask
    for one in opened:
        one.close()
    fooled.liar.say()
    assert json.loads(fooled.honest()) == {"honest": True}


POISON = whole(b'{"poison": true}')


@pytest.mark.parametrize(
    "script",
    [
        whole(b'{"own": 1}') + POISON,
        whole(b"", "X-A: b") + POISON,
        CHUNKED + LAST + POISON,
        b"HTTP/1.1 204 No Content\r\n\r\n" + POISON,
        b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n" + POISON,
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 40\r\n\r\n{}" + POISON,
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}" + POISON,
    ],
    ids=[
        "after a whole answer",
        "after an empty one",
        "after chunks",
        "after 204",
        "after 304",
        "behind the shorter of two lengths",
        "behind length and chunks",
    ],
)
def test_a_second_answer_is_given_to_nobody(fooled: Fooled, script: bytes):
    for _ in range(3):
        fooled.liar.say(script)
        # What follows the first answer belongs to no request: not to this one, nor to the next.
        bodies = [fooled.front.post(CHAT, chat())[2] for _ in range(4)]
        assert not any(b"poison" in one for one in bodies), bodies


@pytest.mark.parametrize(
    ("parts", "is_whole"),
    [
        (EVENT + b"data: \x00\x01\x1b[31m\xff\xfe\n\n", True),
        (b"event: x\nid: \x00\nretry: -1\n\n" + EVENT, True),
        (b"\n" * 10_000 + EVENT, True),
        (b"no field at all\n" + b":" * 100_000 + b"\n\n" + EVENT, True),
        (b'data: {"usage": {"prompt_tokens": -5, "completion_tokens": "x"}}\n\n', True),
        (b'data: {"usage": {"prompt_tokens": 1e99, "completion_tokens": [1]}}\n\n', True),
        (b"data:" * 50_000, True),
    ],
    ids=["bytes", "fields", "empty lines", "comments", "usage", "huge usage", "one line"],
)
def test_an_event_stream_that_is_none_is_passed_on_as_it_is(
    fooled: Fooled, stream: Callable[[], Raw], parts: bytes, is_whole: bool
):
    before = fooled.front.service()
    fooled.liar.say(CHUNKED + chunk(parts) + LAST)
    answer = stream().read_until(b"\r\n0\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 200")
    assert answer.endswith(b"0\r\n\r\n") == is_whole
    assert answer.count(b"HTTP/1.1") == 1
    after = fooled.front.service()
    assert after.output_tokens - before.output_tokens <= parts.count(b"data:") + 1
    assert after.input_tokens_per_request >= 0


@pytest.mark.parametrize(
    "end",
    [b"zz\r\n", b"-5\r\nhello\r\n", b"fffffffffffffffffff\r\n", b"5\r\nhellothere\r\n", b""],
    ids=["no number", "a negative one", "a huge one", "more than it says", "nothing"],
)
def test_chunks_that_are_none_end_the_answer_as_incomplete(
    fooled: Fooled, stream: Callable[[], Raw], end: bytes
):
    fooled.liar.say(CHUNKED + chunk(EVENT) + end)
    answer = stream().read()
    # Either it is seen before the first byte goes to the client, or the answer is not complete.
    is_refused = answer.startswith(b"HTTP/1.1 502") and b"replica_failed" in answer
    assert is_refused or (EVENT in answer and b"replica_interrupted" in answer), answer
    assert is_refused or not answer.endswith(b"0\r\n\r\n")
    assert b"[DONE]" not in answer


def test_a_stream_without_an_end_ends_with_its_client(fooled: Fooled, stream: Callable[[], Raw]):
    before = fooled.front.rss_bytes()
    fooled.liar.left.clear()
    fooled.liar.say(CHUNKED + ENDLESS)
    client = stream()
    got = 0
    while got < 8 << 20:
        got += len(client.read_until(b"data: x\n\n"))
    client.close()
    assert fooled.liar.left.wait(60), "the connection to the replica is closed"
    until(lambda: fooled.front.service().outstanding_requests == 0)
    assert fooled.front.rss_bytes() - before < 32 << 20


def test_interim_answers_without_an_end_time_out(fooled: Fooled):
    fooled.liar.say(b"HTTP/1.1 100 Continue\r\n\r\n" * 1_000)
    assert fooled.front.post(CHAT, chat())[0] in (502, 504)
    fooled.liar.say()
    assert json.loads(fooled.honest()) == {"honest": True}


def test_a_replica_that_reports_many_tokens_moves_the_estimate_only_so_far(fooled: Fooled):
    usage = {"usage": {"prompt_tokens": 999_999_999, "completion_tokens": 999_999_999}}
    for _ in range(20):
        fooled.liar.say(whole(json.dumps(usage).encode()))
        fooled.front.post(CHAT, chat())
    fooled.liar.say()
    # Admission still works: an estimate that exceeded all limits would refuse every request.
    assert [fooled.front.post(CHAT, chat())[0] for _ in range(5)] == [200] * 5


def test_a_replica_that_takes_connections_and_closes_them_gets_no_more_requests():
    lying, honest = Liar(), Liar()
    service = chat_service([lying.url, honest.url], affinity="none", retries_max=2)
    front = GatewayProcess(state_of(service))
    try:
        # It takes connections as if it were ready, and answers with what is no HTTP.
        lying.say(*[b"\x00" * 64] * 1_000)
        statuses = [front.post(CHAT, chat())[0] for _ in range(40)]
        assert statuses == [200] * 40
        assert len(lying.requests) < 20
        assert front.service().retries == len(lying.requests)
    finally:
        front.close()
        lying.close()
        honest.close()
