"""Everything at once: jobs, kills, a hostile team, a full disk, database restarts, clock jumps.

The control plane lives for seconds and is killed; every fourth life lasts longer, and in it
memory and descriptors must stay flat. The first life is the longest: what memory gains in it after
a warm-up is judged by itself, since caches fill up at the start of a life and a leak never ends.
The journal is in PostgreSQL where that can run, else in a file. As root the state folder lies on a
small file system in memory, which is filled again and again. The clock of the control plane is
moved by a file that its program reads.
"""

import os
import subprocess
from collections import Counter
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from random import Random
from time import monotonic, sleep

from msgspec import Struct, field

from benchmarks.chaos.hostile import TEAM, Attackers
from benchmarks.chaos.judge import History, history
from benchmarks.chaos.people import People
from benchmarks.chaos.plane import Plane
from benchmarks.chaos.victims import Victims
from benchmarks.chaos.witness import Told, Witness, read
from benchmarks.verdict import Verdict
from tenfold.journal.rows import JobRow
from tenfold.model.errors import TenfoldError
from tenfold.model.events import JobCancelled, JobEnded, JobRefused, JobSubmitted
from tests.engines.postgres import Server, new_database, running_server

MINUTES, SEED, NODES = 60.0, 1, 2
JOBS_A_SECOND = 3
LIFE_S = (3.0, 15.0)
LONG_EVERY, LONG_SHARE, LONG_S_LEAST = 4, 0.1, 30.0
"""Every so many lives one lasts this share of the whole, so long that growth would be seen."""
FIRST_SHARE, FIRST_S_MOST = 0.4, 900.0
"""The first life lasts this share of the whole, so that it goes on long after its warm-up."""
WARM_S = 120.0
"""Until modules are loaded, and caches, worker threads and database connections are at their
bounds. Under this load, memory rose from 111 to 143 MiB in two minutes, and stayed between 142 and
151 MiB in the next two and a half."""
CALM_S = 8.0
"""Without attacks before memory and descriptors are read."""
TROUBLE_S = 2.5
"""Between two troubles, on average."""
TROUBLES = ("supervisor", "member", "spawner", "disk", "database", "clock")
DISK_MIB, CLOCK_MS_MOST = 768, 86_400_000
STUCK_S = 300.0
SAY_S = 30.0
"""Between two lines during a long life."""
RSS_MIB_MOST, DESCRIPTORS_MOST = 96.0, 24
"""What a long life may gain, with its warm-up."""
FLAT_MIB_MOST = 16.0
"""What the first life may gain after its warm-up: the range in which memory moves under this load,
as large requests come and go. What is lost with each request adds up to more: 30,000 of them come
in a quarter of an hour."""
DRIFT_MIB_MOST = 48.0
"""What the end of a later long life may have more than that of the second; the first is longer."""
MIB = 1 << 20
UNDER_WAY = ("pending", "starting", "running", "stopping")
PROGRAM = """
import sys, time
real, path = time.time_ns, sys.argv.pop(1)
def shifted():
    try:
        with open(path) as file:
            return real() + int(file.read() or 0) * 1_000_000
    except (OSError, ValueError):
        return real()
time.time_ns = shifted
from tenfold.cli.main import run
sys.argv[0] = "tenfold"
run()
"""


class Ask(Struct, frozen=True, kw_only=True):
    """How much of it."""

    minutes: float = MINUTES
    seed: int = SEED


class Life(Struct, kw_only=True):
    """Memory and descriptors of one long life."""

    rss_mib: tuple[float, float]
    descriptors: tuple[int, int]
    warm_mib: float | None = None
    """Memory after the warm-up; None if the life was too short to be judged after it."""


class Outcome(Struct, kw_only=True):
    """The figures."""

    acknowledged: int = 0
    unanswered: int = 0
    lost: list[str] = field(default_factory=list[str])
    doubled: list[str] = field(default_factory=list[str])
    wrong_exits: list[str] = field(default_factory=list[str])
    unended: list[str] = field(default_factory=list[str])
    wrong_answers: list[str] = field(default_factory=list[str])
    ended_alone: list[str] = field(default_factory=list[str])
    bugs: list[str] = field(default_factory=list[str])
    sent: int = 0
    connections: int = 0
    throttled: int = 0
    done: Counter[str] = field(default_factory=Counter[str])
    states: Counter[str] = field(default_factory=Counter[str])
    lives: list[Life] = field(default_factory=list[Life])
    peak_mib: float = 0.0
    descriptors: tuple[int, int] = (0, 0)
    took_s: float = 0.0
    journal: str = ""


def run(folder: Path, ask: Ask) -> Outcome:
    """Run the storm in an empty folder."""
    folder.chmod(0o711)
    with _disk(folder / "disk") as is_small, _database() as server:
        journal = "" if server is None else new_database(server.address, f"storm{ask.seed}")
        return Storm(folder, ask, journal, server, is_small).run()


class Storm:
    """One storm."""

    def __init__(
        self, folder: Path, ask: Ask, journal: str, server: Server | None, is_small: bool
    ) -> None:
        self._ask, self._server, self._is_small = ask, server, is_small
        self._dice = Random(ask.seed)
        self._clock = folder / "clock"
        self._clock.write_text("0")
        self._disk = folder / "disk"
        options = ["--keep-logs-gib", "0.1", *(["--journal", journal] if journal else [])]
        self.plane = Plane(
            self._disk / "home",
            NODES,
            *options,
            program=("-c", PROGRAM, str(self._clock)),
            log=folder / "up.log",
        )
        self._journal = journal or str(self.plane.folder.journal)
        self.witness = Witness(folder / "witness")
        self.witness.folder.chmod(0o777)
        (self.witness.folder / "locks").chmod(0o777)
        self.witness.runs.chmod(0o666)
        self.victims = Victims(self.plane.folder.run, Random(ask.seed + 1))
        self.people = People(self.plane, self.witness, 1 << 40, Random(ask.seed + 2))
        self.attackers = Attackers(self.plane, Random(ask.seed + 3))
        self.found = Outcome(journal="PostgreSQL" if journal else "SQLite")

    def run(self) -> Outcome:
        """Run until the time is over, let the rest come to its end, and judge."""
        began_s = monotonic()
        ends_s = began_s + 60 * self._ask.minutes
        try:
            self._begin_quietly()
            self.people.start()
            self.attackers.start()
            turn = 0
            while monotonic() < ends_s:
                turn += 1
                if turn == 1:
                    share_s = min(FIRST_SHARE * 60 * self._ask.minutes, FIRST_S_MOST)
                    self._live(max(LONG_S_LEAST, share_s), began_s, ends_s)
                elif turn % LONG_EVERY == 1:
                    share_s = LONG_SHARE * 60 * self._ask.minutes
                    self._live(max(LONG_S_LEAST, share_s), began_s, ends_s)
                else:
                    self._live(None, began_s, ends_s)
            self._quiet()
        finally:
            self.people.is_over = self.attackers.is_over = True
            self.attackers.may_attack.set()
            self._clock.write_text("0")
            self.plane.leave()
        found = self.found
        found.took_s = monotonic() - began_s
        found.acknowledged, found.unanswered = len(self.people.told), self.people.unanswered
        found.wrong_answers = self.people.wrong
        found.sent, found.connections = self.attackers.sent, self.attackers.connections
        found.bugs, found.throttled = self.attackers.bugs, self.attackers.refused
        found.done["supervisors"] = len(self.victims.supervisors)
        found.done["processes of jobs"] = len(self.victims.members)
        found.done["spawners"] = self.victims.spawners
        self._judge(history(self._journal), read(self.witness.runs))
        return found

    def _begin_quietly(self) -> None:
        self.plane.begin()
        self.plane.wait()
        sleep(CALM_S / 4)
        self.found.descriptors = (self._descriptors(), 0)

    def _live(self, long_s: float | None, began_s: float, ends_s: float) -> None:
        """Let one control plane live, with troubles, and kill it."""
        if self.plane.pid is None:
            self.plane.begin()
            self.plane.wait()
        lasts_s = long_s or self._dice.uniform(*LIFE_S)
        before = self._calm() if long_s else (0.0, 0)
        self.attackers.may_attack.set()
        life_s = monotonic()
        dies_s = min(life_s + lasts_s, ends_s)
        warm_mib: float | None = None
        said_s = life_s
        while monotonic() < dies_s:
            self.people.target = round((monotonic() - began_s) * JOBS_A_SECOND)
            self._note()
            sleep(min(self._dice.expovariate(1 / TROUBLE_S), max(0.0, dies_s - monotonic())))
            self._trouble()
            if lasts_s >= 2 * WARM_S and warm_mib is None and monotonic() - life_s >= WARM_S:
                warm_mib = self._calm()[0]
                self.attackers.may_attack.set()
            if monotonic() - said_s >= SAY_S:
                said_s = monotonic()
                self._say(began_s)
        if long_s:
            after = self._calm()
            self.found.lives.append(
                Life(
                    rss_mib=(before[0], after[0]),
                    descriptors=(before[1], after[1]),
                    warm_mib=warm_mib,
                )
            )
        self._say(began_s)
        if not self.plane.kill():
            self.found.ended_alone.append(self.plane.said()[-600:])
        self.witness.note_kill()
        self.found.done["controllers"] += 1

    def _calm(self) -> tuple[float, int]:
        """Return memory and descriptors after a while without attacks."""
        self.attackers.may_attack.clear()
        sleep(CALM_S)
        return self._rss_mib(), self._descriptors()

    def _trouble(self) -> None:
        kind = self._dice.choice(TROUBLES)
        if kind == "supervisor":
            self.victims.kill_supervisor()
        elif kind == "member":
            self.victims.kill_member()
        elif kind == "spawner":
            self.victims.kill_spawner()
        elif kind == "disk" and self._is_small:
            self._fill_disk()
        elif kind == "database" and self._server is not None:
            self._server.stop()
            sleep(self._dice.uniform(0.1, 2.0))
            self._server.start()
            self.found.done["database restarts"] += 1
        elif kind == "clock":
            self._clock.write_text(str(self._dice.randint(-CLOCK_MS_MOST, CLOCK_MS_MOST)))
            self.found.done["clock jumps"] += 1

    def _fill_disk(self) -> None:
        ballast = self._disk / "ballast"
        with suppress(OSError), ballast.open("wb", buffering=0) as file:
            while file.write(b"\0" * MIB):
                pass
        sleep(self._dice.uniform(0.2, 3.0))
        ballast.unlink(missing_ok=True)
        self.found.done["times a full disk"] += 1

    def _quiet(self) -> None:
        """Start it once more; return when all jobs have ended, or when nothing moves any more."""
        self.people.is_over = True
        self.attackers.may_attack.clear()
        self.plane.begin()
        self.plane.wait()
        self.people.join(STUCK_S)
        left, ends_s = self._left(), monotonic() + STUCK_S
        while left != 0 and monotonic() < ends_s:
            sleep(0.5)
            if (now := self._left()) != left:
                left, ends_s = now, monotonic() + STUCK_S
        sleep(CALM_S)
        self._note()
        self.found.descriptors = (self.found.descriptors[0], self._descriptors())

    def _left(self) -> int | None:
        """Cancel what the hostile team left; return how many jobs have not ended."""
        client = self.plane.client()
        if client is None:
            return None
        try:
            with client:
                for node in client.nodes():
                    if node.state == "cordoned":
                        client.uncordon(node.id)
                for state in UNDER_WAY:
                    for job in client.jobs(team=TEAM, state=state):
                        with suppress(TenfoldError):
                            client.cancel(job.id)
                counted = client.fleet().jobs
                return sum(counted.get(state, 0) for state in UNDER_WAY)
        except TenfoldError:
            return None

    def _note(self) -> None:
        with suppress(OSError):
            self.found.peak_mib = max(self.found.peak_mib, self._status_mib("VmHWM"))

    def _rss_mib(self) -> float:
        return self._status_mib("VmRSS")

    def _status_mib(self, key: str) -> float:
        for line in Path(f"/proc/{self.plane.pid}/status").read_text().splitlines():
            if line.startswith(f"{key}:"):
                return int(line.split()[1]) / 1_024
        return 0.0

    def _descriptors(self) -> int:
        return len(os.listdir(f"/proc/{self.plane.pid}/fd"))

    def _say(self, began_s: float) -> None:
        done = self.found.done
        with suppress(OSError):
            print(
                f"{(monotonic() - began_s) / 60:5.1f} min: {len(self.people.told):,} acknowledged,"
                f" {self.attackers.sent:,} hostile requests, {done['controllers']} kills,"
                f" {self._rss_mib():.0f} MiB, {self._descriptors()} descriptors",
                flush=True,
            )

    def _judge(self, past: History, told: Told) -> None:
        found, own = self.found, set(self.people.told)
        submitted, ends = Counter[str](), Counter[str]()
        for event in past.events:
            if isinstance(event, JobSubmitted):
                submitted[event.job.id] += 1
            elif isinstance(event, JobEnded | JobCancelled | JobRefused):
                ends[event.job_id] += 1
        found.lost = [name for name in self.people.told if name not in past.jobs]
        found.doubled = [name for name, count in submitted.items() if count > 1]
        found.doubled += [*told.twice, *told.again]
        found.unended = [
            f"{name}: {ends[name]} ends, {past.jobs[name].state}"
            for name in own & past.jobs.keys()
            if ends[name] != 1
        ]
        finished = {(run.job, run.attempt) for run in told.runs if run.ended is not None}
        for name in sorted(own & past.jobs.keys()):
            row = past.jobs[name]
            found.states[row.state] += 1
            wrong = self._wrong_exit(row, past, (name, row.attempts) in finished)
            if wrong:
                found.wrong_exits.append(f"{name} {wrong}")

    def _wrong_exit(self, row: JobRow, past: History, has_run: bool) -> str:
        """Return how the end in the journal differs from what happened; empty where it does not."""
        codes = [one.exit_code for one in past.attempts.get(row.id, ())][-1:]
        hurt = {job for job, _ in self.victims.members | self.victims.supervisors}
        if row.state == "succeeded" and not has_run:
            return "succeeded without a run to its end"
        if row.state == "succeeded" and row.name == "fail":
            return "succeeded, and exits with 3"
        if row.state == "cancelled" and row.id not in self.people.asked:
            return "cancelled unasked"
        # A start that failed, as on a full disk, has no exit code.
        if row.state == "failed" and codes not in ([], [None]):
            if row.id in hurt:
                return ""
            if row.name == "fail":
                return "" if codes == [3] else f"exits with 3, and the journal says {codes[0]}"
            return f"failed with {codes[0]}, untouched"
        return ""


def lines(found: Outcome) -> list[str]:
    """Return what is told of a storm."""
    done = ", ".join(f"{count:,} {what}" for what, count in sorted(found.done.items()))
    states = ", ".join(f"{count:,} {state}" for state, count in sorted(found.states.items()))
    told = [
        f"journal in {found.journal}; killed, restarted or moved: {done}",
        f"hostile team: {found.sent:,} requests, {found.connections:,} connections held,"
        f" {found.throttled:,} requests throttled",
        f"jobs: {found.acknowledged:,} acknowledged, {found.unanswered:,} requests without an"
        f" answer; {states}",
        f"lost {len(found.lost)}, doubled {len(found.doubled)}, wrong exits"
        f" {len(found.wrong_exits)}, not one end {len(found.unended)}",
        f"peak memory {found.peak_mib:.0f} MiB; descriptors {found.descriptors[0]} at the start,"
        f" {found.descriptors[1]} at the end; took {found.took_s:.0f} s",
    ]
    told += [
        f"a long life: {life.rss_mib[0]:.0f} to {life.rss_mib[1]:.0f} MiB{_warm(life)},"
        f" {life.descriptors[0]} to {life.descriptors[1]} descriptors"
        for life in found.lives
    ]
    if not any(life.warm_mib is not None for life in found.lives):
        least = 2 * WARM_S / FIRST_SHARE / 60
        told.append(f"not measured: memory after the warm-up; it needs --minutes {least:.0f}")
    for law, wrong in _faults(found):
        told += [f"BROKEN {law}: {one}" for one in wrong[:5]]
    return told


def _warm(life: Life) -> str:
    return "" if life.warm_mib is None else f" ({life.warm_mib:.0f} after the warm-up)"


def verdicts(found: Outcome) -> list[Verdict]:
    """Return what a storm is held against."""
    flat = [life.rss_mib[1] - life.warm_mib for life in found.lives if life.warm_mib is not None]
    grown = max((life.rss_mib[1] - life.rss_mib[0] for life in found.lives), default=0.0)
    ends = [life.rss_mib[1] for life in found.lives[1:]] or [0.0]
    opened = [life.descriptors[1] - life.descriptors[0] for life in found.lives]
    opened.append(found.descriptors[1] - found.descriptors[0])
    return [
        *(Verdict(f"storm: {law}", len(wrong), 0.0) for law, wrong in _faults(found)),
        Verdict("storm: jobs acknowledged", found.acknowledged, at_least=1),
        Verdict("storm: controllers killed", found.done["controllers"], at_least=1),
        Verdict("storm: hostile requests", found.sent, at_least=1),
        Verdict("storm: memory gained in a long life", grown, RSS_MIB_MOST, " MiB"),
        *(
            Verdict("storm: memory gained after the warm-up", one, FLAT_MIB_MOST, " MiB")
            for one in flat
        ),
        Verdict(
            "storm: memory gained from life to life", max(ends) - ends[0], DRIFT_MIB_MOST, " MiB"
        ),
        Verdict("storm: descriptors gained", max(opened), DESCRIPTORS_MOST),
    ]


def _faults(found: Outcome) -> Iterable[tuple[str, list[str]]]:
    return (
        ("acknowledged and lost", found.lost),
        ("doubled", found.doubled),
        ("wrong exits", found.wrong_exits),
        ("not one end", found.unended),
        ("wrong answers", found.wrong_answers),
        ("hostile requests answered 500", found.bugs),
        ("the control plane ended by itself", found.ended_alone),
    )


@contextmanager
def _disk(path: Path) -> Generator[bool, None, None]:
    """Make a folder, on a small file system of its own where that is allowed."""
    path.mkdir(mode=0o711)
    words = ["mount", "-t", "tmpfs", "-o", f"size={DISK_MIB}m,mode=711", "tmpfs", str(path)]
    is_small = os.geteuid() == 0 and subprocess.run(words, check=False).returncode == 0
    if not is_small:
        print("note: not root, so the disk is not filled", flush=True)
    try:
        yield is_small
    finally:
        if is_small:
            subprocess.run(["umount", "--lazy", str(path)], check=False)


@contextmanager
def _database() -> Generator[Server | None, None, None]:
    if find_spec("pgserver") is None or find_spec("psycopg") is None:
        print("note: no PostgreSQL here, so the journal is a file", flush=True)
        yield None
        return
    with running_server() as server:
        yield server
