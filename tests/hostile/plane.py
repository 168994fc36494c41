"""A real control plane that is attacked, and what must be true of it after every attack.

The process is `tenfold up`; where the tests run as root, each team's jobs run as a user of their
own. Memory, descriptors, log and journal are read from the outside, not asked of the process.
"""

import json
import os
import shutil
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from hostile.wire import Wire
from patience import until
from tenfold.client.endpoint import read_address
from tenfold.live.local.executor import LocalExecutor
from tenfold.server.runtime.state_dir import StateDir
from unit.up_process import Up

API = "/api/v1"
TEAMS = ("red", "blue")
"""Red attacks; blue wants its requests answered."""
ROLES = ("viewer", "member", "operator", "admin")
LIVE = ("pending", "starting", "running", "stopping")
MIB = 1 << 20
STORED = (("events", "body"), ("shared_texts", "body"), ("jobs", "fields"))
"""Tables and columns whose text comes from requests."""


class Plane:
    """One state folder and the `tenfold up` in it."""

    def __init__(self, *options: str) -> None:
        # Passable, so that the users of teams can reach their folders.
        self.root = Path(tempfile.mkdtemp(prefix="tenfold-hostile-"))
        self.root.chmod(0o711)
        self.folder = StateDir(self.root / "state")
        self._options = options or ("--virtual-nodes", "2")
        self._up = Up(self.folder.path)
        self._tokens: dict[tuple[str, str], str] = {}

    def start(self) -> None:
        """Start it; return when it answers."""
        self._up.start("--home", str(self.folder.path), *self._options)

    def kill(self) -> None:
        """Kill it as a machine would that runs out of memory."""
        self._up.kill()

    def close(self) -> None:
        """Stop it, end its jobs and remove all that it left."""
        if self._up.process is not None:
            self._up.interrupt()
        if self.folder.run.exists():
            self._end_jobs()
        shutil.rmtree(self.root, ignore_errors=True)

    @property
    def url(self) -> str:
        return self._address().url

    @property
    def pid(self) -> int:
        assert self._up.process is not None, "it was started"
        return self._up.process.pid

    @property
    def local_token(self) -> str:
        """The token of commands on this machine."""
        return str(self._address().token)

    def token(self, role: str = "member", team: str = "red") -> str:
        """Return a token, made when it is first asked for."""
        if (role, team) not in self._tokens:
            self._tokens[role, team] = self.new_token(role, team)[0]
        return self._tokens[role, team]

    def new_token(self, role: str, team: str) -> tuple[str, str]:
        """Return a fresh token and its id."""
        ask = {"name": f"{role}-of-{team}", "team": team, "role": role, "days": 1}
        with Wire(self.url, self._address().token) as admin:
            made = admin.post(f"{API}/tokens", ask)
        assert made.status == 201, made
        told = made.json()
        return told["token"], told["record"]["id"]

    def wire(self, role: str = "member", team: str = "red") -> Wire:
        """Return a connection that shows a token; with an empty role it shows none."""
        return Wire(self.url, self.token(role, team) if role else "")

    def is_ready(self) -> bool:
        with Wire(self.url) as anybody:
            return anybody.get("/readyz").status == 200

    def rss_bytes(self) -> int:
        """Return the memory that the process holds now."""
        return _status_kib(self.pid, "VmRSS") * 1_024

    def peak_rss_bytes(self) -> int:
        """Return the most memory that it ever held."""
        return _status_kib(self.pid, "VmHWM") * 1_024

    def descriptors(self) -> int:
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def journal_bytes(self) -> int:
        """Return the size of all events and reasons in the journal, as they are stored."""
        uri = f"file:{self.folder.journal}?mode=ro"
        with closing(sqlite3.connect(uri, uri=True, timeout=60)) as journal:
            sizes = [
                journal.execute(f"SELECT coalesce(sum(length({column})), 0) FROM {table}")
                for table, column in STORED
            ]
            return sum(int(row[0]) for rows in sizes for row in rows)

    def log_bytes(self) -> int:
        path = self.folder.log
        return path.stat().st_size if path.exists() else 0

    def log_lines(self, after_bytes: int = 0) -> list[dict[str, Any]]:
        """Return the records of the server log after a position."""
        with self.folder.log.open("rb") as file:
            file.seek(after_bytes)
            return [json.loads(line) for line in file.read().splitlines()]

    def jobs(self, states: tuple[str, ...] = LIVE) -> list[str]:
        """Return the ids of all jobs in these states."""
        found: list[str] = []
        with self.wire("admin", "ops") as admin:
            for state in states:
                before = ""
                while True:
                    page = admin.get(f"{API}/jobs?state={state}&limit=1000{before}").json()
                    found += [one["id"] for one in page["jobs"]]
                    if page["next"] is None:
                        break
                    before = f"&before={page['next']}"
        return found

    def cancel_all(self) -> None:
        """Remove every service and cancel every job; return when none is left."""
        with self.wire("admin", "ops") as admin:
            for one in admin.get(f"{API}/services").json()["services"]:
                admin.delete(f"{API}/services/{_quoted(one['name'])}")
            until(lambda: not admin.get(f"{API}/services").json()["services"])
            for job_id in self.jobs():
                told = admin.delete(f"{API}/jobs/{_quoted(job_id)}")
                assert told.status in (202, 404, 409), (job_id, told)
        until(lambda: not self.jobs(), explain=lambda: f"these never end: {self.jobs()[:10]}")

    def _address(self) -> Any:
        found = read_address(self.folder.path)
        assert found is not None, "the control plane left no address"
        return found

    def _end_jobs(self) -> None:
        executor = LocalExecutor(str(self.folder.run))
        for one in executor.attempts():
            executor.stop(one.job_id, one.attempt, 0)
        until(lambda: all(one.end for one in executor.attempts()))
        executor.stop_spawner()
        executor.close()


class Bounds(NamedTuple):
    """What attacks may cost."""

    rss_bytes: int = 128 * MIB
    """More memory than when the watch began."""
    rss_per_job: int = 16_384
    """Bytes of memory for each job that was accepted."""
    journal_per_job: int = 8_192
    """Bytes of journal for each job that was accepted, over its whole life."""
    journal_per_byte: int = 4
    """Bytes of journal for each byte that was sent."""
    journal_bytes: int = 256 << 10
    """Bytes of journal that are due to nothing that was sent."""


class Watch:
    """What must be true after an attack, compared with how it was when the watch began."""

    def __init__(self, plane: Plane, bounds: Bounds = Bounds()) -> None:  # noqa: B008
        self._plane, self._bounds = plane, bounds
        self._rss = plane.rss_bytes()
        self._journal = plane.journal_bytes()
        self._log = plane.log_bytes()
        self._pid = plane.pid
        self._blue, self._anybody = plane.wire("member", "blue"), plane.wire("")
        self.sent_bytes = self.jobs = 0

    def close(self) -> None:
        self._blue.close()
        self._anybody.close()

    def count(self, sent_bytes: int, jobs: int = 0) -> None:
        """Note what was accepted: the bytes of requests, and how many jobs."""
        self.sent_bytes += sent_bytes
        self.jobs += jobs

    def alive(self) -> list[str]:
        """Return what is wrong that can be seen at once: readiness, and blue's requests."""
        wrong: list[str] = []
        ready = self._anybody.get("/readyz")
        if ready.status != 200:
            wrong.append(f"the control plane is not ready: {ready.body[:300]!r}")
        own = self._blue.get(f"{API}/jobs?limit=1")
        if own.status != 200:
            wrong.append(f"a request of another team is answered {own.status}")
        return wrong

    def wrong(self) -> list[str]:
        """Return everything that is wrong now."""
        wrong = self.alive()
        made = self._blue.post(f"{API}/jobs", {"command": ["true"], "name": "blue"})
        self.jobs += 1
        if made.status != 201:
            wrong.append(f"a job of another team is answered {made.status}: {made.body[:200]!r}")
        bounds, plane = self._bounds, self._plane
        rss = plane.rss_bytes() - self._rss
        if rss > bounds.rss_bytes + bounds.rss_per_job * self.jobs:
            wrong.append(f"{rss / MIB:,.0f} MiB more memory")
        wrong += self.journal_growth(self._journal, self.sent_bytes, self.jobs)
        wrong += self.tracebacks()
        return wrong

    def journal_growth(self, before: int, sent_bytes: int, jobs: int) -> list[str]:
        """Return what is wrong with the size of the journal after so much was accepted."""
        bounds = self._bounds
        grown = self._plane.journal_bytes() - before
        allowed = (
            bounds.journal_bytes
            + bounds.journal_per_job * jobs
            + bounds.journal_per_byte * sent_bytes
        )
        if grown <= allowed:
            return []
        return [
            f"{grown:,} bytes of journal for {sent_bytes:,} bytes in requests"
            f" and {jobs:,} jobs; {allowed:,} are allowed"
        ]

    def tracebacks(self) -> list[str]:
        """Return the tracebacks in the server log since the watch began."""
        found = [
            f"a traceback in the log: {line['trace'][-400:]}"
            for line in self._plane.log_lines(self._log)
            if "trace" in line
        ]
        return found[:3]


def _status_kib(pid: int, key: str) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{key}:"):
            return int(line.split()[1])
    raise AssertionError(f"no {key} of process {pid}")


def _quoted(job_id: str) -> str:
    return job_id.replace("[", "%5B").replace("]", "%5D")
