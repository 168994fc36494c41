"""Join the rule of acceptance with the live world, which decides nothing by itself."""

from collections.abc import Sequence

from tenfold.decide.detect.acceptance import AcceptanceRule, check_rule, judge_node
from tenfold.live.acceptance import NodeTester
from tenfold.model.acceptance import NodeTest, NodeVerdict, Peer
from tenfold.model.ids import NodeId

DISK_BAND = AcceptanceRule().disk_band


def rule_of(band: float) -> AcceptanceRule:
    """Return the rule with another band; disks are never held to a narrower one than CPUs."""
    rule = AcceptanceRule(band=band, disk_band=max(band, DISK_BAND))
    check_rule(rule, "--acceptance-band")
    return rule


def node_tester_of(rule: AcceptanceRule, command: tuple[str, ...]) -> NodeTester:
    """Return what tests nodes by running a command there, and judges them by a rule."""

    def judge(node_id: NodeId, test: NodeTest, peers: Sequence[Peer]) -> NodeVerdict:
        return judge_node(node_id, test, peers, rule)

    return NodeTester(command, judge)
