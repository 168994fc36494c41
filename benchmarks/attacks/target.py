"""A control plane of one source tree, watched from the outside and killed when it takes too much.

The tree may be an older one: it is reached over HTTP and through its own command line only.
"""

import os
import pty
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from pathlib import Path
from select import select
from threading import Event, Thread
from time import monotonic, sleep
from typing import Any, NamedTuple

import msgspec
import psutil

from tests.rigs.hostile.wire import Answer, Wire

API = "/api/v1"
MIB = 1 << 20
RSS_MIB_MOST = 2_500.0
"""A control plane that takes more is killed: older ones took all there was."""
LOOK_S = 0.02
JOURNAL_MIB_MOST = 1_000.0
START_S = 90.0
COMMAND_S = 120.0
ENDED = ("succeeded", "failed", "cancelled")


class Tree(NamedTuple):
    """A checkout whose `src` is attacked."""

    name: str
    path: Path

    def environment(self) -> dict[str, str]:
        """Return the variables with which Python runs this tree."""
        kept = {key: value for key, value in os.environ.items() if not key.startswith("TENFOLD_")}
        return {**kept, "PYTHONPATH": str(self.path / "src")}

    def run(self, *words: str, seconds: float = COMMAND_S) -> subprocess.CompletedProcess[str]:
        """Run a command of this tree."""
        return subprocess.run(
            [sys.executable, "-m", "tenfold", *words],
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=seconds,
        )


class Finding(NamedTuple):
    """What one attack met."""

    tried: str
    came: str
    """What came back, and what was measured."""
    held: bool
    bound: str
    """What had to be so."""


class Target:
    """One state directory and the control plane in it."""

    def __init__(self, tree: Tree, *options: str) -> None:
        self.tree = tree
        # Passable, so that the users of teams can reach their folders.
        self.root = Path(tempfile.mkdtemp(prefix="tenfold-attack-"))
        self.root.chmod(0o711)
        self.state = self.root / "state"
        self.said = self.root / "up.log"
        self.stopped = ""
        """Why it was killed: it took too much."""
        self._options = options or ("--virtual-nodes", "2")
        self.variables = dict[str, str]()
        """Given to it at its start."""
        self._process: subprocess.Popen[bytes] | None = None
        self._tokens: dict[tuple[str, str], str] = {}
        self._peak_bytes = 0
        self._over = Event()
        self._watch = Thread(target=self._watch_memory, daemon=True)
        self._watch.start()

    def __enter__(self) -> "Target":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self) -> bool:
        """Start it; return whether it left its address, as one does that starts."""
        words = ["up", "--home", str(self.state), "--listen", "127.0.0.1:0", *self._options]
        with self.said.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tenfold", *words],
                env={**self.tree.environment(), **self.variables},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        ends_s = monotonic() + START_S
        while self._process.poll() is None and monotonic() < ends_s:
            if self._address().get("pid") == self._process.pid:
                return True
            sleep(LOOK_S)
        return False

    def kill(self) -> None:
        """Kill it as a machine would that runs out of memory."""
        assert self._process is not None, "it was started"
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        """Stop it as Ctrl-C does."""
        assert self._process is not None, "it was started"
        self._process.send_signal(signal.SIGINT)
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self.kill()

    def restart(self) -> bool:
        """Kill it and start it again."""
        self.kill()
        return self.start()

    def close(self) -> None:
        """End it and every process that carries its state directory; remove all it left."""
        self._over.set()
        self._watch.join()
        self.kill_all()
        with suppress(OSError):
            _remove_groups(self.control_group)
        shutil.rmtree(self.root, ignore_errors=True)

    def kill_all(self) -> None:
        """Kill it with its spawner, its supervisors and their jobs."""
        if self._process is not None:
            self.kill()
        while found := _processes_of(self.root):
            for one in found:
                with suppress(psutil.Error):
                    one.kill()
            psutil.wait_procs(found, 10)

    @property
    def url(self) -> str:
        return str(self._address()["url"])

    def token(self, role: str = "member", team: str = "red") -> str:
        """Return a token, made when it is first asked for."""
        if (role, team) not in self._tokens:
            ask = {"name": f"{role}-of-{team}", "team": team, "role": role, "days": 1}
            with Wire(self.url, str(self._address()["token"])) as admin:
                self._tokens[role, team] = str(admin.post(f"{API}/tokens", ask).json()["token"])
        return self._tokens[role, team]

    def wire(self, team: str = "red", role: str = "member") -> Wire:
        """Return a connection of a team; without a team it shows no token."""
        return Wire(self.url, self.token(role, team) if team else "")

    def submit(self, body: Mapping[str, Any], team: str = "red") -> Answer:
        """Submit a job; an answer of status 0 means that there was none."""
        try:
            with self.wire(team) as one:
                return one.post(f"{API}/jobs", body)
        except (OSError, KeyError):
            return Answer(0)

    def job(self, job_id: str, team: str = "red") -> dict[str, Any]:
        """Return a job as its team sees it."""
        with self.wire(team) as one:
            return one.get(f"{API}/jobs/{job_id}").json()

    def end_of(self, job_id: str, team: str = "red", seconds: float = 30.0) -> str:
        """Return the state of a job, once it has ended or so long has passed."""
        state = ""

        def has_ended() -> bool:
            nonlocal state
            state = str(self.job(job_id, team).get("state", "unknown"))
            return state in ENDED

        wait(has_ended, seconds)
        return state

    def log_of(self, job_id: str, team: str = "red") -> str:
        """Return the log of a job."""
        with self.wire(team) as one:
            return one.get(f"{API}/jobs/{job_id}/logs").body.decode(errors="replace")

    def readyz(self) -> Answer:
        """Ask as anybody can; status 0 where nothing answers."""
        try:
            with self.wire("") as anybody:
                return anybody.get("/readyz")
        except (OSError, KeyError):
            return Answer(0)

    @property
    def control_group(self) -> str:
        """The name of the control groups of its jobs."""
        run = os.stat(self.state / "run")
        return f"tenfold-{run.st_dev:x}-{run.st_ino:x}"

    def rss_mib(self) -> float:
        """Return the memory of the process now; 0 once it has ended."""
        return self._rss_bytes() / MIB

    def peak_mib(self) -> float:
        """Return the most memory that was seen since the last `forget_peak`."""
        return max(self._peak_bytes, self._rss_bytes()) / MIB

    def forget_peak(self) -> None:
        self._peak_bytes = 0

    def journal_mib(self) -> float:
        """Return the size of the database with what is not yet moved into it."""
        files = (self.state / f"journal.db{end}" for end in ("", "-wal"))
        return sum(one.stat().st_size for one in files if one.exists()) / MIB

    def settled_journal_mib(self, seconds: float = 20.0) -> float:
        """Return the size of the journal once it has stopped to grow, or after so long."""
        size, ends_s = -1.0, monotonic() + seconds
        while size != (size := self.journal_mib()) and monotonic() < ends_s:
            sleep(1.5)
        return size

    def on_a_terminal(self, *words: str, seconds: float = COMMAND_S) -> bytes:
        """Return what a command of this tree writes to a terminal."""
        parent, child = pty.openpty()
        variables = {"TERM": "xterm-256color", "COLUMNS": "200", "NO_COLOR": "1"}
        variables["TENFOLD_HOME"] = str(self.state)
        with subprocess.Popen(
            [sys.executable, "-m", "tenfold", *words],
            env={**self.tree.environment(), **variables},
            stdin=subprocess.DEVNULL,
            stdout=child,
            stderr=child,
        ) as process:
            os.close(child)
            said, ends_s = bytearray(), monotonic() + seconds
            # A terminal whose last writer has gone answers with an error.
            with suppress(OSError):
                while monotonic() < ends_s:
                    if select([parent], [], [], 0.1)[0]:
                        said += os.read(parent, 65_536)
            os.close(parent)
            process.kill()
        return bytes(said)

    def sql(self, *statements: str) -> None:
        """Change the journal of a stopped control plane, as any editor could."""
        with closing(sqlite3.connect(self.state / "journal.db")) as database:
            for statement in statements:
                database.execute(statement)
            database.commit()
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def _address(self) -> dict[str, Any]:
        try:
            return msgspec.json.decode((self.state / "address.json").read_bytes())
        except (OSError, msgspec.DecodeError):
            return {}

    def _rss_bytes(self) -> int:
        process = self._process
        if process is None or process.poll() is not None:
            return 0
        with suppress(psutil.Error):
            return int(psutil.Process(process.pid).memory_info().rss)
        return 0

    def _watch_memory(self) -> None:
        while not self._over.wait(LOOK_S):
            self._peak_bytes = max(self._peak_bytes, self._rss_bytes())
            if self._peak_bytes > RSS_MIB_MOST * MIB:
                self._stop(f"stopped at {RSS_MIB_MOST:,.0f} MiB of memory")
            elif self.journal_mib() > JOURNAL_MIB_MOST:
                self._stop(f"stopped at {JOURNAL_MIB_MOST:,.0f} MiB of journal")

    def _stop(self, why: str) -> None:
        if self._process is not None:
            self.stopped = why
            self._process.kill()


def answered(told: Answer) -> str:
    """Return a status, with its code where it is a refusal."""
    return f"{told.status} {told.code()}".rstrip()


def wait(is_so: Callable[[], bool], seconds: float) -> bool:
    """Return whether something came true within this time; no answer is not yet."""
    ends_s = monotonic() + seconds
    while monotonic() < ends_s:
        with suppress(OSError, ValueError, KeyError):
            if is_so():
                return True
        sleep(0.05)
    return False


def _remove_groups(name: str) -> None:
    """Remove the empty control groups of a state directory, and those of its jobs."""
    for base in Path("/sys/fs/cgroup").glob(f"*/**/{name}"):
        for one in (*(path for path in base.iterdir() if path.is_dir()), base):
            with suppress(OSError):
                one.rmdir()


def _processes_of(root: Path) -> list[psutil.Process]:
    """Return every process whose arguments or variables name a folder of this attack."""
    found: list[psutil.Process] = []
    for one in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            folder = Path(f"/proc/{one.pid}")
            said = (folder / "cmdline").read_bytes() + (folder / "environ").read_bytes()
            if os.fsencode(root) in said and one.pid != os.getpid():
                found.append(one)
    return found
