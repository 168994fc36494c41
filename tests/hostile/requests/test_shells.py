"""Shells in running jobs: closed to other teams and other tokens, and ended with their token."""

import pytest

from hostile.plane import API, Plane
from patience import until
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
