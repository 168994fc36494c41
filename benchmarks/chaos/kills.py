"""The soak: real jobs through the real control plane, which is killed again and again.

Who dies is drawn from a seed; when it dies depends on the machine, so a seed repeats the draws
and not the run.
"""

from pathlib import Path
from random import Random
from time import monotonic, sleep
from typing import NamedTuple

from msgspec import Struct

from benchmarks.chaos.judge import Ruling, history, judge
from benchmarks.chaos.people import People
from benchmarks.chaos.plane import Plane
from benchmarks.chaos.replayed import difference
from benchmarks.chaos.victims import Victims
from benchmarks.chaos.witness import Witness, read
from tenfold.client.client import Client
from tenfold.compose.inputs import policy_of
from tenfold.compose.policy_fleet import NO_FLEET, policy_for_fleet
from tenfold.model.errors import TenfoldError

JOBS, KILLS, SEED = 2_000, 100, 1
NODES = 2
EARLY_SHARE = 0.25
"""Of kills: before the controller answers at all."""
EARLY_S_MOST, LATE_S_MOST = 2.0, 1.0
AIMED_SHARE, AIMED_S_MOST = 0.4, 0.02
"""Of the other kills: in the middle of a request, so long after it was sent."""
HURT = {"spawner": 0.4, "supervisor": 0.7, "member": 0.5}
"""How often, between two kills of the controller, another one dies."""
STUCK_S = 300.0
"""Without any job coming to its end: something hangs."""
LOOK_S = 0.1


class Ask(Struct, frozen=True, kw_only=True):
    """How much of it."""

    jobs: int = JOBS
    kills: int = KILLS
    seed: int = SEED


class Outcome(Struct, kw_only=True):
    """What a soak came to."""

    acknowledged: int
    unanswered: int
    kills: int
    """Controllers killed."""
    early: int
    """Of those, before they answered."""
    spawners: int
    supervisors: int
    members: int
    wait_s_most: float
    """From a start to an answer, the longest."""
    took_s: float
    ruling: Ruling

    @property
    def broken(self) -> int:
        """How many things should not be."""
        return sum(len(found) for found in self.ruling.faults.values())


class Soak:
    """One soak in one folder."""

    def __init__(self, folder: Path, ask: Ask) -> None:
        self._ask = ask
        self._dice = Random(ask.seed)
        self.plane = Plane(folder / "home", NODES)
        self.witness = Witness(folder / "witness")
        self.victims = Victims(self.plane.folder.run, Random(ask.seed + 1))
        self.people = People(self.plane, self.witness, ask.jobs, Random(ask.seed + 2))
        self.kills = self.early = 0
        self._ended: list[str] = []
        self._wait_s_most = 0.0

    def run(self) -> Outcome:
        """Kill as often as asked, let the rest come to its end, and judge."""
        began_s = monotonic()
        self.people.start()
        try:
            for turn in range(1, self._ask.kills + 1):
                self.people.target = -(-self._ask.jobs * turn // self._ask.kills)
                self._turn()
            self._quiet()
        finally:
            self.people.is_over = True
            self.people.join()
            self.plane.leave()
        past = history(self.plane.folder.journal)
        ruling = judge(past, read(self.witness.runs), self.people, self.victims)
        ruling.hold("the controller ended by itself", self._ended)
        # As `tenfold up` makes it of the policy that it takes by default.
        policy = policy_for_fleet(policy_of("tenfold"), NO_FLEET)
        differs = difference(self.plane.folder.journal, policy)
        ruling.hold("replayed, it decides otherwise", [differs] if differs else [])
        ruling.hold("processes left behind", _counted(self.victims.left()))
        ruling.hold("locks still held", _counted(self.witness.held()))
        return Outcome(
            acknowledged=len(self.people.told),
            unanswered=self.people.unanswered,
            kills=self.kills,
            early=self.early,
            spawners=self.victims.spawners,
            supervisors=len(self.victims.supervisors),
            members=len(self.victims.members),
            wait_s_most=self._wait_s_most,
            took_s=monotonic() - began_s,
            ruling=ruling,
        )

    def _turn(self) -> None:
        self.plane.begin()
        if self._dice.random() < EARLY_SHARE:
            self.early += 1
            sleep(self._dice.uniform(0, EARLY_S_MOST))
        else:
            self.plane.wait()
            self._wait_s_most = max(self._wait_s_most, self.plane.wait_s)
            self._hurt_for(self._dice.uniform(0, LATE_S_MOST))
        if not self.plane.kill():
            self._ended.append(self.plane.said())
        self.witness.note_kill()
        self.kills += 1

    def _hurt_for(self, seconds: float) -> None:
        """Kill others at random moments, and return when it is the controller's turn."""
        chosen = [who for who, share in HURT.items() if self._dice.random() < share]
        moments = sorted((self._dice.uniform(0, seconds), who) for who in chosen)
        began_s = monotonic()
        for at_s, who in moments:
            sleep(max(0.0, began_s + at_s - monotonic()))
            if who == "spawner":
                self.victims.kill_spawner()
            elif who == "supervisor":
                self.victims.kill_supervisor()
            else:
                self.victims.kill_member()
        sleep(max(0.0, began_s + seconds - monotonic()))
        if self._dice.random() < AIMED_SHARE and self.people.asks.wait(LATE_S_MOST):
            sleep(self._dice.uniform(0, AIMED_S_MOST))

    def _quiet(self) -> None:
        """Start it once more; return when everything is over, or when nothing moves any more."""
        self.people.target = self._ask.jobs
        self.plane.begin()
        self.plane.wait()
        seen, ends_s = self._progress(), monotonic() + STUCK_S
        while seen.is_under_way and monotonic() < ends_s:
            sleep(LOOK_S)
            if (now := self._progress()) != seen:
                seen, ends_s = now, monotonic() + STUCK_S

    def _progress(self) -> "_Progress":
        submits = self.people.is_alive()
        return _Progress(submits, len(self.people.told), self._unfinished())

    def _unfinished(self) -> int | None:
        """Return how many jobs have not ended; None where the control plane does not answer."""
        client = self.plane.client()
        if client is None:
            return None
        try:
            with client:
                counted = client.fleet().jobs
                left = sum(counted.get(state, 0) for state in _UNDER_WAY)
                if left:
                    _take_back(client)
        except TenfoldError:
            return None
        return left


class _Progress(NamedTuple):
    """How far a soak has come since the last kill."""

    submits: bool
    acknowledged: int
    unfinished: int | None

    @property
    def is_under_way(self) -> bool:
        return self.submits or self.unfinished != 0


_UNDER_WAY = ("pending", "starting", "running", "stopping")


def _take_back(client: Client) -> None:
    """Do as an operator would: a node that is blamed for what was done to its jobs may go on."""
    for node in client.nodes():
        if node.state == "cordoned":
            client.uncordon(node.id)


def _counted(number: int) -> list[str]:
    return [f"{number:,}"] if number else []


def lines(outcome: Outcome) -> list[str]:
    """Return what is told of a soak."""
    ruling = outcome.ruling
    states = ", ".join(f"{count:,} {state}" for state, count in sorted(ruling.states.items()))
    told = [
        f"killed: {outcome.kills} controllers ({outcome.early} before they answered), "
        f"{outcome.spawners} spawners, {outcome.supervisors} supervisors, "
        f"{outcome.members} processes of jobs",
        f"jobs: {outcome.acknowledged:,} acknowledged, {ruling.submitted:,} in the journal, "
        f"{outcome.unanswered:,} requests without an answer; {states}",
        f"runs: {ruling.attempts:,} attempts ordered, {ruling.runs:,} processes begun, "
        f"{ruling.adopted:,} adopted over a kill, {ruling.repeated:,} jobs tried again",
        f"took {outcome.took_s:.0f} s; a controller answered after {outcome.wait_s_most:.1f} s "
        "at most",
    ]
    for law, found in ruling.faults.items():
        told += [f"BROKEN {law}: {one}" for one in found[:5]]
        if len(found) > 5:
            told.append(f"BROKEN {law}: and {len(found) - 5:,} more")
    return told
