"""The running server: the scheduling loop in its own thread, and what the routes need of it."""

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Event, Thread
from time import monotonic

from msgspec import Struct, field

from tenfold import __version__
from tenfold.clock.steady import SteadyClock
from tenfold.clock.wall import now_ms
from tenfold.compose.control_plane import ControlPlane, Parts
from tenfold.compose.control_plane import Store as LoopStore
from tenfold.compose.live_journal import LiveJournal
from tenfold.compose.node_rules import cordon_rule_of
from tenfold.compose.policies import placing_decider
from tenfold.decide.detect.idle import IdleRule
from tenfold.decide.recover.lemons import CordonThresholds
from tenfold.engine.loop import Witness
from tenfold.files.records.replay_bundle import BundleHeader
from tenfold.journal.integrity.head_file import check_head, head_path
from tenfold.journal.store import Store, open_store
from tenfold.live.acceptance import NodeTester
from tenfold.live.attempts.active import CheckpointTime
from tenfold.live.executor import Executor
from tenfold.live.inbox import Answer, Inbox, JoinNodes
from tenfold.live.usage import Probe, Usage
from tenfold.model.fleet.node import Node
from tenfold.model.policy.policy import Policy
from tenfold.model.reason import Reason
from tenfold.model.units import SECOND, Millis
from tenfold.report.reasons.render import render
from tenfold.server.auth.tokens import Tokens
from tenfold.server.background.background import BackgroundTask, stop_all
from tenfold.server.background.follower import Follower
from tenfold.server.background.heap_trimming import HeapTrimmer
from tenfold.server.background.pruning import AttemptPruner
from tenfold.server.background.retention import JournalRetention, RetentionSettings
from tenfold.server.background.sampler import UsageSampler
from tenfold.server.background.shadow import ShadowCollector, ShadowRunner
from tenfold.server.event_cursor import EventCursor
from tenfold.server.event_pages import EventPages
from tenfold.server.feasibility import Feasibility
from tenfold.server.inbox_client import STARTING, WAIT_S
from tenfold.server.job_details import Workdir
from tenfold.server.metrics.metered_journal import MeteredJournal
from tenfold.server.metrics.metrics import Meters
from tenfold.server.metrics.traces import Traces
from tenfold.server.metrics.usage import UsageCollector
from tenfold.server.runtime.admission import Budgets
from tenfold.server.runtime.budgets import Limits
from tenfold.server.runtime.deps import Control, JobLogs
from tenfold.server.shells import OpenShellCall, no_shells
from tenfold.server.workdirs import FolderCheck, any_folder

END_S = 30.0
"""How long the loop may take to stop: it finishes a commit, not a job."""
SLOW_S = 2.0
"""A write is normally milliseconds, half a second on a slow disk; a longer one is reported."""
POLL_S = 0.01
AHEAD_MS = 1_000
"""How far the loop's clock may differ from the machine's before it is logged."""
_LOG = logging.getLogger("tenfold.server")


class ServerDeps(Struct, frozen=True, kw_only=True, eq=False):
    """What a server is built from."""

    journal: str
    """A path, or a database URL."""
    executor: Callable[[], Executor]
    logs: JobLogs
    saved_at: CheckpointTime = lambda job, work: None
    workdir: Workdir = lambda _: ""
    machine: str = ""
    folder_check: FolderCheck = any_folder
    open_shell: OpenShellCall = no_shells
    policy: Policy = Policy()
    shadow: Policy | None = None
    """A policy whose decisions are logged and not carried out."""
    shadow_log: Path | None = None
    holder: str = "tenfold"
    """Who writes the journal; shown to others that find it locked."""
    wait_s: float = WAIT_S
    blaming: CordonThresholds = CordonThresholds()
    """When a node is cordoned because jobs keep failing there."""
    node_tester: NodeTester = NodeTester()
    """How nodes are tested; by default they are not."""
    traces: Traces = field(default_factory=Traces)
    pruning: Callable[[Store], AttemptPruner] | None = None
    """Removes old attempt folders; None keeps them all."""
    number_least: int = 1
    """The first number that a new job may get."""
    limits: Limits = Limits()
    """What all clients together may use."""
    probe: Callable[[], Probe] | None = None
    """Measures GPU usage; without it no job counts as idle."""
    idling: IdleRule = IdleRule()
    """When a job counts as idle."""
    gpus_on: str = ""
    """The node whose GPUs are those of this machine."""
    retention: RetentionSettings | None = None
    """How long events stay in the journal; None keeps them all."""
    state_dir: Path | None = None
    """Where the head of the journal's digest chain is kept; None keeps none."""


class Runtime:
    """The loop, its inbox, and what the routes get."""

    def __init__(self, deps: ServerDeps) -> None:
        self._fittings = deps
        self.inbox = Inbox()
        self.meters = Meters()
        self.budgets = Budgets(deps.limits, self.meters)
        self.store = open_store(deps.journal)
        self._head = None if deps.state_dir is None else head_path(self.store, deps.state_dir)
        self.plane = ControlPlane(self._parts(), self.inbox)
        self._stopping, self._streams_closing = Event(), Event()
        self._thread = Thread(target=self._run, name="tenfold-loop", daemon=True)
        self._clock: SteadyClock | None = None
        self._written: Store | None = None
        """The journal as the loop writes it, over its own connection."""
        self.usage = Usage(deps.gpus_on)
        self.sampler = self._sampler_of(deps)
        follower = Follower(self.store, deps.policy, now_ms)
        self.control = Control(
            store=self.store,
            inbox=self.inbox,
            tokens=Tokens(self.store, now_ms),
            follower=follower,
            feasibility=Feasibility(self.store, follower, self.trouble),
            logs=deps.logs,
            meters=self.meters,
            usage=self.usage,
            event_cursor=EventCursor(self.store),
            event_pages=EventPages(self.store),
            trouble=self.trouble,
            now_ms=now_ms,
            workdir=deps.workdir,
            machine=deps.machine,
            folder_check=deps.folder_check,
            open_shell=deps.open_shell,
            wait_s=deps.wait_s,
            late=self.late,
            clock_ahead_ms=self.clock_ahead_ms,
            budgets=self.budgets,
            traces=deps.traces,
            is_closing=self._streams_closing.is_set,
        )
        self.meters.watch(self.store, lambda: follower.snapshot().fleet, self.trouble)
        self.meters.watch_clock(self.clock_ahead_ms)
        used = UsageCollector(self.usage, lambda: follower.snapshot().fleet, deps.policy.govern)
        self.meters.registry.register(used)
        pruning = None if deps.pruning is None else deps.pruning(self.store)
        kept, shadow = self._retention_of(deps.retention), self._shadow_of(deps)
        tasks = (kept, pruning, shadow, self.sampler, HeapTrimmer())
        self._background: list[BackgroundTask] = [one for one in tasks if one is not None]

    def check_head(self) -> None:
        """Raise if the journal lacks events that were acknowledged, or is another one."""
        if self._head is not None:
            check_head(self.store, self._head)

    def start(self, nodes: Sequence[Node] = (), *, tests_nodes: bool = False) -> None:
        """Start the loop; nodes new to the journal join the fleet, after a test if asked."""
        if nodes:
            self.inbox.put(JoinNodes(tuple(nodes), tests_nodes), _on_answer)
        if self.sampler is not None:
            self.sampler.announce()
        self._thread.start()
        for one in self._background:
            one.start()

    def wait_until_ready(self, wait_s: float) -> Reason | None:
        """Wait until the loop accepts jobs, or the timeout; return what is wrong, or None."""
        until_s = monotonic() + wait_s
        while (trouble := self.trouble()) is not None and monotonic() < until_s:
            if self._stopping.wait(POLL_S):
                break
        return trouble

    def close_streams(self) -> None:
        """End all streams, so that the server can stop."""
        self._streams_closing.set()

    def stop(self) -> None:
        """Stop the loop. Running jobs continue."""
        self._streams_closing.set()
        self.inbox.close()
        self._stopping.set()
        stop_all(self._background)
        if self._thread.is_alive():
            self._thread.join(END_S)
        self._fittings.traces.close()
        self.store.close()

    def trouble(self) -> Reason | None:
        """Return why the loop does not accept jobs; None while it does."""
        if self.inbox.is_closed:
            return Reason("shutting-down")
        if self._thread.ident is not None and not self._thread.is_alive():
            return Reason("loop-ended")
        if self.plane.trouble is None and self.plane.fleet is None:
            return Reason(STARTING)
        return self.plane.trouble

    def late(self) -> Reason | None:
        """Return a journal write that is taking too long; None if there is none."""
        stores = (self._written, self.store)
        since_s = [one.writes_since_s for one in stores if one is not None]
        waited_s = max((monotonic() - one for one in since_s if one is not None), default=0.0)
        if waited_s < SLOW_S:
            return None
        return Reason("journal-waits", {"waited_s": waited_s})

    def clock_ahead_ms(self) -> int:
        """Return how far the loop's clock is ahead of the machine's; 0 before it starts."""
        return 0 if self._clock is None else self._clock.ahead_ms()

    def _clock_from(self, least_ms: Millis) -> SteadyClock:
        self._clock = clock = SteadyClock(least_ms)
        ahead_ms = clock.ahead_ms()
        if ahead_ms >= AHEAD_MS:
            _LOG.warning(
                "the clock of this machine is %.1f s behind the last event in the journal; "
                "time continues from that event, so event times are ahead of the clock",
                ahead_ms / SECOND,
            )
        return clock

    def _retention_of(self, retention: RetentionSettings | None) -> JournalRetention | None:
        if retention is None:
            return None
        header = BundleHeader(tenfold=__version__, policy=self._fittings.policy)
        return JournalRetention(self._fittings.journal, retention, header, now_ms)

    def _sampler_of(self, deps: ServerDeps) -> UsageSampler | None:
        if deps.probe is None:
            return None
        return UsageSampler(
            deps.probe(),
            deps.idling,
            inbox=self.inbox,
            fleet=lambda: self.plane.fleet,
            usage=self.usage,
            now_ms=now_ms,
        )

    def _shadow_of(self, deps: ServerDeps) -> ShadowRunner | None:
        if deps.shadow is None or deps.shadow_log is None:
            return None
        shadow_runner = ShadowRunner(self.store, deps.shadow, deps.shadow_log)
        self.meters.registry.register(ShadowCollector(shadow_runner))
        return shadow_runner

    def _run(self) -> None:
        self.plane.run(self._pause)

    def _pause(self, ms: Millis) -> None:
        trouble = self.plane.trouble
        said = render(trouble) if trouble else ""
        _LOG.error("the scheduling loop failed and restarts: %s", said, exc_info=True)
        self._stopping.wait(ms / SECOND)

    def _parts(self) -> Parts:
        deps, meters = self._fittings, self.meters

        def store() -> MeteredJournal:
            head = self._head
            journal = LiveJournal(deps.journal, deps.holder, now_ms(), deps.policy, head=head)
            self._written = journal.store
            return MeteredJournal(journal, meters, deps.traces)

        return Parts(
            store=store,
            executor=deps.executor,
            clock=self._clock_from,
            deciders=lambda: [placing_decider(deps.policy)],
            saved_at=deps.saved_at,
            reads_files=True,
            witnesses=_witnesses,
            judge=cordon_rule_of(deps.blaming),
            node_tester=deps.node_tester,
            number_least=deps.number_least,
        )


def _witnesses(store: LoopStore) -> Sequence[Witness]:
    assert isinstance(store, MeteredJournal), "the loop passes back the journal it was built with"
    return store.witnesses()


def _on_answer(answer: Answer) -> None:
    if answer.refused is not None:
        _LOG.error("nodes could not join: %s", render(answer.refused))
