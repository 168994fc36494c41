"""The list of the users of teams: a number is given once, and outlives whoever gave it."""

import json
import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from tenfold.client.endpoint import SYSTEM, find_state_dir
from tenfold.live.local.attempt.folder import TEAM_USERS, ExecutorDir
from tenfold.live.local.attempt.own_folders import remove_other_access
from tenfold.live.local.member.team_users import (
    TeamUsers,
    UidRange,
    UidsExhausted,
    reset_ownership_migration,
    why_no_team_users,
)
from tenfold.live.local.spawner.launches import user_of
from tenfold.model.errors import InputError
from tests.contract.executor.real_processes import launch

UID_RANGE = UidRange(2_100_000_000, 2_100_000_002)


@pytest.fixture
def home(tmp_path: Path) -> ExecutorDir:
    home = ExecutorDir(str(tmp_path / "run"))
    home.prepare()
    return home


def test_a_team_keeps_its_user(home: ExecutorDir):
    users = TeamUsers(home, UID_RANGE)
    given = [users.user_for(team)["uid"] - UID_RANGE.first for team in ("a", "b", "a")]
    assert given == [0, 1, 0]
    assert TeamUsers(home, UID_RANGE).user_for("b")["uid"] == UID_RANGE.first + 1


def test_a_number_is_never_given_to_another_team(home: ExecutorDir):
    first = TeamUsers(home, UID_RANGE)
    for team in ("a", "b"):
        first.user_for(team)
    # Another range, of which one number is given already.
    later = TeamUsers(home, UidRange(UID_RANGE.first + 1, UID_RANGE.first + 2))
    assert later.user_for("c")["uid"] == UID_RANGE.first + 2
    with pytest.raises(UidsExhausted):
        later.user_for("d")
    assert later.user_for("a")["uid"] == UID_RANGE.first


def test_a_number_that_an_account_has_is_passed_over(home: ExecutorDir):
    assert TeamUsers(home, UidRange(0, 2_100_000_000)).user_for("a")["uid"] > 0


def test_a_user_that_cannot_be_written_down_is_not_given(home: ExecutorDir, monkeypatch):
    users = TeamUsers(home, UID_RANGE)

    def full(path: str, text: str) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tenfold.live.local.member.team_users.write_durably", full)
    user, reason = user_of(launch("true"), users)
    assert user is None
    assert reason is not None
    assert reason.code == "cannot-write"
    monkeypatch.undo()
    assert TeamUsers(home, UID_RANGE).user_for("other")["uid"] == UID_RANGE.first


def test_half_a_list_is_refused_and_not_begun_anew(home: ExecutorDir):
    TeamUsers(home, UID_RANGE).user_for("a")
    path = Path(home.path) / TEAM_USERS
    whole = path.read_text()
    for text in (whole[: len(whole) // 2], "[]", '{"teams": {"a": 0}}', '{"teams": {"a": "x"}}'):
        path.write_text(text)
        with pytest.raises(InputError) as caught:
            TeamUsers(home, UID_RANGE)
        assert caught.value.code == "team-users-damaged"


def test_the_way_opens_with_the_list_and_stays_open(home: ExecutorDir):
    assert home.parent_mode() == 0o700
    TeamUsers(home, UID_RANGE)
    home.prepare()
    modes = {name: os.stat(f"{home.path}/{name}").st_mode & 0o777 for name in os.listdir(home.path)}
    assert modes == {
        "attempts": 0o711,
        "teams": 0o711,
        "open": 0o700,
        "lost-nodes": 0o700,
        TEAM_USERS: 0o600,
    }


def test_files_are_given_again_after_jobs_ran_without_users(home: ExecutorDir):
    TeamUsers(home, UID_RANGE).migrate_ownership()
    path = Path(home.path) / TEAM_USERS
    assert json.loads(path.read_text())["put_right"] is True
    reset_ownership_migration(home)
    assert json.loads(path.read_text())["put_right"] is False


def test_tests_of_nodes_run_as_the_control_plane_does(home: ExecutorDir):
    users = TeamUsers(home, UID_RANGE)
    test = launch("true", job_id="acceptance/n1")
    assert user_of(test, users) == (None, None)
    user, _ = user_of(launch("true"), users)
    assert user is not None
    assert user_of(launch("true"), None) == (None, None)


def test_what_lies_beside_the_way_is_closed(tmp_path: Path):
    for name in ("journal.db", "open.toml"):
        (tmp_path / name).write_text("")
        (tmp_path / name).chmod(0o644)
    (tmp_path / "run").mkdir(0o755)
    (tmp_path / "logs").mkdir(0o755)
    (tmp_path / "elsewhere").symlink_to("/etc")
    remove_other_access(str(tmp_path), ("run",))
    modes = {path.name: path.lstat().st_mode & 0o077 for path in tmp_path.iterdir()}
    assert (modes["journal.db"], modes["open.toml"], modes["logs"]) == (0, 0, 0)
    assert modes["run"] == 0o055


@pytest.mark.skipif(os.geteuid() != 0, reason="only root is asked for more than being root")
def test_a_closed_folder_on_the_way_is_named(tmp_path: Path):
    closed = tmp_path / "closed"
    closed.mkdir(0o700)
    # The nearest one: that is the one to change.
    assert f"`{closed}`" in why_no_team_users(str(closed / "home"), UidRange())


def test_root_keeps_its_state_where_users_of_teams_can_come_to_it(tmp_path: Path, monkeypatch):
    for name in ("TENFOLD_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    own = tmp_path / ".local" / "share" / "tenfold"
    account = SimpleNamespace(pw_dir=str(tmp_path))
    monkeypatch.setattr("tenfold.client.endpoint.pwd", SimpleNamespace(getpwuid=lambda _: account))
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert find_state_dir() == SYSTEM
    # One that is there already goes on being used.
    own.mkdir(parents=True)
    assert find_state_dir() == own
    own.rmdir()
    monkeypatch.setattr(os, "geteuid", lambda: 1_000)
    assert find_state_dir() == own
