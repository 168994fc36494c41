"""The thread that controls services: it observes, makes steps, and gives them to the loop.

It reads the loop's records of services, which are frozen and replaced as a whole, and decides from
one record at a time. The loop drops a step whose record has changed since, so being late is safe.
"""

import logging
from collections.abc import Callable, Sequence
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from tenfold.compose.service_steps import Controller
from tenfold.decide.serve.routing import routing_of
from tenfold.fleet.fleet import Fleet
from tenfold.live.inbox import Answer, Inbox, StepService
from tenfold.live.services import CHANGED
from tenfold.model.ids import JobId, NodeId
from tenfold.model.service.autoscale import DECIDE_MS
from tenfold.model.service.load import ServiceLoad
from tenfold.model.service.routing import RoutingState, TeamLimits, TokenDigest
from tenfold.model.service.state import ServiceState
from tenfold.model.service.step import ServiceSeen
from tenfold.model.units import SECOND, Millis
from tenfold.report.reasons.render import render
from tenfold.server.background.background import BackgroundTask
from tenfold.server.background.services.gateways import Gateways
from tenfold.server.background.services.metrics import ReplicaMetrics
from tenfold.server.background.services.ports import Ports
from tenfold.server.background.services.probes import Prober, Target
from tenfold.server.background.services.routing_board import RoutingBoard

TICK_S = 0.1
"""Between two looks at what has changed."""
IDLE_TICK_S = 0.5
"""The same while there is no service."""
STEP_MS = DECIDE_MS
"""Between two steps of a service of which nothing has changed: its load is looked at again."""
RETRY_STEP_MS = 250
"""The same while a replica has failed, whose successor waits for its back-off."""
TOKENS_MS = 2 * SECOND
"""Between two readings of the tokens."""
END_S = 5.0
_LOG = logging.getLogger("tenfold.server")


class ControllerParts(Struct, frozen=True, kw_only=True, eq=False):
    """What the controller needs."""

    inbox: Inbox
    fleet: Callable[[], Fleet | None]
    """The loop's fleet; None while there is none."""
    board: RoutingBoard
    tokens: Callable[[], Sequence[TokenDigest]]
    """Tokens of clients; it may take as long as a query."""
    teams: tuple[TeamLimits, ...]
    gateways: Gateways
    prober: Prober
    metrics: ReplicaMetrics
    ports: Ports
    host_of: Callable[[NodeId], str]
    """Where the replicas on a node answer."""
    now_ms: Callable[[], int]


class _Controlled(Struct):
    """What is remembered of one service between ticks."""

    controller: Controller
    state: ServiceState
    step_ms: int = 0
    """When the last step was made."""
    seen: tuple[object, ...] = ()
    """What the last step was made of, but for the load."""
    waits: bool = False
    """Whether the loop has not answered yet."""


class ServiceController(BackgroundTask):
    """Controls the services while this control plane leads."""

    def __init__(self, parts: ControllerParts) -> None:
        super().__init__("services", END_S)
        self._parts = parts
        self._services: dict[str, _Controlled] = {}
        self._draining: dict[JobId, int] = {}
        """The version of the routing state in which each replica drains."""
        self._tokens: tuple[TokenDigest, ...] = ()
        self._tokens_ms: int | None = None
        self._published: tuple[ServiceState, ...] = ()

    def work(self) -> None:
        """Look again and again."""
        try:
            while not self.stopping.wait(TICK_S if self._services else IDLE_TICK_S):
                try:
                    self.once()
                except Exception:
                    # What is recorded stays as it is, and requests are served.
                    _LOG.exception("could not control services")
        finally:
            self._parts.prober.close()
            self._parts.metrics.close()
            self._parts.gateways.close()

    def once(self) -> None:
        """Observe, and make the steps that are due."""
        parts, fleet = self._parts, self._parts.fleet()
        if fleet is None or not self.may_run():
            self._services.clear()
            self._draining.clear()
            parts.gateways.forget()
            parts.board.withdraw()
            return
        now_ms = Millis(parts.now_ms())
        states = list(fleet.services.values())
        self._publish(states, now_ms)
        if not states and not self._services:
            return
        self._observe(fleet, states, now_ms)
        names = {state.name: state for state in states}
        for gone in [name for name in self._services if name not in names]:
            del self._services[gone]
        used = {replica.port for state in states for replica in state.replicas}
        for state in states:
            self._control(fleet, state, used, now_ms)

    def _observe(self, fleet: Fleet, states: Sequence[ServiceState], now_ms: Millis) -> None:
        targets: dict[JobId, Target] = {}
        for state in states:
            for replica in state.replicas:
                run = fleet.running.get(replica.id)
                if run is not None and not run.stopping and not replica.is_leaving:
                    host = self._parts.host_of(run.slots[0].node)
                    url = f"http://{host}:{replica.port}"
                    targets[replica.id] = Target(run.started_ms, url, state.spec.readiness)
        self._parts.prober.probe(targets, now_ms)
        self._parts.metrics.read(states, now_ms)
        self._parts.gateways.read([state.name for state in states], now_ms)

    def _control(self, fleet: Fleet, state: ServiceState, used: set[int], now_ms: Millis) -> None:
        known = self._services.get(state.name)
        if known is None:
            known = self._services[state.name] = _Controlled(Controller(), state)
        if known.waits:
            return
        parts, gateways = self._parts, self._parts.gateways
        probes = {one.id: found for one in state.replicas if (found := parts.prober.found(one.id))}
        started_ms = {
            one.id: run.started_ms
            for one in state.replicas
            if (run := fleet.running.get(one.id)) is not None
        }
        draining = {
            one.id: self._draining[one.id] for one in state.replicas if one.id in self._draining
        }
        idle = gateways.idle(state.name, draining, now_ms)
        rolled_back = gateways.rolled_back(state.name, now_ms)
        what = (state, probes, started_ms, idle, rolled_back)
        waits_to_retry = any(one.failures for one in state.revisions)
        pause_ms = RETRY_STEP_MS if waits_to_retry else STEP_MS
        if what == known.seen and now_ms - known.step_ms < pause_ms:
            return
        history = gateways.history(state.name)
        seen = ServiceSeen(
            started_ms=started_ms,
            probes=probes,
            load=self._load(state, now_ms),
            covers_ms=Millis(0) if history is None else history.covers_ms(now_ms),
            idle=idle,
            rolled_back=rolled_back,
            ports=parts.ports.offer(used),
        )
        known.seen, known.step_ms, known.state = what, now_ms, state
        made = known.controller.step(state, seen, now_ms)
        if made.is_empty:
            return
        used.update(order.port for order in made.starts)
        known.waits = True
        parts.inbox.put(StepService(state.name, state, made), partial(self._on_answer, known))

    def _load(self, state: ServiceState, now_ms: Millis) -> ServiceLoad | None:
        history = self._parts.gateways.history(state.name)
        load = None if history is None else history.load(now_ms)
        if load is None or not state.spec.signals:
            return load
        return replace(load, signals=self._parts.metrics.means(state))

    def _on_answer(self, known: _Controlled, answer: Answer) -> None:
        """Go on with the service; called in the loop's thread."""
        known.seen, known.waits = (), False
        if answer.refused is not None and answer.refused.code != CHANGED:
            _LOG.warning(
                "a step of service %s was refused: %s", known.state.name, render(answer.refused)
            )

    def _publish(self, states: Sequence[ServiceState], now_ms: Millis) -> None:
        """Publish where gateways are to send requests."""
        is_due = self._tokens_ms is None or now_ms - self._tokens_ms >= TOKENS_MS
        if states and is_due:
            self._tokens, self._tokens_ms = tuple(self._parts.tokens()), now_ms
        elif self._parts.board.version and _are_same(states, self._published):
            return
        self._published = tuple(states)
        version = self._parts.board.publish(
            RoutingState(
                services=tuple(
                    sorted((routing_of(state) for state in states), key=lambda one: one.name)
                ),
                teams=self._parts.teams,
                tokens=self._tokens,
            )
        )
        leaving = [one.id for state in states for one in state.replicas if one.is_leaving]
        self._draining = {job_id: self._draining.get(job_id, version) for job_id in leaving}


def _are_same(some: Sequence[ServiceState], others: Sequence[ServiceState]) -> bool:
    """Return whether no record was replaced: then nothing of it has changed."""
    return len(some) == len(others) and all(
        one is other for one, other in zip(some, others, strict=True)
    )
