"""Whether a new node performs like the nodes of its pool.

A job that spans nodes runs at the speed of the slowest, so one slow node costs the whole gang.
Each figure is compared with the median of the pool, which a few odd nodes do not move. A figure
far below it fails the node; one far above it is accepted and noted, since then the pool or its
record is odd.
"""

from collections.abc import Sequence

from msgspec import Struct

from tenfold.decide.detect.ranks import median, noise
from tenfold.model.acceptance import (
    FAILED,
    REFUSED,
    Basis,
    Figure,
    FigureComparison,
    FigureVerdict,
    NodeTest,
    NodeVerdict,
    Peer,
)
from tenfold.model.errors import InputError
from tenfold.model.ids import NodeId
from tenfold.model.reason import Causes, Reason, Value

DISK = "disk-"
"""Prefix of the names of disk figures."""
SPREADS = 3.0
"""Allowed deviation in multiples of the pool's noise: 999 in 1,000 normal values are within."""
ALLOWED_MOST = 0.9
"""However noisy a pool is, a tenth of its speed never passes."""


class AcceptanceRule(Struct, frozen=True, kw_only=True):
    """How far below its pool a node may be. All three are assumptions, not facts."""

    band: float = 0.2
    """For compute and memory: several times what equal nodes differ by."""
    disk_band: float = 0.5
    """For disks, whose figures vary far more from one minute to the next."""
    spreads: float = SPREADS
    """A noisy pool widens its band: to this many times its noise."""


def check_rule(rule: AcceptanceRule, field: str) -> None:
    """Raise if a band is not a share of the median."""
    if not (0 < rule.band < 1 and 0 < rule.disk_band < 1):
        raise InputError(
            "bad-number",
            f"the band must be between 0 and 1, got {rule.band:g}",
            "0.2 rejects nodes that are more than 20% slower",
            field=field,
        )


def acceptance_rule(band: float) -> AcceptanceRule:
    """Return the rule with another band; the disk band is never narrower than that."""
    rule = AcceptanceRule(band=band, disk_band=max(band, AcceptanceRule().disk_band))
    check_rule(rule, "--acceptance-band")
    return rule


def judge_node(
    node_id: NodeId, test: NodeTest, peers: Sequence[Peer], rule: AcceptanceRule
) -> NodeVerdict:
    """Return whether a node is accepted; `peers` are its pool, or its own earlier tests."""
    if not test.figures:
        reason = Reason(FAILED, {"cause": Causes(test.unmeasured[:1])} if test.unmeasured else {})
        return NodeVerdict(is_accepted=False, basis="none", nodes=0, reason=reason)
    if not peers:
        reason = Reason("accepted")
        return NodeVerdict(is_accepted=True, basis="first", nodes=0, reason=reason)
    is_itself = all(peer.node_id == node_id for peer in peers)
    basis: Basis = "itself" if is_itself else "pool"
    against: dict[str, Value] = {"basis": basis}
    if not is_itself:
        against["peers"] = len(peers)
    compared = tuple(_compare(test.figures, peers, rule))
    bad = [one for one in compared if one.judged in ("slow", "missing")]
    fast = [one for one in compared if one.judged == "fast"]
    if bad:
        reason = Reason(REFUSED, {**against, "causes": Causes(tuple(map(_figure, bad)))})
    else:
        reason = Reason("accepted", against)
    return NodeVerdict(
        is_accepted=not bad,
        basis=basis,
        nodes=len(peers),
        compared=compared,
        reason=reason,
        notes=tuple(map(_figure, fast)),
    )


def _compare(
    figures: Sequence[Figure], peers: Sequence[Peer], rule: AcceptanceRule
) -> list[FigureComparison]:
    """Return every figure of the node or its pool, the node's first."""
    own = {figure.name: figure for figure in figures}
    pool: dict[str, list[Figure]] = {}
    for peer in peers:
        for figure in peer.figures:
            pool.setdefault(figure.name, []).append(figure)
    return [_one(own.get(name), pool.get(name, []), rule) for name in dict.fromkeys((*own, *pool))]


def _one(figure: Figure | None, pool: Sequence[Figure], rule: AcceptanceRule) -> FigureComparison:
    named = figure or pool[0]
    values = [one.value for one in pool]
    middle = median(values) if values else 0.0
    allowed = _allowed(named.name, values, middle, rule)
    value = 0.0 if figure is None else figure.value
    deviation = value / middle - 1 if middle > 0 else 0.0
    judged: FigureVerdict = "alike"
    if figure is None:
        judged = "missing"
    elif middle > 0 and value < middle * (1 - allowed):
        judged = "slow"
    elif middle > 0 and value * (1 - allowed) > middle:
        judged = "fast"
    return FigureComparison(
        name=named.name,
        unit=named.unit,
        value=value,
        median=middle,
        deviation=round(deviation, 4),
        allowed=round(allowed, 4),
        judged=judged,
    )


def _allowed(name: str, values: Sequence[float], middle: float, rule: AcceptanceRule) -> float:
    band = rule.disk_band if name.startswith(DISK) else rule.band
    if middle <= 0:
        return band
    own = rule.spreads * noise(values) / middle
    return max(band, min(ALLOWED_MOST, own))


def _figure(one: FigureComparison) -> Reason:
    fields: dict[str, Value] = {"figure": one.name, "unit": one.unit, "median": one.median}
    if one.judged == "missing":
        return Reason("figure-missing", fields)
    fields["value"], fields["by"], fields["allowed"] = one.value, -one.deviation, one.allowed
    return Reason(f"figure-{one.judged}", fields)
