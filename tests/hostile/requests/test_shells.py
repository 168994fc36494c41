"""Shells in running jobs: closed to other teams and other tokens, and ended with their token."""

import socket
from collections import Counter
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from hostile.plane import API, Plane
from hostile.wire import Wire
from patience import HANG_S, until
from tenfold.client.client import Client
from tenfold.model.errors import InputError, TenfoldError

SCRIPT = ["sh", "-c", "id -u; sleep 600"]


@pytest.fixture(scope="module")
def job(plane: Plane):
    """A running job of blue."""
    with Client(plane.url, plane.token("member", "blue")) as blue:
        job_id = blue.submit(command=["sleep", "600"]).id
        until(lambda: blue.job(job_id).state == "running")
        yield job_id
    plane.cancel_all()


def test_another_team_cannot_open_a_shell_or_use_one(plane: Plane, job: str):
    with (
        Client(plane.url, plane.token("member", "blue")) as blue,
        Client(plane.url, plane.token("member", "red")) as red,
        Client(plane.url, plane.token("operator", "ops")) as operator,
    ):
        with pytest.raises(InputError, match="no job"):
            red.open_shell(job)
        shell = blue.open_shell(job, command=SCRIPT)
        # Not even an operator types into the shell of somebody else.
        for other in (red, operator):
            with pytest.raises(InputError, match="no shell"):
                other.shell_input(job, shell.id, b"x")
            with pytest.raises(InputError, match="no shell"):
                next(iter(other.shell_output(job, shell.id)))
        output = blue.shell_output(job, shell.id)
        printed = next(one for one in output if one.kind == "output").content
        assert printed.strip().isdigit()


def test_a_token_that_ends_takes_its_shells_with_it(plane: Plane, job: str):
    secret, record = plane.new_token("member", "blue")
    with Client(plane.url, secret) as blue, plane.wire("admin", "ops") as admin:
        shell = blue.open_shell(job, command=["sh", "-c", "echo $$; sleep 600"])
        output = blue.shell_output(job, shell.id)
        assert next(one for one in output if one.kind == "output").content.strip().isdigit()
        assert admin.delete(f"{API}/tokens/{record}").status == 200
        left = [one for one in output if one.kind != "alive"]
    assert [one.kind for one in left] == ["end"]


def test_a_token_opens_only_so_many_shells(plane: Plane, job: str):
    with Client(plane.url, plane.new_token("member", "blue")[0]) as blue:
        for _ in range(8):
            blue.open_shell(job, command=["sleep", "600"])
        with pytest.raises(TenfoldError, match="8 shells are open"):
            blue.open_shell(job, command=["sleep", "600"])


def test_a_token_that_ends_ends_a_shell_that_never_stops_to_print(plane: Plane, job: str):
    """Its reader is never idle, so that nothing but the end of the token stops it."""
    secret, record = plane.new_token("member", "blue")
    with Client(plane.url, secret) as blue, plane.wire("admin", "ops") as admin:
        shell = blue.open_shell(job, command=["sh", "-c", "while :; do echo x; sleep 0.05; done"])
        output = blue.shell_output(job, shell.id)
        assert next(one for one in output if one.kind == "output").content
        assert admin.delete(f"{API}/tokens/{record}").status == 200
        last = list(output)[-1]
    assert last.kind == "end"


def test_a_token_that_ends_ends_a_shell_whose_output_is_not_read(plane: Plane, job: str):
    secret, record = plane.new_token("member", "blue")
    with Client(plane.url, secret) as blue, plane.wire("admin", "ops") as admin:
        endless = ["yes", f"of {record}"]
        shell = blue.open_shell(job, command=endless)
        with unread(plane, f"{API}/jobs/{job}/shells/{shell.id}", secret):
            until(lambda: runs(*endless))
            assert admin.delete(f"{API}/tokens/{record}").status == 200
            until(lambda: not runs(*endless))


def test_shells_opened_at_once_are_counted_before_they_are_opened(plane: Plane, job: str):
    secret, _ = plane.new_token("member", "blue")

    def opened(_: int) -> tuple[int, str]:
        with Wire(plane.url, secret) as blue:
            told = blue.post(f"{API}/jobs/{job}/shells", {"command": ["sleep", "600"]})
        return told.status, told.code()

    with ThreadPoolExecutor(32) as pool:
        told = Counter(pool.map(opened, range(32)))
    assert told.pop((201, ""), 0) <= 8
    assert {status for status, _ in told} == {429}, told
    assert (429, "too-many-shells") in told


def test_a_team_leaves_shells_to_others(plane: Plane):
    """A team of its own: its shells stay open for a while, and tests come in any order."""
    ask = {"command": ["sleep", "600"]}
    with Client(plane.url, plane.new_token("member", "green")[0]) as green:
        job = green.submit(command=["sleep", "600"]).id
        until(lambda: green.job(job).state == "running")
    with ExitStack() as stack:
        wires = [
            stack.enter_context(Wire(plane.url, plane.new_token("member", "green")[0]))
            for _ in range(5)
        ]
        told = [one.post(f"{API}/jobs/{job}/shells", ask) for one in wires for _ in range(8)]
        assert {one.status for one in told[:32]} == {201}
        assert {one.status for one in told[32:]} == {429}
        assert told[-1].json()["detail"].startswith("32 shells are open")
        operator = stack.enter_context(plane.wire("operator", "ops"))
        assert operator.post(f"{API}/jobs/{job}/shells", ask).status == 201
        assert operator.delete(f"{API}/jobs/{job}").status == 202


def runs(*words: str) -> bool:
    """Tell whether a process of this machine has exactly these arguments."""
    wanted = b"".join(word.encode() + b"\0" for word in words)
    for one in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if one.read_bytes() == wanted:
                return True
    return False


@contextmanager
def unread(plane: Plane, target: str, secret: str) -> Generator[None]:
    """Ask for an answer without an end, and read nothing of it."""
    at = urlsplit(plane.url)
    shown = f"GET {target} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {secret}\r\n\r\n"
    with socket.socket() as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        one.settimeout(HANG_S)
        one.connect((at.hostname, at.port))
        one.sendall(shown.encode())
        yield
