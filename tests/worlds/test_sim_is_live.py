"""One list of jobs in both worlds: the same placements in the same order.

The simulator runs it first. Live, every job is a real process on a virtual node. In one test it
sleeps for as long as it lasts; in the others it waits at a gate that is opened once the journal
has what came before, so that chance has no part in it. The live journal is then replayed.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from threading import Condition, Thread

import pytest
from msgspec import Struct
from msgspec.structs import replace

from patience import HANG_S
from tenfold.clock.steady import SteadyClock
from tenfold.compose.control_plane import ControlPlane, Parts, Store
from tenfold.compose.live_journal import LiveJournal
from tenfold.compose.policies import placing_decider
from tenfold.compose.simulation import SimRequest, simulate
from tenfold.engine.digest import fleet_digest
from tenfold.engine.loop import Witness
from tenfold.engine.recording import Recording, events_of
from tenfold.engine.replay import rebuild, replay
from tenfold.fleet.fleet import Fleet
from tenfold.journal.read import lines_between
from tenfold.journal.store import open_store
from tenfold.live.inbox import Inbox, JoinNodes, Submit
from tenfold.live.local.executor import LocalExecutor
from tenfold.model.actions import StartJob
from tenfold.model.events import ActionOrdered, Event, JobEnded, JobSubmitted
from tenfold.model.fleet.node import Node
from tenfold.model.ids import JobId, NodeId, PoolId, SiteId, TeamId
from tenfold.model.job.job import Job, Slot, shape_of
from tenfold.model.job.run_spec import RunSpec
from tenfold.model.job.submission import Submission, admitted
from tenfold.model.policy.policy import Policy, PolicyName
from tenfold.model.units import Millis

DEADLINE_S = HANG_S
GPUS = 8
NODES = tuple(
    Node(id=NodeId(f"n{at}"), pool=PoolId("p"), site=SiteId("s"), gpus=GPUS, cpus_milli=64_000)
    for at in range(4)
)
SIZES = (0.25, 0.5, 1, 1, 2, 3, 4, 8, 16)
GATED = 'read word < "$GATES/$TENFOLD_JOB.$NODE_RANK"'
POLICIES: tuple[PolicyName, ...] = ("fifo", "las", "fair", "tenfold", "governed")

Start = tuple[JobId, tuple[Slot, ...]]


class Batch(Struct, frozen=True):
    """Submissions of one moment, each with how long it lasts."""

    at_ms: int
    asked: tuple[tuple[Submission, int], ...]


def jobs_of(batches: Sequence[Batch]) -> list[Job]:
    """Return the jobs as the simulator takes them: with their durations, named as live ones."""
    made: list[Job] = []
    for batch in batches:
        for submission, lasts_ms in batch.asked:
            one = admitted(submission, len(made) + 1, Millis(batch.at_ms))[0]
            made.append(replace(one.job, duration_ms=Millis(lasts_ms)))
    return made


def crowd(seed: int, gates: Path) -> list[Batch]:
    """Three batches of twelve: shares, gangs and priorities of two teams."""
    dice = Random(seed)
    lasts = dice.sample(range(211, 4_000), 36)

    def one() -> Submission:
        return Submission(
            team=TeamId(dice.choice(("red", "blue"))),
            shape=shape_of(dice.choice(SIZES), cpus=dice.choice((0.0, 2.0))),
            priority=dice.choice((0, 0, 0, 5)),
            run_spec=RunSpec(name="job", command=("sh", "-c", GATED), env=(("GATES", str(gates)),)),
        )

    return [
        Batch(at_ms, tuple((one(), lasts.pop()) for _ in range(12))) for at_ms in (0, 1_001, 2_403)
    ]


def starts(events: Sequence[Event]) -> list[Start]:
    """Return who was started where, in order."""
    return [
        (event.action.job_id, event.action.slots)
        for event in events
        if isinstance(event, ActionOrdered) and isinstance(event.action, StartJob)
    ]


def simulated(batches: Sequence[Batch], policy: Policy) -> list[Event]:
    kept = Recording()
    simulate(SimRequest(nodes=NODES, jobs=jobs_of(batches), policy=policy), journal=kept)
    return list(events_of(kept.lines))


class Told:
    """Lets one thread wait until the journal of another has a fact."""

    def __init__(self) -> None:
        self._news = Condition()
        self._events: list[Event] = []

    def hear(self, events: Sequence[Event]) -> None:
        with self._news:
            self._events += events
            self._news.notify_all()

    def wait(self, is_it: Callable[[Event], bool], times: int = 1) -> None:
        with self._news:
            heard = self._news.wait_for(
                lambda: sum(is_it(one) for one in self._events) >= times, DEADLINE_S
            )
            assert heard, self._events[-10:]


class HeardJournal(LiveJournal):
    """The real journal, and a word to whoever waits for what it wrote."""

    told: Told

    def append(self, events: Sequence[Event]) -> None:
        super().append(events)
        self.told.hear(events)


class Live:
    """A control plane in a thread, over real processes."""

    def __init__(self, folder: Path, policy: Policy) -> None:
        self.journal = folder / "journal.db"
        self.inbox, self.told = Inbox(), Told()
        self._home = str(folder / "run")
        self.plane = ControlPlane(
            Parts(
                store=self._store,
                executor=lambda: LocalExecutor(self._home),
                clock=SteadyClock,
                deciders=lambda: [placing_decider(policy)],
                saved_at=lambda job, run_spec: None,
                witnesses=_witnesses,
            ),
            self.inbox,
        )
        self.thread = Thread(target=self.plane.run_once, daemon=True)

    def _store(self) -> LiveJournal:
        store = HeardJournal(str(self.journal), "test", 1)
        store.told = self.told
        return store

    def submit(self, batch: Batch) -> None:
        wanted = tuple(one for one, _ in batch.asked)
        self.inbox.put(Submit(wanted), lambda _: None)


def _witnesses(store: Store) -> Sequence[Witness]:
    assert isinstance(store, LiveJournal)
    return store.witnesses()


@contextmanager
def living(folder: Path, policy: Policy) -> Iterator[Live]:
    """A live world whose nodes have joined; nothing of it is left afterwards."""
    live = Live(folder, policy)
    live.inbox.put(JoinNodes(NODES), lambda _: None)
    live.thread.start()
    try:
        yield live
    finally:
        live.inbox.close()
        live.thread.join(DEADLINE_S)
        executor = LocalExecutor(str(folder / "run"))
        for state in executor.attempts():
            executor.stop(state.job_id, state.attempt, Millis(0))
        executor.stop_spawner()
        executor.close()


def check_replay(live: Live, policy: Policy) -> list[Event]:
    """Replay the live journal: the same decisions, the same fleet. Return its events."""
    store = open_store(str(live.journal))
    try:
        lines = list(lines_between(store))
    finally:
        store.close()
    replayed = replay(lines, placing_decider(policy))
    assert replayed.difference is None
    assert live.plane.fleet is not None
    rebuilt = rebuild(lines)
    assert isinstance(rebuilt, Fleet)
    digests = {fleet_digest(one) for one in (live.plane.fleet, replayed.fleet, rebuilt)}
    assert len(digests) == 1
    events = list(events_of(lines))
    assert replayed.orders == len(starts(events))
    return events


def ended(job_id: JobId) -> Callable[[Event], bool]:
    return lambda event: isinstance(event, JobEnded) and event.job_id == job_id


def open_gate(gates: Path, job_id: JobId, members: int) -> None:
    """Let a job end. Opening a gate waits until somebody stands before it."""
    for rank in range(members):
        (gates / f"{job_id}.{rank}").write_text("go\n")


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("policy", POLICIES)
def test_the_same_jobs_are_placed_alike_in_the_simulator_and_live(
    policy: PolicyName, seed: int, tmp_path: Path
):
    gates, ruled = tmp_path / "gates", Policy(name=policy)
    gates.mkdir()
    batches = crowd(seed, gates)
    script = simulated(batches, ruled)
    slots = dict(starts(script))
    for job_id, given in slots.items():
        for rank in range(len(given)):
            os.mkfifo(gates / f"{job_id}.{rank}")
    moments = sorted({event.at_ms for event in script if isinstance(event, JobSubmitted)})
    ends = [event for event in script if isinstance(event, JobEnded)]
    assert len({*moments, *(event.at_ms for event in ends)}) == len(moments) + len(ends)

    with living(tmp_path, ruled) as live:
        for event in script:
            if isinstance(event, JobSubmitted) and moments[0] == event.at_ms:
                moments = [*moments[1:], Millis(-1)]
                live.submit(next(one for one in batches if one.at_ms == event.at_ms))
                live.told.wait(lambda one: isinstance(one, JobSubmitted), event.job.seq + 11)
            elif isinstance(event, JobEnded):
                open_gate(gates, event.job_id, len(slots[event.job_id]))
                live.told.wait(ended(event.job_id))

    events = check_replay(live, ruled)
    assert starts(events) == starts(script)
    assert len(slots) == 36


def test_jobs_that_last_as_long_as_they_say_are_placed_alike(tmp_path: Path):
    """Jobs of whole nodes; in the simulator their ends are too far apart to change places."""
    ruled = Policy(name="fifo")
    lasts = (400, 800, 1_200, 1_600, 2_000, 1_200, 2_000, 1_200, 1_600, 1_600, 1_600, 1_600)
    batch = Batch(
        0,
        tuple(
            (
                Submission(
                    team=TeamId("red"),
                    shape=shape_of(GPUS),
                    run_spec=RunSpec(name="job", command=("sleep", f"{lasts_ms / 1_000}")),
                ),
                lasts_ms,
            )
            for lasts_ms in lasts
        ),
    )
    script = simulated([batch], ruled)
    ends = [event.at_ms for event in script if isinstance(event, JobEnded)]
    assert ends == list(range(400, 400 * len(lasts) + 1, 400))
    with living(tmp_path, ruled) as live:
        live.submit(batch)
        live.told.wait(lambda event: isinstance(event, JobEnded), len(lasts))
    events = check_replay(live, ruled)
    assert starts(events) == starts(script)
