"""Nodes under test in the live world: what is run, what follows, and what a restart finds."""

from collections.abc import Sequence

import msgspec

from tenfold.compose.node_rules import node_tester_of
from tenfold.decide.detect.acceptance import acceptance_rule
from tenfold.fleet.fleet import Fleet
from tenfold.live.acceptance import PREFIX, NodeRecord
from tenfold.live.executor import (
    LOG_TAIL_BYTES,
    AttemptEnded,
    AttemptLost,
    AttemptState,
    Launch,
    Member,
    MemberLog,
    NodeReachable,
    NodeUnreachable,
    Observation,
    OrderRefused,
    ShellRequest,
)
from tenfold.live.inbox import (
    AcceptNode,
    Answer,
    Inbox,
    JoinNodes,
    Request,
    RetestNode,
    SetNodeState,
)
from tenfold.live.job_registry import JobRegistry
from tenfold.live.world import LiveWorld
from tenfold.model.acceptance import Acceptance, Figure, NodeTest, after_test
from tenfold.model.events import (
    Event,
    NodeAccepted,
    NodeCordoned,
    NodeJoined,
    NodeLost,
    NodeReturned,
    NodeTested,
)
from tenfold.model.ids import JobId, NodeId
from tenfold.model.reason import Reason
from tenfold.model.units import Millis
from tenfold.report.reasons.render import render
from tenfold.testing.builders import nodes

A, B, C = nodes(3)
EXAMINER = node_tester_of(acceptance_rule(0.2), ("measure",))
Facts = list[Event]


class Scripted:
    """An executor whose tests give the figures that were set for a node; None gives none."""

    def __init__(self, **figures: float | None) -> None:
        self.figures = figures
        self.launches: list[Launch] = []
        self.stopped: list[tuple[JobId, int]] = []
        self.settled: list[tuple[JobId, int]] = []
        self.found: list[AttemptState] = []
        self.seen: list[Observation] = []

    def fileno(self) -> int:
        return -1

    def start(self, launch: Launch) -> None:
        self.launches.append(launch)
        failed = self.figures.get(launch.members[0].node, 100.0) is None
        self.seen.append(
            AttemptEnded(
                at_ms=Millis(0),
                job_id=launch.job_id,
                attempt=launch.attempt,
                exit_code=3 if failed else 0,
            )
        )

    def stop(self, job_id: JobId, attempt: int, grace_ms: Millis) -> None:
        self.stopped.append((job_id, attempt))

    def observations(self) -> list[Observation]:
        seen, self.seen = self.seen, []
        return seen

    def attempts(self) -> list[AttemptState]:
        return self.found

    def settle(self, attempts: Sequence[tuple[JobId, int]]) -> None:
        self.settled += attempts

    def logs(
        self, job_id: JobId, attempt: int, member: int, bytes_most: int = LOG_TAIL_BYTES
    ) -> MemberLog:
        value = self.figures.get(job_id.removeprefix(PREFIX), 100.0)
        test = NodeTest(figures=(Figure("core-float", value or 0.0, "GFLOP/s"),))
        said = b"a warning\n" + msgspec.json.encode(test) + b"\n"
        return MemberLog(tail=said, paths=(), bytes_kept=len(said))

    def open_shell(self, job_id: JobId, attempt: int, request: ShellRequest) -> Reason:
        return Reason("shell-unsupported")

    def close(self) -> None:
        pass


class Ticks:
    """Time that passes by a millisecond whenever it is read."""

    def __init__(self) -> None:
        self.ms = 0

    def now_ms(self) -> Millis:
        self.ms += 1
        return Millis(self.ms)

    def wait(self, descriptors: Sequence[int], timeout_ms: int | None) -> None:
        assert timeout_ms is not None, "nothing would ever happen"


class Rig:
    """A live world without processes; what it tells is applied at once."""

    def __init__(self, executor: Scripted, fleet: Fleet | None = None) -> None:
        self.executor, self.fleet, self.inbox = executor, fleet or Fleet(), Inbox()
        self.clock = Ticks()
        self.world = LiveWorld(
            executor=executor,
            inbox=self.inbox,
            clock=self.clock,
            view=self.fleet,
            registry=JobRegistry(),
            saved_at=lambda job, run_spec: None,
        )
        self.facts: Facts = []

    def know(self, **standings: NodeRecord) -> "Rig":
        self.world.test_nodes_with(EXAMINER, {NodeId(name): one for name, one in standings.items()})
        return self

    def ask(self, request: Request) -> Answer | None:
        """Hand in a request, and go on until nothing more happens."""
        told: list[Answer] = []
        self.inbox.put(request, told.append)
        self.go_on()
        return told[0] if told else None

    def go_on(self) -> Facts:
        """Let everything happen; return the facts of this while."""
        before, quiet = len(self.facts), 0
        while quiet < 2:
            turn = self.world.wait(Millis(self.clock.ms + 3))
            assert turn is not None
            self.fleet.apply_all(turn[1])
            self.facts += turn[1]
            self.world.recorded()
            quiet = 0 if turn[1] or self.executor.seen else quiet + 1
        return self.facts[before:]


def kinds(facts: Facts) -> list[type[Event]]:
    return [type(fact) for fact in facts]


def joined(**figures: float | None) -> Rig:
    rig = Rig(Scripted(**figures)).know()
    rig.ask(JoinNodes((A, B, C), is_tested=True))
    return rig


def standing(rig: Rig, node: NodeId) -> Acceptance:
    found: Acceptance | None = None
    for fact in rig.facts:
        if isinstance(fact, NodeTested) and fact.node_id == node:
            found = after_test(found, fact.at_ms, fact.test, fact.verdict)
    assert found is not None
    return found


def test_nodes_join_without_taking_work_and_are_tested_one_after_the_other():
    rig = joined()
    assert kinds(rig.facts[:6]) == [NodeJoined, NodeCordoned] * 3
    assert kinds(rig.facts[6:]) == [NodeTested, NodeReturned] * 3
    assert list(rig.fleet.states.values()) == ["up"] * 3
    assert [launch.members[0].node for launch in rig.executor.launches] == [A.id, B.id, C.id]
    assert len(rig.executor.settled) == 3


def test_a_test_runs_under_the_limits_of_its_node():
    rig = joined()
    launch = rig.executor.launches[0]
    assert launch.run_spec.command == ("measure",)
    assert launch.members == (Member(node=A.id, cpus_milli=A.cpus_milli, memory_mib=A.memory_mib),)


def test_a_slow_node_takes_no_work_with_the_reason_after_three_tests():
    rig = joined(n1=60.0)
    passes, fails = [NodeTested, NodeReturned], [NodeTested, NodeCordoned]
    assert kinds(rig.facts[6:]) == [*passes, *fails, *passes]
    assert rig.fleet.states[B.id] == "cordoned"
    (cordon,) = [fact for fact in rig.facts[6:] if isinstance(fact, NodeCordoned)]
    assert isinstance(cordon.cause, Reason)
    assert "core-float 60 GFLOP/s, median 100" in render(cordon.cause)
    assert [launch.members[0].node for launch in rig.executor.launches].count(B.id) == 3
    numbers = [launch.attempt for launch in rig.executor.launches]
    assert numbers == sorted(set(numbers))


def test_figures_of_a_refused_node_do_not_count_for_its_pool():
    rig = joined(n1=60.0, n2=70.0)
    last = [fact for fact in rig.facts if isinstance(fact, NodeTested)][-1]
    assert (last.node_id, last.verdict.nodes, last.verdict.is_accepted) == (C.id, 1, False)


def test_a_test_that_fails_refuses_the_node():
    rig = joined(n1=None)
    tests = {fact.node_id: fact for fact in rig.facts if isinstance(fact, NodeTested)}
    assert tests[B.id].verdict.reason.code == "acceptance-failed"
    assert "exit code 3" in render(tests[B.id].verdict.reason)
    assert rig.fleet.states[B.id] == "cordoned"


def test_an_order_that_the_executor_refuses_or_loses_is_a_test_without_figures():
    for made in (OrderRefused, AttemptLost):
        rig = Rig(Scripted()).know()
        rig.executor.start = lambda launch, made=made, rig=rig: rig.executor.seen.append(  # type: ignore[method-assign]
            made(Millis(0), launch.job_id, launch.attempt, Reason("gone", sentence="it is gone"))
        )
        rig.ask(JoinNodes((A,), is_tested=True))
        assert kinds(rig.facts) == [NodeJoined, NodeCordoned, NodeTested, NodeCordoned]


def test_nodes_that_need_no_test_join_at_once():
    rig = Rig(Scripted()).know()
    rig.ask(JoinNodes((A, B)))
    assert kinds(rig.facts) == [NodeJoined, NodeJoined]
    without = Rig(Scripted())
    without.ask(JoinNodes((A,), is_tested=True))
    assert kinds(without.facts) == [NodeJoined]


def test_a_refused_node_is_not_simply_taken_back_but_accepted_by_somebody():
    rig = joined(n1=60.0)
    back = rig.ask(SetNodeState(B.id, "up"))
    assert back is not None
    assert back.refused is not None
    assert back.refused.code == "node-refused"
    assert rig.ask(AcceptNode(B.id, "olga")) == Answer()
    assert rig.facts[-2:] == [
        NodeAccepted(rig.facts[-1].at_ms, B.id, "olga"),
        NodeReturned(rig.facts[-1].at_ms, B.id),
    ]
    again = rig.ask(AcceptNode(B.id, "olga"))
    assert again is not None
    assert again.refused is not None
    assert again.refused.code == "node-not-refused"


def test_a_refused_node_that_was_lost_comes_back_refused():
    rig = joined(n1=60.0)
    rig.executor.seen = [NodeUnreachable(Millis(1), B.id), NodeUnreachable(Millis(1), A.id)]
    assert kinds(rig.go_on()) == [NodeLost, NodeLost]
    rig.executor.seen = [NodeReachable(Millis(1), B.id), NodeReachable(Millis(1), A.id)]
    assert kinds(rig.go_on()) == [NodeReturned, NodeCordoned, NodeReturned]
    assert (rig.fleet.states[B.id], rig.fleet.states[A.id]) == ("cordoned", "up")


def test_a_node_takes_no_work_while_it_is_tested_again_and_returns_when_it_passed():
    rig = joined()
    before = len(rig.facts)
    rig.ask(RetestNode(B.id))
    cordon, test, back = rig.facts[before:]
    assert isinstance(cordon, NodeCordoned)
    assert isinstance(cordon.cause, Reason)
    assert cordon.cause.code == "under-test"
    assert isinstance(test, NodeTested)
    assert test.verdict.nodes == 2
    assert isinstance(back, NodeReturned)


def test_a_node_that_a_person_cordoned_stays_so_after_a_test_it_passed():
    rig = joined()
    rig.ask(SetNodeState(B.id, "cordoned"))
    rig.ask(RetestNode(B.id))
    assert kinds(rig.facts)[-1] is NodeTested
    assert rig.fleet.states[B.id] == "cordoned"


def test_a_mended_node_passes_its_next_test_and_takes_work():
    rig = joined(n1=60.0)
    rig.executor.figures["n1"] = 99.0
    rig.ask(RetestNode(B.id))
    assert rig.fleet.states[B.id] == "up"


def test_what_cannot_be_tested_is_refused_with_the_reason():
    rig = joined()
    rig.ask(SetNodeState(C.id, "down", "gone"))
    for node, code in ((NodeId("n9"), "no-such-node"), (C.id, "node-lost")):
        answer = rig.ask(RetestNode(node))
        assert answer is not None
        assert answer.refused is not None
        assert answer.refused.code == code


def test_a_controller_that_comes_back_knows_who_was_refused():
    rig = joined(n1=60.0)
    known = {str(node.id): NodeRecord(acceptance=standing(rig, node.id)) for node in (A, B, C)}
    back = Rig(Scripted(), rig.fleet).know(**known)
    back.ask(JoinNodes((A, B, C), is_tested=True))
    assert back.facts == []
    answer = back.ask(SetNodeState(B.id, "up"))
    assert answer is not None
    assert answer.refused is not None
    back.ask(RetestNode(C.id))
    test = back.facts[1]
    assert isinstance(test, NodeTested)
    assert test.verdict.nodes == 1


def test_a_test_that_was_cut_off_is_ended_and_done_again():
    rig = joined()
    cause = Reason("under-test", sentence="it is being measured")
    rig.fleet.apply(NodeCordoned(Millis(9), B.id, cause))
    executor, left = Scripted(), JobId(f"{PREFIX}n1")
    executor.found = [
        AttemptState(job_id=left, attempt=7, phase="running", members=(), ordered_ms=Millis(1))
    ]
    back = Rig(executor, rig.fleet)
    back.know(n1=NodeRecord("under-test", standing(rig, B.id)))
    assert executor.stopped == [(left, 7)]
    assert back.go_on() == []
    assert executor.launches == []
    executor.seen = [AttemptEnded(at_ms=Millis(0), job_id=left, attempt=7, how="stopped")]
    assert kinds(back.go_on()) == [NodeTested, NodeReturned]
    assert back.fleet.states[B.id] == "up"
