"""Acceptance tests of nodes: from a join request to the events that follow from the result.

A test is an attempt like any other, run by the executor under the limits of the node, so it
measures what a job would get. It holds no devices, and no decider knows of it. Tests run one at a
time, since nodes on one machine would slow each other down. A test started by an earlier control
plane is stopped and repeated.
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
    Observation,
    OrderRefused,
)
from tenfold.model.acceptance import (
    UNDER_TEST,
    Acceptance,
    NodeTest,
    NodeVerdict,
    Peer,
    after_test,
    best_results,
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
"""Prefix of test attempts. Job names have no slash, so no job can have it."""
_FIRST = Reason(UNDER_TEST)
_AGAIN = Reason(UNDER_TEST, {"again": "yes"})
ANSWER_BYTES_MOST = 16 * 1024
TRIES_MOST = 3
"""Tests before a node is rejected: other load can only make it seem slower."""

Judge = Callable[[NodeId, NodeTest, Sequence[Peer]], NodeVerdict]
"""Compares the figures of a node with those of its peers."""


class NodeTester(Struct, frozen=True):
    """How nodes are tested: the command to run and the judge; without them, no tests."""

    command: tuple[str, ...] = ()
    judge: Judge | None = None


class NodeRecord(Struct, frozen=True):
    """What the journal has of a node beyond the fleet."""

    cause: str = ""
    acceptance: Acceptance | None = None
    fields: Mapping[str, Value] = {}
    """Fields of the cause."""
    has_left: bool = False


class _QueuedTest(Struct, frozen=True):
    """A node waiting for its test."""

    node: Node
    returns: bool
    """Whether it is uncordoned once it passes."""
    tries: int = 0
    """Failed tests so far; `best` has the best of each figure in them."""
    best: NodeTest = NodeTest()


class NodeTests:
    """Queued and running tests, and the last result of every node."""

    def __init__(self, executor: Executor, view: FleetView) -> None:
        self._executor, self._view = executor, view
        self._command: tuple[str, ...] = ()
        self._judge: Judge | None = None
        self._results: dict[NodeId, Acceptance] = {}
        self._waiting: dict[NodeId, _QueuedTest] = {}
        self._running: dict[JobId, tuple[int, _QueuedTest | None]] = {}
        """The attempt of each test; None for one whose outcome is ignored."""
        self._finished: list[tuple[JobId, int]] = []
        self._number = 0

    def test_nodes_with(
        self, node_tester: NodeTester, records: Mapping[NodeId, NodeRecord]
    ) -> None:
        """Set how nodes are tested; an interrupted test is queued again."""
        self._command, self._judge = node_tester.command, node_tester.judge
        for node, record in records.items():
            if record.has_left:
                continue
            if record.acceptance is not None:
                self._results[node] = record.acceptance
            was_tested = record.cause == UNDER_TEST and self._view.states[node] == "cordoned"
            if was_tested and self._judge is not None:
                self._waiting[node] = _QueuedTest(self._view.nodes[node], True)

    def adopt(self, states: Iterable[AttemptState]) -> list[AttemptState]:
        """Stop the tests of an earlier control plane; return the other attempts."""
        others: list[AttemptState] = []
        for state in states:
            if not is_node_test(state.job_id):
                others.append(state)
            elif state.end is not None:
                self._finished.append((state.job_id, state.attempt))
            else:
                self._running[state.job_id] = (state.attempt, None)
                self._executor.stop(state.job_id, state.attempt, Millis(0))
        return others

    def refusal(self, node: NodeId) -> Reason | None:
        """Return why a node failed its test; None if it did not."""
        known = self._results.get(node)
        return known.verdict.reason if known is not None and known.is_refused else None

    def why_not_return(self, node: NodeId) -> Reason | None:
        """Return why a node cannot be uncordoned."""
        if self._is_wanted(node):
            return Reason("node-under-test", {"node": NodeRef(node)})
        reason = self.refusal(node)
        if reason is None:
            return None
        return Reason("node-refused", {"node": NodeRef(node), "cause": Causes((reason,))})

    def is_tested_now(self, node: NodeId) -> bool:
        """Return whether a test of a node runs, or waits."""
        return self._is_wanted(node)

    def left(self, node: NodeId) -> None:
        """Forget a node that left."""
        self._results.pop(node, None)
        self._waiting.pop(node, None)

    def join(self, node: Node, now_ms: Millis, *, is_tested: bool) -> list[Event]:
        """Return the events of a new node; it is cordoned until it passes its test.

        It is part of the fleet meanwhile: a job that only fits there must wait for it rather than
        be rejected.
        """
        events: list[Event] = [NodeJoined(now_ms, node)]
        if is_tested and self._judge is not None:
            self._waiting[node.id] = _QueuedTest(node, True)
            events.append(NodeCordoned(now_ms, node.id, _FIRST))
        return events

    def test(self, node: NodeId, now_ms: Millis, events: list[Event]) -> Reason | None:
        """Queue another test of a node, which is cordoned meanwhile; return why not, if so."""
        reason = self.why_not_test(node)
        if reason is not None:
            return reason
        is_up = self._view.states[node] == "up"
        returns = is_up or self.refusal(node) is not None
        self._waiting[node] = _QueuedTest(self._view.nodes[node], returns)
        if returns:
            events.append(NodeCordoned(now_ms, node, _AGAIN))
        return None

    def accept(self, node: NodeId, by: str, now_ms: Millis, events: list[Event]) -> Reason | None:
        """Accept a node despite its test; return why that is impossible."""
        reason = self.why_not_accept(node)
        if reason is not None:
            return reason
        known = self._results[node]
        self._results[node] = replace(known, accepted_by=by)
        events.append(NodeAccepted(now_ms, node, by))
        if self._view.states[node] == "cordoned":
            events.append(NodeReturned(now_ms, node))
        return None

    def why_not_accept(self, node: NodeId) -> Reason | None:
        """Return why a node cannot be accepted."""
        known = self._results.get(node)
        if node not in self._view.nodes:
            return Reason("no-such-node", {"nodes": (NodeRef(node),)})
        if known is None or not known.is_refused:
            return Reason("node-not-refused", {"node": NodeRef(node)})
        if self._is_wanted(node):
            return Reason("node-under-test", {"node": NodeRef(node)})
        return None

    def returned(self, node: NodeId, now_ms: Millis) -> list[Event]:
        """Return the events of a lost node that responds again; a rejected one stays cordoned."""
        reason = self.refusal(node)
        events: list[Event] = [NodeReturned(now_ms, node)]
        return events if reason is None else [*events, NodeCordoned(now_ms, node, reason)]

    def begin(self, now_ms: Millis) -> None:
        """Settle tests whose ends are recorded, and start the next test."""
        if self._finished:
            self._executor.settle(self._finished)
            self._finished = []
        if self._running or not self._waiting:
            return
        queued = self._waiting.pop(next(iter(self._waiting)))
        job_id = JobId(f"{PREFIX}{queued.node.id}")
        # Attempt numbers must not go back, and those of tests are not counted.
        self._number = max(now_ms, self._number + 1)
        self._running[job_id] = (self._number, queued)
        node = queued.node
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

    def observe(self, observed: Observation, now_ms: Millis) -> list[Event]:
        """Return the events that follow from the end of a test; its start is not an event."""
        if not isinstance(observed, AttemptEnded | AttemptLost | OrderRefused):
            return []
        attempt, queued = self._running.get(observed.job_id, (0, None))
        if observed.attempt != attempt:
            return []
        del self._running[observed.job_id]
        self._finished.append((observed.job_id, attempt))
        if queued is None or self._judge is None:
            return []
        node = queued.node
        test = best_results(queued.best, self._outcome(observed))
        verdict = self._judge(node.id, test, self._peers(node))
        if not verdict.is_accepted and queued.tries + 1 < TRIES_MOST:
            again = replace(queued, tries=queued.tries + 1, best=test)
            self._waiting = {node.id: again, **self._waiting}
            return []
        self._results[node.id] = after_test(self._results.get(node.id), now_ms, test, verdict)
        events: list[Event] = [NodeTested(now_ms, node.id, test, verdict)]
        is_down = self._view.states[node.id] == "down"
        if not verdict.is_accepted and not is_down:
            events.append(NodeCordoned(now_ms, node.id, verdict.reason))
        elif verdict.is_accepted and queued.returns and not is_down:
            events.append(NodeReturned(now_ms, node.id))
        return events

    def _outcome(self, observed: AttemptEnded | AttemptLost | OrderRefused) -> NodeTest:
        if (
            isinstance(observed, AttemptEnded)
            and observed.how == "exited"
            and observed.exit_code == 0
        ):
            said = self._executor.logs(observed.job_id, observed.attempt, 0, ANSWER_BYTES_MOST).tail
            try:
                return msgspec.json.decode(said.strip().splitlines()[-1], type=NodeTest)
            except (IndexError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                return _without({"garbled": "yes"})
        if isinstance(observed, AttemptEnded):
            if observed.reason is not None:
                return _without({"cause": Causes((observed.reason,))})
            if observed.exit_code is None:
                return _without({"signal": observed.signal or 0})
            return _without({"exit_code": observed.exit_code})
        return _without({"cause": Causes((observed.reason,))})

    def _peers(self, node: Node) -> list[Peer]:
        """Return the baseline: other nodes of its pool, or its own figures if it is alone."""
        alike = [
            Peer(other.id, known.good)
            for other in self._view.nodes.values()
            if (other.pool, other.accelerator) == (node.pool, node.accelerator)
            and (known := self._results.get(other.id)) is not None
            and known.good
        ]
        others = [peer for peer in alike if peer.node_id != node.id]
        return others or alike

    def why_not_test(self, node: NodeId) -> Reason | None:
        """Return why a node cannot be tested now."""
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
        running = [queued.node.id for _, queued in self._running.values() if queued is not None]
        return node in self._waiting or node in running


def is_node_test(job_id: JobId) -> bool:
    """Return whether an attempt is a node test."""
    return job_id.startswith(PREFIX)


def node_test_of(observation: Observation) -> JobId | None:
    """Return the test that an observation is about; None if it is about a job or a node."""
    job_id: JobId | None = getattr(observation, "job_id", None)
    return job_id if job_id is not None and is_node_test(job_id) else None


def _without(why: Mapping[str, Value]) -> NodeTest:
    return NodeTest(unmeasured=(Reason("not-measured", why),))
