"""A control plane and what the server needs of it, joined: the loop in a thread of its own."""

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Event, Thread

from msgspec import Struct, field

from tenfold import __version__
from tenfold.clock.steady import SteadyClock
from tenfold.clock.wall import now_ms
from tenfold.compose.blaming import judge_of
from tenfold.compose.control_plane import ControlPlane, Parts
from tenfold.compose.control_plane import Store as LoopStore
from tenfold.compose.live_journal import LiveJournal
from tenfold.compose.policies import placing_decider
from tenfold.decide.recover.lemons import Blaming
from tenfold.engine.loop import Witness
from tenfold.files.replay_bundle import BundleHeader
from tenfold.journal.store import Store, open_store
from tenfold.live.acceptance import Examiner
from tenfold.live.attempts import SavedAt
from tenfold.live.executor import Executor
from tenfold.live.inbox import Answer, Inbox, Join
from tenfold.model.node import Node
from tenfold.model.policy import Policy
from tenfold.model.reason import Reason
from tenfold.model.units import SECOND, Millis
from tenfold.server.asked import STARTING, WAIT_S
from tenfold.server.control import Control, JobLogs
from tenfold.server.follower import Follower
from tenfold.server.metrics import Meters
from tenfold.server.newest import Newest
from tenfold.server.problems import without_paths
from tenfold.server.pruning import Pruning
from tenfold.server.shadowing import Shadowing, ShadowMeters
from tenfold.server.tokens import Tokens
from tenfold.server.traces import Traces
from tenfold.server.upkeep import Keeping, Upkeep
from tenfold.server.watched import WatchedJournal

END_S = 30.0
"""How long the loop may take to come to an end: a commit, and no job."""
_LOG = logging.getLogger("tenfold.server")


class Fittings(Struct, frozen=True, kw_only=True, eq=False):
    """What a control plane is joined with."""

    journal: str
    """A path, or the URL of a database."""
    executor: Callable[[], Executor]
    logs: JobLogs
    saved_at: SavedAt = lambda job, work: None
    policy: Policy = Policy()
    shadow: Policy | None = None
    """A policy that is asked too, and only written down."""
    shadow_log: Path | None = None
    holder: str = "tenfold"
    """Who writes the journal, for those who find it taken."""
    wait_s: float = WAIT_S
    blaming: Blaming = Blaming()
    """When a node is cordoned because jobs keep failing there."""
    examiner: Examiner = Examiner()
    """How nodes are tested; by default they are not."""
    traces: Traces = field(default_factory=Traces)
    pruning: Callable[[Store], Pruning] | None = None
    """What removes old folders of attempts; None keeps them all."""
    number_least: int = 1
    """The first number that a job may be given."""
    keeping: Keeping | None = None
    """How long events stay in the journal; None keeps them all."""


class Serving:
    """The loop, its inbox, and what routes are given."""

    def __init__(self, fittings: Fittings) -> None:
        self._fittings = fittings
        self.inbox = Inbox()
        self.meters = Meters()
        self.store = open_store(fittings.journal)
        self.plane = ControlPlane(self._parts(), self.inbox)
        self._ends, self._closes = Event(), Event()
        self._thread = Thread(target=self._run, name="tenfold-loop", daemon=True)
        self._upkeep = self._kept_to(fittings.keeping)
        self._pruning = None if fittings.pruning is None else fittings.pruning(self.store)
        follower = Follower(self.store, fittings.policy, now_ms)
        self.control = Control(
            store=self.store,
            inbox=self.inbox,
            tokens=Tokens(self.store, now_ms),
            follower=follower,
            logs=fittings.logs,
            meters=self.meters,
            newest=Newest(self.store),
            trouble=self.trouble,
            now_ms=now_ms,
            wait_s=fittings.wait_s,
            traces=fittings.traces,
            is_closing=self._closes.is_set,
        )
        self.meters.watch(self.store, lambda: follower.moment().fleet, self.trouble)
        self._shadowing = self._shadow_of(fittings)

    def start(self, nodes: Sequence[Node] = (), *, tests_nodes: bool = False) -> None:
        """Begin the loop; nodes that the journal does not know join the fleet, tested or not."""
        if nodes:
            self.inbox.put(Join(tuple(nodes), tests_nodes), _told)
        self._thread.start()
        if self._upkeep is not None:
            self._upkeep.start()
        if self._pruning is not None:
            self._pruning.start()
        if self._shadowing is not None:
            self._shadowing.start()

    def close_streams(self) -> None:
        """Let streams come to an end, so that the server can."""
        self._closes.set()

    def stop(self) -> None:
        """End the loop. What runs goes on."""
        self._closes.set()
        self.inbox.close()
        self._ends.set()
        if self._upkeep is not None:
            self._upkeep.stop()
        if self._pruning is not None:
            self._pruning.stop()
        if self._shadowing is not None:
            self._shadowing.stop()
        if self._thread.is_alive():
            self._thread.join(END_S)
        self._fittings.traces.close()
        self.store.close()

    def trouble(self) -> Reason | None:
        """Return what keeps the loop from taking work; None while it does."""
        if self.inbox.is_closed:
            return Reason("shutting-down", "the control plane is shutting down")
        if self._thread.ident is not None and not self._thread.is_alive():
            return Reason("loop-ended", "the loop is gone; restart the control plane")
        if self.plane.trouble is None and self.plane.fleet is None:
            return Reason(STARTING, "the control plane reads its journal")
        return None if self.plane.trouble is None else without_paths(self.plane.trouble)

    def _kept_to(self, keeping: Keeping | None) -> Upkeep | None:
        if keeping is None:
            return None
        header = BundleHeader(tenfold=__version__, policy=self._fittings.policy)
        return Upkeep(self._fittings.journal, keeping, header, now_ms)

    def _shadow_of(self, fittings: Fittings) -> Shadowing | None:
        if fittings.shadow is None or fittings.shadow_log is None:
            return None
        shadowing = Shadowing(self.store, fittings.shadow, fittings.shadow_log)
        self.meters.registry.register(ShadowMeters(shadowing))
        return shadowing

    def _run(self) -> None:
        self.plane.run(self._pause)

    def _pause(self, ms: Millis) -> None:
        trouble = self.plane.trouble
        _LOG.error("the loop failed and begins again: %s", trouble.sentence if trouble else "")
        self._ends.wait(ms / SECOND)

    def _parts(self) -> Parts:
        fittings, meters = self._fittings, self.meters

        def store() -> WatchedJournal:
            journal = LiveJournal(fittings.journal, fittings.holder, now_ms(), fittings.policy)
            return WatchedJournal(journal, meters, fittings.traces)

        return Parts(
            store=store,
            executor=fittings.executor,
            clock=SteadyClock,
            deciders=lambda: [placing_decider(fittings.policy)],
            saved_at=fittings.saved_at,
            witnesses=_witnesses,
            judge=judge_of(fittings.blaming),
            examiner=fittings.examiner,
            number_least=fittings.number_least,
        )


def _witnesses(store: LoopStore) -> Sequence[Witness]:
    assert isinstance(store, WatchedJournal), "the loop is given back what it was given"
    return store.witnesses()


def _told(answer: Answer) -> None:
    if answer.refused is not None:
        _LOG.error("nodes did not join: %s", answer.refused.sentence)
