"""Spares: nodes that are down against those that stand in for them.

Spares are too few where they fall short for a larger share of time than is allowed. They stand in
until the mean number of nodes down exceeds what so many spares carry.
"""

from collections.abc import Iterable

from msgspec.structs import replace

from tenfold.model.growth.growth import Axis
from tenfold.physics.growth.upkeep import down_mean, mean_covered_by
from tenfold.report.figures import count
from tenfold.study.grow.layer import ComputedLayer, Constraint
from tenfold.study.grow.layers.compute.nodes import node_usd_per_month
from tenfold.study.grow.layers.upkeep.faults import (
    NO_FAILURES,
    Faults,
    faults_of,
    nodes_at,
    operated,
)
from tenfold.study.grow.relief import NEARLY, Relief, lead_weeks
from tenfold.study.grow.state import State

RESOURCE = "nodes that stand in"


class Spares(ComputedLayer):
    """Nodes down on average against what the spares cover."""

    name = "spares"
    breaks = "more nodes are down than spares for over `spare_shortfall_share_most` of the time"
    cause_rank = 41
    grows_with = ("nodes",)
    needs = "`spares` under `[operations]` of the grow file"
    fixed_by = "spare nodes"
    always_listed = True
    shown_when_constant = False

    def constraints(self, state: State, axis: Axis) -> Iterable[Constraint]:
        """Return the law of spares."""
        spares, faults = state.grow.operations.spares, faults_of(state)
        if spares is None:
            return [self.unknown(RESOURCE)]
        if faults is None:
            return [self.unknown(RESOURCE, NO_FAILURES)]
        return [self._constraint(state, axis, spares, faults)]

    def _constraint(self, state: State, axis: Axis, spares: int, faults: Faults) -> Constraint:
        most = state.grow.limits.spare_shortfall_share_most
        nodes, enough = nodes_at(state, axis), mean_covered_by(spares, most)

        def down(factor: float) -> float:
            return down_mean(faults.per_node_day * nodes(factor), faults.down_h)

        def symptom(factor: float) -> str:
            return (
                f"{down(factor):,.1f} nodes are down on average; "
                f"{count(spares, 'spare')} stand in for {enough:,.1f} but {most:.2g} of the time"
            )

        def relieve(multiple: float) -> list[Relief]:
            return [_more_spares(state, spares, enough * multiple * NEARLY)]

        return self.constraint(RESOURCE, down, enough, faults.evidence, symptom, relieve)


def _more_spares(state: State, spares: int, needed: float) -> Relief:
    most = state.grow.limits.spare_shortfall_share_most
    wanted = spares + 1
    while mean_covered_by(wanted, most) < needed:
        wanted += max(1, (wanted - spares) // 8)
    each = node_usd_per_month(state.spec)
    text = f"{count(wanted - spares, 'spare node')} more, {spares:,} today"
    usd = None if each is None else each * (wanted - spares)
    apply = operated("spares", lambda old: replace(old, spares=wanted))
    return Relief("spares", text, usd, lead_weeks(state, "nodes"), apply)
