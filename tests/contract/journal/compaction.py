"""What every journal must do when old events move out of it beside its writer."""

from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest
from sqlalchemy import delete, select, update

from journal_builders import JOINED, models_registered, played, read_tables
from tenfold.engine.decision_log import Cycle
from tenfold.engine.digest import fleet_digest
from tenfold.files.records.replay_bundle import read_bundle
from tenfold.fleet.fleet import Fleet
from tenfold.journal import retention
from tenfold.journal.append import JournalWriter, open_journal
from tenfold.journal.compaction import compact_once, oldest_ms
from tenfold.journal.inspect import inspect
from tenfold.journal.integrity.rebuild import rebuild_read_tables
from tenfold.journal.retention import Export
from tenfold.journal.snapshots import Snapshotter, restore, snapshots_of
from tenfold.journal.store import Store
from tenfold.journal.tables import EVENTS, JOBS
from tenfold.journal.verify import verify
from tenfold.model.errors import Refused
from tenfold.model.events import NodeReturned
from tenfold.model.ids import NodeId
from tenfold.model.units import Millis
from tests.rigs.journal import fleet_of_parts
from tests.rigs.worlds import drawn_world

FOREVER_MS = 2**60


def lived(writer: JournalWriter, jobs: int = 30) -> Fleet:
    """Write a whole run with its cycles and some snapshots; return the fleet at its end."""
    world = drawn_world(Random(11), jobs=(jobs, jobs), governed=True)
    fleet, _ = played(world, "governed", writer, writer, Snapshotter(writer, every=60))
    writer.flush()
    return fleet


def compacted(store: Store, folder: Path, older_ms: int, part: int) -> list[Export]:
    moved: list[Export] = []
    while (one := compact_once(store, folder, older_ms, part=part)) is not None:
        moved.append(one)
    return moved


def codes(store: Store) -> list[str]:
    return [one.code for one in verify(store).findings]


class JournalCompaction:
    """The part of the contract that is about age; it needs `writer`, of an empty journal."""

    def test_the_model_registry_stays_when_old_events_move_out(
        self, writer: JournalWriter, tmp_path: Path
    ):
        store = writer.store
        writer.append([*JOINED, *models_registered(1)])
        writer.note(Cycle(Millis(1), "tenfold", writer.seq, 0, 0))
        writer.append([NodeReturned(Millis(2), NodeId("n0"))])
        before = {name: rows for name, rows in read_tables(store).items() if "model" in name}
        assert [len(rows) for rows in before.values()] == [2, 1, 6]
        assert len(compacted(store, tmp_path, FOREVER_MS, part=40)) == 1
        assert codes(store) == []
        rebuild_read_tables(writer)
        after = read_tables(store)
        assert {name: after[name] for name in before} == before

    def test_old_events_move_out_in_parts_beside_the_writer(
        self, writer: JournalWriter, tmp_path: Path
    ):
        fleet, store = lived(writer), writer.store
        assert codes(store) == []
        before = inspect(store)
        middle_ms = _at(store, before.last_seq // 2)
        moved = compacted(store, tmp_path, middle_ms, part=40)
        _follow_each_other(moved)
        assert len(moved) > 1
        assert all(one.last_seq - one.first_seq < 40 for one in moved)
        oldest = oldest_ms(store)
        assert oldest is not None
        assert _at(store, moved[-1].last_seq + 1) == oldest
        assert fleet_digest(restore(store).fleet) == fleet_digest(fleet)
        told = verify(store)
        assert (told.findings, told.bundles) == ((), len(moved))
        assert fleet_of_parts([one.file for one in moved]).version == moved[-1].last_seq
        after = inspect(store)
        assert (after.last_seq, len(after.moved)) == (before.last_seq, len(moved))
        assert after.events < before.events
        rebuild_read_tables(writer)
        assert codes(store) == []

    def test_the_newest_event_stays_and_the_writer_goes_on(
        self, writer: JournalWriter, tmp_path: Path
    ):
        fleet, store = lived(writer), writer.store
        last = writer.seq
        moved = compacted(store, tmp_path, FOREVER_MS, part=10_000)
        assert moved
        assert moved[-1].last_seq < last
        assert compact_once(store, tmp_path, FOREVER_MS) is None
        with store.reading() as connection:
            assert moved[-1].last_seq in snapshots_of(connection)
        event = restore(store).fleet
        assert fleet_digest(event) == fleet_digest(fleet)
        lines = [line for one in moved for line in read_bundle(one.file).lines]
        assert len(lines) >= moved[-1].last_seq

    def test_a_writer_that_took_over_meanwhile_makes_it_fail(
        self, writer: JournalWriter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ):
        lived(writer)
        store = writer.store

        def checked(path: Path, events: int, digest: str) -> None:
            open_journal(store, "second", 2_000)

        monkeypatch.setattr(retention, "_check_written", checked)
        with pytest.raises(Refused) as refused:
            compact_once(store, tmp_path, FOREVER_MS)
        assert refused.value.code == "lease-lost"
        assert inspect(store).moved == ()
        assert codes(store) == []

    def test_what_was_changed_by_hand_is_found(self, writer: JournalWriter, tmp_path: Path):
        lived(writer)
        store = writer.store
        with writer.writing() as connection:
            job = connection.execute(select(JOBS.c.id)).scalars().first()
            connection.execute(update(JOBS).where(JOBS.c.id == job).values(state="running"))
        assert codes(store) == ["read-table-differs"]
        rebuild_read_tables(writer)
        (part, *_) = compacted(store, tmp_path, FOREVER_MS, part=40)
        part.file.write_bytes(part.file.read_bytes()[:-20])
        assert "bundle-damaged" in codes(store)
        part.file.unlink()
        assert codes(store) == ["bundle-missing"]
        assert verify(store).is_valid
        with writer.writing() as connection:
            connection.execute(delete(EVENTS).where(EVENTS.c.seq == writer.seq))
        assert "journal-cut" in codes(store)


def _at(store: Store, seq: int) -> int:
    with store.reading() as connection:
        found = connection.execute(select(EVENTS.c.at_ms).where(EVENTS.c.seq == seq)).scalar()
    assert found is not None
    return found


def _follow_each_other(moved: Sequence[Export]) -> None:
    ends = [0, *(one.last_seq for one in moved)]
    assert [one.first_seq for one in moved] == [end + 1 for end in ends[:-1]]
