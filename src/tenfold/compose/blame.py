"""Join the rule that blames nodes with the world that is to obey it."""

from collections.abc import Sequence

from tenfold.decide.recover.lemons import CordonThresholds, nodes_to_cordon
from tenfold.fleet.failure_log import FailureLog
from tenfold.fleet.view import FleetView
from tenfold.live.blame import CordonRule
from tenfold.model.errors import InputError
from tenfold.model.ids import NodeId
from tenfold.model.reason import Reason
from tenfold.model.units import Millis


def cordon_rule_of(rule: CordonThresholds) -> CordonRule:
    """Return who judges nodes by this rule."""

    def judge(
        view: FleetView, failure_log: FailureLog, now_ms: Millis
    ) -> Sequence[tuple[NodeId, Reason]]:
        return nodes_to_cordon(view, failure_log, now_ms, rule)

    return judge


def blaming_of(share: float) -> CordonThresholds:
    """Return the rule for a share of all nodes as people write it; 0 blames none."""
    if not 0 <= share <= 1:
        raise InputError(
            "wrong-value",
            f"--blame-share is {share:g}, which is no share of all nodes",
            "give a number from 0 (blame no node) to 1",
            field="--blame-share",
        )
    return CordonThresholds(is_on=share > 0, share_milli_most=round(share * 1_000))
