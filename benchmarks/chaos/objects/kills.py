"""kill -9 of any process of an object store, again and again, under mixed load.

Clients put, overwrite, create, upload in parts, copy between tiers, delete and read; an operator
drains a tier into the other one and back. Meanwhile a worker, the supervisor, the process that
moves, or all of them are killed at random. At the end every acknowledged object must read back
with its hash; then the catalogue is deleted too and rebuilt from the shards.
"""

import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from contextlib import suppress
from pathlib import Path
from random import Random
from threading import Event
from time import monotonic
from typing import Any

import msgspec
import psutil
from msgspec import Struct, field

from benchmarks.chaos.objects.clients import BUCKET, Client, check_all
from tests.rigs.objects import ObjectServer, write_keys

KILLS = 100
CLIENTS = 4
ANSWERS_MOST = 40
"""Between two kills, drawn at random: answers that clients received."""
HANG_S = 540.0
POLL_S = 0.02
SHOWN_EVERY = 10
SHARES = {"worker": 45, "supervisor": 15, "mover": 20, "all": 20}
MOVES = (
    ("drain", "hot", "--to", "warm"),
    ("expand", "hot"),
    ("drain", "warm", "--to", "hot"),
    ("expand", "warm"),
)
INCOMPLETE = "blobs have too few shards"
"""Said of blobs whose write a kill has cut off: nobody has acknowledged them."""
REFUSED = 3
TIERS = {"hot": ("replicas = 2", 3), "warm": ('erasure = "2+1"', 4)}


class Ask(Struct, frozen=True):
    """How often, and from which dice."""

    kills: int = KILLS
    seed: int = 1
    processes: int = 2


class Found(Struct, kw_only=True):
    """What came of it."""

    kills: Counter[str] = field(default_factory=Counter[str])
    requests: Counter[str] = field(default_factory=Counter[str])
    acknowledged: int = 0
    unanswered: int = 0
    moves: Counter[str] = field(default_factory=Counter[str])
    sure: int = 0
    """Objects that had to be there at the end."""
    wrong: list[str] = field(default_factory=list[str])
    """Reads during the load, and at the end, that found what cannot be."""
    refused: list[str] = field(default_factory=list[str])
    """Answers that no kill explains."""
    problems: list[str] = field(default_factory=list[str])
    lost_shards: list[str] = field(default_factory=list[str])
    rebuilt_wrong: list[str] = field(default_factory=list[str])
    """Acknowledged objects that are not in the catalogue that was rebuilt from the shards."""


def write_tiers(folder: Path) -> None:
    """Write a tier file with a replicated and an erasure-coded tier."""
    lines: list[str] = []
    for tier, (layout, count) in TIERS.items():
        lines += [f"[tiers.{tier}]", layout]
        for number in range(count):
            name = f"{tier}{number}"
            lines += [f"[[tiers.{tier}.backends]]", f'name = "{name}"']
            lines += [f'directory = "disks/{name}"']
    (folder / "tiers.toml").write_text("\n".join(lines) + "\n")


class Soak:
    """One object store that is killed again and again."""

    def __init__(self, folder: Path, ask: Ask, say: Any = print) -> None:
        self._folder, self._ask, self._say = folder, ask, say
        self._dice = Random(ask.seed)
        self._server: ObjectServer | None = None
        self._port = 0
        self._mover = Mover(folder)
        self._clients = [Client(number, ask.seed, self._connect) for number in range(CLIENTS)]
        self.found = Found()

    def run(self) -> Found:
        """Kill as often as asked, then read everything."""
        write_keys(self._folder)
        write_tiers(self._folder)
        self._start()
        try:
            self._connect().create_bucket(Bucket=BUCKET)
            for client in self._clients:
                client.start()
            self._mover.start()
            for number in range(1, self._ask.kills + 1):
                self._wait_for_answers(self._dice.randint(1, ANSWERS_MOST))
                self._kill()
                if number % SHOWN_EVERY == 0:
                    self._say(self._line(number), flush=True)
            self._wait_for_answers(1)
        finally:
            self._stop_load()
            self._kill_all()
        self._check()
        return self.found

    def _connect(self) -> Any:
        assert self._server is not None
        return self._server.s3(
            retries={"total_max_attempts": 1}, connect_timeout=30, read_timeout=HANG_S
        )

    def _start(self) -> None:
        command = [sys.executable, "-m", "tenfold", "objects", "serve", "--dir", str(self._folder)]
        options = ["--port", str(self._port), "--processes", str(self._ask.processes)]
        with (self._folder / "server.log").open("ab") as log:
            process = subprocess.Popen(
                [*command, *options],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
            )
        assert process.stdout is not None
        line = process.stdout.readline().strip()
        if not line:
            log = (self._folder / "server.log").read_text()[-2_000:]
            raise AssertionError(f"the server did not start again: {log}")
        self._server = ObjectServer(process, [line])
        self._port = self._server.address[1]

    def _answers(self) -> int:
        return sum(sum(client.done.values()) for client in self._clients)

    def _wait_for_answers(self, count: int) -> None:
        wanted, ends_s, pause = self._answers() + count, monotonic() + HANG_S, Event()
        while self._answers() < wanted:
            if monotonic() > ends_s:
                raise AssertionError(f"no answer for {HANG_S:.0f} s after {self.found.kills}")
            pause.wait(POLL_S)

    def _kill(self) -> None:
        what = self._dice.choices(list(SHARES), list(SHARES.values()))[0]
        if what == "mover" and not self._mover.kill():
            what = "worker"
        if what == "worker":
            what = "worker" if self._kill_worker() else "all"
        if what == "all":
            self._mover.kill()
            self._kill_all()
        if what == "supervisor":
            self._kill_supervisor()
        if what in ("all", "supervisor"):
            self._start()
        self.found.kills[what] += 1

    def _kill_worker(self) -> bool:
        assert self._server is not None
        workers = psutil.Process(self._server.process.pid).children()
        if not workers:
            return False
        with suppress(psutil.NoSuchProcess):
            self._dice.choice(workers).send_signal(signal.SIGKILL)
        return True

    def _kill_supervisor(self) -> None:
        """Kill it alone: its workers must notice, answer what they have begun, and end."""
        assert self._server is not None
        process = self._server.process
        workers = psutil.Process(process.pid).children()
        process.kill()
        process.wait()
        _, alive = psutil.wait_procs(workers, timeout=HANG_S)
        if alive:
            self.found.problems.append(f"{len(alive)} workers outlived their supervisor")
            for worker in alive:
                worker.kill()

    def _kill_all(self) -> None:
        if self._server is None or self._server.process.returncode is not None:
            return
        process = self._server.process
        family = [psutil.Process(process.pid)]
        family += family[0].children(recursive=True)
        for one in family:
            with suppress(psutil.NoSuchProcess):
                one.send_signal(signal.SIGKILL)
        process.wait()
        psutil.wait_procs(family[1:], timeout=HANG_S)

    def _stop_load(self) -> None:
        self._mover.stop()
        for client in self._clients:
            client.stop()
        for client in self._clients:
            client.join(HANG_S)

    def _check(self) -> None:
        found = self.found
        for client in self._clients:
            found.requests += client.done
            found.acknowledged += client.expected.acknowledged
            found.unanswered += client.expected.unanswered
            found.wrong += [f"under load: {one}" for one in client.wrong]
            found.refused += client.refused
        found.moves = self._mover.ended
        found.problems += self._mover.problems
        self._start()
        found.sure, wrong = check_all(self._connect(), self._clients)
        found.wrong += wrong
        scrubbed = command(self._folder, "scrub", "--json")
        report = msgspec.json.decode(scrubbed.stdout or "{}")
        found.lost_shards = report.get("lost", ["no report"])
        self._kill_all()
        self._rebuild()

    def _rebuild(self) -> None:
        """Lose the database as well, and look for what was acknowledged."""
        for path in self._folder.glob("catalog.db*"):
            path.unlink()
        done = command(self._folder, "rebuild", "--catalog")
        if done.returncode and INCOMPLETE not in done.stderr:
            self.found.problems.append(f"rebuild: {done.stderr[-300:]}")
        self._start()
        _, wrong = check_all(self._connect(), self._clients)
        # What was deleted in the last ten minutes may come back, as the page says.
        self.found.rebuilt_wrong = [one for one in wrong if not one.endswith(": back")]
        self._kill_all()

    def _line(self, number: int) -> str:
        kinds = ", ".join(f"{count} {name}" for name, count in sorted(self.found.kills.items()))
        sent = sum(client.expected.acknowledged for client in self._clients)
        wrong = sum(len(client.wrong) for client in self._clients)
        return (
            f"  kill {number} of {self._ask.kills} ({kinds}): {self._answers():,} answers, "
            f"{sent:,} acknowledged writes, {wrong} wrong reads"
        )


class Mover(threading.Thread):
    """An operator who drains tiers into each other for ever."""

    def __init__(self, folder: Path) -> None:
        super().__init__(daemon=True, name="mover")
        self.ended = Counter[str]()
        self.problems: list[str] = []
        self._folder = folder
        self._process: subprocess.Popen[str] | None = None
        self._stopped = threading.Event()

    def run(self) -> None:
        """Run one command after the other until stopped."""
        while not self._stopped.is_set():
            for words in MOVES:
                if self._stopped.is_set():
                    return
                process = self._process = started(self._folder, *words)
                _, errors = process.communicate()
                self._take_note(words[0], process.returncode, errors)

    def _take_note(self, what: str, status: int, errors: str) -> None:
        if status == -signal.SIGKILL:
            self.ended["killed"] += 1
        elif status == 0:
            self.ended[what] += 1
        elif status == 1:
            # New objects arrive faster than they are moved; the next command goes on.
            self.ended["unfinished"] += 1
        elif status == REFUSED and "cannot take over" in errors:
            # The command before it was killed.
            self.ended["refused"] += 1
        else:
            self.problems.append(f"{what}, exit status {status}: {errors[-300:]}")

    def kill(self) -> bool:
        """Kill the command under way; False where there is none."""
        process = self._process
        if process is None or process.poll() is not None:
            return False
        process.kill()
        return True

    def stop(self) -> None:
        """Kill the command under way, and begin no other."""
        self._stopped.set()
        if self.ident is not None:
            self.kill()
            self.join(HANG_S)


def started(folder: Path, *words: str) -> "subprocess.Popen[str]":
    """Start a command of an operator."""
    return subprocess.Popen(
        [sys.executable, "-m", "tenfold", "objects", *words, "--dir", str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def command(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    """Run a command of an operator to its end."""
    process = started(folder, *words)
    output, errors = process.communicate()
    return subprocess.CompletedProcess(words, process.returncode, output, errors)


def lines(found: Found) -> list[str]:
    """Return what happened, in a few lines."""
    shown = [
        f"kills: {dict(sorted(found.kills.items()))}",
        f"requests answered: {dict(sorted(found.requests.items()))}; "
        f"without an answer: {found.unanswered:,}",
        f"commands that moved: {dict(sorted(found.moves.items()))}",
        f"acknowledged writes and deletes: {found.acknowledged:,}; "
        f"objects that must be there at the end: {found.sure:,}",
    ]
    for name in ("wrong", "refused", "problems", "lost_shards", "rebuilt_wrong"):
        some: list[str] = getattr(found, name)
        shown += [f"{name}: {one}" for one in some[:10]]
        if len(some) > 10:
            shown.append(f"{name}: {len(some):,} in all")
    return shown
