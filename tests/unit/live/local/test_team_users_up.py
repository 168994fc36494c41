"""A real `tenfold up` as root keeps teams apart; killed and started again, it still does."""

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from patience import HANG_S
from tenfold.client.client import Client
from tenfold.client.endpoint import read_address
from tenfold.live.local.member.team_users import UidRange, why_no_team_users
from unit.up_process import Up

WHY = why_no_team_users(tempfile.gettempdir(), UidRange())
WAIT_S = HANG_S
apart = pytest.mark.skipif(bool(WHY), reason=f"teams have no users of their own here: {WHY}")


@pytest.fixture
def up() -> Iterator[Up]:
    folder = Path(tempfile.mkdtemp(prefix="tenfold-users-"))
    folder.chmod(0o711)
    up = Up(folder / "home")
    yield up
    if up.process is not None:
        up.interrupt()
    shutil.rmtree(folder)


def client(up: Up) -> Client:
    address = read_address(up.home)
    assert address is not None
    return Client(address.url, address.token)


def ran(up: Up, team: str, script: str) -> str:
    """Run a script as a job of a team; return what it said."""
    with client(up) as asked:
        job = asked.submit(name="job", team=team, command=["sh", "-c", script])
        asked.wait(job.id, timeout_s=WAIT_S)
        return "".join(asked.logs(job.id))


def start(up: Up, *options: str) -> str:
    lines = up.start("--virtual-nodes", "1", *options)
    return next(line for line in lines if line.startswith("teams: "))


@apart
def test_a_job_reads_nothing_of_the_control_plane(up: Up):
    assert "jobs of each team run as a separate user" in start(up)
    names = ("address.json", "journal.db", "run/team-users.json", "logs/server.jsonl", "up.lock")
    tries = [f"cat {up.home}/{name}" for name in names] + [f"ls {up.home}", f"ls {up.home}/run"]
    script = "; ".join(f"({one}) > /dev/null 2>&1 && echo '{one}'" for one in tries)
    assert ran(up, "a", f"{script}; echo done") == "done\n"


@apart
def test_the_users_of_teams_survive_a_kill(up: Up):
    start(up)
    first = [int(ran(up, team, "id -u")) for team in "ab"]
    up.kill()
    start(up)
    listed = json.loads((up.home / "run" / "team-users.json").read_text())
    assert first == list(listed["teams"].values())
    assert ran(up, "c", "id -u").strip() == str(max(listed["teams"].values()) + 1)
    assert ran(up, "a", "id -u").strip() == str(listed["teams"]["a"])


@apart
def test_a_state_folder_of_before_is_put_right(up: Up):
    assert "separated by team (--team-users off)" in start(up, "--team-users", "off")
    assert ran(up, "a", "cd; echo old > file; chmod 600 file; id -u") == "0\n"
    (up.home / "first-job.toml").chmod(0o644)
    up.interrupt()
    start(up)
    assert ran(up, "a", "cd; cat file; id -u") == f"old\n{UidRange().first}\n"
    assert (up.home / "first-job.toml").stat().st_mode & 0o077 == 0
    assert up.home.stat().st_mode & 0o777 == 0o711


def test_without_users_it_says_so_and_why(up: Up):
    up.home.parent.chmod(0o700)
    says = start(up)
    why = "not started as root" if os.geteuid() else str(up.home.parent)
    assert "only requests to the API are separated by team" in says
    assert why in says
    assert up.home.stat().st_mode & 0o777 == 0o700


def test_users_that_are_asked_for_and_cannot_be_are_refused(up: Up):
    up.home.parent.chmod(0o700)
    with pytest.raises(AssertionError, match="cannot run teams as separate users"):
        up.start("--team-users", "on")


def test_a_range_of_numbers_that_is_none_is_refused(up: Up):
    for text in ("5", "9-3", "0-10", "a-b", "1-4294967295"):
        with pytest.raises(AssertionError, match="team-uids"):
            up.start("--team-uids", text)
