"""Nodes under test: from the wish to join to the facts that follow from the figures.

A test is an attempt like any other, given to the executor under the limits of the node: what
it measures is what a job would get. It holds no devices, and no decider knows of it. Tests run
one at a time, since nodes that share a machine would slow each other. One that a controller
before this one began is ended and done again: half a test says nothing.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tenfold.fleet.view import FleetView
from tenfold.live.executor import (
    AttemptEnded,
    AttemptLost,
    AttemptState,
    Executor,
    Launch,
    Member,
    OrderRefused,
    Sighting,
)
from tenfold.model.acceptance import (
    UNDER_TEST,
    Acceptance,
    NodeTest,
    NodeVerdict,
    Peer,
    after_test,
    best_of,
)
from tenfold.model.events import (
    Event,
    NodeAccepted,
    NodeCordoned,
    NodeJoined,
    NodeReturned,
    NodeTested,
)
from tenfold.model.fleet.node import Node
from tenfold.model.ids import JobId, NodeId, TeamId
from tenfold.model.job.run_spec import RunSpec
from tenfold.model.reason import Causes, NodeRef, Reason, Value
from tenfold.model.units import Millis

PREFIX = "acceptance/"
"""How the attempts of tests are named. No job can be called so: names of jobs have no slash."""
_FIRST = Reason(UNDER_TEST)
_AGAIN = Reason(UNDER_TEST, {"again": "yes"})
ANSWER_BYTES_MOST = 16 * 1024
TRIES_MOST = 3
"""Tests before a node is refused: whatever else runs there can only make it seem slower."""

Judge = Callable[[NodeId, NodeTest, Sequence[Peer]], NodeVerdict]
"""Holds the figures of a node against those of others."""


class Examiner(Struct, frozen=True):
    """How nodes are tested here: what is run on them, and who judges; neither tests none."""

    command: tuple[str, ...] = ()
    judge: Judge | None = None


class Standing(Struct, frozen=True):
    """What the journal knows of a node beyond the fleet."""

    cause: str = ""
    acceptance: Acceptance | None = None


class _Wanted(Struct, frozen=True):
    """A node to be tested."""

    node: Node
    returns: bool
    """Whether it takes work again once it passed."""
    tries: int = 0
    """Tests that it did not pass so far, and the best that each figure was in them."""
    best: NodeTest = NodeTest()


class Trials:
    """Tests that wait or run, and how every node did in its last."""

    def __init__(self, executor: Executor, view: FleetView) -> None:
        self._executor, self._view = executor, view
        self._command: tuple[str, ...] = ()
        self._judge: Judge | None = None
        self._known: dict[NodeId, Acceptance] = {}
        self._waiting: dict[NodeId, _Wanted] = {}
        self._running: dict[JobId, tuple[int, _Wanted | None]] = {}
        """The attempt of each test; None beside one whose outcome nobody waits for."""
        self._over: list[tuple[JobId, int]] = []
        self._number = 0

    def examined_by(self, examiner: Examiner, standings: Mapping[NodeId, Standing]) -> None:
        """Test by these means from now on; a test that was broken off is wanted again."""
        self._command, self._judge = examiner.command, examiner.judge
        for node, standing in standings.items():
            if standing.acceptance is not None:
                self._known[node] = standing.acceptance
            was_tested = standing.cause == UNDER_TEST and self._view.states[node] == "cordoned"
            if was_tested and self._judge is not None:
                self._waiting[node] = _Wanted(self._view.nodes[node], True)

    def adopt(self, states: Iterable[AttemptState]) -> list[AttemptState]:
        """End the tests of an earlier controller; return the attempts that are none."""
        others: list[AttemptState] = []
        for state in states:
            if not is_trial(state.job_id):
                others.append(state)
            elif state.end is not None:
                self._over.append((state.job_id, state.attempt))
            else:
                self._running[state.job_id] = (state.attempt, None)
                self._executor.stop(state.job_id, state.attempt, Millis(0))
        return others

    def refusal(self, node: NodeId) -> Reason | None:
        """Return why a node may take no work; None where its test is no reason."""
        known = self._known.get(node)
        return known.verdict.reason if known is not None and known.is_refused else None

    def hindrance(self, node: NodeId) -> Reason | None:
        """Return why a node cannot simply be taken back into use."""
        if self._is_wanted(node):
            return Reason("node-under-test", {"node": NodeRef(node)})
        reason = self.refusal(node)
        if reason is None:
            return None
        return Reason("node-refused", {"node": NodeRef(node), "cause": Causes((reason,))})

    def join(self, node: Node, now_ms: Millis, *, is_tested: bool) -> list[Event]:
        """Return the facts of a new node; one that is to be tested takes no work before.

        It is in the fleet all the same: a job that only fits there must wait for it, and not be
        turned away.
        """
        facts: list[Event] = [NodeJoined(now_ms, node)]
        if is_tested and self._judge is not None:
            self._waiting[node.id] = _Wanted(node, True)
            facts.append(NodeCordoned(now_ms, node.id, _FIRST))
        return facts

    def test(self, node: NodeId, now_ms: Millis, facts: list[Event]) -> Reason | None:
        """Test a node again, which takes no work meanwhile; return why that cannot be."""
        reason = self.untestable(node)
        if reason is not None:
            return reason
        is_up = self._view.states[node] == "up"
        returns = is_up or self.refusal(node) is not None
        self._waiting[node] = _Wanted(self._view.nodes[node], returns)
        if returns:
            facts.append(NodeCordoned(now_ms, node, _AGAIN))
        return None

    def accept(self, node: NodeId, by: str, now_ms: Millis, facts: list[Event]) -> Reason | None:
        """Take a node in spite of its test; return why there is nothing to be taken."""
        reason = self.unacceptable(node)
        if reason is not None:
            return reason
        known = self._known[node]
        self._known[node] = replace(known, accepted_by=by)
        facts.append(NodeAccepted(now_ms, node, by))
        if self._view.states[node] == "cordoned":
            facts.append(NodeReturned(now_ms, node))
        return None

    def unacceptable(self, node: NodeId) -> Reason | None:
        """Return why there is nothing to be taken in spite of a test."""
        known = self._known.get(node)
        if node not in self._view.nodes:
            return Reason("no-such-node", {"nodes": (NodeRef(node),)})
        if known is None or not known.is_refused:
            return Reason("node-not-refused", {"node": NodeRef(node)})
        if self._is_wanted(node):
            return Reason("node-under-test", {"node": NodeRef(node)})
        return None

    def back(self, node: NodeId, now_ms: Millis) -> list[Event]:
        """Return the facts of a lost node that answers again; a refused one stays refused."""
        reason = self.refusal(node)
        facts: list[Event] = [NodeReturned(now_ms, node)]
        return facts if reason is None else [*facts, NodeCordoned(now_ms, node, reason)]

    def begin(self, now_ms: Millis) -> None:
        """Let the executor forget tests whose ends are recorded, and start the next one."""
        if self._over:
            self._executor.settle(self._over)
            self._over = []
        if self._running or not self._waiting:
            return
        wanted = self._waiting.pop(next(iter(self._waiting)))
        job_id = JobId(f"{PREFIX}{wanted.node.id}")
        # Numbers of attempts must not go back, and nobody counts those of tests.
        self._number = max(now_ms, self._number + 1)
        self._running[job_id] = (self._number, wanted)
        node = wanted.node
        member = Member(node=node.id, cpus_milli=node.cpus_milli, memory_mib=node.memory_mib)
        self._executor.start(
            Launch(
                job_id=job_id,
                attempt=self._number,
                team=TeamId(PREFIX),
                run_spec=RunSpec(name="acceptance", command=self._command),
                members=(member,),
            )
        )

    def sighted(self, seen: Sighting, now_ms: Millis) -> list[Event]:
        """Return what follows from the end of a test; that it began is no fact."""
        if not isinstance(seen, AttemptEnded | AttemptLost | OrderRefused):
            return []
        attempt, wanted = self._running.get(seen.job_id, (0, None))
        if seen.attempt != attempt:
            return []
        del self._running[seen.job_id]
        self._over.append((seen.job_id, attempt))
        if wanted is None or self._judge is None:
            return []
        node = wanted.node
        test = best_of(wanted.best, self._outcome(seen))
        verdict = self._judge(node.id, test, self._peers(node))
        if not verdict.is_accepted and wanted.tries + 1 < TRIES_MOST:
            again = replace(wanted, tries=wanted.tries + 1, best=test)
            self._waiting = {node.id: again, **self._waiting}
            return []
        self._known[node.id] = after_test(self._known.get(node.id), now_ms, test, verdict)
        facts: list[Event] = [NodeTested(now_ms, node.id, test, verdict)]
        is_down = self._view.states[node.id] == "down"
        if not verdict.is_accepted and not is_down:
            facts.append(NodeCordoned(now_ms, node.id, verdict.reason))
        elif verdict.is_accepted and wanted.returns and not is_down:
            facts.append(NodeReturned(now_ms, node.id))
        return facts

    def _outcome(self, seen: AttemptEnded | AttemptLost | OrderRefused) -> NodeTest:
        if isinstance(seen, AttemptEnded) and seen.how == "exited" and seen.exit_code == 0:
            said = self._executor.logs(seen.job_id, seen.attempt, 0, ANSWER_BYTES_MOST).tail
            try:
                return msgspec.json.decode(said.strip().splitlines()[-1], type=NodeTest)
            except (IndexError, msgspec.DecodeError):
                return _without({"garbled": "yes"})
        if isinstance(seen, AttemptEnded):
            if seen.reason is not None:
                return _without({"cause": Causes((seen.reason,))})
            if seen.exit_code is None:
                return _without({"signal": seen.signal or 0})
            return _without({"exit_code": seen.exit_code})
        return _without({"cause": Causes((seen.reason,))})

    def _peers(self, node: Node) -> list[Peer]:
        """Return the figures to be met: of others of its pool, or, alone there, its own."""
        alike = [
            Peer(other.id, known.good)
            for other in self._view.nodes.values()
            if (other.pool, other.accelerator) == (node.pool, node.accelerator)
            and (known := self._known.get(other.id)) is not None
            and known.good
        ]
        others = [peer for peer in alike if peer.node_id != node.id]
        return others or alike

    def untestable(self, node: NodeId) -> Reason | None:
        """Return why a node cannot be tested again now."""
        if node not in self._view.nodes:
            return Reason("no-such-node", {"nodes": (NodeRef(node),)})
        if self._judge is None:
            return Reason("no-acceptance-test")
        if self._view.states[node] == "down":
            return Reason("node-lost", {"node": NodeRef(node)})
        if self._is_wanted(node):
            return Reason("node-under-test", {"node": NodeRef(node)})
        held = [run.slots for run in self._view.running.values()]
        held += [order.slots for order in self._view.orders.values()]
        if any(slot.node == node for slots in held for slot in slots):
            return Reason("node-busy", {"node": NodeRef(node)})
        return None

    def _is_wanted(self, node: NodeId) -> bool:
        running = [wanted.node.id for _, wanted in self._running.values() if wanted is not None]
        return node in self._waiting or node in running


def is_trial(job_id: JobId) -> bool:
    """Tell whether an attempt is that of a test."""
    return job_id.startswith(PREFIX)


def trial_of(sighting: Sighting) -> JobId | None:
    """Return the test that a sighting is of; None where it is of a job, or of none."""
    job_id: JobId | None = getattr(sighting, "job_id", None)
    return job_id if job_id is not None and is_trial(job_id) else None


def _without(why: Mapping[str, Value]) -> NodeTest:
    return NodeTest(unmeasured=(Reason("not-measured", why),))
