"""Pass the rules on nodes (acceptance test, blame for failures) to the live world."""

from collections.abc import Sequence

from tenfold.decide.detect.acceptance import AcceptanceRule, judge_node
from tenfold.decide.recover.lemons import CordonThresholds, nodes_to_cordon
from tenfold.fleet.failure_log import FailureLog
from tenfold.fleet.view import FleetView
from tenfold.live.acceptance import NodeTester
from tenfold.live.blame import CordonRule
from tenfold.model.acceptance import NodeTest, NodeVerdict, Peer
from tenfold.model.ids import NodeId
from tenfold.model.reason import Reason
from tenfold.model.units import Millis


def node_tester_of(rule: AcceptanceRule, command: tuple[str, ...]) -> NodeTester:
    """Return a tester that runs a command on a node and judges its output by a rule."""

    def judge(node_id: NodeId, test: NodeTest, peers: Sequence[Peer]) -> NodeVerdict:
        return judge_node(node_id, test, peers, rule)

    return NodeTester(command, judge)


def cordon_rule_of(rule: CordonThresholds) -> CordonRule:
    """Return the function that finds nodes to cordon by a rule."""

    def judge(
        view: FleetView, failure_log: FailureLog, now_ms: Millis
    ) -> Sequence[tuple[NodeId, Reason]]:
        return nodes_to_cordon(view, failure_log, now_ms, rule)

    return judge
