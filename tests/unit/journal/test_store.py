"""Opening, copying and upgrading a journal in a file."""

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from alembic.script import ScriptDirectory
from sqlalchemy import text

from journal_builders import batches_of
from tenfold.engine.digest import fleet_digest
from tenfold.fleet.fleet import Fleet
from tenfold.journal import read
from tenfold.journal.append import open_journal
from tenfold.journal.backup import back_up, check_copy
from tenfold.journal.migrate import HEAD, alembic_config
from tenfold.journal.snapshots import restore
from tenfold.journal.store import Store, open_store
from tenfold.model.errors import InputError, TenfoldError, Unreachable
from tenfold.model.events import Event, JobEnded, JobStopped, NodeJoined
from tenfold.model.ids import JobId
from tenfold.model.units import Millis
from tenfold.testing.builders import nodes


def refused(where: str | Path) -> TenfoldError:
    with pytest.raises(TenfoldError) as caught:
        open_store(where)
    return caught.value


def test_a_commit_waits_for_the_disk(tmp_path: Path):
    store = open_store(tmp_path / "journal.db")
    with store.reading() as connection:
        assert connection.execute(text("PRAGMA synchronous")).scalar() == 2
        assert connection.execute(text("PRAGMA journal_mode")).scalar() == "wal"
    store.close()


def test_an_address_that_cannot_be_opened_is_told_why(tmp_path: Path):
    assert refused(tmp_path / "none" / "journal.db").code == "no-such-folder"
    assert refused("mysql://here/journal").code == "journal-driver"
    assert refused("no-such-thing://here").code == "journal-driver"
    assert refused("://").code == "journal-driver"
    assert isinstance(refused(tmp_path), Unreachable)
    (tmp_path / "text.db").write_text("this is not a database, and long enough to be told so" * 9)
    found = refused(tmp_path / "text.db")
    assert found.code == "journal-unreachable"
    assert "not a journal or a recorded run" in found.message


def test_a_password_is_not_said_aloud():
    found = refused("postgresql://someone:secret@127.0.0.1:1/journal")
    assert "secret" not in found.message


def test_the_newest_revision_is_the_one_that_the_program_asks_for():
    scripts = ScriptDirectory.from_config(alembic_config())
    assert scripts.get_heads() == [HEAD]
    found = [script.revision for script in scripts.walk_revisions()]
    assert found == [f"{number:04}" for number in range(int(HEAD), 0, -1)]


def test_a_journal_that_is_up_to_date_opens_without_alembic(tmp_path: Path):
    path = tmp_path / "journal.db"
    open_store(path).close()
    program = (
        "import sys\nfrom tenfold.journal.store import open_store\n"
        f"open_store({str(path)!r}).close()\nassert 'alembic' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.fixture
def filled(tmp_path: Path) -> Store:
    store = open_store(tmp_path / "journal.db")
    writer = open_journal(store, "test", 0)
    for batch in batches_of(3):
        writer.append(batch)
    return store


def test_a_journal_is_copied_while_it_is_written(filled: Store, tmp_path: Path):
    writer = open_journal(filled, "test", 1)
    before = fleet_digest(restore(filled).fleet)
    with writer.writing() as connection:
        connection.execute(text("UPDATE jobs SET state = 'half'"))
        back_up(filled, tmp_path / "copy.db")
    check_copy(tmp_path / "copy.db")
    assert sorted(path.name for path in tmp_path.glob("*copy*")) == ["copy.db"]
    copy = open_store(tmp_path / "copy.db")
    assert fleet_digest(restore(copy).fleet) == before
    assert "half" not in read.counts(copy)
    assert read.counts(filled) == {}, "the writer went on"
    open_journal(copy, "restored", 2).append([NodeJoined(Millis(9), *nodes(1, name="new"))])
    copy.close()
    filled.close()


def test_a_copy_is_written_over_only_when_told_to(filled: Store, tmp_path: Path):
    back_up(filled, tmp_path / "copy.db")
    with pytest.raises(InputError) as caught:
        back_up(filled, tmp_path / "copy.db")
    assert caught.value.code == "file-exists"
    back_up(filled, tmp_path / "copy.db", force=True)
    with pytest.raises(Unreachable) as failed:
        back_up(filled, tmp_path / "no-such-folder" / "copy.db")
    assert failed.value.code == "backup-failed"
    filled.close()


def test_half_a_copy_is_told_so(filled: Store, tmp_path: Path):
    path = tmp_path / "copy.db"
    back_up(filled, path)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError) as caught:
        check_copy(path)
    assert caught.value.code == "journal-damaged"
    filled.close()


def test_a_fact_that_cannot_be_is_told(filled: Store):
    open_journal(filled, "test", 1).append([JobEnded(Millis(0), JobId("stranger"))])
    with pytest.raises(InputError) as caught:
        restore(filled)
    assert caught.value.code == "impossible-fact"
    filled.close()


def test_an_empty_journal_gives_an_empty_fleet(tmp_path: Path):
    store = open_store(tmp_path / "journal.db")
    found = restore(store)
    assert fleet_digest(found.fleet) == fleet_digest(Fleet())
    assert (found.seq, found.snapshot_seq, found.warnings) == (0, 0, ())
    store.close()


def test_facts_without_an_exit_code_are_written_as_they_always_were():
    ended, stopped = (
        JobEnded(Millis(1), JobId("a")),
        JobStopped(Millis(1), JobId("a"), "moved", Millis(0)),
    )
    assert b"exit_code" not in msgspec.json.encode([ended, stopped])
    assert (
        msgspec.json.decode(
            b'{"type":"JobEnded","at_ms":1,"job_id":"a","status":"completed"}', type=Event
        )
        == ended
    )
