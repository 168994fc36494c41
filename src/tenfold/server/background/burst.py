"""Burst: rent nodes for jobs that would be late, and give them back.

Off unless `tenfold up --burst` names a policy with a budget. Nodes join and leave through the
inbox, so every action is an event in the journal, with its cause. What was spent, and which node
was rented when and for which job, is kept in the state directory: a restart spends nothing twice.
"""

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Event as Signal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tenfold.decide.provision.burst import decide_burst
from tenfold.files.core.write import write_new_file
from tenfold.files.policy.burst import BurstFile
from tenfold.fleet.fleet import Fleet
from tenfold.live.inbox import Answer, Inbox, JoinNodes, NodeBatch, Request, SetNodeState
from tenfold.live.providers.local import POOL
from tenfold.live.providers.provider import NoCapacity, Provider
from tenfold.model.errors import TenfoldError
from tenfold.model.fleet.node import Node
from tenfold.model.ids import NodeId
from tenfold.model.job.job import Job
from tenfold.model.market.burst import BurstJob, BurstState, RentedNode, RentNodes
from tenfold.model.units import HOUR, SECOND
from tenfold.report.reasons.render import render
from tenfold.server.background.background import BackgroundTask

TICK_S = 2.0
ANSWER_S = 10.0
END_S = 12.0
IDLE = "burst: idle"
FILE = "burst.json"
_LOG = logging.getLogger("tenfold.server")


class BurstLedger(Struct, frozen=True, kw_only=True):
    """What is kept of bursts between restarts."""

    spent_usd_micros: int = 0
    """For nodes that were given back."""
    nodes: tuple[RentedNode, ...] = ()
    committed: dict[str, int] = {}
    """What each job with rented nodes is expected to cost."""
    rented_ms: tuple[int, ...] = ()
    failed_ms: dict[str, int] = {}


class InboxGate:
    """Nodes join and leave through the loop's inbox."""

    def __init__(self, inbox: Inbox, fleet: Callable[[], Fleet | None]) -> None:
        self._inbox = inbox
        self._fleet = fleet

    def join(self, nodes: Sequence[Node]) -> None:
        """Add virtual nodes, and wait until they are in the journal."""
        self._do(JoinNodes(tuple(nodes)))

    def leave(self, nodes: Sequence[str], cause: str) -> None:
        """Take nodes out of service."""
        self._mark(nodes, "down", cause)

    def cordon(self, nodes: Sequence[str], cause: str) -> None:
        """Let no more jobs start on nodes."""
        self._mark(nodes, "cordoned", cause)

    def nodes(self) -> dict[str, str]:
        """Return the state of every node."""
        fleet = self._fleet()
        return {} if fleet is None else {str(one): state for one, state in fleet.states.items()}

    def _mark(self, nodes: Sequence[str], state: str, cause: str) -> None:
        self._do(NodeBatch(tuple(SetNodeState(NodeId(one), state, cause) for one in nodes)))

    def _do(self, request: Request) -> None:
        answered, answers = Signal(), list[Answer]()

        def reply(answer: Answer) -> None:
            answers.append(answer)
            answered.set()

        self._inbox.put(request, reply)
        if not answered.wait(ANSWER_S):
            raise NoCapacity("here", "the control plane did not answer in time")
        refused = answers[0].refused
        if refused is not None:
            raise NoCapacity("here", render(refused))


class BurstController(BackgroundTask):
    """Carries out a burst policy while this control plane leads."""

    def __init__(
        self,
        burst: BurstFile,
        provider: Provider,
        gate: InboxGate,
        fleet: Callable[[], Fleet | None],
        now_ms: Callable[[], int],
        state_dir: Path,
    ) -> None:
        super().__init__("burst", END_S)
        self._burst = burst
        self._provider = provider
        self._gate = gate
        self._fleet = fleet
        self._now_ms = now_ms
        self._path = state_dir / FILE
        self.ledger = _read(self._path)
        self._refused: dict[str, str] = {}

    def work(self) -> None:
        """Look again and again."""
        while not self.stopping.wait(TICK_S):
            try:
                self.once()
            except Exception:
                # Rented nodes stay as they are; the next look may succeed.
                _LOG.exception("could not decide about bursts")

    def once(self) -> None:
        """Observe, decide, and carry out."""
        fleet = self._fleet()
        if fleet is None or not self.may_run():
            return
        now_ms = self._now_ms()
        self._observe(fleet, now_ms)
        ledger, policy = self.ledger, self._burst.policy
        running = sum(self._cost(node, now_ms) for node in ledger.nodes)
        state = BurstState(
            now_ms=now_ms,
            spent_usd_micros=ledger.spent_usd_micros + running,
            committed_usd_micros=max(0, sum(ledger.committed.values()) - running),
            nodes=ledger.nodes,
            rented_ms=ledger.rented_ms,
            failed_ms=dict(ledger.failed_ms),
        )
        jobs = [self._job(job, fleet, now_ms) for job in list(fleet.pending.values())]
        known = [job for job in jobs if job is not None]
        decision = decide_burst(known, self._burst.zones, policy, state)
        for refusal in decision.refusals:
            if self._refused.get(refusal.job) != refusal.reason.code:
                _LOG.info("no burst for job %s: %s", refusal.job, render(refusal.reason))
        # Of jobs that are no longer pending, nothing is remembered.
        self._refused = {one.job: one.reason.code for one in decision.refusals}
        for rent in decision.rents:
            self._rent(rent, now_ms)
        self._release([one.node for one in decision.releases], fleet, now_ms)

    def _observe(self, fleet: Fleet, now_ms: int) -> None:
        """Forget nodes that are gone, and note which are idle."""
        here = {one.id for one in self._provider.instances()}
        busy = {slot.node for run in list(fleet.running.values()) for slot in run.slots}
        busy |= {slot.node for order in list(fleet.orders.values()) for slot in order.slots}
        unfinished = {*fleet.pending, *fleet.orders, *fleet.running}
        nodes: list[RentedNode] = []
        spent = self.ledger.spent_usd_micros
        for node in self.ledger.nodes:
            if node.id not in here:
                spent += self._cost(node, now_ms)
                continue
            job = node.job if node.job in unfinished else ""
            idle = None if NodeId(node.id) in busy or job else node.idle_since_ms or now_ms
            nodes.append(replace(node, job=job, idle_since_ms=idle))
        known = {node.id for node in nodes}
        # A node that was rented just before a crash: it is not needed, and is given back.
        nodes.extend(
            RentedNode(id=one.id, zone=one.zone, since_ms=now_ms, idle_since_ms=now_ms)
            for one in self._provider.instances()
            if one.id not in known and one.state != "stopping"
        )
        jobs = {node.job for node in nodes}
        committed = {job: cost for job, cost in self.ledger.committed.items() if job in jobs}
        self._keep(
            replace(self.ledger, spent_usd_micros=spent, nodes=tuple(nodes), committed=committed)
        )

    def _job(self, job: Job, fleet: Fleet, now_ms: int) -> BurstJob | None:
        """Return a pending job as the decider sees it; None for one without a time limit.

        Without a reserved start, it is assumed to wait as long again as it has waited.
        """
        if job.limit_ms is None or not job.shape.gpus:
            return None
        reserved = fleet.reservations.get(job.id)
        start_ms = reserved.start_ms if reserved else 2 * now_ms - job.submitted_ms
        where = job.shape.where
        return BurstJob(
            id=job.id,
            gpus=job.shape.gpus,
            accelerators=job.shape.accelerators,
            needs=() if where is None else where.needs,
            submitted_ms=job.submitted_ms,
            run_s=job.limit_ms / SECOND,
            own_end_ms=start_ms + job.limit_ms if _fits_own(job, fleet) else None,
            deadline_ms=job.deadline_ms,
            data_gb=self._burst.data.staged_gb,
            results_gb=self._burst.data.results_gb,
        )

    def _rent(self, rent: RentNodes, now_ms: int) -> None:
        try:
            ids = self._provider.rent(rent.zone, rent.nodes)
        except NoCapacity as error:
            _LOG.warning("burst for job %s: %s", rent.job, error.message)
            failed = {**self.ledger.failed_ms, rent.zone: now_ms}
            self._keep(replace(self.ledger, failed_ms=failed))
            return
        _LOG.info("burst: %s rented in %s for job %s", ", ".join(ids), rent.zone, rent.job)
        nodes = [RentedNode(id=one, zone=rent.zone, since_ms=now_ms, job=rent.job) for one in ids]
        since = now_ms - round(self._burst.policy.window_s * SECOND)
        recent = tuple(at for at in self.ledger.rented_ms if at > since)
        self._keep(
            replace(
                self.ledger,
                nodes=(*self.ledger.nodes, *nodes),
                rented_ms=(*recent, *(now_ms for _ in ids)),
                committed={**self.ledger.committed, rent.job: rent.usd_micros},
            )
        )

    def _release(self, nodes: Sequence[str], fleet: Fleet, now_ms: int) -> None:
        """Cordon idle nodes first; give them back once no job was placed meanwhile."""
        states = fleet.states
        open_nodes = [one for one in nodes if states.get(NodeId(one)) == "up"]
        if open_nodes:
            self._gate.cordon(open_nodes, IDLE)
        leaving = [one for one in nodes if one not in open_nodes]
        if not leaving:
            return
        try:
            self._provider.release(leaving)
        except TenfoldError as error:
            _LOG.warning("could not give %s back: %s", ", ".join(leaving), error.message)
            return
        _LOG.info("burst: %s released", ", ".join(leaving))
        gone = [node for node in self.ledger.nodes if node.id in leaving]
        cost = sum(self._cost(node, now_ms) for node in gone)
        self._keep(
            replace(
                self.ledger,
                spent_usd_micros=self.ledger.spent_usd_micros + cost,
                nodes=tuple(node for node in self.ledger.nodes if node not in gone),
            )
        )

    def _cost(self, node: RentedNode, now_ms: int) -> int:
        """Return what a node has cost so far, rounded up."""
        price = next(
            (zone.usd_micros_per_hour for zone in self._burst.zones if zone.name == node.zone), 0
        )
        return -(-price * max(0, now_ms - node.since_ms) // HOUR)

    def _keep(self, ledger: BurstLedger) -> None:
        if ledger != self.ledger:
            self.ledger = ledger
            write_new_file(self._path, msgspec.json.encode(ledger).decode(), force=True)


def _read(path: Path) -> BurstLedger:
    try:
        return msgspec.json.decode(path.read_bytes(), type=BurstLedger)
    except FileNotFoundError:
        return BurstLedger()


def _fits_own(job: Job, fleet: Fleet) -> bool:
    """Return whether your own nodes could ever run a job."""
    wanted = job.shape.accelerators
    gpus = sum(
        node.gpus
        for node in list(fleet.nodes.values())
        if node.pool != POOL and (not wanted or node.accelerator in wanted)
    )
    return gpus >= job.shape.gpus
