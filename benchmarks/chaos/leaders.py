"""Two control planes on one PostgreSQL: the leader is killed, paused and cut off, again and again.

A kill is a crash of the process. A pause is what a stopped virtual machine or a debugger does: the
leader sleeps until its lease has gone to the other one, wakes up and believes that it still leads.
The database restarts in between. Who is struck is always the leader; when, is drawn from a seed.
"""

import signal
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib.util import find_spec
from math import ceil, inf
from pathlib import Path
from random import Random
from socket import gethostname
from time import monotonic, sleep
from typing import TypeVar

import httpx
from msgspec import Struct, field
from sqlalchemy import make_url

from benchmarks.chaos.judge import Ruling, history, judge
from benchmarks.chaos.people import People
from benchmarks.chaos.plane import READY_S_MOST, Plane
from benchmarks.chaos.victims import Victims
from benchmarks.chaos.witness import SCRIPT, Witness, read
from benchmarks.verdict import Verdict
from tenfold.client.client import Client
from tenfold.client.endpoint import read_address
from tenfold.journal.leadership.control_planes import Shared, shared_by
from tenfold.journal.store import Store, open_store
from tenfold.model.errors import TenfoldError
from tests.engines.postgres import Server, new_database, running_server

KILLS, PAUSES, RESTARTS, SEED, NODES = 20, 10, 2, 1, 2
JOBS_PER_STRIKE = 20
"""That are acknowledged at the least, so that each leader is struck under load."""
NAMES = ("", "b")
LEASE_S = 4.0
LOOK_S = 0.02
ASK_S = 1.0
"""How long one question may take; a paused process never answers."""
CALM_S_MOST = 2.0
"""Between two strikes, at most."""
LATE_S_MOST = 2.0
"""How long a paused leader sleeps on after the other one leads."""
STUCK_S = 300.0
P50_S_MOST = 5.0
Found = TypeVar("Found")
UNDER_WAY = ("pending", "starting", "running", "stopping")


class Ask(Struct, frozen=True, kw_only=True):
    """How much of it."""

    kills: int = KILLS
    pauses: int = PAUSES
    restarts: int = RESTARTS
    seed: int = SEED


class Outcome(Struct, kw_only=True):
    """What it came to."""

    takeovers_s: dict[str, list[float]] = field(default_factory=dict[str, list[float]])
    """From a strike to the first job that the other one acknowledged, by the kind of strike."""
    restarts_s: list[float] = field(default_factory=list[float])
    """From the end of a restart of the database to an acknowledged job."""
    acknowledged: int = 0
    unanswered: int = 0
    epochs: int = 0
    refused: Counter[str] = field(default_factory=Counter[str])
    """Writes, orders and requests of stale leaders, by what refused them."""
    accepted_stale: list[str] = field(default_factory=list[str])
    """Changes that a woken leader accepted before it knew."""
    took_s: float = 0.0
    ruling: Ruling = field(default_factory=Ruling)


class _Plane(Plane):
    """One of the control planes; whoever asks does not wait long for a paused one."""

    name = ""
    """Its name among those that share the journal."""

    def client(self) -> Client | None:
        address = read_address(self.folder.path)
        return None if address is None else Client(address.url, address.token, timeout_s=ASK_S)

    def signal(self, number: signal.Signals) -> None:
        assert self._process is not None, "it was started"
        self._process.send_signal(number)


class Leaders:
    """Two control planes in one folder, and a database."""

    def __init__(self, folder: Path, server: Server, ask: Ask) -> None:
        self._ask, self._server, self._dice = ask, server, Random(ask.seed)
        journal = make_url(new_database(server.address, "leaders")).set(drivername="postgresql")
        self._journal = journal.render_as_string(hide_password=False)
        self.planes = {
            name: _Plane(
                folder / "home",
                NODES,
                *("--journal", self._journal, "--lease", f"{LEASE_S:g}s"),
                *(("--name", name) if name else ()),
                log=folder / f"up-{name or 'main'}.log",
            )
            for name in NAMES
        }
        for name, plane in self.planes.items():
            plane.name = name
        first = self.planes[""]
        self.witness = Witness(folder / "witness")
        self.victims = Victims(first.folder.run, Random(ask.seed + 1))
        self.people = People(first, self.witness, 1 << 30, Random(ask.seed + 2))
        self.people.target = 1 << 30
        self.found = Outcome()
        self._store: Store | None = None
        self._probed: list[str] = []
        """Jobs of our own that were acknowledged."""
        self._counted: dict[tuple[int | None, str], float] = {}
        """What was read from each process so far."""

    def run(self) -> Outcome:
        """Strike as often as asked, let the rest come to its end, and judge."""
        began_s = monotonic()
        for name in NAMES:
            self._begin(name)
        self.people.start()
        try:
            self._strike_all()
            self._quiet()
        finally:
            self.people.is_over = True
            self.people.join()
            self.found.epochs = self._epoch()
            for plane in self.planes.values():
                plane.stop()
            self.planes[""].leave()
            if self._store is not None:
                self._store.close()
        found = self.found
        self.people.told += self._probed
        found.acknowledged, found.unanswered = len(self.people.told), self.people.unanswered
        past, told = history(self._journal), read(self.witness.runs)
        found.ruling = judge(past, told, self.people, self.victims)
        found.ruling.hold("a stale leader accepted a change", found.accepted_stale)
        log = (self.planes[""].folder.run / "spawner.log").read_text(errors="replace")
        found.refused["spawner"] += log.count("refused, ")
        found.took_s = monotonic() - began_s
        return found

    def _strike_all(self) -> None:
        ask = self._ask
        strikes = ["kill"] * ask.kills + ["pause"] * ask.pauses
        self._dice.shuffle(strikes)
        every = max(1, len(strikes) // (ask.restarts + 1))
        restarts = 0
        for turn, kind in enumerate(strikes, start=1):
            sleep(self._dice.uniform(0, CALM_S_MOST))
            self._strike(kind, turn)
            if turn % every == 0 and restarts < ask.restarts:
                restarts += 1
                self._restart_database()

    def _strike(self, kind: str, turn: int) -> None:
        name = self._until(self._leader)
        plane, other = self.planes[name], self.planes[NAMES[1 - NAMES.index(name)]]
        url, before = self._url_of(plane), self._epoch()
        struck_s = monotonic()
        self.witness.note_kill()
        if kind == "kill":
            plane.kill()
        else:
            plane.signal(signal.SIGSTOP)
        self._until(lambda: self._acknowledges(self._url_of(other), before))
        took_s = monotonic() - struck_s
        self.found.takeovers_s.setdefault(kind, []).append(took_s)
        if kind == "kill":
            self._begin(name)
        else:
            sleep(self._dice.uniform(0, LATE_S_MOST))
            self._wake(plane, url)
        acknowledged = len(self.people.told)
        print(f"{turn:3} {kind}: {took_s:.2f} s, {acknowledged:,} acknowledged", flush=True)

    def _wake(self, plane: _Plane, url: str) -> None:
        """Let a paused leader go on, and ask it for changes while it believes that it leads."""
        plane.signal(signal.SIGCONT)
        epoch = self._epoch()
        while self._role(url) != "standby":
            answer = self._submit(url)
            if answer == 201 and self._epoch() == epoch:
                # The other one led before and after, and this is its address.
                self.found.accepted_stale.append(f"a job, by {url}, in epoch {epoch}")
        self._until(lambda: plane.name in self._listed())
        with suppress(httpx.HTTPError):
            answer = httpx.get(f"{url}/metrics", headers=self._token(), timeout=ASK_S * 10)
            self._count_refused(plane, answer.text)

    def _count_refused(self, plane: _Plane, metrics: str) -> None:
        for line in metrics.splitlines():
            if line.startswith("tenfold_stale_writes_total{"):
                what, count = line.split('"')[1], float(line.rsplit(" ", 1)[1])
                known = self._counted.get((plane.pid, what), 0.0)
                self.found.refused[what] += round(count - known)
                self._counted[plane.pid, what] = count

    def _restart_database(self) -> None:
        self._server.stop()
        sleep(self._dice.uniform(0.2, LEASE_S))
        self._server.start()
        back_s = monotonic()
        self._until(lambda: any(self._acknowledges(self._url_of(one), 0) for one in self._alive()))
        self.found.restarts_s.append(monotonic() - back_s)
        print(f"    database restarted: {self.found.restarts_s[-1]:.2f} s", flush=True)
        self._until(lambda: len(self._listed()) == len(NAMES))

    def _begin(self, name: str) -> None:
        plane = self.planes[name]
        plane.begin()
        self._until(lambda: name in self._listed())

    def _quiet(self) -> None:
        """Stop asking; return when everything is over, or when nothing moves any more."""
        self.people.is_over = True
        self.people.join()
        left, ends_s = self._left(), monotonic() + STUCK_S
        while left != 0 and monotonic() < ends_s:
            sleep(0.2)
            if (now := self._left()) != left:
                left, ends_s = now, monotonic() + STUCK_S

    def _left(self) -> int | None:
        client = self.planes[""].client()
        if client is None:
            return None
        with suppress(TenfoldError), client:
            for node in client.nodes():
                if node.state == "cordoned":
                    client.uncordon(node.id)
            counted = client.fleet().jobs
            return sum(counted.get(state, 0) for state in UNDER_WAY)
        return None

    def _acknowledges(self, url: str, epoch: int) -> bool:
        """Tell whether a control plane leads in a later epoch, and accepts a job."""
        with suppress(httpx.HTTPError):
            if httpx.get(f"{url}/readyz", timeout=ASK_S).status_code != 200:
                return False
            return self._submit(url) == 201 and self._epoch() > epoch
        return False

    def _submit(self, url: str) -> int:
        job = self.witness.job(self._dice)
        job |= {"name": "true", "command": ["sh", "-c", SCRIPT, "true", "true", "0"]}
        with suppress(httpx.HTTPError):
            address = f"{url}/api/v1/jobs"
            answer = httpx.post(address, json=job, headers=self._token(), timeout=ASK_S)
            if answer.status_code == 201:
                self._probed.append(answer.json()["id"])
            return answer.status_code
        return 0

    def _token(self) -> dict[str, str]:
        address = read_address(self.planes[""].folder.path)
        assert address is not None, "a leader left its address"
        return {"Authorization": f"Bearer {address.token}"}

    def _role(self, url: str) -> str:
        with suppress(httpx.HTTPError):
            return httpx.get(f"{url}/healthz", timeout=ASK_S).json().get("role", "")
        return ""

    def _shared(self) -> Shared | None:
        with suppress(TenfoldError):
            if self._store is None:
                self._store = open_store(self._journal)
            return shared_by(self._store)
        return None

    def _epoch(self) -> int:
        shared = self._shared()
        return 0 if shared is None or shared.lease is None else shared.lease.epoch

    def _leader(self) -> str | None:
        """Return who leads, once it answers; a lease that has expired leads nowhere."""
        shared = self._shared()
        if shared is None or shared.lease is None or shared.lease.left_ms <= 0:
            return None
        name = shared.lease.control_plane.partition("/")[2]
        return name if self._role(shared.lease.url) == "leader" else None

    def _listed(self) -> list[str]:
        """Return the control planes that are there, and whose process is the one that runs."""
        shared = self._shared()
        if shared is None:
            return []
        here = {f"{gethostname()}:{plane.pid}": name for name, plane in self.planes.items()}
        since_ms = shared.now_ms - round(LEASE_S * 1_000)
        return [
            here[one.holder] for one in shared.rows if one.holder in here and one.seen_ms > since_ms
        ]

    def _url_of(self, plane: Plane) -> str:
        shared = self._shared()
        holder = f"{gethostname()}:{plane.pid}"
        rows = () if shared is None else shared.rows
        return next((one.url for one in rows if one.holder == holder), "http://127.0.0.1:9")

    def _alive(self) -> list[_Plane]:
        return [plane for plane in self.planes.values() if plane.pid is not None]

    def _until(self, found: Callable[[], Found | None]) -> Found:
        """Return what is found, once it is neither missing nor false."""
        ends_s = monotonic() + READY_S_MOST
        while True:
            it = found()
            if it is not None and it is not False:
                return it
            if monotonic() > ends_s:
                logs = "\n".join(plane.said() for plane in self.planes.values())
                raise RuntimeError(f"nothing happened for {READY_S_MOST:.0f} s:\n{logs}")
            sleep(LOOK_S)


def lines(found: Outcome) -> list[str]:
    """Return what is told of it."""
    ruling = found.ruling
    states = ", ".join(f"{count:,} {state}" for state, count in sorted(ruling.states.items()))
    refused = ", ".join(f"{count:,} by {what}" for what, count in sorted(found.refused.items()))
    told = [
        f"{kind}: {len(took)} takeovers, p50 {_part(took, 0.5):.2f} s,"
        f" p99 {_part(took, 0.99):.2f} s, most {max(took):.2f} s"
        for kind, took in sorted(found.takeovers_s.items())
    ]
    told += [
        f"database restarted: a job was accepted {one:.2f} s later" for one in found.restarts_s
    ]
    told += [
        f"leaders: {found.epochs} epochs; of stale ones refused: {refused}",
        f"jobs: {found.acknowledged:,} acknowledged, {ruling.submitted:,} in the journal, "
        f"{found.unanswered:,} requests without an answer; {states}",
        f"runs: {ruling.attempts:,} attempts ordered, {ruling.runs:,} processes begun, "
        f"{ruling.adopted:,} adopted over a takeover, {ruling.repeated:,} jobs tried again",
        f"took {found.took_s:.0f} s",
    ]
    for law, broken in ruling.faults.items():
        told += [f"BROKEN {law}: {one}" for one in broken[:5]]
    return told


def verdicts(found: Outcome, ask: Ask) -> list[Verdict]:
    """Return what it is held against."""
    took = [one for each in found.takeovers_s.values() for one in each]
    broken = sum(len(each) for each in found.ruling.faults.values())
    least = JOBS_PER_STRIKE * (ask.kills + ask.pauses)
    return [
        Verdict("leaders: laws broken", broken, 0.0),
        Verdict("leaders: changes accepted of a stale leader", len(found.accepted_stale), 0.0),
        Verdict("leaders: killed", len(found.takeovers_s.get("kill", ())), at_least=ask.kills),
        Verdict("leaders: paused", len(found.takeovers_s.get("pause", ())), at_least=ask.pauses),
        Verdict("leaders: database restarts", len(found.restarts_s), at_least=ask.restarts),
        Verdict("leaders: takeover p50", _part(took, 0.5), P50_S_MOST, " s"),
        Verdict("leaders: jobs acknowledged", found.acknowledged, at_least=least),
        Verdict("leaders: processes adopted", found.ruling.adopted, at_least=1),
    ]


def measure(folder: Path, ask: Ask) -> Outcome:
    """Run it in a folder, with a database of its own."""
    with running_server() as server:
        return Leaders(folder, server, ask).run()


def missing() -> str:
    """Return what this part lacks here; empty if nothing."""
    names = [name for name in ("pgserver", "psycopg") if find_spec(name) is None]
    return f"no {' and no '.join(names)}" if names else ""


def _part(took: Sequence[float], share: float) -> float:
    """Return a percentile by nearest rank."""
    return sorted(took)[max(0, ceil(share * len(took)) - 1)] if took else inf
