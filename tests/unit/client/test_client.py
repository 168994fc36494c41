"""The client against a control plane that answers as it is told to."""

import asyncio
import inspect
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any, get_type_hints

import httpx
import pytest

import tenfold
from tenfold.client import connections, retries
from tenfold.client.calls import JobKeys
from tenfold.client.problems import FaultyRequest
from tenfold.model.errors import InputError, NoAnswer, Refused, TenfoldError, Unreachable
from tenfold.model.job.spec import JobSpec

URL = "http://127.0.0.1:7410"
MADE = {"id": "a-1", "name": "a", "team": "red", "state": "pending"}
JOB = {**MADE, "attempts": [], "reason": {"code": "c", "sentence": "s"}}
ATTEMPT = {"started_at": None, "ended_at": None, "nodes": [], "exit_code": None, "reason": ""}
Handler = Callable[[httpx.Request], httpx.Response]


class Stub:
    """Answers in turn; the last answer is given from then on. Keeps what was asked."""

    def __init__(self, *answers: Handler | httpx.Response | Exception) -> None:
        self.answers = list(answers)
        self.asked: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, httpx.Response):
            return httpx.Response(answer.status_code, headers=answer.headers, content=answer.read())
        return answer(request)


class Awaited:
    """The async client, called as if it were the plain one: what one test says holds for both."""

    def __init__(self, client: tenfold.AsyncClient) -> None:
        self._client = client
        self._loop = asyncio.new_event_loop()

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._client, name)

        def called(*words: Any, **keys: Any) -> Any:
            found = method(*words, **keys)
            if inspect.isasyncgen(found):
                return self._items(found)
            return self._loop.run_until_complete(found)

        return called

    def _items(self, found: AsyncIterator[Any]) -> Iterator[Any]:
        while True:
            try:
                yield self._loop.run_until_complete(anext(found))
            except StopAsyncIteration:
                return


@pytest.fixture(params=["plain", "async"])
def client_of(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch):
    """Return a function that makes a client of one kind over a stub."""
    monkeypatch.setattr(retries, "PAUSES_S", (0.0, 0.0))
    monkeypatch.setattr(retries, "POLL_S", (0.0, 0.0))

    def made(stub: Stub, *words: str) -> Any:
        transport = httpx.MockTransport(stub)
        if request.param == "plain":
            client = httpx.Client(transport=transport)
            monkeypatch.setattr(connections, "connection", lambda *_: client)
            return tenfold.Client(*words)
        other = httpx.AsyncClient(transport=transport)
        monkeypatch.setattr(connections, "async_connection", lambda *_: other)
        return Awaited(tenfold.AsyncClient(*words))

    return made


def job(state: str, *attempts: dict[str, Any]) -> httpx.Response:
    told = [{**ATTEMPT, **attempt} for attempt in attempts]
    return httpx.Response(200, json={**JOB, "state": state, "attempts": told})


def problem(status: int, code: str, **more: Any) -> httpx.Response:
    body = {"type": f"urn:tenfold:problem:{code}", "title": "Error", "status": status}
    said = {"code": code, "detail": "said", "hint": "do"}
    return httpx.Response(status, json={**body, **said, **more})


AWAY = problem(503, "starting")


def test_a_job_is_handed_in_with_the_keys_of_a_job_file(client_of: Any):
    stub = Stub(httpx.Response(201, json=MADE))
    made = client_of(stub, URL, "tf_x").submit(command=["true"], nodes=2, gpus_per_node=8)
    assert (made.id, made.ids, made.team) == ("a-1", ("a-1",), "red")
    (asked,) = stub.asked
    assert (asked.method, str(asked.url)) == ("POST", f"{URL}/api/v1/jobs")
    assert asked.headers["Authorization"] == "Bearer tf_x"
    assert json.loads(asked.content) == {"command": ["true"], "nodes": 2, "gpus_per_node": 8}


def test_an_array_knows_the_names_of_all_its_members(client_of: Any):
    body = {**MADE, "count": 3, "members": ["a-1[0]", "a-1[1]"]}
    made = client_of(Stub(httpx.Response(201, json=body)), URL, "t").submit(command=["x"], array=3)
    assert made.ids == ("a-1[0]", "a-1[1]", "a-1[2]")


def test_names_are_written_so_that_they_stay_one_part_of_the_address(client_of: Any):
    stub = Stub(job("running"))
    client_of(stub, URL, "t").job("a/b[0]?")
    assert stub.asked[0].url.raw_path == b"/api/v1/jobs/a%2Fb%5B0%5D%3F"


def test_a_safe_call_is_made_again_while_the_control_plane_is_away(client_of: Any):
    stub = Stub(AWAY, httpx.ConnectError("no"), job("running"))
    assert client_of(stub, URL, "t").job("a-1").state == "running"
    assert len(stub.asked) == 3


def test_a_safe_call_is_given_up_in_the_end(client_of: Any):
    stub = Stub(AWAY)
    with pytest.raises(Unreachable) as wrong:
        client_of(stub, URL, "t").job("a-1")
    assert (wrong.value.code, len(stub.asked)) == ("starting", 3)


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (AWAY, "starting"),
        (httpx.ReadTimeout("late"), "answer-lost"),
        (httpx.RemoteProtocolError("cut"), "answer-lost"),
    ],
)
def test_a_call_that_changes_something_is_made_once(client_of: Any, answer: Any, code: str):
    stub = Stub(answer)
    with pytest.raises(Unreachable) as wrong:
        client_of(stub, URL, "t").cancel("a-1")
    assert (wrong.value.code, len(stub.asked)) == (code, 1)


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, InputError),
        (404, InputError),
        (413, InputError),
        (422, InputError),
        (401, Refused),
        (403, Refused),
        (409, Refused),
        (429, Unreachable),
        (500, Unreachable),
    ],
)
def test_a_problem_becomes_the_error_of_its_kind(
    client_of: Any, status: int, kind: type[TenfoldError]
):
    with pytest.raises(kind) as wrong:
        client_of(Stub(problem(status, "some-code")), URL, "t").cancel("a-1")
    assert (wrong.value.code, wrong.value.message, wrong.value.hint) == ("some-code", "said", "do")


def test_a_certificate_that_nobody_trusts_is_told_with_what_to_do(client_of: Any):
    stub = Stub(httpx.ConnectError("[SSL: CERTIFICATE_VERIFY_FAILED] self-signed"))
    with pytest.raises(Unreachable) as wrong:
        client_of(stub, URL, "t").fleet()
    assert "SSL_CERT_FILE" in wrong.value.hint


def test_every_fault_of_a_request_is_kept(client_of: Any):
    faults = [
        {"field": "nodes", "code": "wrong-value", "message": "m", "hint": "h"},
        {"field": "env", "code": "wrong-value", "message": "n"},
    ]
    with pytest.raises(FaultyRequest) as wrong:
        client_of(Stub(problem(422, "wrong-value", errors=faults)), URL, "t").submit(command=[])
    assert wrong.value.field == "nodes"
    assert [fault.field for fault in wrong.value.faults] == ["nodes", "env"]


@pytest.mark.parametrize(
    "answer", [httpx.Response(502, text="<html>"), httpx.Response(200, text="<html>")]
)
def test_a_stranger_at_the_address_is_named_as_one(client_of: Any, answer: httpx.Response):
    with pytest.raises(Unreachable) as wrong:
        client_of(Stub(answer), URL, "t").fleet()
    assert wrong.value.code == "not-a-control-plane"


def test_a_control_plane_that_started_again_here_is_asked_with_its_new_token(
    client_of: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    for name in ("TENFOLD_URL", "TENFOLD_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TENFOLD_HOME", str(tmp_path))
    address = tmp_path / "address.json"
    address.write_text(json.dumps({"url": URL, "token": "tf_old", "pid": 1}))

    def turned_away(_: httpx.Request) -> httpx.Response:
        address.write_text(json.dumps({"url": f"{URL}1", "token": "tf_new", "pid": 2}))
        return problem(401, "token-revoked")

    stub = Stub(turned_away, httpx.Response(202, json={"id": "a-1", "state": "stopping"}))
    assert client_of(stub).cancel("a-1").state == "stopping"
    assert [one.headers["Authorization"] for one in stub.asked] == [
        "Bearer tf_old",
        "Bearer tf_new",
    ]
    assert stub.asked[1].url.port == 74101


def test_a_token_that_is_nobody_s_is_told_at_once(client_of: Any):
    stub = Stub(problem(401, "unknown-token"))
    with pytest.raises(Refused):
        client_of(stub, URL, "t").job("a-1")
    assert len(stub.asked) == 1


def test_waiting_ends_with_the_job_and_rides_out_an_absence(client_of: Any):
    end = {"number": 1, "ended_at": "2026-01-01T00:00:00Z", "exit_code": 3}
    stub = Stub(job("pending"), *[AWAY] * 7, job("running"), job("failed", end))
    found = client_of(stub, URL, "t").wait("a-1")
    assert (found.state, found.exit_code, found.is_over) == ("failed", 3, True)


def test_a_wait_that_is_too_short_says_so(client_of: Any):
    with pytest.raises(NoAnswer) as wrong:
        client_of(Stub(job("running")), URL, "t").wait("a-1", timeout_s=0.0)
    assert wrong.value.code == "not-over-yet"


def test_jobs_are_listed_page_by_page(client_of: Any):
    pages = [
        httpx.Response(200, json={"jobs": [{**JOB, "state": "running"}], "next": 7}),
        httpx.Response(200, json={"jobs": [{**JOB, "state": "failed"}], "next": None}),
    ]
    stub = Stub(*pages)
    states = [one.state for one in client_of(stub, URL, "t").jobs(team="red", state="running")]
    assert states == ["running", "failed"]
    assert dict(stub.asked[1].url.params) == {
        "team": "red",
        "state": "running",
        "before": "7",
        "limit": "1000",
    }


def test_a_stream_of_events_goes_on_where_it_broke_off(client_of: Any):
    def events(*numbers: int) -> httpx.Response:
        lines = [f'id: {one}\nevent: JobStarted\ndata: {{"at_ms":{one}}}\n\n' for one in numbers]
        return httpx.Response(200, text=": hello\n\n" + "".join(lines))

    cut = httpx.Response(200, text='id: 4\nevent: JobEnded\ndata: {"at_ms":4}\n')
    lagged = httpx.Response(200, text="event: lagged\ndata: {}\n\n")
    stub = Stub(events(2, 3), httpx.ConnectError("no"), cut, lagged, events(4))
    found = client_of(stub, URL, "t").events(after=1)
    assert [(one.seq, one.kind, one.body) for one in (next(found), next(found), next(found))] == [
        (2, "JobStarted", {"at_ms": 2}),
        (3, "JobStarted", {"at_ms": 3}),
        (4, "JobStarted", {"at_ms": 4}),
    ]
    assert [one.headers.get("Last-Event-ID") for one in stub.asked] == ["1", "3", "3", "3", "3"]


def test_a_log_is_followed_from_attempt_to_attempt_until_the_job_is_over(client_of: Any):
    first = {"number": 1, "ended_at": "2026-01-01T00:00:00Z", "reason": "crashed"}
    open_second = {"number": 2}
    second = {"number": 2, "ended_at": "2026-01-01T00:00:01Z", "exit_code": 0}
    euro = "\N{EURO SIGN}".encode()
    stub = Stub(
        job("pending"),
        job("running", {"number": 1}),
        httpx.Response(200, content=b"one " + euro[:2]),
        job("pending", first),
        job("pending", first),
        job("running", first, open_second),
        httpx.Response(200, content=b"two " + euro),
        job("succeeded", first, second),
    )
    pieces = list(client_of(stub, URL, "t").logs("a-1", follow=True))
    assert all(pieces)
    assert "".join(pieces) == "one \N{REPLACEMENT CHARACTER}two \N{EURO SIGN}"
    streams = [one for one in stub.asked if one.url.path.endswith("/logs")]
    assert [one.url.params["attempt"] for one in streams] == ["1", "2"]


def test_a_log_that_breaks_off_before_its_attempt_is_an_error(client_of: Any):
    running = job("running", {"number": 1})
    stub = Stub(running, httpx.Response(200, content=b"half"), running)
    with pytest.raises(Unreachable) as wrong:
        "".join(client_of(stub, URL, "t").logs("a-1", follow=True))
    assert wrong.value.code == "log-broke-off"


def test_a_log_of_a_job_that_never_began_is_empty(client_of: Any):
    stub = Stub(job("cancelled"))
    assert list(client_of(stub, URL, "t").logs("a-1", follow=True)) == []


class Watched(httpx.ByteStream):
    """A stream that knows whether it was closed."""

    is_closed = False

    def close(self) -> None:
        self.is_closed = True


def test_a_stream_that_is_left_early_is_closed(monkeypatch: pytest.MonkeyPatch):
    written = Watched(b"id: 1\nevent: JobStarted\ndata: {}\n\n")
    attempt = {**ATTEMPT, "number": 1, "started_at": "2026-01-01T00:00:00Z"}

    def answers(request: httpx.Request) -> httpx.Response:
        if request.url.path.endswith(("/events", "/logs")):
            return httpx.Response(200, stream=written)
        return httpx.Response(200, json={**JOB, "state": "running", "attempts": [attempt]})

    transport = httpx.MockTransport(answers)
    monkeypatch.setattr(connections, "connection", lambda *_: httpx.Client(transport=transport))
    client = tenfold.Client(URL, "t")
    for pieces in (client.events(after=0), client.logs("a-1", follow=True)):
        written.is_closed = False
        next(pieces)
        assert not written.is_closed
        pieces.close()
        assert written.is_closed


def test_the_plain_client_may_be_used_in_an_event_loop(monkeypatch: pytest.MonkeyPatch):
    transport = httpx.MockTransport(Stub(job("running")))
    monkeypatch.setattr(connections, "connection", lambda *_: httpx.Client(transport=transport))

    async def in_a_notebook() -> str:
        with tenfold.Client(URL, "t") as client:
            return client.job("a-1").state

    assert asyncio.run(in_a_notebook()) == "running"


def test_both_clients_have_the_same_calls():
    def calls(kind: type) -> dict[str, list[str]]:
        members = inspect.getmembers(kind, inspect.isfunction)
        public = [(name, each) for name, each in members if not name.startswith("_")]
        return {name: list(inspect.signature(each).parameters) for name, each in public}

    assert calls(tenfold.Client) == calls(tenfold.AsyncClient)


def test_submit_knows_every_key_of_a_job_file():
    assert sorted(get_type_hints(JobKeys)) == sorted(JobSpec.__struct_encode_fields__)


def test_the_http_library_is_not_loaded_before_a_client_is_made():
    program = "import tenfold, sys; tenfold.Client; print('httpx' in sys.modules)"
    told = subprocess.check_output([sys.executable, "-c", program], text=True)
    assert told.strip() == "False"
