"""Calls that are made again: under their key, at a new address, from the byte that was read."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from tenfold.client import connections, retries
from tenfold.model.errors import Refused, Unreachable
from unit.client.test_client import AWAY, JOB, URL, Stub, client_of, job, problem
from unit.client.test_client import MADE as SUBMITTED

__all__ = ["client_of"]
MADE = httpx.Response(201, json=SUBMITTED)
LOST = httpx.RemoteProtocolError("cut")
UNREACHABLE = httpx.ConnectError("no")
CANCELLED = {"id": "a-1", "state": "cancelled", "count": 0}
ENDED = {"number": 1, "ended_at": "2026-01-01T00:00:00Z", "exit_code": 0}


def keys(stub: Stub) -> list[str | None]:
    return [one.headers.get("Idempotency-Key") for one in stub.asked]


def test_a_submission_is_made_again_under_the_same_key(client_of: Any):
    stub = Stub(LOST, AWAY, MADE)
    client = client_of(stub, URL, "t")
    assert client.submit(command=["true"]).id == "a-1"
    first, *others = keys(stub)
    assert first is not None
    assert others == [first, first]
    client.submit(command=["true"])
    assert keys(stub)[3] not in (None, first)


def test_a_key_of_ones_own_is_used(client_of: Any, tmp_path: Path):
    stub = Stub(MADE)
    client = client_of(stub, URL, "t")
    client.submit(key="mine", command=["true"])
    (tmp_path / "job.toml").write_text('command = ["true"]\n')
    client.submit_file(tmp_path / "job.toml", key="file")
    assert keys(stub) == ["mine", "file"]
    assert "key" not in json.loads(stub.asked[0].content)


def test_a_key_that_was_used_for_something_else_is_refused(client_of: Any):
    with pytest.raises(Refused) as wrong:
        client_of(Stub(problem(409, "key-taken")), URL, "t").submit(key="k", command=["true"])
    assert wrong.value.code == "key-taken"


def test_what_may_have_been_done_is_said_though_nobody_was_there_in_the_end(client_of: Any):
    stub = Stub(LOST, UNREACHABLE)
    with pytest.raises(Unreachable) as wrong:
        client_of(stub, URL, "t").submit(command=["true"])
    assert (wrong.value.code, len(stub.asked)) == ("answer-lost", 3)


@pytest.mark.parametrize("wrong", [UNREACHABLE, httpx.ConnectTimeout("late")])
def test_a_wish_that_was_never_sent_is_sent_to_the_new_address(
    client_of: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: httpx.HTTPError
):
    for name in ("TENFOLD_URL", "TENFOLD_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TENFOLD_HOME", str(tmp_path))
    address = tmp_path / "address.json"
    address.write_text(json.dumps({"url": URL, "token": "tf_old", "pid": 1}))

    def gone(_: httpx.Request) -> httpx.Response:
        address.write_text(json.dumps({"url": f"{URL}1", "token": "tf_new", "pid": 2}))
        raise wrong

    stub = Stub(gone, httpx.Response(202, json={"id": "n1", "state": "cordoned"}))
    assert client_of(stub).cordon("n1").state == "cordoned"
    assert [one.url.port for one in stub.asked] == [7410, 74101]


def log(content: bytes, offset: int) -> httpx.Response:
    return httpx.Response(200, content=content, headers={"Log-Offset": str(offset)})


def test_a_log_that_breaks_off_goes_on_with_the_byte_that_follows(client_of: Any):
    euro = "\N{EURO SIGN}".encode()
    running = job("running", {"number": 1})
    stub = Stub(
        running,
        log(b"one " + euro[:1], 100),
        running,
        running,
        UNREACHABLE,
        running,
        log(euro[1:] + b" two", 105),
        job("succeeded", ENDED),
    )
    pieces = list(client_of(stub, URL, "t").logs("a-1", follow=True))
    assert "".join(pieces) == "one \N{EURO SIGN} two"
    streams = [one.url.params for one in stub.asked if one.url.path.endswith("/logs")]
    assert [one.get("offset") for one in streams] == [None, "105", "105"]
    assert [one["attempt"] for one in streams] == ["1", "1", "1"]


def test_the_next_attempt_is_read_from_its_own_beginning(client_of: Any):
    second = {**ENDED, "number": 2}
    stub = Stub(
        job("running", {"number": 1}),
        log(b"one ", 0),
        job("pending", ENDED),
        job("running", ENDED, {"number": 2}),
        log(b"two", 0),
        job("succeeded", ENDED, second),
    )
    assert "".join(client_of(stub, URL, "t").logs("a-1", follow=True)) == "one two"
    streams = [one.url.params for one in stub.asked if one.url.path.endswith("/logs")]
    assert [one.get("offset") for one in streams] == [None, None]


def test_a_log_of_a_control_plane_that_never_answered_is_given_up_soon(client_of: Any):
    stub = Stub(UNREACHABLE)
    with pytest.raises(Unreachable):
        list(client_of(stub, URL, "t").logs("a-1", follow=True))
    assert len(stub.asked) == 3


def test_a_dry_run_is_asked_and_answered(client_of: Any):
    told = {
        "name": "a",
        "team": "red",
        "count": 0,
        "outcome": "waits",
        "at": None,
        "nodes": [],
        "could_hold": {"count": 1, "nodes": ["n1"]},
        "reason": {"code": "too-few-free", "sentence": "s"},
        "why": {},
        "eta": None,
        "is_brief": True,
    }
    stub = Stub(httpx.Response(200, json=told))
    found = client_of(stub, URL, "t").dry_run(command=["true"], seek="none", eta=False)
    assert (found.outcome, found.could_hold.nodes) == ("waits", ("n1",))
    (asked,) = stub.asked
    assert asked.url.path == "/api/v1/jobs/dry-run"
    assert dict(asked.url.params) == {"seek": "none", "eta": "false"}
    assert keys(stub) == [None]


def test_an_array_is_told_as_one(client_of: Any):
    members = {"count": 2, "states": {"pending": 2}, "failed": []}
    stub = Stub(httpx.Response(200, json={**JOB, "array": members}))
    found = client_of(stub, URL, "t").job("a-1")
    assert (found.array.count, found.array.states) == (2, {"pending": 2})


def test_jobs_are_asked_for_within_bounds(client_of: Any):
    stub = Stub(httpx.Response(200, json={"jobs": [], "next": None}))
    list(client_of(stub, URL, "t").jobs(since="2026-01-01T00:00:00Z", array="a-1"))
    assert dict(stub.asked[0].url.params) == {
        "since": "2026-01-01T00:00:00Z",
        "array": "a-1",
        "limit": "1000",
    }


def throttled(after: str = "0") -> httpx.Response:
    answer = problem(429, "rate-limited")
    answer.headers["Retry-After"] = after
    return answer


def test_a_throttled_call_is_sent_again_after_the_time_it_was_given(
    client_of: Any, monkeypatch: pytest.MonkeyPatch
):
    waited: list[float] = []

    async def pause(_: object, seconds: float) -> None:
        waited.append(seconds)

    for transport in (connections.AsyncTransport, connections.BlockingTransport):
        monkeypatch.setattr(transport, "pause", pause)
    stub = Stub(throttled("7"), throttled("2"), httpx.Response(202, json=CANCELLED))
    # Not even a call that must not be made twice was carried out.
    assert client_of(stub, URL, "t").cancel("a-1").state == "cancelled"
    assert (waited, len(stub.asked)) == ([7.0, 2.0], 3)


def test_a_call_that_stays_throttled_ends(client_of: Any, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(retries, "THROTTLED_S", 0.15)
    stub = Stub(throttled())
    with pytest.raises(Unreachable) as wrong:
        client_of(stub, URL, "t").job("a-1")
    assert (wrong.value.code, len(stub.asked)) == ("rate-limited", 2)


def test_a_wait_of_minutes_is_left_to_the_caller(client_of: Any):
    stub = Stub(throttled("600"))
    with pytest.raises(Unreachable):
        client_of(stub, URL, "t").job("a-1")
    assert len(stub.asked) == 1


OTHER = "http://127.0.0.1:7411"
BOTH = f"{URL},{OTHER}"


def standby(leader: str = "") -> httpx.Response:
    headers = {"Tenfold-Leader": leader} if leader else {}
    answer = problem(503, "not-leader")
    return httpx.Response(503, headers=headers, content=answer.read())


def test_of_several_control_planes_the_next_is_asked_until_one_leads(client_of: Any):
    stub = Stub(UNREACHABLE, standby(), UNREACHABLE, standby(), MADE)
    client = client_of(stub, BOTH, "t")
    assert client.submit(command=["true"]).id == "a-1"
    assert [one.url.port for one in stub.asked] == [7410, 7411, 7410, 7411, 7410]
    assert len(set(keys(stub))) == 1
    client.submit(command=["true"])
    assert stub.asked[-1].url.port == 7410


def test_a_change_without_a_key_is_sent_to_the_leader_as_nothing_was_done(client_of: Any):
    stub = Stub(standby(OTHER), httpx.Response(202, json={"id": "n1", "state": "cordoned"}))
    assert client_of(stub, BOTH, "t").cordon("n1").state == "cordoned"
    assert [one.url.port for one in stub.asked] == [7410, 7411]


def test_a_token_is_not_sent_to_an_address_that_only_a_server_names(client_of: Any):
    stub = Stub(standby("http://127.0.0.1:666"), MADE)
    client_of(stub, BOTH, "t").submit(command=["true"])
    assert [one.url.port for one in stub.asked] == [7410, 7411]
    stub = Stub(standby("http://127.0.0.1:666"))
    with pytest.raises(Unreachable) as wrong:
        client_of(stub, URL, "t").submit(command=["true"])
    assert (wrong.value.code, {one.url.port for one in stub.asked}) == ("not-leader", {7410})


def test_nobody_leads_for_too_long(client_of: Any, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(retries, "FAILOVER_S", 1e-9)
    with pytest.raises(Unreachable) as wrong:
        client_of(Stub(standby()), BOTH, "t").submit(command=["true"])
    assert wrong.value.code == "not-leader"
