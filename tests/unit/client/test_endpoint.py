"""Where a client asks, and whom it shows which token."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tenfold.client.endpoint import find_endpoint, find_state_dir
from tenfold.model.errors import InputError, Refused, Unreachable

HERE = "http://127.0.0.1:7410"
ELSEWHERE = "https://tenfold.example:8443"


@pytest.fixture(autouse=True)
def nothing_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("TENFOLD_URL", "TENFOLD_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TENFOLD_HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def running_here(nothing_said: Path) -> Path:
    address = {"url": HERE, "token": "tf_local", "pid": 7}
    (nothing_said / "address.json").write_text(json.dumps(address))
    return nothing_said


def test_what_is_said_comes_before_the_environment(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TENFOLD_URL", HERE)
    monkeypatch.setenv("TENFOLD_TOKEN", "tf_environment")
    endpoint = find_endpoint()
    assert (endpoint.url, endpoint.token) == (HERE, "tf_environment")
    endpoint = find_endpoint(f"{ELSEWHERE}/", "tf_said")
    assert (endpoint.url, endpoint.token) == (ELSEWHERE, "tf_said")


def test_the_state_folder_says_where_nothing_else_does(running_here: Path):
    endpoint = find_endpoint()
    assert (endpoint.url, endpoint.token, endpoint.state_dir) == (HERE, "tf_local", running_here)
    assert endpoint.reloaded() is None


def test_one_s_own_token_is_used_at_the_address_of_the_state_folder(
    running_here: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("TENFOLD_TOKEN", "tf_own")
    endpoint = find_endpoint()
    assert (endpoint.url, endpoint.token, endpoint.state_dir) == (HERE, "tf_own", None)
    assert endpoint.reloaded() is None


def test_the_token_of_the_state_folder_is_never_shown_to_another_address(running_here: Path):
    with pytest.raises(Refused) as wrong:
        find_endpoint(ELSEWHERE)
    assert wrong.value.code == "no-token"
    assert "tf_local" not in f"{wrong.value.message}{wrong.value.hint}"
    assert find_endpoint(HERE).token == "tf_local"


def test_where_no_control_plane_is_known_the_error_says_how_to_start_one():
    with pytest.raises(Unreachable) as wrong:
        find_endpoint()
    assert wrong.value.code == "no-control-plane"
    assert "tenfold up" in wrong.value.hint


def test_half_an_address_is_none(nothing_said: Path):
    (nothing_said / "address.json").write_text('{"url": "http')
    with pytest.raises(Unreachable):
        find_endpoint()


@pytest.mark.parametrize("url", ["127.0.0.1:7410", "ftp://host", "http://", "http://host:port"])
def test_an_address_that_is_none_is_named(url: str):
    with pytest.raises(InputError) as wrong:
        find_endpoint(url, "t")
    assert wrong.value.code == "wrong-url"


def test_proxies_are_for_other_machines():
    assert find_endpoint(HERE, "t").is_local
    assert not find_endpoint(ELSEWHERE, "t").is_local


def test_the_state_folder_lies_under_the_user_s_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    assert find_state_dir(tmp_path / "said") == tmp_path / "said"
    assert find_state_dir() == tmp_path
    monkeypatch.delenv("TENFOLD_HOME")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert find_state_dir() == tmp_path / "data" / "tenfold"
    monkeypatch.delenv("XDG_DATA_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert find_state_dir() == tmp_path / ".local" / "share" / "tenfold"


def write_address(folder: Path, url: str, pid: int) -> None:
    folder.mkdir(exist_ok=True)
    text = json.dumps({"url": url, "token": "tf_local", "pid": pid})
    (folder / "address.json").write_text(text)


def dead_pid() -> int:
    """Return the PID of a process that has ended and was reaped."""
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        ended.wait()
    return ended.pid


def test_a_demo_is_found_where_only_the_demo_runs(nothing_said: Path):
    write_address(nothing_said / "demo", ELSEWHERE, os.getpid())
    endpoint = find_endpoint()
    assert (endpoint.url, endpoint.state_dir) == (ELSEWHERE, nothing_said / "demo")
    write_address(nothing_said, HERE, dead_pid())
    assert find_endpoint().url == ELSEWHERE


def test_a_demo_is_not_found_while_the_control_plane_itself_runs(nothing_said: Path):
    write_address(nothing_said / "demo", ELSEWHERE, os.getpid())
    write_address(nothing_said, HERE, os.getpid())
    assert find_endpoint().url == HERE
    gone = dead_pid()
    write_address(nothing_said / "demo", ELSEWHERE, gone)
    write_address(nothing_said, HERE, gone)
    assert find_endpoint().url == HERE


def test_several_control_planes_share_a_token(running_here: Path):
    endpoint = find_endpoint(f"{HERE}, {ELSEWHERE}/", "tf_both")
    assert (endpoint.url, endpoint.urls) == (HERE, (HERE, ELSEWHERE))
    other = endpoint.next_url()
    assert other is not None
    assert (other.url, other.token) == (ELSEWHERE, "tf_both")
    assert endpoint.next_url("http://somewhere.else:1") == other
    assert other.next_url(HERE) == endpoint
    assert find_endpoint(HERE, "tf_one").next_url() is None
    with pytest.raises(InputError):
        find_endpoint(f"{HERE},", "tf_both")
