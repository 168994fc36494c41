"""Digests of files and folders, as `sha256sum` knows them, and what is refused."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tenfold.files import artefacts
from tenfold.files.artefacts import artefact_of, difference
from tenfold.model.errors import InputError

LISTED = (
    r"find -L . -type f -printf '%P\n' | LC_ALL=C sort | xargs -d '\n' sha256sum -- | sha256sum"
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "m"
    (made / "a.b").mkdir(parents=True)
    (made / "a").mkdir()
    for name in ("a/z", "a.b/y", "weights with spaces", "Z", "é", "--flag"):
        (made / name).write_bytes(name.encode() * 3)
    return made


def fault(path: Path) -> str:
    with pytest.raises(InputError) as raised:
        artefact_of(path)
    assert raised.value.code in ("artefact-unusable", "artefact-unreadable")
    return raised.value.message


@pytest.mark.skipif(shutil.which("sha256sum") is None, reason="sha256sum is not installed")
def test_digests_are_what_sha256sum_prints(folder: Path):
    ran = subprocess.run(
        ["bash", "-c", LISTED], cwd=folder, capture_output=True, text=True, check=True
    )
    assert artefact_of(folder).digest == ran.stdout.split()[0]
    one = folder / "Z"
    ran = subprocess.run(["sha256sum", str(one)], capture_output=True, text=True, check=True)
    assert artefact_of(one).digest == ran.stdout.split()[0]


def test_an_artefact_has_its_size_and_an_absolute_path(
    folder: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(folder.parent)
    found = artefact_of(Path("m"))
    assert (found.location, found.kind, found.files) == (str(folder), "folder", 6)
    assert found.size_bytes == sum(one.stat().st_size for one in folder.rglob("*") if one.is_file())


def test_large_files_are_read_in_chunks_with_progress(
    folder: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(artefacts, "CHUNK_BYTES", 4)
    seen: list[int] = []
    found = artefact_of(folder, seen.append)
    assert seen == sorted(seen)
    assert seen[-1] == found.size_bytes
    assert max(b - a for a, b in zip([0, *seen], seen, strict=False)) <= 4


@pytest.mark.parametrize("change", ["content", "size", "added", "removed", "renamed"])
def test_every_change_is_found(folder: Path, change: str):
    registered = artefact_of(folder)
    assert difference(registered, folder) == ""
    one = folder / "Z"
    if change == "content":
        one.write_bytes(b"Y" * one.stat().st_size)
    elif change == "size":
        one.write_bytes(b"longer than before")
    elif change == "added":
        (folder / "new").touch()
    elif change == "removed":
        one.unlink()
    else:
        one.rename(folder / "Y")
    assert difference(registered, folder) != ""


def test_a_file_in_the_place_of_a_folder_is_named(folder: Path):
    registered = artefact_of(folder / "Z")
    assert "it is a folder" in difference(registered, folder)


def test_links_to_files_are_read_and_links_to_folders_refused(folder: Path):
    (folder / "blob").symlink_to(folder / "Z")
    assert artefact_of(folder).files == 7
    (folder / "loop").symlink_to(folder)
    assert "is a link to a folder" in fault(folder)


def test_what_cannot_be_hashed_is_refused(tmp_path: Path, folder: Path):
    assert "No such file" in fault(tmp_path / "nothing")
    assert "is neither a file nor a folder" in fault(Path("/dev/zero"))
    (tmp_path / "empty").mkdir()
    assert "has no files" in fault(tmp_path / "empty")
    os.mkfifo(folder / "pipe")
    assert "is a special file" in fault(folder)
    (folder / "pipe").unlink()
    (folder / "dangling").symlink_to("nowhere")
    assert "No such file" in fault(folder)


@pytest.mark.parametrize("name", [b"a\nb", b"a\x1b[2Jb", b"back\\slash", b"\xff\xfe"])
def test_names_that_a_list_cannot_have_on_one_line_are_refused(folder: Path, name: bytes):
    (Path(os.fsdecode(os.fsencode(folder) + b"/" + name))).touch()
    message = fault(folder)
    assert "\n" not in message
    assert "\x1b" not in message


def test_too_many_files_are_refused(folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(artefacts, "FILES_MAX", 5)
    assert "more than 5 files" in fault(folder)
