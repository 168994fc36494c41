"""A real control plane under rough treatment: jobs that misbehave, and clients that do.

Whatever they do, it goes on taking jobs, and nothing of a job is left when it is over.
"""

import os
import socket
from collections.abc import Generator
from contextlib import ExitStack
from typing import Any

import httpx
import pytest

from patience import HANG_S, until
from tenfold.client.endpoint import Address, read_address
from unit.up_process import Up

ATTEMPT_OVER = ("succeeded", "failed", "cancelled")


@pytest.fixture(scope="module")
def at(tmp_path_factory: pytest.TempPathFactory) -> Generator[Address, None, None]:
    up = Up(tmp_path_factory.mktemp("rough") / "home")
    up.start("--virtual-nodes", "2")
    found = read_address(up.home)
    assert found is not None
    yield found
    up.kill()


@pytest.fixture
def client(at: Address) -> Generator[httpx.Client, None, None]:
    headers = {"Authorization": f"Bearer {at.token}"}
    with httpx.Client(base_url=at.url, headers=headers, timeout=HANG_S) as made:
        yield made
        # Whatever was done to it, it takes another job and runs it.
        assert run(client=made, command=["true"])["state"] == "succeeded"


def submit(client: httpx.Client, **ask: object) -> str:
    answer = client.post("/api/v1/jobs", json=ask)
    assert answer.status_code == 201, answer.text
    return answer.json()["id"]


def show(client: httpx.Client, job_id: str) -> dict[str, Any]:
    return client.get(f"/api/v1/jobs/{job_id}").json()


def run(client: httpx.Client, **ask: object) -> dict[str, Any]:
    job_id = submit(client, **ask)
    until(lambda: show(client, job_id)["state"] in ATTEMPT_OVER)
    return show(client, job_id)


def log_of(client: httpx.Client, told: dict[str, Any]) -> bytes:
    return client.get(f"/api/v1/jobs/{told['id']}/logs").content


def sh(text: str) -> list[str]:
    return ["sh", "-c", text]


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_time_limit_of_months_keeps_nobody_waiting(client: httpx.Client):
    slow = submit(client, command=["sleep", "600"], time_limit="90d", grace="90d")
    until(lambda: show(client, slow)["state"] == "running")
    assert run(client, command=["true"])["state"] == "succeeded"
    assert client.get("/readyz").status_code == 200
    client.delete(f"/api/v1/jobs/{slow}")
    until(lambda: show(client, slow)["state"] == "cancelled")


def test_what_a_job_leaves_behind_in_another_session_is_ended(client: httpx.Client):
    fled = "setsid sh -c 'trap \"\" TERM; echo $$; exec env -i sleep 600' & sleep 0.3"
    told = run(client, command=sh(fled))
    assert told["state"] == "succeeded"
    assert not is_alive(int(log_of(client, told)))


def test_a_job_that_ignores_the_notice_is_killed_after_its_grace(client: httpx.Client):
    stubborn = submit(client, command=sh("trap '' TERM; sleep 600 & wait; sleep 600"), grace="1s")
    until(lambda: show(client, stubborn)["state"] == "running")
    assert client.delete(f"/api/v1/jobs/{stubborn}").status_code == 202
    until(lambda: show(client, stubborn)["state"] == "cancelled")


def test_a_flood_of_log_is_cut_and_its_end_is_kept(client: httpx.Client):
    told = run(client, command=sh("yes | head -c 200000000; echo the end"))
    assert told["state"] == "succeeded"
    assert log_of(client, told).endswith(b"the end\n")


def test_bytes_that_are_no_text_come_back_as_they_were(client: httpx.Client):
    told = run(client, command=sh(r"printf '\000\377\033[31m\200'"))
    assert log_of(client, told) == b"\x00\xff\x1b[31m\x80"


@pytest.mark.parametrize(
    ("said", "ask"),
    [
        ("cannot run the command `/no/such/command`", {"command": ["/no/such/command"]}),
        ("No such file or directory `/no/folder`", {"command": ["true"], "workdir": "/no/folder"}),
        ("is outside the team's directory", {"command": ["true"], "workdir": "../../elsewhere"}),
        ("outside the team", {"command": ["true"], "checkpoint": {"dir": "../../elsewhere"}}),
        ("exit code 139 (SIGSEGV)", {"command": sh("kill -SEGV $$")}),
    ],
    ids=["no command", "no folder", "folder outside", "checkpoint outside", "signal"],
)
def test_what_cannot_run_fails_once_and_says_why(
    client: httpx.Client, said: str, ask: dict[str, object]
):
    told = run(client, **ask)
    assert told["state"] == "failed"
    assert said in told["reason"]["sentence"]
    assert len(told["attempts"]) == 1
    # What never began has no exit code of 0, which would read like a success.
    assert told["attempts"][0]["exit_code"] != 0


def test_idle_slow_and_deaf_connections_by_the_hundred_hold_up_nobody(
    client: httpx.Client, at: Address
):
    host, port = at.url.removeprefix("http://").split(":")
    shown = f"Authorization: Bearer {at.token}\r\n\r\n"
    deaf = f"GET /api/v1/events?after=0 HTTP/1.1\r\nHost: x\r\n{shown}"
    with ExitStack() as open_ones:
        for number in range(400):
            one = open_ones.enter_context(socket.create_connection((host, int(port))))
            if number < 100:
                one.sendall(deaf.encode())
            elif number < 200:
                one.sendall(b"GET /api/v1/jobs HTTP/1.1\r\nX-Slow: ")
        assert run(client, command=["true"])["state"] == "succeeded"
        assert client.get("/healthz").status_code == 200


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"\xff\xfe{}",
        b"null",
        b"[" * 100_000,
        b'{"command": ["\\ud800"]}',
        b'{"command": ["true"], "nodes": NaN}',
        b'{"command": ["true"], "nodes": 1e999}',
        b'{"command": ["true"], "priority": ' + b"9" * 5_000 + b"}",
        b'{"command": ["true"], "time_limit": "99999999999999w"}',
        b'{"jobs": []}',
        b"x" * 5_000_000,
    ],
    ids=lambda body: repr(body[:30]),
)
def test_a_body_that_cannot_be_used_is_a_problem_with_a_hint(client: httpx.Client, body: bytes):
    answer = client.post("/api/v1/jobs", content=body)
    assert answer.status_code in (400, 413, 422)
    assert answer.headers["content-type"].startswith("application/problem+json")
    assert answer.json()["hint"]


def test_an_array_that_would_fill_the_disk_is_refused_with_its_size(client: httpx.Client):
    heavy = {"command": ["true"], "array": 100_000, "env": {"A": "x" * 100_000}}
    answer = client.post("/api/v1/jobs", json=heavy)
    assert (answer.status_code, answer.json()["code"]) == (422, "too-many-jobs")
    assert "MiB" in answer.json()["detail"]


@pytest.mark.parametrize(
    "path", ["..%2f..%2fjournal.db/logs", "%2e%2e/%2e%2e/journal.db", "%00/logs", "a" * 9_000]
)
def test_no_path_leads_out_of_the_folder_of_logs(client: httpx.Client, path: str):
    assert client.get(f"/api/v1/jobs/{path}").status_code == 404
