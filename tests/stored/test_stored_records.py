"""Records that an older Tenfold wrote are read by this one, value by value, and replay the same."""

import gzip
import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest
from sqlalchemy import create_engine, make_url

from engines.postgres import new_database, running_postgres
from stored.reading import DATA, expected, plain, told_of_bundle, told_of_journal
from stored.wire_types import ROOTS
from tenfold import checkpoint
from tenfold.files.records.replay_bundle import read_bundle
from tenfold.files.records.shadow_log import latest_entries
from tenfold.journal.record import record_of
from tenfold.journal.snapshots import restore
from tenfold.journal.store import open_store
from tenfold.journal.verify import verify as verify_journal
from tenfold.study.replay.bundle import verify

BYTES_MOST = 500_000
FILE_BYTES_MOST = 100_000


def unpacked(packed: Path, to: Path) -> Path:
    to.write_bytes(gzip.decompress(packed.read_bytes()))
    return to


@pytest.fixture(name="journal")
def a_journal(tmp_path: Path) -> Path:
    return unpacked(DATA / "journal.db.gz", tmp_path / "journal.db")


@pytest.fixture(name="compacted")
def a_compacted_folder(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    shutil.copytree(DATA / "compacted", home)
    unpacked(home / "journal.db.gz", home / "journal.db")
    with closing(sqlite3.connect(home / "journal.db")) as database:
        database.execute("UPDATE exports SET file = replace(file, '@HOME@', ?)", (str(home),))
        database.commit()
    return home


@pytest.fixture(name="postgres", scope="module")
def a_postgres_journal() -> Iterator[str]:
    with running_postgres() as server:
        address = new_database(server, "stored")
        engine = create_engine(make_url(address), isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            connection.exec_driver_sql((DATA / "postgres.sql").read_text().replace("%", "%%"))
        engine.dispose()
        yield address


def check_told(told: dict[str, Any], name: str) -> None:
    """Compare part by part, so that the first difference is short."""
    wanted = expected(name)
    assert list(told) == list(wanted)
    for part, records in wanted.items():
        assert len(told[part]) == len(records), part
        if isinstance(records, list):
            for found, record in zip(told[part], records, strict=True):
                assert found == record, part
        assert told[part] == records, part


def test_a_sqlite_journal_is_read_value_by_value(journal: Path):
    check_told(told_of_journal(journal), "journal")


def test_a_postgresql_journal_is_read_value_by_value(postgres: str):
    check_told(told_of_journal(postgres), "journal")


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_journal_replays_without_a_difference(kind: str, request: pytest.FixtureRequest):
    address = request.getfixturevalue("journal" if kind == "sqlite" else "postgres")
    with closing(open_store(address)) as store:
        found = verify(record_of(store).bundle)
        assert (found.difference, found.same_fleet) == (None, True)
        assert (found.starts, found.events, found.cycles, found.orders) == (4, 175, 74, 63)
        assert verify_journal(store).findings == ()
        restored = restore(store)
        assert (restored.snapshot_seq, restored.warnings) == (175, ())


def test_the_events_alone_lead_to_every_snapshot(journal: Path):
    with closing(sqlite3.connect(journal)) as database:
        database.execute("DELETE FROM snapshots WHERE seq > 100")
        database.commit()
    with closing(open_store(journal)) as store:
        restored = restore(store)
        assert (restored.snapshot_seq, restored.seq) == (92, 175)
        assert verify(record_of(store).bundle).same


def change_orders(journal: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the reasons of all orders in a journal, as if they had been decided by other code."""
    with closing(sqlite3.connect(journal)) as database:
        ordered = "SELECT seq, body FROM events WHERE kind = 'ActionOrdered'"
        for seq, body in database.execute(ordered).fetchall():
            event = json.loads(body)
            action = event["action"]
            for reason in (*action.get("reasons", ()), *filter(None, [action.get("reason")])):
                change(reason)
            new = json.dumps(event, separators=(",", ":"))
            database.execute("UPDATE events SET body = ? WHERE seq = ?", (new, seq))
        database.commit()


def test_what_an_older_version_said_in_other_words_is_no_difference(journal: Path):
    change_orders(journal, lambda reason: reason.update(sentence="in other words"))
    with closing(open_store(journal)) as store:
        assert verify(record_of(store).bundle).same
        assert verify_journal(store).findings == ()


def test_a_decision_for_another_reason_is_a_difference(journal: Path):
    change_orders(journal, lambda reason: reason.update(code="another"))
    with closing(open_store(journal)) as store:
        found = verify(record_of(store).bundle).difference
        assert found is not None
        assert found.what == "actions"
        codes = [one.code for one in verify_journal(store).findings]
        assert set(codes) == {"read-table-differs"}


def test_a_compacted_state_folder_is_read_value_by_value(compacted: Path):
    told: dict[str, Any] = told_of_journal(compacted / "journal.db")
    for file in sorted((compacted / "history").glob("*.jsonl.gz")):
        told[file.name] = [told_of_bundle(read_bundle(file))]
    log = compacted / "shadow.jsonl"
    told[log.name] = plain(latest_entries(log, 1_000))
    check_told(told, "compacted")


def test_a_compacted_state_folder_replays_without_a_difference(compacted: Path):
    for file in sorted((compacted / "history").glob("*.jsonl.gz")):
        assert verify(read_bundle(file)).same, file.name
    with closing(open_store(compacted / "journal.db")) as store:
        assert verify(record_of(store).bundle).same
        found = verify_journal(store)
        assert (found.bundles, found.findings) == (2, ())


@pytest.mark.parametrize("name", ["run-tenfold", "run-las"])
def test_a_bundle_of_a_simulation_is_read_and_replayed(name: str):
    bundle = read_bundle(DATA / f"{name}.jsonl.gz")
    check_told(told_of_bundle(bundle), name)
    assert verify(bundle).same


def test_a_checkpoint_is_loaded_value_by_value():
    folder = DATA / "checkpoint"
    assert [(one.step, one.state) for one in checkpoint.verify(folder)] == [
        (7, "valid"),
        (6, "valid"),
    ]
    found = checkpoint.load(folder)
    assert found is not None
    weights = found.values.pop("weights")
    assert weights["layer.0"].tolist() == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]
    assert [str(array.dtype) for array in weights.values()] == ["float32", "int64"]
    assert weights["bias"].tolist() == [1, -2, 3]
    assert found.values == {
        "step": 7,
        "rate": 0.125,
        "name": "gross \u00fc",
        "raw": b"\x00\xff",
        "none": None,
        "flag": True,
        "list": [1, (2, 3.5)],
        "empty": {},
    }
    assert (found.meta["attempt"], found.meta["ranks"], found.meta["save"]) == (3, 1, 2)


def test_the_fence_of_a_checkpoint_folder_still_holds(tmp_path: Path):
    folder = tmp_path / "checkpoint"
    shutil.copytree(DATA / "checkpoint", folder)
    with pytest.raises(checkpoint.CheckpointError):
        checkpoint.save(folder, 8, {}, how=checkpoint.How(attempt=2))
    checkpoint.save(folder, 8, {}, how=checkpoint.How(attempt=4))


@pytest.mark.parametrize("root", ROOTS)
def test_every_field_of_every_record_decodes_to_what_was_written(root: str):
    for said, read in expected("specimens")[root]:
        text = msgspec.json.encode(said)
        found = plain(msgspec.json.decode(text, type=ROOTS[root]), defaults=True)
        assert without_new(found, read) == read


def without_new(found: Any, read: Any) -> Any:
    """Leave out fields that were added since; whatever was read then must be there as it was."""
    if isinstance(found, dict) and isinstance(read, dict):
        return {key: without_new(one, read[key]) for key, one in found.items() if key in read}
    if isinstance(found, list) and isinstance(read, list) and len(found) == len(read):
        return [without_new(*pair) for pair in zip(found, read, strict=True)]
    return found


def test_the_records_hold_every_kind_of_event_and_action_that_there_was():
    events = expected("journal")["events"]
    assert len({kind for _, kind, _ in events}) == 17
    assert len({body["action"]["type"] for *_, body in events if "action" in body}) == 5


def test_the_records_stay_small():
    sizes = {path: path.stat().st_size for path in DATA.rglob("*") if path.is_file()}
    assert max(sizes.values()) <= FILE_BYTES_MOST
    assert sum(sizes.values()) <= BYTES_MOST


def test_a_value_that_is_not_read_is_noticed():
    told = expected("journal")
    changed = json.loads(json.dumps(told))
    changed["events"][30][2]["at_ms"] += 1
    with pytest.raises(AssertionError):
        check_told(changed, "journal")
