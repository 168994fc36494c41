"""The running server: the scheduling loop in its own thread, and what the routes need of it."""

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Event, Lock, Thread
from time import monotonic

from msgspec import Struct, field, structs
from msgspec.structs import replace

from tenfold import __version__
from tenfold.clock.steady import SteadyClock, boot_s
from tenfold.clock.wall import now_ms
from tenfold.compose.control_plane import ControlPlane, Parts
from tenfold.compose.control_plane import Store as LoopStore
from tenfold.compose.live_journal import LiveJournal
from tenfold.compose.node_rules import cordon_rule_of
from tenfold.compose.policies import placing_decider
from tenfold.decide.detect.idle import IdleRule
from tenfold.decide.recover.lemons import CordonThresholds
from tenfold.engine.loop import Witness
from tenfold.files.policy.burst import BurstFile
from tenfold.files.records.replay_bundle import BundleHeader
from tenfold.fleet.fleet import Fleet
from tenfold.journal.integrity.head_file import check_head, head_path
from tenfold.journal.leadership.lease import ALONE
from tenfold.journal.store import Store, open_store
from tenfold.live.acceptance import NodeTester
from tenfold.live.attempts.active import CheckpointTime
from tenfold.live.executor import Executor
from tenfold.live.inbox import Answer, Inbox, JoinNodes
from tenfold.live.providers.local import LocalProvider
from tenfold.live.usage import Probe, Usage
from tenfold.model.fleet.node import Node
from tenfold.model.ids import JobId
from tenfold.model.policy.policy import Policy
from tenfold.model.reason import Reason
from tenfold.model.service.routing import TeamLimits, TokenDigest
from tenfold.model.units import SECOND, Millis
from tenfold.report.reasons.render import render
from tenfold.server.auth.tokens import Role, Tokens, no_fence
from tenfold.server.background.background import BackgroundTask, stop_all
from tenfold.server.background.burst import BurstController, InboxGate
from tenfold.server.background.follower import Follower
from tenfold.server.background.heap_trimming import HeapTrimmer
from tenfold.server.background.objects_process import ObjectsProcess, ObjectsSettings
from tenfold.server.background.pruning import AttemptPruner
from tenfold.server.background.retention import JournalRetention, RetentionSettings
from tenfold.server.background.sampler import UsageSampler
from tenfold.server.background.services.controller import ControllerParts, ServiceController
from tenfold.server.background.services.gateway_process import GatewayProcess
from tenfold.server.background.services.gateways import Gateways
from tenfold.server.background.services.metrics import ReplicaMetrics
from tenfold.server.background.services.ports import Ports, is_free_here
from tenfold.server.background.services.probes import Prober
from tenfold.server.background.services.routing_board import RoutingBoard
from tenfold.server.background.shadow import ShadowCollector, ShadowRunner
from tenfold.server.event_cursor import EventCursor
from tenfold.server.event_pages import EventPages
from tenfold.server.feasibility import Feasibility
from tenfold.server.inbox_client import STARTING, WAIT_S
from tenfold.server.job_details import Workdir
from tenfold.server.metrics.leadership import LeadershipCollector
from tenfold.server.metrics.metered_journal import MeteredJournal
from tenfold.server.metrics.metrics import Meters
from tenfold.server.metrics.services import ServiceCollector
from tenfold.server.metrics.traces import Traces
from tenfold.server.metrics.usage import UsageCollector
from tenfold.server.object_store import ObjectStoreFolder
from tenfold.server.programs import ProgramCheck, any_program
from tenfold.server.runtime.admission import Budgets
from tenfold.server.runtime.budgets import Limits
from tenfold.server.runtime.deps import Control, JobLogs
from tenfold.server.runtime.leadership import STANDBY, Leadership, Sharing
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
    memory_scope: Callable[[], str] = lambda: ""
    """Whether memory limits are those of a `job` or of each `process`; empty if unknown."""
    machine: str = ""
    folder_check: FolderCheck = any_folder
    program_check: ProgramCheck = any_program
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
    gateways: tuple[str, ...] = ()
    """Admin addresses of gateways, where they say their load."""
    gateway: str = ""
    """Where a gateway of this control plane listens; empty for none."""
    objects: ObjectsSettings | None = None
    """The object store that runs beside it; None for none."""
    host_of: Callable[[str], str] = lambda _: "127.0.0.1"
    """Where the replicas on a node answer."""
    is_port_free: Callable[[int], bool] = is_free_here
    """Whether a new replica may get a port."""
    burst: BurstFile | None = None
    """What may be rented for jobs that would be late; None for nothing."""
    retention: RetentionSettings | None = None
    """How long events stay in the journal; None keeps them all."""
    state_dir: Path | None = None
    """Where the head of the journal's digest chain is kept; None keeps none."""
    sharing: Sharing | None = None
    """How the journal is shared with other control planes; None if it is not."""
    note_nodes: Callable[[Sequence[str]], None] = lambda _: None
    """Records which nodes joined, so that the next start does not miss them."""
    epoch_least: Callable[[], int] = lambda: 1
    """The first epoch that the executor has not seen."""


class Runtime:
    """The loop, its inbox, and what the routes get."""

    def __init__(self, deps: ServerDeps) -> None:
        self._fittings = deps
        self.inbox = Inbox()
        self.meters = Meters()
        self.budgets = Budgets(deps.limits, self.meters)
        self.store = open_store(deps.journal)
        self._head = None if deps.state_dir is None else head_path(self.store, deps.state_dir)
        self.leadership = self._leadership_of(deps)
        self.plane = ControlPlane(self._parts(), self.inbox)
        self._stopping, self._streams_closing = Event(), Event()
        self._thread = Thread(target=self._run, name="tenfold-loop", daemon=True)
        self._clock: SteadyClock | None = None
        self._written: Store | None = None
        """The journal as the loop writes it, over its own connection."""
        self.url = ""
        """Where other control planes find this one; known once it listens."""
        self.on_lead: Callable[[], None] = _nothing
        """Called in the loop's thread each time this control plane has taken the journal."""
        self.last_words: Callable[[], None] = _nothing
        """Called before the lease is released."""
        self._handing_over, self._hand_over_lock = Event(), Lock()
        self.usage = Usage(deps.gpus_on)
        self.sampler = self._sampler_of(deps)
        follower = Follower(self.store, deps.policy, now_ms)
        self.routing = RoutingBoard(now_ms)
        self.object_store = self._object_store_of(deps)
        self.control = self._control_of(deps, follower)
        self._watch(deps, follower)
        pruning = None if deps.pruning is None else deps.pruning(self.store)
        kept, shadow = self._retention_of(deps.retention), self._shadow_of(deps)
        self.gateway = self._gateway_of(deps)
        services = (self.gateway, self._services_of(deps), self.object_store)
        burst = self._burst_of(deps)
        tasks = (kept, pruning, shadow, self.sampler, HeapTrimmer(), burst, *services)
        self._background: list[BackgroundTask] = [one for one in tasks if one is not None]

    def _control_of(self, deps: ServerDeps, follower: Follower) -> Control:
        """Return what the routes get."""
        return Control(
            store=self.store,
            inbox=self.inbox,
            tokens=Tokens(
                self.store, now_ms, self.leadership.check_write if self.leadership else no_fence
            ),
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
            memory_scope=deps.memory_scope,
            machine=deps.machine,
            folder_check=deps.folder_check,
            program_check=deps.program_check,
            open_shell=deps.open_shell,
            routing=self.routing,
            service_of=self._service_of,
            wait_s=deps.wait_s,
            late=self.late,
            clock_ahead_ms=self.clock_ahead_ms,
            budgets=self.budgets,
            traces=deps.traces,
            is_closing=self._streams_closing.is_set,
            leadership=self.leadership,
            note_nodes=deps.note_nodes,
            objects=self._objects_of(deps),
        )

    def _watch(self, deps: ServerDeps, follower: Follower) -> None:
        """Register what is read at each scrape."""

        def fleet() -> Fleet:
            return follower.snapshot().fleet

        self.meters.watch(self.store, fleet, self.trouble, self.leads)
        self.meters.watch_clock(self.clock_ahead_ms)
        if self.leadership is not None:
            self.meters.registry.register(LeadershipCollector(self.leadership))
        services = ServiceCollector(fleet)
        services.is_wanted = self.leads
        self.meters.registry.register(services)
        used = UsageCollector(self.usage, fleet, deps.policy.govern)
        used.is_wanted = self.leads
        self.meters.registry.register(used)

    def check_head(self) -> None:
        """Raise if the journal lacks events that were acknowledged, or is another one."""
        if self._head is not None:
            check_head(self.store, self._head)

    def start(self, nodes: Sequence[Node] = (), *, tests_nodes: bool = False) -> None:
        """Start the loop; nodes new to the journal join the fleet, after a test if asked.

        Nodes that left stay out until they are asked to join.
        """
        if self.leadership is not None:
            self.leadership.start()
        if nodes:
            self.inbox.put(JoinNodes(tuple(nodes), tests_nodes, has_left_ones=False), _on_answer)
        if self.sampler is not None:
            self.sampler.announce()
        self._thread.start()
        for one in self._background:
            one.may_run = self.leads
            one.start()

    def wait_until_ready(self, wait_s: float) -> Reason | None:
        """Wait until the loop accepts jobs, or the timeout; return what is wrong, or None.

        A standby is not waited for.
        """
        until_s = monotonic() + wait_s
        while (trouble := self.trouble()) is not None and monotonic() < until_s:
            knows_leader = self.leadership is not None and self.leadership.leader_url != ""
            if (trouble.code == STANDBY and knows_leader) or self._stopping.wait(POLL_S):
                break
        return trouble

    def close_streams(self) -> None:
        """End all streams, so that the server can stop."""
        self._streams_closing.set()

    def begin_stop(self) -> None:
        """End all streams; hand over at once, while requests in progress are still answered."""
        self.close_streams()
        if self.leadership is not None and not self._handing_over.is_set():
            Thread(target=self.hand_over, name="tenfold-hand-over", daemon=True).start()

    def hand_over(self) -> None:
        """End the loop and release the lease, so that a standby takes over at once."""
        self._handing_over.set()
        self.inbox.close()
        with self._hand_over_lock:
            if self._thread.is_alive():
                self._thread.join(END_S)
            if self.leadership is not None and self.leadership.epoch is not None:
                # It may still write, until the lease is released.
                self.last_words()
                self.leadership.hand_over()

    def stop(self) -> None:
        """Stop the loop. Running jobs continue."""
        self._streams_closing.set()
        self.inbox.close()
        self._stopping.set()
        stop_all(self._background)
        self.hand_over()
        if self.leadership is not None:
            self.leadership.stop()
        self._fittings.traces.close()
        self.store.close()

    def trouble(self) -> Reason | None:
        """Return why the loop does not accept jobs; None while it does."""
        if self.inbox.is_closed:
            return Reason("shutting-down")
        if self._thread.ident is not None and not self._thread.is_alive():
            return Reason("loop-ended")
        if self.leadership is not None and (standby := self.leadership.trouble()) is not None:
            return standby
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

    def leads(self) -> bool:
        """Tell whether this control plane may change the journal."""
        return self.leadership is None or self.leadership.epoch is not None

    def _leadership_of(self, deps: ServerDeps) -> Leadership | None:
        if deps.sharing is None:
            return None
        return Leadership(deps.journal, deps.sharing, deps.holder, self.inbox, lambda: self.url)

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
        return JournalRetention(self._fittings.journal, retention, header, now_ms, self.leadership)

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

    def _services_of(self, deps: ServerDeps) -> ServiceController:
        govern = deps.policy.govern
        teams = () if govern is None else govern.teams
        return ServiceController(
            ControllerParts(
                inbox=self.inbox,
                fleet=lambda: self.plane.fleet,
                board=self.routing,
                tokens=self._client_tokens,
                teams=tuple(
                    TeamLimits(name=one.id, weight=one.weight, **structs.asdict(one.inference))
                    for one in teams
                ),
                gateways=Gateways(self._gateway_urls),
                prober=Prober(),
                metrics=ReplicaMetrics(),
                ports=Ports(deps.is_port_free),
                host_of=deps.host_of,
                now_ms=lambda: now_ms() + self.clock_ahead_ms(),
            )
        )

    def _gateway_of(self, deps: ServerDeps) -> GatewayProcess | None:
        if not deps.gateway or deps.state_dir is None:
            return None
        log = deps.state_dir / "logs" / "gateway.jsonl"
        return GatewayProcess(deps.gateway, lambda: self.url, deps.state_dir, log)

    def _object_store_of(self, deps: ServerDeps) -> ObjectsProcess | None:
        if deps.objects is None or deps.state_dir is None:
            return None
        log = deps.state_dir / "logs" / "objects.log"
        return ObjectsProcess(deps.objects, deps.state_dir, log)

    def _objects_of(self, deps: ServerDeps) -> ObjectStoreFolder | None:
        """Return what the routes get of the object store."""
        process = self.object_store
        if deps.objects is None or process is None:
            return None
        return ObjectStoreFolder(deps.objects.folder, lambda: process.url)

    def _burst_of(self, deps: ServerDeps) -> BurstController | None:
        if deps.burst is None or deps.state_dir is None:
            return None

        def fleet() -> Fleet | None:
            return self.plane.fleet

        gate = InboxGate(self.inbox, fleet)
        provider = LocalProvider(gate, deps.burst.zones)
        return BurstController(deps.burst, provider, gate, fleet, now_ms, deps.state_dir)

    def _gateway_urls(self) -> Sequence[str]:
        """Return the admin addresses of all gateways that run."""
        own = "" if self.gateway is None else self.gateway.admin
        return (*self._fittings.gateways, own)

    def _service_of(self, job_id: str) -> str | None:
        fleet = self.plane.fleet
        return None if fleet is None else fleet.service_of(JobId(job_id))

    def _client_tokens(self) -> list[TokenDigest]:
        """Return the tokens with which services may be used."""
        return [
            TokenDigest(digest=digest, team=token.team, expires_ms=token.expires_ms)
            for digest, token in self.control.tokens.digests(Role.member)
        ]

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
            head, lead, since_s = self._head, self.leadership, boot_s()
            claim = replace(ALONE if lead is None else lead.claim(), epoch_least=deps.epoch_least())
            journal = LiveJournal(
                deps.journal, deps.holder, now_ms(), deps.policy, head=head, claim=claim
            )
            self._written = journal.store
            if lead is not None:
                lead.taken(journal.epoch, since_s)
            try:
                self.on_lead()
            except BaseException:
                journal.close()
                raise
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
            lead=self.leadership,
        )


def _nothing() -> None:
    """Do nothing."""


def _witnesses(store: LoopStore) -> Sequence[Witness]:
    assert isinstance(store, MeteredJournal), "the loop passes back the journal it was built with"
    return store.witnesses()


def _on_answer(answer: Answer) -> None:
    if answer.refused is not None:
        _LOG.error("nodes could not join: %s", render(answer.refused))
