"""A folder is opened once, with or without the kernel's help, and no link of /proc is followed."""

import ctypes
import errno
import os
from pathlib import Path

import pytest

from tenfold.live.local.attempt import open_folder as module
from tenfold.live.local.attempt.open_folder import open_folder, open_without_links, opened


def refuses_openat2(*_words: object) -> int:
    """Answer as a kernel without the call does."""
    ctypes.set_errno(errno.ENOSYS)
    return -1


@pytest.fixture(params=["openat2", "without openat2"])
def kernel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param != "openat2":
        monkeypatch.setattr(module, "_syscall", refuses_openat2)
    return request.param


def same(folder: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(folder), path.stat())
    finally:
        os.close(folder)


def test_missing_folders_are_made_in_the_teams_folder_alone(kernel: str, tmp_path: Path):
    assert kernel
    team = tmp_path / "team"
    team.mkdir()
    assert same(open_folder(f"{team}/a/b", str(team)), team / "a" / "b")
    assert (team / "a").stat().st_mode & 0o777 == 0o700
    assert same(open_folder(f"{team}/a/b", str(team)), team / "a" / "b")
    assert same(open_folder(str(team), str(team)), team)
    with pytest.raises(FileNotFoundError, match="teammate"):
        open_folder(f"{tmp_path}/teammate", str(team))


def test_folders_in_each_other_are_made_however_many(kernel: str, tmp_path: Path):
    assert kernel
    path = f"{tmp_path}/" + "/".join("a" * 300)
    assert same(open_folder(path, str(tmp_path)), Path(path))


@pytest.mark.parametrize("folder", ["/proc/self/cwd", "/proc/self/root", "/proc/thread-self/cwd"])
def test_links_of_proc_are_refused_also_behind_a_link(kernel: str, folder: str, tmp_path: Path):
    assert kernel
    (tmp_path / "link").symlink_to(folder)
    for path in (folder, f"{tmp_path}/link", f"{tmp_path}/link/below"):
        with pytest.raises(OSError, match="link"):
            open_folder(path, str(tmp_path))


def test_what_is_no_folder_is_named(kernel: str, tmp_path: Path):
    assert kernel
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError) as caught:
        open_folder(f"{tmp_path}/file")
    assert caught.value.filename == f"{tmp_path}/file"


def test_without_openat2_no_link_is_followed(tmp_path: Path):
    (tmp_path / "real" / "below").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert same(open_without_links(-1, f"{tmp_path}/real/below"), tmp_path / "real" / "below")
    for path in (f"{tmp_path}/link", f"{tmp_path}/link/below"):
        with pytest.raises(OSError, match="cannot follow safely"):
            open_without_links(-1, path)


def test_an_open_folder_stays_the_same_when_its_name_leads_elsewhere(tmp_path: Path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "own").write_text("")
    with opened(f"{tmp_path}/folder") as path:
        (tmp_path / "folder").rename(tmp_path / "moved")
        (tmp_path / "folder").symlink_to("/")
        assert os.listdir(path) == ["own"]
