"""A control plane takes over jobs that an older Tenfold started and that still run."""

import gzip
import os
import signal
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

import tenfold
from patience import HANG_S, until
from stored.reading import DATA, TOKEN, expected, told_of_journal
from unit.up_process import Up

RUNNING = DATA / "running"
OPTIONS = ("--fleet", str(RUNNING / "fleet.toml"), "--policy", "fifo", "--team-users", "off")
LATE = ("--keep-days", "36500", "--keep-logs-days", "36500", "--idle-after", "0")
"""The folder is old: nothing of it is to be tidied away while it is looked at."""


class Folder:
    """The state folder, and the processes that its records tell of."""

    def __init__(self, path: Path) -> None:
        self.home, self.gates = path / "home", path / "gates"
        self.gates.mkdir()
        os.mkfifo(self.gates / "runs")
        self.home.mkdir(mode=0o700)
        for line in (RUNNING / "layout.txt").read_text().splitlines():
            self._lay(*line.split(" "))
        journal = self.home / "journal.db"
        journal.write_bytes(gzip.decompress((RUNNING / "journal.db.gz").read_bytes()))
        with closing(sqlite3.connect(journal)) as database:
            database.execute(
                "UPDATE events SET body = replace(body, '@GATES@', ?)", (str(self.gates),)
            )
            database.commit()
        self.supervisors = [
            self._supervise("vision", "runs-1"),
            self._supervise("admin", "stays-2"),
        ]

    def end(self) -> None:
        """Leave nothing running, whatever became of the test."""
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                told = (process / "cmdline").read_bytes() + (process / "environ").read_bytes()
                if os.fsencode(self.home) in told and int(process.name) != os.getpid():
                    os.kill(int(process.name), signal.SIGKILL)
        for supervisor in self.supervisors:
            supervisor.kill()
            supervisor.wait()

    def attempt(self, job: str) -> Path:
        return self.home / "run" / "attempts" / job / "1"

    def _lay(self, kind: str, mode: str, name: str, target: str = "") -> None:
        path = self.home / name
        if kind == "d":
            path.mkdir()
        elif kind == "p":
            os.mkfifo(path)
        elif kind == "l":
            path.hardlink_to(self.home / target)
        elif kind == "s":
            # Left by a spawner that was killed: a name on which nobody listens.
            here = os.getcwd()
            os.chdir(path.parent)
            with closing(socket.socket(socket.AF_UNIX)) as dead:
                dead.bind(path.name)
            os.chdir(here)
        else:
            text = (RUNNING / "files" / name).read_text()
            text = text.replace("@GATES@", str(self.gates))
            if "lost-" in name or "ends-" in name:
                # Processes that are gone, under a number that no process can have.
                text = text.replace("@SUPERVISOR@", "4194304").replace("@PIDS@", "[4194304]")
            path.write_text(text)
        path.chmod(int(mode, 8))

    def _supervise(self, team: str, job: str) -> subprocess.Popen[str]:
        words = [sys.executable, "-I", str(Path(__file__).parent / "old_supervisor.py")]
        made = subprocess.Popen(
            [*words, str(self.attempt(job)), str(self.home / "run" / "teams" / team)],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert made.stdout is not None, "it was asked for"
        assert made.stdout.readline() == "ready\n"
        return made


@pytest.fixture(name="folder")
def a_folder(tmp_path: Path) -> Iterator[Folder]:
    made = Folder(tmp_path)
    yield made
    made.end()


@pytest.fixture(name="up")
def a_control_plane(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> Iterator[Up]:
    for name in ("TENFOLD_URL", "TENFOLD_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TENFOLD_HOME", str(folder.home))
    made = Up(folder.home)
    yield made
    if made.process is not None:
        made.kill()


def test_the_journal_of_the_folder_is_read_value_by_value(folder: Folder):
    with closing(sqlite3.connect(folder.home / "journal.db")) as database:
        database.execute(
            "UPDATE events SET body = replace(body, ?, '@GATES@')", (str(folder.gates),)
        )
        database.commit()
    assert told_of_journal(folder.home / "journal.db") == expected("running")


def test_jobs_of_an_older_control_plane_are_adopted_and_come_to_their_ends(folder: Folder, up: Up):
    up.start(*OPTIONS, *LATE)
    with tenfold.Client() as client:
        told = {job.id: job.state for job in client.jobs()}
        assert (told["runs-1"], told["stays-2"]) == ("running", "running")
        # It ended, and one was lost, while nobody looked.
        assert client.wait("ends-4", timeout_s=HANG_S).state == "succeeded"
        assert client.logs("ends-4") == "begun\ngo\n"
        until(lambda: client.job("lost-3").attempts[0].reason == "supervisor-lost")
        client.cancel("lost-3")
        # A stop that this code orders is understood by the supervisor of before.
        client.cancel("stays-2")
        stopped = client.wait("stays-2", timeout_s=HANG_S)
        assert (stopped.state, [one.number for one in stopped.attempts]) == ("cancelled", [1])
        # A shell may say of its own that what it ran was terminated.
        assert [line for line in client.logs("stays-2").split() if line != "Terminated"] == [
            "begun",
            "told",
        ]
        # Held open, since a member may open it late; an empty line each, since two shells that
        # read at once would share the letters of a longer one.
        gate = os.open(folder.gates / "runs", os.O_RDWR)
        os.write(gate, b"\n\n")
        ran = client.wait("runs-1", timeout_s=HANG_S)
        os.close(gate)
        assert (ran.state, [one.number for one in ran.attempts]) == ("succeeded", [1])
        assert [client.logs("runs-1", member=rank) for rank in (0, 1)] == ["begun\n\n"] * 2
        waited = client.wait("waits-5", timeout_s=HANG_S)
        assert (waited.state, client.logs("waits-5")) == ("succeeded", "at last\n")
    up.interrupt()


def test_the_token_of_an_older_control_plane_still_opens_it(folder: Folder, up: Up):
    said = up.start(*OPTIONS, *LATE)
    assert not any("admin token" in line for line in said)
    url = said[0].rpartition(" ")[2]
    with tenfold.Client(url=url, token=TOKEN) as client:
        assert [node.id for node in client.nodes()] == ["h100-1", "h100-2"]
    up.interrupt()
