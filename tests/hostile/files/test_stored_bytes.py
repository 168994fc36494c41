"""Damaged or forged bytes in what is stored: checkpoints, journals and files of the executor.

Jobs can write their checkpoints; the rest is the control plane's own, and a disk may change it.
Every change gives a value, or an error that was made for it.
"""

import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostile.files.readers import NASTY
from hostile.files.test_readers import BUNCH, PIECES, bounded, relaxed
from journal_builders import JOINED, submitted
from tenfold.checkpoint import CheckpointError, load, newest, save, verify
from tenfold.checkpoint.sealed import seal
from tenfold.client.endpoint import read_address
from tenfold.files.core.document import read_bytes
from tenfold.journal import read
from tenfold.journal import verify as journal_verify
from tenfold.journal.append import open_journal
from tenfold.journal.store import open_store
from tenfold.live.local.attempt.folder import ExecutorDir
from tenfold.live.local.member.team_users import TeamUsers, UidRange
from tenfold.model.errors import TenfoldError
from tenfold.server.runtime.state_dir import LocalLogs

EXAMPLES = max(25, int(os.environ.get("TENFOLD_FUZZ", "25")) // 4)
"""Fewer than for readers of files: each opens a whole checkpoint, journal or state folder."""
stored = relaxed(EXAMPLES)


def edited(data: st.DataObject, content: bytes) -> bytes:
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(content)))
        length = data.draw(st.integers(0, 30))
        content = content[:start] + data.draw(PIECES | BUNCH) + content[start + length :]
    return content


# ---------------------------------------------------------------------------------- checkpoints


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("saved")
    save(folder, 1, {"weights": [1.0, 2.0], "step": 1, "name": "a", "more": (b"x" * 50, None)})
    return folder


def loads(folder: Path) -> None:
    """Ask everything that is asked of a folder of checkpoints."""
    for ask in (newest, verify, load):
        with bounded(), suppress(CheckpointError):
            ask(folder)


@pytest.mark.parametrize("file", ["manifest.json", "shard-00000.json", "shard-00000.bin"])
@pytest.mark.parametrize("name", NASTY)
def test_a_checkpoint_with_a_file_made_to_break_it_is_passed_over(
    saved: Path, tmp_path: Path, file: str, name: str
):
    folder = tmp_path / "run"
    shutil.copytree(saved, folder)
    (place,) = folder.glob("step-*")
    (place / file).write_bytes(NASTY[name])
    loads(folder)


HUGE = (10**30, -1, 2**63, 1e308, None, "", "x" * 9, [], {}, [[]], True, "../../../etc/passwd")


@pytest.mark.parametrize("file", ["manifest.json", "shard-00000.json"])
def test_a_record_that_a_job_sealed_itself_may_hold_anything(
    saved: Path, tmp_path: Path, file: str
):
    """The hash is no key: a job can write a record that is whole and says what it likes."""
    from tenfold.checkpoint.sealed import unseal  # noqa: PLC0415

    folder = tmp_path / "run"
    shutil.copytree(saved, folder)
    (place,) = folder.glob("step-*")
    honest = unseal((place / file).read_bytes(), file)
    for key in (*honest, "unknown"):
        for value in HUGE:
            (place / file).write_bytes(seal({**honest, key: value}))
            loads(folder)


def test_a_checkpoint_with_some_bytes_changed_is_loaded_or_passed_over(saved: Path, tmp_path: Path):
    folder = tmp_path / "run"
    shutil.copytree(saved, folder)
    (place,) = folder.glob("step-*")
    whole = {path: path.read_bytes() for path in place.iterdir()}

    @stored
    @given(st.data())
    def mutated(data: st.DataObject) -> None:
        path = data.draw(st.sampled_from(sorted(whole)))
        path.write_bytes(edited(data, whole[path]))
        loads(folder)
        path.write_bytes(whole[path])

    mutated()


@pytest.mark.parametrize("kind", ["folder", "link", "pipe", "sparse", "nothing"])
def test_a_manifest_that_is_no_plain_file_is_passed_over(saved: Path, tmp_path: Path, kind: str):
    folder = tmp_path / "run"
    shutil.copytree(saved, folder)
    (place,) = folder.glob("step-*")
    manifest = place / "manifest.json"
    manifest.unlink()
    if kind == "folder":
        manifest.mkdir()
    elif kind == "link":
        manifest.symlink_to("/dev/zero")
    elif kind == "pipe":
        os.mkfifo(manifest)
    elif kind == "sparse":
        with manifest.open("wb") as file:
            file.truncate(1 << 34)
    loads(folder)


# ---------------------------------------------------------------------------------- the executor


def attempt_reads(path: Path) -> None:
    home = ExecutorDir(str(path))
    folder = home.attempt("a-1", 1)
    for ask in (folder.record, folder.end, folder.stop):
        with suppress(TenfoldError, ValueError):
            ask()


def users_read(path: Path) -> None:
    home = ExecutorDir(str(path))
    home.prepare()
    with suppress(TenfoldError):
        TeamUsers(home, UidRange())


STORED: dict[str, tuple[str, Callable[[Path], object]]] = {
    "address": ("address.json", read_address),
    "record": ("attempts/a-1/1/record", attempt_reads),
    "end": ("attempts/a-1/1/end.json", attempt_reads),
    "users": ("team-users.json", users_read),
}


@pytest.mark.parametrize("which", STORED)
def test_a_file_of_the_control_plane_may_hold_anything(tmp_path: Path, which: str):
    where, ask = STORED[which]
    path = tmp_path / where
    path.parent.mkdir(parents=True, exist_ok=True)
    for content in (*NASTY.values(), b'{"teams": 1}', b'{"teams": {"a": "x"}}', b'{"end": []}'):
        path.write_bytes(content)
        with bounded():
            ask(tmp_path)


# ----------------------------------------------------------------------------------- the journal


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("journal") / "journal.db"
    store = open_store(path)
    open_journal(store, "test", 0).append([*JOINED, *(submitted(one) for one in range(1, 6))])
    store.close()
    return path


def read_journal(path: Path) -> None:
    """Ask everything of a journal that a start, a list and a check ask."""
    with bounded(), suppress(TenfoldError):
        store = open_store(path)
        try:
            for ask in (
                lambda: list(read.events_after(store)),
                lambda: read.jobs(store),
                lambda: read.nodes(store),
                lambda: journal_verify.verify(store),
            ):
                with suppress(TenfoldError):
                    ask()
        finally:
            store.close()


@pytest.mark.parametrize("name", NASTY)
def test_an_event_that_is_anything_is_named_and_nothing_else_happens(
    journal: Path, tmp_path: Path, name: str
):
    path = tmp_path / "journal.db"
    shutil.copy(journal, path)
    text = NASTY[name].decode("utf-8", "replace")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE events SET body = ? WHERE seq = 4", (text,))
        connection.commit()
    read_journal(path)


def test_a_journal_with_some_bytes_changed_is_read_or_refused(journal: Path, tmp_path: Path):
    path = tmp_path / "journal.db"
    whole = read_bytes(journal)

    @stored
    @given(st.data())
    def mutated(data: st.DataObject) -> None:
        for left in tmp_path.iterdir():
            left.unlink()
        content = bytearray(whole)
        for _ in range(data.draw(st.integers(1, 5))):
            at = data.draw(st.integers(0, len(whole) - 1))
            new = data.draw(st.binary(min_size=1, max_size=16))[: len(whole) - at]
            content[at : at + len(new)] = new
        path.write_bytes(content)
        read_journal(path)

    mutated()


def test_logs_of_a_job_whose_name_is_a_path_stay_in_their_folder(tmp_path: Path):
    logs = LocalLogs(tmp_path)
    for name in ("../../../etc", "/etc", "..", "a/../../b", "a\n", ""):
        assert logs.logs(name, 1, 0).tail == b""  # pyright: ignore[reportArgumentType]
