"""`tenfold journal`, on a control plane that runs and on one that does not."""

import json
import os
import shutil
from pathlib import Path

import pytest

import tenfold
from patience import HANG_S, until
from tenfold.cli.main import main
from tenfold.journal.backup import back_up
from tenfold.journal.store import open_store
from tenfold.report.figures import file_bytes
from unit.up_process import Up


def asked(capsys: pytest.CaptureFixture[str], *words: str, status: int = 0):
    """Return the answer of a command as JSON."""
    assert main(["journal", *words, "--json"]) == status, capsys.readouterr().err
    return json.loads(capsys.readouterr().out)


def run_jobs(client: tenfold.Client, count: int) -> list[str]:
    made = [client.submit(command=["true"]).id for _ in range(count)]
    for job_id in made:
        assert client.wait(job_id, timeout_s=HANG_S).state == "succeeded"
    return made


def put_back(home: Path, copy: Path) -> None:
    """Go back to a copy as the page on backups says."""
    for name in ("journal.db", "journal.db-wal", "journal.db-shm"):
        if (home / name).exists():
            (home / name).rename(home / f"{name}.aside")
    shutil.copy(copy, home / "journal.db")


def test_a_backup_of_a_running_control_plane_is_gone_back_to(
    up: Up, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    copy, gate = tmp_path / "copy.db", tmp_path / "gate"
    os.mkfifo(gate)
    up.start("--virtual-nodes", "2")
    with tenfold.Client() as client:
        kept = run_jobs(client, 2)
        held = client.submit(command=["sh", "-c", f"read word < {gate}"]).id
        until(lambda: client.job(held).state == "running")
        # One that waits, because it comes after the one that runs.
        waits = client.submit(command=["true"], after=[held]).id
        assert asked(capsys, "backup", str(copy))["bytes"] == copy.stat().st_size
        gate.write_text("go\n")
        assert client.wait(waits, timeout_s=HANG_S).state == "succeeded"
        lost = run_jobs(client, 2)
        told = asked(capsys, "verify")
        assert (told["findings"], told["jobs"]) == ([], 6)
    up.kill()
    put_back(up.home, copy)
    kept += [held, waits]
    assert asked(capsys, "verify")["jobs"] == 4
    up.start("--virtual-nodes", "2")
    with tenfold.Client() as client:
        assert sorted(one.id for one in client.jobs()) == sorted(kept)
        # It ran when the copy was made, and its end is not known: it runs once more.
        gate.write_text("go\n")
        for job_id in (held, waits):
            assert client.wait(job_id, timeout_s=HANG_S).state == "succeeded"
        assert [len(client.job(one).attempts) for one in (held, waits)] == [2, 1]
        # Numbers that were given after the backup are not given again: their folders are there.
        again = run_jobs(client, 3)
        assert not set(again) & {*kept, *lost}
        assert all(len(client.job(one).attempts) == 1 for one in again)
    up.interrupt()


def test_old_events_move_out_while_it_runs_and_at_rest(up: Up, capsys: pytest.CaptureFixture[str]):
    up.start("--virtual-nodes", "2")
    with tenfold.Client() as client:
        run_jobs(client, 3)
        moved = asked(capsys, "compact", "--keep-days", "0")
        assert len(moved["moved"]) == 1
        assert moved["bytes_freed"] is None
        told = asked(capsys, "info")
        assert (len(told["moved"]), told["kind"]) == (1, "sqlite")
        one = [job.id for job in client.jobs()][-1]
        # It goes on as before, under the same writer.
        run_jobs(client, 2)
        assert asked(capsys, "info")["epoch"] == told["epoch"]
    up.interrupt()
    moved = asked(capsys, "compact", "--keep-days", "0")
    assert len(moved["moved"]) == 1
    assert moved["bytes_freed"] is not None
    assert main(["replay", "--explain", one]) == 2
    said = capsys.readouterr().err
    assert f"job `{one}` is not in " in said
    assert "older events were compacted" in said
    assert asked(capsys, "compact")["moved"] == []
    told = asked(capsys, "verify")
    assert (told["findings"], told["bundles"]) == ([], 2)
    up.start("--virtual-nodes", "2")
    with tenfold.Client() as client:
        run_jobs(client, 1)
    up.interrupt()


def test_what_is_wrong_is_said_with_status_1(up: Up, capsys: pytest.CaptureFixture[str]):
    up.start("--virtual-nodes", "2")
    with tenfold.Client() as client:
        run_jobs(client, 1)
    up.interrupt()
    assert main(["journal", "verify"]) == 0
    assert "no errors" in capsys.readouterr().out
    assert main(["journal", "info"]) == 0
    assert "1 succeeded" in capsys.readouterr().out
    store = open_store(up.home / "journal.db")
    with store.writing() as connection:
        connection.exec_driver_sql("UPDATE jobs SET state = 'running'")
    store.close()
    told = asked(capsys, "verify", status=1)
    assert [one["code"] for one in told["findings"]] == ["read-table-differs"]
    assert main(["journal", "verify"]) == 1
    assert "error: the stored state of job `job-1` does not match" in capsys.readouterr().out


def test_a_journal_that_is_not_there_is_not_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    for verb in (["info"], ["verify"], ["compact"], ["backup", str(tmp_path / "copy")]):
        assert main(["journal", *verb, "--home", str(tmp_path), "--json"]) == 2
        assert json.loads(capsys.readouterr().err)["error"]["code"] == "no-journal"
    assert list(tmp_path.iterdir()) == []
    assert main(["journal", "compact", "--home", str(tmp_path), "--keep-days", "-1"]) == 2


def test_a_copy_can_be_read_by_its_owner_alone_and_says_how_large_it_is(tmp_path: Path):
    store = open_store(str(tmp_path / "journal.db"))
    back_up(store, tmp_path / "copy.db")
    store.close()
    assert (tmp_path / "copy.db").stat().st_mode & 0o777 == 0o600
    assert file_bytes(500) == "500 bytes"
    assert file_bytes(151_552) == "148 KiB"
    assert file_bytes(3 << 30) == "3.0 GiB"
