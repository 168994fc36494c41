"""Requests that cannot be used are answered with problems that name the field, and no more."""

import msgspec
import pytest
from litestar import Litestar
from litestar.testing import TestClient

from tenfold.server.app import BODY_BYTES_MAX

Client = TestClient[Litestar]
JOBS = "/api/v1/jobs"


def problem(client: Client, content: bytes | object, status: int = 422) -> dict[str, object]:
    body = content if isinstance(content, bytes) else msgspec.json.encode(content)
    answer = client.post(JOBS, content=body)
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.headers["cache-control"] == "no-store"
    told = answer.json()
    assert told["status"] == status
    assert told["type"] == f"urn:tenfold:problem:{told['code']}"
    assert told["detail"]
    return told


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"\xff\xfe", b'{"command": ["\\ud800"]}', b"[" * 100_000, b"nil", b"{}{}"],
    ids=["empty", "half", "not-utf-8", "half-a-pair", "deep", "word", "two"],
)
def test_a_body_that_is_not_json_is_told_so(member: Client, body: bytes):
    assert problem(member, body, 400)["code"] == "not-json"


@pytest.mark.parametrize("body", [[], "text", 1, None, True])
def test_a_body_that_is_no_object_is_told_so(member: Client, body: object):
    assert problem(member, body)["code"] == "not-an-object"


@pytest.mark.parametrize(
    ("body", "field", "code"),
    [
        ({}, "command", "missing-key"),
        ({"command": ["true"], "gpuz": 1}, "gpuz", "unknown-key"),
        ({"command": "true"}, "command", "wrong-value"),
        ({"command": ["true"], "nodes": 0}, "nodes", "wrong-value"),
        ({"command": ["true"], "nodes": 10**30}, "nodes", "wrong-value"),
        ({"command": ["true"], "name": "../up"}, "name", "wrong-value"),
        ({"command": ["true"], "env": {"TENFOLD_X": "1"}}, "env.TENFOLD_X", "wrong-value"),
        ({"command": ["true"], "time_limit": "soon"}, "time_limit", "wrong-value"),
        ({"jobs": "none"}, "jobs", "wrong-value"),
        ({"jobs": []}, "jobs", "wrong-value"),
        ({"jobs": [1]}, "jobs[0]", "wrong-value"),
        ({"jobs": [{"command": ["true"]}], "team": "red"}, "team", "unknown-key"),
        ({"jobs": [{"command": ["true"]}] * 10_001}, "jobs", "wrong-value"),
    ],
)
def test_the_field_at_fault_is_named(member: Client, body: object, field: str, code: str):
    told = problem(member, body)
    assert told["field"] == field
    assert told["code"] == code


def test_all_faults_are_named_at_once_up_to_a_hundred(member: Client):
    told = problem(member, {"nodes": "x", "priority": "y"})
    errors = told["errors"]
    assert isinstance(errors, list)
    assert sorted(one["field"] for one in errors) == ["command", "nodes", "priority"]
    many = problem(member, {"jobs": [{}] * 150})
    assert isinstance(many["errors"], list)
    assert len(many["errors"]) == 100
    assert many["errors_left_out"] == 50


def test_more_jobs_than_one_request_may_hand_in_are_refused(member: Client):
    rows = [{"command": ["true"], "array": 60_000}] * 2
    assert problem(member, {"jobs": rows})["code"] == "too-many-jobs"


def test_a_body_that_is_too_large_is_refused_with_the_bound(member: Client):
    told = problem(member, b" " * (BODY_BYTES_MAX + 1), 413)
    assert told["code"] == "body-too-large"
    assert "4 MiB" in str(told["hint"])


@pytest.mark.parametrize(
    "query",
    ["limit=0", "limit=1001", "limit=x", "before=-1", f"before={10**30}", "state=asleep"],
)
def test_parameters_are_checked_and_named(member: Client, query: str):
    answer = member.get(f"{JOBS}?{query}")
    assert answer.status_code == 400
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["field"] == query.partition("=")[0]


@pytest.mark.parametrize("value", ["%C3%A9", "%FF", "%ED%A0%80", "%E2%80%AEx", "x"])
@pytest.mark.parametrize("path", ["none", "none/why"])
def test_a_forecast_that_is_asked_for_in_other_letters_is_a_problem(
    member: Client, path: str, value: str
):
    answer = member.get(f"{JOBS}/{path}?eta={value}")
    assert answer.status_code == 400
    assert answer.json()["field"] == "eta"


def test_what_is_not_there_is_a_problem_too(member: Client):
    for path, code in (
        ("/api/v1/jobs/none", "no-such-job"),
        ("/api/v1/jobs/%00", "no-such-job"),
        ("/api/v1/jobs/none/logs", "no-such-job"),
        ("/api/v2", "no-such-route"),
    ):
        answer = member.get(path)
        assert (answer.status_code, answer.json()["code"]) == (404, code)
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.headers["cache-control"] == "no-store"
