"""The same attacks where HAProxy is the data plane: what it lets through is read only one way."""

import csv
import json
import tempfile
from collections.abc import Callable, Generator
from pathlib import Path
from typing import NamedTuple

import pytest

from contract.gateway.clients import CHAT, chat
from hostile.gateway.attacked import RED, Raw, head
from hostile.gateway.liar import CHUNKED, Liar, chunk, whole
from hostile.gateway.test_chunks import REFUSED
from hostile.gateway.test_smuggling import AMBIGUOUS
from tenfold.model.service.routing import Service
from tests.engines.haproxy import HaproxyWatch, require_haproxy
from tests.rigs.gateway import GatewayProcess, chat_service, revision_of, state_of, token_for
from tests.rigs.openai_replica import ReplicaProcess

TOKENS = (token_for("tf_red-secret", "red"), token_for("tf_blue-secret", "blue"))
ATTACKS = {**AMBIGUOUS, **REFUSED}
BODY = b'{"model":"stub","messages":[]}'
SMUGGLED = head("POST", CHAT, f"Content-Length: {len(BODY)}", "X-Request-Id: smuggled") + BODY
"""With a valid token, for the path and the model that HAProxy answers by itself."""


class Fronted(NamedTuple):
    """A gateway with HAProxy as its data plane, its replica, and a view of HAProxy."""

    front: GatewayProcess
    replica: ReplicaProcess
    watch: HaproxyWatch

    def parsed(self) -> int:
        """Return how many requests of clients HAProxy has read."""
        rows = list(csv.DictReader(self.watch.ask("show stat").splitlines()))
        [front] = [one for one in rows if one["svname"] == "FRONTEND"]
        return int(front["req_tot"])

    def models(self) -> list[str]:
        """Return the models that the replica was asked for, as it reads them."""
        return [one["model"] for one in self.replica.stats()["seen"]]

    def smuggled(self) -> int:
        """Return how often the replica has seen the request that is hidden."""
        return sum(one["request_id"] == "smuggled" for one in self.replica.stats()["seen"])


@pytest.fixture(scope="module")
def fronted() -> Generator[Fronted, None, None]:
    require_haproxy()
    replica = ReplicaProcess()
    chat_of = chat_service([replica.url], retries_max=0, affinity="none")
    plain = Service(name="plain", paths=("/",), revisions=(revision_of("v1", [replica.url]),))
    secret = Service(name="secret", teams=("blue",), revisions=chat_of.revisions)
    state = state_of(chat_of, plain, secret, tokens=TOKENS)
    # Sockets have short paths: not the folder of the test.
    with tempfile.TemporaryDirectory(prefix="hx-") as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", folder)
        front = GatewayProcess(state, "--data-plane", "haproxy", "--body-max-mib", "1")
        made = Fronted(front, replica, HaproxyWatch(Path(folder)))
        while made.watch.served() == 0:
            assert front.post(CHAT, chat(), RED)[0] == 200
        yield made
        front.close()
        replica.close()
        assert "Traceback" not in front.log(), front.log()


@pytest.fixture
def raw(fronted: Fronted) -> Generator[Callable[[], Raw], None, None]:
    """Opens connections; after each attack an honest request is answered."""
    opened: list[Raw] = []

    def connect() -> Raw:
        opened.append(Raw(fronted.front.url))
        return opened[-1]

    yield connect
    for one in opened:
        one.close()
    assert fronted.front.post(CHAT, chat(), RED)[0] == 200


@pytest.mark.parametrize("name", ATTACKS)
def test_a_request_that_is_framed_badly_hides_no_other(
    fronted: Fronted, raw: Callable[[], Raw], name: str
):
    parsed, smuggled = fronted.parsed(), fronted.smuggled()
    sent = raw().send(ATTACKS[name] + SMUGGLED)
    sent.finish()
    sent.read()
    # What HAProxy does not read as a request, nobody behind it reads as one: it writes requests
    # anew. What it reads as a second request of the same client is one, with a token of its own.
    assert fronted.smuggled() - smuggled <= max(fronted.parsed() - parsed - 1, 0)


@pytest.mark.parametrize("path", [CHAT, "/services/plain/x"])
def test_a_body_is_data_whoever_reads_it(fronted: Fronted, raw: Callable[[], Raw], path: str):
    smuggled = fronted.smuggled()
    hiding = json.dumps(chat(user=SMUGGLED.decode())).encode()
    lengths = head("POST", path, f"Content-Length: {len(hiding)}", "Connection: close")
    chunks = head("POST", path, "Transfer-Encoding: chunked", "Connection: close")
    for sent in (lengths + hiding, chunks + chunk(hiding) + b"0\r\n\r\n"):
        answer = raw().send(sent).read()
        assert answer.startswith(b"HTTP/1.1 200"), answer
        assert answer.count(b"HTTP/1.1") == 1
    assert fronted.smuggled() == smuggled


def test_a_token_does_not_open_what_belongs_to_another_team(fronted: Fronted):
    front = fronted.front
    before = fronted.replica.stats()["requests"]
    blue = {"Authorization": "Bearer tf_blue-secret"}
    for asked, headers in (
        (chat(model="secret"), RED),
        (chat(model="secret"), {**RED, "X-Tenfold-Service": "stub"}),
        (chat(), {**RED, "X-Tenfold-Service": "secret"}),
    ):
        assert front.post(CHAT, asked, headers)[0] == 404
    assert front.post(CHAT, chat(model="secret"), {"Authorization": "Bearer "})[0] == 401
    assert fronted.replica.stats()["requests"] == before
    assert front.post(CHAT, chat(model="secret", user="blue"), blue)[0] == 200


PADDING = b'"padding":"' + b"x" * 200_000 + b'"'
TWICE = {
    "twice": b'{"model":"stub","messages":[],"model":"secret"}',
    "twice, apart": b'{"model" : "stub",\n\n"messages":[],\t"model"\n:\n"secret"}',
    "with an escape": b'{"model":"stub","messages":[],"\\u006dodel":"secret"}',
    "with escapes": b'{"model":"stub","n":1,"\\u006D\\u006F\\u0064\\u0065\\u006C":"secret"}',
    "behind what is buffered": b'{"model":"stub","messages":[],' + PADDING + b',"model":"secret"}',
    "nested first": b'{"a":{"model":"stub"},"messages":[],"model":"secret"}',
    "nested in an array": b'[{"model":"stub"}]',
    "behind another value": b'{"model":"stub"}{"model":"secret"}',
}


@pytest.mark.parametrize("name", TWICE)
@pytest.mark.parametrize("chunks", [False, True], ids=["length", "chunks"])
def test_a_model_that_is_named_twice_is_not_read_in_two_ways(
    fronted: Fronted, raw: Callable[[], Raw], name: str, chunks: bool
):
    """Both services have the same replica, as with adapters of one base model."""
    body = TWICE[name]
    framed = b"".join(chunk(body[at : at + 30_000]) for at in range(0, len(body), 30_000))
    before = fronted.models().count("secret")
    by = "Transfer-Encoding: chunked" if chunks else f"Content-Length: {len(body)}"
    for _ in range(3):
        sent = head("POST", CHAT, by, "Content-Type: application/json", "Connection: close")
        raw().send(sent + (framed + b"0\r\n\r\n" if chunks else body)).read()
    assert fronted.models().count("secret") == before


def test_headers_that_lie_do_not_reach_the_replica(fronted: Fronted, raw: Callable[[], Raw]):
    lies = (
        *("X-Forwarded-For: 10.0.0.1", "Forwarded: for=10.0.0.1", "X-Real-IP: 10.0.0.1"),
        *("Cookie: session=secret", "X-Api-Key: secret", "Proxy-Authorization: Basic secret"),
        *('X-Request-Id: x" injected', "Connection: close"),
    )
    body = json.dumps(chat()).encode()
    raw().send(head("POST", CHAT, f"Content-Length: {len(body)}", *lies) + body).read()
    last = fronted.replica.stats()["seen"][-1]
    assert last["credentials"] == []
    assert "injected" not in last["request_id"]


def test_a_second_answer_of_a_replica_is_given_to_nobody():
    require_haproxy()
    liar = Liar()
    front = GatewayProcess(
        state_of(chat_service([liar.url], retries_max=0, affinity="none"), tokens=TOKENS),
        "--data-plane",
        "haproxy",
    )
    poison = whole(b'{"poison": true}')
    try:
        for script in (
            whole(b'{"own": 1}') + poison,
            CHUNKED + chunk(b"data: x\n\n") + b"0\r\n\r\n" + poison,
            b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}"
            + poison,
            b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 40\r\n\r\n{}" + poison,
        ):
            for _ in range(5):
                liar.say(script)
                bodies = [front.post(CHAT, chat(), RED)[2] for _ in range(4)]
                assert not any(b"poison" in one for one in bodies), (script, bodies)
    finally:
        front.close()
        liar.close()
