"""A refused request costs no more memory than an accepted one, and none once it is answered."""

import gc
import sys
import tracemalloc
from collections.abc import Generator

import pytest
from litestar import Litestar
from litestar.testing import TestClient
from msgspec.structs import fields

from tenfold.model.job.spec import JobSpec
from tenfold.server.auth.tokens import Role, Token
from tenfold.server.problems import Problem
from tenfold.server.submissions import decode_object, parse_submissions

Client = TestClient[Litestar]
JOBS = "/api/v1/jobs"
MIB = 1 << 20
COUNT = 20_000
TOKEN = Token(id="t", name="ann", team="red", role=Role.member, created_ms=0, expires_ms=0)
LISTS = {
    "tables": b"[" + b",".join([b"{}"] * COUNT) + b"]",
    "numbers": b"[" + b",".join([b"1"] * COUNT) + b"]",
    "keys": b"{" + b",".join(b'"K%d":[]' % number for number in range(COUNT)) + b"}",
}
BATCHES = {
    "unknown keys": LISTS["keys"],
    "jobs without a command": b'{"jobs":[' + b",".join([b"{}"] * 10_000) + b"]}",
    "jobs with unknown keys": b'{"jobs":[' + b",".join([b'{"a":1,"b":2,"c":3}'] * 10_000) + b"]}",
}


@pytest.fixture
def traced() -> Generator[None, None, None]:
    tracemalloc.start()
    yield
    tracemalloc.stop()


def peak_of_refusal(body: bytes) -> int:
    """Return the most memory that a refusal takes, beyond that of the values in the body."""
    kept = decode_object(body)
    before = tracemalloc.get_traced_memory()[0]
    tracemalloc.reset_peak()
    decode_object(body)
    decoded = tracemalloc.get_traced_memory()[1] - before
    tracemalloc.reset_peak()
    with pytest.raises(Problem):
        parse_submissions(body, TOKEN)
    peak = tracemalloc.get_traced_memory()[1] - before - decoded
    del kept
    return peak


@pytest.mark.usefixtures("traced")
@pytest.mark.parametrize("kind", LISTS)
def test_a_field_with_many_wrong_values_is_refused_at_the_first_few(kind: str):
    names = [field.encode_name for field in fields(JobSpec)]
    peaks = {
        name: peak_of_refusal(b'{"command":1,"%b":%b}' % (name.encode(), LISTS[kind]))
        for name in names
        if name != "command"
    }
    assert {name: peak for name, peak in peaks.items() if peak > MIB} == {}
    assert len(peaks) > 20


@pytest.mark.usefixtures("traced")
@pytest.mark.parametrize("kind", BATCHES)
def test_a_body_with_many_errors_is_refused_at_the_first_thousand(kind: str):
    assert peak_of_refusal(BATCHES[kind]) < 4 * MIB


def test_unknown_keys_beyond_the_first_are_counted(member: Client):
    told = member.post(JOBS, json={f"k{number}": 1 for number in range(60)}).json()
    messages = [one["message"] for one in told["errors"]]
    assert "unknown key `k49`" in messages
    assert "10 more unknown keys" in messages
    assert len(messages) == 52


def test_what_a_refused_request_held_is_free_once_it_is_answered(member: Client):
    """Not when the garbage collector finds it: that may be minutes and many requests later."""
    body = b'{"command":["true"],"after":' + LISTS["tables"] + b"}"
    member.post(JOBS, content=body)
    gc.collect()
    gc.disable()
    try:
        before = sys.getallocatedblocks()
        for _ in range(5):
            assert member.post(JOBS, content=body).status_code == 422
        grown = sys.getallocatedblocks() - before
    finally:
        gc.enable()
    assert grown < COUNT
