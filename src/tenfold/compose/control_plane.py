"""The control plane: wires journal, loop and live world, and restarts them after an error.

Crash-only: any failure, above all of the disk, ends the loop; memory is discarded, and a new
loop starts from the journal as after a restart. So there is one recovery path, and it is used
every day. Waiting requests get the answer that their outcome is unknown; reads keep working.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from typing import NamedTuple, Protocol, runtime_checkable

from tenfold.engine.loop import Decider, Witness, run
from tenfold.fleet.fleet import Fleet
from tenfold.journal.leadership.lease import HELD, LOST
from tenfold.live.acceptance import NodeRecord, NodeTester
from tenfold.live.attempts.active import CheckpointTime
from tenfold.live.blame import CordonRule, no_cordons
from tenfold.live.checkpoint_reader import CheckpointReader
from tenfold.live.executor import STALE_ORDERS, Executor, FencedExecutor, LeasedExecutor
from tenfold.live.inbox import Inbox
from tenfold.live.job_registry import JobEntry, JobRegistry
from tenfold.live.models.registry import ModelRegistry
from tenfold.live.quarantine import GuardedDecider
from tenfold.live.world import Clock, LiveWorld
from tenfold.model.decision import Decision
from tenfold.model.errors import Refused, TenfoldError
from tenfold.model.events import ActionOrdered, Event
from tenfold.model.ids import JobId, NodeId
from tenfold.model.job.submission import SubmitKey
from tenfold.model.reason import Reason, Text, Value
from tenfold.model.units import SECOND, Millis

RETRY_DELAY_MS = Millis(1 * SECOND)
"""Delay from an error to the next start."""
EXPIRED = "lease-expired"
"""The code of orders that came too late for the lease."""
NOT_LEADER = (LOST, HELD, EXPIRED, STALE_ORDERS)
"""Codes of a control plane that leads no longer, or not yet."""
NOT_WRITTEN = Reason("not-leader")
"""The answer to requests that another control plane made stale: nothing of them was written."""


class Restored(NamedTuple):
    """What a journal says: the fleet, and of jobs that are not over what the fleet does not."""

    fleet: Fleet
    entries: Mapping[JobId, JobEntry]
    next_number: int
    last_ms: Millis
    """The last moment that was recorded: time goes on from there, whatever the clock says."""
    keys: Sequence[tuple[SubmitKey, int]] = ()
    """The latest requests that had a key, each with the number of its first job."""
    node_records: Mapping[NodeId, NodeRecord] = {}
    """Of nodes, what the fleet does not know: how they did in their tests."""
    models: ModelRegistry | None = None
    """The model registry; None is an empty one."""


class Store(Protocol):
    """A journal that was opened for writing."""

    def restore(self) -> Restored:
        """Return the current state."""
        ...

    def append(self, events: Sequence[Event]) -> None:
        """Return once the disk has these, in order; raise where it may not."""
        ...

    def close(self) -> None:
        """Close the journal."""
        ...


@runtime_checkable
class NumberedStore(Protocol):
    """A journal whose writers are numbered."""

    @property
    def epoch(self) -> int:
        """The number of this writer; higher than that of any before."""
        ...


class Lead(Protocol):
    """Whether this control plane leads."""

    def wait(self) -> None:
        """Return once it may lead, or will never."""
        ...

    def check(self) -> None:
        """Raise if the lease has ended: another control plane may lead."""
        ...

    def lost(self, refused: Refused) -> None:
        """Note that another control plane is the leader."""
        ...


class Parts(NamedTuple):
    """Parts of a control plane; each is created again for every start."""

    store: Callable[[], Store]
    executor: Callable[[], Executor]
    clock: Callable[[Millis], Clock]
    """A clock that never shows less than this moment."""
    deciders: Callable[[], Sequence[Decider]]
    saved_at: CheckpointTime
    witnesses: Callable[[Store], Sequence[Witness]] = lambda _: ()
    judge: CordonRule = no_cordons
    """Which nodes are to blame for what fails on them."""
    node_tester: NodeTester = NodeTester()
    """How nodes that join are tested; by default they are not."""
    number_least: int = 1
    """The first number that may be given: a journal from a backup forgot those given since."""
    reads_files: bool = False
    """Whether `saved_at` reads files of jobs; it is then called in threads."""
    lead: "Lead | None" = None
    """Where several control planes share a journal: which one leads."""


class _BufferedJournal:
    """A journal that lets the world answer once the disk has what it handed out.

    The facts of a moment wait for the orders that are made of them, and both go to the disk
    together: one wait instead of two. Until then they count in memory alone, which is thrown
    away if the disk fails: no request was answered and no action applied.
    """

    def __init__(self, store: Store, world: LiveWorld) -> None:
        self._store = store
        self._world = world
        self._held: list[Event] = []

    def append(self, events: Sequence[Event]) -> None:
        self._held += events
        if events and type(events[0]) is ActionOrdered:
            self._write()

    def cycle(self, fleet: Fleet, now_ms: Millis, decider: Decider, decision: Decision) -> None:
        """Write what led to no orders, before any other witness takes it for recorded."""
        self._write()

    def _write(self) -> None:
        if self._held:
            self._store.append(self._held)
            self._held = []
        self._world.recorded()


class ControlPlane:
    """Runs the loop until its inbox is closed, through any trouble."""

    def __init__(self, parts: Parts, inbox: Inbox) -> None:
        self._parts = parts
        self._inbox = inbox
        self.trouble: Reason | None = None
        """What is wrong now; None while the loop runs."""
        self.fleet: Fleet | None = None
        """The fleet of the current loop, for readers; None before the first."""
        self.tries = 0

    def run(self, pause: Callable[[Millis], None]) -> None:
        """Run until the inbox is closed; `pause` waits between tries."""
        lead = self._parts.lead
        while not self._inbox.is_closed:
            try:
                if lead is not None:
                    lead.wait()
                    if self._inbox.is_closed:
                        return
                self.run_once()
            except Exception as trouble:
                if lead is not None and isinstance(trouble, Refused) and trouble.code in NOT_LEADER:
                    self.fleet = None
                    lead.lost(trouble)
                    continue
                self.trouble = Reason("loop-failed", _failure(trouble))
                pause(RETRY_DELAY_MS)

    def run_once(self) -> None:
        """Begin from the journal and go on until the end, or until something fails."""
        self.tries += 1
        parts = self._parts
        with closing(parts.store()) as store:
            restored = store.restore()
            with closing(parts.executor()) as executor, _reader(parts) as reader:
                lead = parts.lead
                if isinstance(executor, FencedExecutor) and isinstance(store, NumberedStore):
                    # Before its attempts are read: an earlier leader orders nothing after that.
                    executor.fence(store.epoch)
                world = LiveWorld(
                    executor=executor if lead is None else LeasedExecutor(executor, lead.check),
                    inbox=self._inbox,
                    clock=parts.clock(restored.last_ms),
                    view=restored.fleet,
                    registry=JobRegistry(
                        restored.entries.items(),
                        max(restored.next_number, parts.number_least),
                        restored.keys,
                    ),
                    saved_at=reader,
                )
                world.cordon_with(parts.judge)
                if restored.models is not None:
                    world.register_models_in(restored.models)
                world.test_nodes_with(parts.node_tester, restored.node_records)
                self.fleet, self.trouble = restored.fleet, None
                try:
                    buffered = _BufferedJournal(store, world)
                    run(
                        world,
                        restored.fleet,
                        _guarded(parts.deciders, world),
                        journal=buffered,
                        witnesses=[buffered, *parts.witnesses(store)],
                    )
                except BaseException as trouble:
                    is_stale = isinstance(trouble, Refused) and trouble.code == LOST
                    world.failed(
                        NOT_WRITTEN if is_stale else Reason("not-known", _failure(trouble))
                    )
                    raise


def _guarded(deciders: Callable[[], Sequence[Decider]], world: LiveWorld) -> Sequence[Decider]:
    """Return deciders that hold a job they fail on; each can be made again on its own."""
    return [
        GuardedDecider(lambda place=place: deciders()[place], world.hold)
        for place in range(len(deciders()))
    ]


def _reader(parts: Parts) -> AbstractContextManager[CheckpointReader | CheckpointTime]:
    """Return what tells when a job last saved: in threads if that takes reading files."""
    if parts.reads_files:
        return closing(CheckpointReader(parts.saved_at))
    return nullcontext(parts.saved_at)


def _failure(error: BaseException) -> dict[str, Value]:
    """Return what failed: the error type, and its message, which may contain paths."""
    fields: dict[str, Value] = {"error": type(error).__name__}
    if isinstance(error, OSError) and error.strerror:
        fields["detail"] = error.strerror
    elif isinstance(error, TenfoldError):
        fields["detail"] = error.code
    return {**fields, "said": Text(str(error))}
