"""A control plane whose journal was emptied, removed or edited does not start as if it were new."""

import json
import sqlite3
from contextlib import closing

import pytest

import tenfold
from patience import HANG_S
from tenfold.cli.main import main
from unit.up_process import Up


@pytest.fixture
def used(up: Up) -> Up:
    """A state directory in which a job ran until its control plane was killed."""
    up.start("--virtual-nodes", "1")
    with tenfold.Client() as client:
        job = client.submit(command=["true"]).id
        assert client.wait(job, timeout_s=HANG_S).state == "succeeded"
    up.kill()
    return up


def refused(up: Up) -> str:
    with pytest.raises(AssertionError) as caught:
        up.start("--virtual-nodes", "1")
    assert up.process is not None
    up.process.wait(HANG_S)
    up.process = None
    return str(caught.value)


def log_of(up: Up) -> str:
    return (up.home / "logs" / "server.jsonl").read_text()


def test_an_emptied_or_missing_journal_is_refused(used: Up, capsys: pytest.CaptureFixture[str]):
    journal, head = used.home / "journal.db", used.home / "journal.head"
    for name in ("journal.db-wal", "journal.db-shm"):
        (used.home / name).unlink(missing_ok=True)
    journal.write_bytes(b"")
    assert main(["journal", "verify", "--json"]) == 2
    assert json.loads(capsys.readouterr().err)["error"]["code"] == "journal-emptied"
    said = refused(used)
    assert f"`{journal}` is empty, but `{head}` shows that it was in use" in said
    assert "hint: restore a backup" in said
    assert journal.stat().st_size == 0, "it was left alone"
    kept = head.read_bytes()
    head.unlink()
    assert f"`{journal}` is empty, but `{used.home / 'nodes.json'}`" in refused(used)
    head.write_bytes(kept)
    journal.unlink()
    assert f"`{journal}` is missing, but `{head}` shows" in refused(used)
    assert not journal.exists()


def test_a_first_start_that_was_killed_while_it_made_the_journal_is_no_damage(up: Up):
    (up.home / "logs").mkdir(parents=True)
    (up.home / "run").mkdir()
    (up.home / "journal.db").write_bytes(b"")
    up.start("--virtual-nodes", "1")
    up.interrupt()


def test_events_cut_off_are_refused_and_edited_tables_rebuilt(
    used: Up, capsys: pytest.CaptureFixture[str]
):
    with closing(sqlite3.connect(used.home / "journal.db")) as plain:
        plain.execute("UPDATE jobs SET state = 'failed', reason = 'disk'")
        plain.commit()
    assert main(["journal", "verify"]) == 1
    assert "rebuilds these tables" in capsys.readouterr().out
    used.start("--virtual-nodes", "1")
    with tenfold.Client() as client:
        assert [one.state for one in client.jobs()] == ["succeeded"]
    used.kill()
    assert "did not match the events: rebuilt from the events" in log_of(used)
    with closing(sqlite3.connect(used.home / "journal.db")) as plain:
        # A whole database, as an older copy would be: only the file knows better.
        plain.execute("DELETE FROM events WHERE seq > 2")
        plain.execute(
            "UPDATE chain SET last_seq = 2, head = (SELECT chain FROM events WHERE seq = 2)"
        )
        plain.commit()
    said = refused(used)
    assert "the journal ends with event 2, but event" in said
    assert "to continue without them, remove" in said
