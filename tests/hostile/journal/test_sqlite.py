"""Damage to a journal in SQLite."""

import sqlite3
from contextlib import closing
from pathlib import Path
from random import Random

import pytest

from hostile.journal.damage import TRIES, Damage, dump, execute, judged, live, pages_of_events
from journal_builders import JOINED, submitted
from tenfold.journal.backup import back_up
from tenfold.journal.integrity.head_file import check_head
from tenfold.journal.store import Store, open_store
from tenfold.journal.verify import verify
from tenfold.model.errors import TenfoldError


class TestSqlite(Damage):
    @pytest.fixture
    def address(self, tmp_path: Path) -> str:
        return str(tmp_path / "journal.db")

    def test_a_lost_write_ahead_log_is_found(self, tmp_path: Path):
        """Copy the database without its log, as a careless copy of a running journal does."""
        path, head = tmp_path / "journal.db", tmp_path / "journal.head"
        journal = live(str(path), head)
        journal.append(JOINED)
        with sqlite3.connect(path) as plain:
            plain.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        plain.close()
        journal.append([submitted(1)])
        copy = tmp_path / "copy" / "journal.db"
        copy.parent.mkdir()
        copy.write_bytes(path.read_bytes())
        copy.with_suffix(".head").write_bytes(head.read_bytes())
        journal.close()
        with closing(open_store(copy)) as store, pytest.raises(TenfoldError) as caught:
            check_head(store, copy.with_suffix(".head"))
        assert caught.value.code == "journal-cut"

    def test_a_flipped_bit_anywhere_in_the_file_is_found_or_changes_no_event(self, tmp_path: Path):
        path, head = tmp_path / "journal.db", tmp_path / "journal.head"
        journal = live(str(path), head)
        journal.append(JOINED)
        for number in range(1, 13):
            journal.append([submitted(number)])
        journal.close()
        with closing(sqlite3.connect(path)) as plain:
            plain.execute("PRAGMA journal_mode=DELETE")
            pages = pages_of_events(plain)
            size = plain.execute("PRAGMA page_size").fetchone()[0]
        whole = path.read_bytes()
        with closing(open_store(path)) as store:
            before = dump(store)
        found = 0
        for seed in range(TRIES * 4):
            dice = Random(f"bits-{seed}")
            content = bytearray(whole)
            at = dice.choice(pages) * size + dice.randrange(size)
            content[at] ^= 1 << dice.randrange(8)
            trial = tmp_path / "trial.db"
            trial.write_bytes(content)
            is_valid, same = judged(trial, head, before)
            assert same or not is_valid, f"seed {seed}: byte {at} is damaged, not found"
            found += not is_valid
        assert found > TRIES // 2

    @pytest.mark.parametrize("value", ["CAST(body AS BLOB)", "CAST(x'ff22' AS TEXT)", "7"])
    def test_a_text_of_another_type_is_found(self, store: Store, head: Path, value: str):
        """A single bit makes a text a blob with the same bytes."""
        with closing(store):
            execute(store, f"UPDATE events SET body = {value} WHERE seq = 6")
            found = verify(store, head)
        assert "event 6 " in found.findings[0].message

    def test_restoring_a_backup_is_a_warning_and_not_damage(self, tmp_path: Path):
        path, head = tmp_path / "journal.db", tmp_path / "journal.head"
        journal = live(str(path), head)
        journal.append(JOINED)
        back_up(journal.store, tmp_path / "copy.db")
        journal.append([submitted(1)])
        journal.close()
        path.write_bytes((tmp_path / "copy.db").read_bytes())
        for _ in range(2):
            # It may be killed before it has written the file.
            with closing(open_store(path)) as store:
                assert [one.code for one in verify(store, head).findings] == ["journal-restored"]
        journal = live(str(path), head)
        assert [one.code for one in journal.warnings] == ["journal-restored"]
        journal.append([submitted(2)])
        journal.close()
        with closing(open_store(path)) as store:
            assert verify(store, head).findings == ()
            execute(store, "DELETE FROM events WHERE seq = 3")
            assert not verify(store, head).is_valid, "it is no backup any more"
