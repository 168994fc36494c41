"""What every journal must do over time: come back, be replayed, be kept small, be upgraded."""

from collections.abc import Iterator
from pathlib import Path
from random import Random

import msgspec
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import delete, insert, select, text, update

from journal_builders import (
    JOINED,
    batches_of,
    decider_for,
    played,
    read_tables,
    states_told,
    submitted,
)
from live_lives import Script
from tenfold.compose.live_journal import LiveJournal
from tenfold.compose.policies import placing_decider
from tenfold.engine.digest import fleet_digest
from tenfold.engine.loop import run
from tenfold.engine.replay import replay
from tenfold.files.records.replay_bundle import BundleHeader, read_bundle
from tenfold.fleet.fleet import Fleet
from tenfold.journal import read
from tenfold.journal.append import JournalWriter, open_journal
from tenfold.journal.bundles import import_bundle
from tenfold.journal.integrity.rebuild import rebuild_read_tables
from tenfold.journal.migrate import HEAD, bring_up_to_date, revision_of
from tenfold.journal.record import record_of
from tenfold.journal.snapshots import Snapshotter, restore, save_snapshot
from tenfold.journal.store import Store, open_store
from tenfold.journal.tables import EVENTS, METADATA, SNAPSHOTS
from tenfold.model.errors import InputError
from tenfold.model.events import JobSubmitted
from tenfold.model.policy.policy import Policy
from tenfold.study.replay.bundle import verify
from tests.rigs.journal import export_older, fleet_of_parts
from tests.rigs.worlds import drawn_world


class JournalUpkeep:
    """The part of the contract that is about time; it needs `address`, an empty database."""

    @pytest.fixture
    def store(self, address: str) -> Iterator[Store]:
        store = open_store(address)
        yield store
        store.close()

    @pytest.fixture
    def writer(self, store: Store) -> JournalWriter:
        return open_journal(store, "first", 1_000)

    def test_a_fleet_comes_back_from_its_snapshot(self, writer: JournalWriter):
        fleet = Fleet()
        for number, batch in enumerate(batches_of(7, jobs=20)):
            writer.append(batch)
            fleet.apply_all(batch)
            if number % 9 == 5:
                save_snapshot(writer, fleet)
        found = restore(writer.store)
        assert fleet_digest(found.fleet) == fleet_digest(fleet)
        assert 0 < found.snapshot_seq <= found.seq == writer.seq
        with writer.store.reading() as connection:
            assert len(list(connection.execute(select(SNAPSHOTS.c.seq)))) <= 3

    def test_a_broken_snapshot_is_passed_over_with_a_warning(self, writer: JournalWriter):
        fleet = Fleet()
        seqs: list[int] = []
        for number, batch in enumerate(batches_of(7)):
            writer.append(batch)
            fleet.apply_all(batch)
            if number in (3, 6, 9):
                save_snapshot(writer, fleet)
                seqs.append(fleet.version)
        with writer.writing() as connection:
            newest = SNAPSHOTS.c.seq == seqs[2]
            connection.execute(update(SNAPSHOTS).where(newest).values(body=b"not packed"))
            wrong = SNAPSHOTS.c.seq == seqs[1]
            connection.execute(update(SNAPSHOTS).where(wrong).values(digest="0" * 32))
            ahead = {"seq": writer.seq + 1, "digest": "", "body": b""}
            connection.execute(insert(SNAPSHOTS), ahead)
        found = restore(writer.store)
        assert found.snapshot_seq == seqs[0]
        assert [warning.code for warning in found.warnings] == ["snapshot-broken"] * 3
        assert fleet_digest(found.fleet) == fleet_digest(fleet)

    def test_events_that_are_missing_or_damaged_are_told(self, writer: JournalWriter):
        writer.append([*JOINED, submitted(1), submitted(2)])
        with writer.writing() as connection:
            connection.execute(update(EVENTS).where(EVENTS.c.seq == 2).values(body="{"))
        with pytest.raises(InputError) as caught:
            restore(writer.store)
        assert caught.value.code == "journal-damaged"
        assert "event 2" in caught.value.message
        with writer.writing() as connection:
            connection.execute(delete(EVENTS).where(EVENTS.c.seq == 2))
        with pytest.raises(InputError) as caught:
            restore(writer.store)
        assert caught.value.code == "journal-gap"

    def test_a_run_can_be_replayed_from_the_journal(self, writer: JournalWriter):
        world = drawn_world(Random(4), jobs=(15, 15), governed=True)
        fleet, recording = played(world, "governed", writer, writer)
        writer.flush()
        lines = list(read.lines_between(writer.store))
        assert lines == recording.lines
        replayed = replay(lines, decider_for(world, "governed"))
        assert replayed.difference is None
        assert fleet_digest(replayed.fleet) == fleet_digest(fleet)

    def test_old_events_move_into_bundles_and_nothing_is_lost(
        self, writer: JournalWriter, tmp_path: Path
    ):
        batches = batches_of(9, jobs=30)
        fleet, parts = Fleet(), []
        assert export_older(writer, tmp_path) is None
        for number, batch in enumerate(batches):
            writer.append(batch)
            fleet.apply_all(batch)
            if number in (len(batches) // 3, len(batches) // 2):
                save_snapshot(writer, fleet)
                before = read_tables(writer.store)
                export = export_older(writer, tmp_path, BundleHeader(seed=4))
                assert export is not None
                parts.append(export)
                _rest_is_told(writer, fleet, before)
        told = [event for batch in batches for event in batch]
        lines = [line for part in parts for line in read_bundle(part.file).lines]
        assert lines == told[: parts[-1].last_seq]
        with writer.store.reading() as connection:
            assert read.last_number(connection) == 29
        assert [parts[0].first_seq, parts[1].first_seq] == [1, parts[0].last_seq + 1]
        assert fleet_of_parts([part.file for part in parts]).version == parts[1].last_seq
        assert fleet_digest(restore(writer.store).fleet) == fleet_digest(fleet)

    def test_exports_stand_in_for_snapshots_that_broke(self, writer: JournalWriter, tmp_path: Path):
        fleet = Fleet()
        for number, batch in enumerate(batches_of(9)):
            writer.append(batch)
            fleet.apply_all(batch)
            if number == 8:
                save_snapshot(writer, fleet)
        export = export_older(writer, tmp_path)
        assert export is not None
        with writer.writing() as connection:
            connection.execute(update(SNAPSHOTS).values(body=b""))
        with pytest.raises(InputError) as caught:
            restore(writer.store)
        assert caught.value.code == "journal-begins-late"
        found = restore(writer.store, fleet_of_parts([export.file]))
        assert fleet_digest(found.fleet) == fleet_digest(fleet)

    def test_a_bundle_is_taken_into_a_new_journal(self, writer: JournalWriter, tmp_path: Path):
        world = drawn_world(Random(6), jobs=(15, 15))
        fleet, recording = played(world, "tenfold", writer, writer, Snapshotter(writer, every=7))
        save_snapshot(writer, fleet)
        export = export_older(writer, tmp_path)
        assert export is not None
        other = open_journal(open_store(tmp_path / "other.db"), "other", 1)
        import_bundle(other, read_bundle(export.file))
        assert list(read.lines_between(other.store)) == recording.lines
        assert fleet_digest(restore(other.store).fleet) == fleet_digest(fleet)
        with pytest.raises(InputError) as caught:
            import_bundle(other, read_bundle(export.file))
        assert caught.value.code == "journal-not-empty"
        other.store.close()

    def test_each_writer_is_replayed_under_the_policy_that_it_noted(
        self, store: Store, address: str
    ):
        facts = {"first": [*JOINED, submitted(1)], "second": [submitted(2, gpus=4)]}
        for holder, name in (("first", "fifo"), ("second", "las")):
            journal = LiveJournal(address, holder, 0, Policy(name=name))
            fleet = journal.restore().fleet
            world = Script([(len(fleet.nodes) + 5, facts[holder])])
            decider = placing_decider(Policy(name=name))
            run(world, fleet, [decider], journal=journal, witnesses=journal.witnesses())
            journal.close()
        bundle = record_of(store).bundle
        assert [each.policy.name for each in bundle.stretches] == ["fifo", "las"]
        assert [each.first_cycle for each in bundle.stretches] == [1, 2]
        found = verify(bundle)
        assert (found.same, found.cycles, found.policies) == (True, 2, ("fifo", "las"))

    def test_an_old_journal_is_brought_up_to_date(self, store: Store, address: str):
        old = _at_revision_one(store)
        with old.writing() as connection:
            connection.execute(insert(EVENTS), _row_of(submitted(1)))
        with old.reading() as connection:
            assert revision_of(connection) == "0001"
        old.close()
        fresh = open_store(address)
        with fresh.reading() as connection:
            assert revision_of(connection) == HEAD
        assert [event for _, event in read.events_after(fresh)] == [submitted(1)]
        writer = open_journal(fresh, "new", 1)
        rebuild_read_tables(writer)
        assert [row.id for row in read.jobs(fresh)] == ["job-1"]
        fresh.close()

    def test_revisions_lead_to_the_tables_that_the_program_knows(self, store: Store):
        with store.reading() as connection:
            context = MigrationContext.configure(connection)
            assert compare_metadata(context, METADATA) == []

    def test_a_journal_of_a_newer_program_is_refused(self, store: Store, address: str):
        with store.writing() as connection:
            connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
        with pytest.raises(InputError) as caught:
            open_store(address)
        assert caught.value.code == "journal-newer"


def _rest_is_told(
    writer: JournalWriter, fleet: Fleet, before: dict[str, list[tuple[object, ...]]]
) -> None:
    """What is not over is still told after an export, from the events that are left."""
    after = read_tables(writer.store)
    assert {row[0] for row in after["jobs"]} == set(states_told(fleet))
    assert set(after["jobs"]) <= set(before["jobs"])
    assert after["nodes"] == before["nodes"]
    rebuild_read_tables(writer)
    assert read_tables(writer.store) == after
    told = {row.id: found.job for row, found in read.open_submissions(writer.store)}
    assert told.keys() == states_told(fleet).keys()
    assert fleet.pending.items() <= told.items()
    for job_id in fleet.pending:
        assert read.submission(writer.store, job_id) is not None
    assert fleet_digest(restore(writer.store).fleet) == fleet_digest(fleet)


def _at_revision_one(store: Store) -> Store:
    """Take the tables of a new database back to where they began."""
    with store.writing() as connection:
        METADATA.drop_all(connection)
        connection.execute(text("DROP TABLE alembic_version"))
        bring_up_to_date(connection, "0001")
    return store


def _row_of(event: JobSubmitted) -> dict[str, object]:
    body = msgspec.json.encode(event).decode()
    return {"seq": 1, "at_ms": event.at_ms, "kind": "JobSubmitted", "body": body}
