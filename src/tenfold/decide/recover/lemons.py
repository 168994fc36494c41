"""Which nodes keep failing jobs and should be cordoned.

A job that fails wherever it runs is at fault itself, and so is a user whose jobs all fail. A node
is at fault if unrelated jobs fail there, nothing has completed there since, and its pool is fine
otherwise. The result depends only on the record of the fleet and the time, so a restarted
controller decides the same.
"""

from collections.abc import Iterable, Mapping

from msgspec import Struct

from tenfold.fleet.failure_log import KEEPS_FAILING, FailureLog
from tenfold.fleet.view import FleetView
from tenfold.model.errors import InputError
from tenfold.model.ids import NodeId
from tenfold.model.job.failures import LIKELY_NODE_FAULTS, NodeFailure
from tenfold.model.reason import Causes, JobRef, NodeRef, Reason
from tenfold.model.units import HOUR, Millis

NAMED_MOST = 4
"""How many failures a reason lists."""


class CordonThresholds(Struct, frozen=True, kw_only=True):
    """When to cordon a node. The figures are assumptions: no source gives them for all fleets."""

    is_on: bool = True
    causes_least: int = 2
    """How many unrelated failures it takes."""
    window_ms: Millis = Millis(24 * HOUR)
    """For how long a failure counts."""
    times_pool: int = 3
    """How many times the failures of an average node of its pool."""
    share_milli_most: int = 100
    """Thousandths of all nodes that may be cordoned for this at once, but at least one."""


def nodes_to_cordon(
    view: FleetView, failure_log: FailureLog, now_ms: Millis, rule: CordonThresholds
) -> list[tuple[NodeId, Reason]]:
    """Return the nodes to cordon now, the worst first, each with its reason.

    `failure_log` is that of the view, or what it will be once pending events are applied.
    """
    cordons = cordons_left(view, failure_log, rule)
    if cordons <= 0 or not rule.is_on or not failure_log.failures:
        return []
    recent = _recent(failure_log, now_ms, rule)
    charged = _charged(recent)
    found = [
        (node, failures)
        for node, failures in charged.items()
        if _causes(failures) >= rule.causes_least
        and view.states[node] == "up"
        and _stands_out(view, failure_log, node, charged, rule)
    ]
    places = {node: place for place, node in enumerate(view.nodes)}
    found.sort(key=lambda one: (-_causes(one[1]), places[one[0]]))
    return [(node, _reason(node, failures)) for node, failures in found[:cordons]]


def cordons_left(view: FleetView, failure_log: FailureLog, rule: CordonThresholds) -> int:
    """Return how many more nodes may be cordoned."""
    out = sum(view.states.get(node) == "cordoned" for node in failure_log.blamed)
    return max(1, len(view.nodes) * rule.share_milli_most // 1_000) - out


def _recent(
    failure_log: FailureLog, now_ms: Millis, rule: CordonThresholds
) -> dict[NodeId, tuple[NodeFailure, ...]]:
    since_ms = now_ms - rule.window_ms
    return {
        node: tuple(one for one in failures if one.at_ms >= since_ms)
        for node, failures in failure_log.failures.items()
    }


def _charged(
    recent: Mapping[NodeId, tuple[NodeFailure, ...]],
) -> dict[NodeId, tuple[NodeFailure, ...]]:
    """Leave out jobs that failed on other nodes too: they are at fault themselves.

    A job that completed in the end was not: it met more than one bad node.
    """
    nodes_of: dict[str, dict[NodeId, None]] = {}
    for node, failures in recent.items():
        for one in failures:
            nodes_of.setdefault(one.array_or_job, {})[node] = None
    return {
        node: tuple(one for one in failures if one.cleared or len(nodes_of[one.array_or_job]) == 1)
        for node, failures in recent.items()
    }


def _causes(failures: Iterable[NodeFailure]) -> int:
    """Count unrelated failures.

    A command that exits may be wrong, and its owner's next one wrong in the same way: all of those
    count as one. A job that completed elsewhere was not wrong, and neither is one that did not exit
    by itself.
    """
    causes: dict[tuple[str, str], None] = {}
    for one in failures:
        if one.cleared or one.kind in LIKELY_NODE_FAULTS:
            causes["job", one.array_or_job] = None
        elif one.kind != "out-of-memory":
            causes["owner", one.owner] = None
    return len(causes)


def _stands_out(
    view: FleetView,
    failure_log: FailureLog,
    node: NodeId,
    charged: Mapping[NodeId, tuple[NodeFailure, ...]],
    rule: CordonThresholds,
) -> bool:
    """Return whether the rest of the pool is fine: by a success, and by the rate of failures."""
    mine, since_ms = view.nodes[node], min(one.at_ms for one in charged[node])
    others = [
        other.id
        for other in view.nodes.values()
        if other.pool == mine.pool
        and other.site == mine.site
        and other.id != node
        and view.states[other.id] == "up"
    ]
    if not any(failure_log.succeeded.get(other, -1) >= since_ms for other in others):
        return False
    theirs = sum(_causes(charged.get(other, ())) for other in others)
    return _causes(charged[node]) * len(others) >= rule.times_pool * theirs


def _reason(node: NodeId, failures: tuple[NodeFailure, ...]) -> Reason:
    named = failures[-NAMED_MOST:]
    causes = Causes(tuple(map(_attempt, named)))
    fields = {"node": NodeRef(node), "causes": causes, "more": len(failures) - len(named)}
    return Reason(KEEPS_FAILING, fields)


def _attempt(one: NodeFailure) -> Reason:
    fields = {"job": JobRef(one.job_id), "attempt": one.attempt, "how": one.kind}
    return Reason("attempt-failed", fields)


def blame_rule(share: float) -> CordonThresholds:
    """Return the thresholds for `--blame-share`, a share of all nodes; 0 turns cordoning off."""
    if not 0 <= share <= 1:
        raise InputError(
            "wrong-value",
            f"`--blame-share` must be from 0 to 1, got {share:g}",
            "give the share of nodes that may be cordoned at once, or 0 to turn this off",
            field="--blame-share",
        )
    return CordonThresholds(is_on=share > 0, share_milli_most=round(share * 1_000))
