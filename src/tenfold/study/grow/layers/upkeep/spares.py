"""Spare nodes: nodes that are down against the spares that replace them.

There are too few spares if more nodes are down than spares for longer than the allowed share of
time. So the capacity is the mean number of nodes down that the spares cover.
"""

from collections.abc import Iterable

from msgspec.structs import replace

from tenfold.model.growth.growth import Axis
from tenfold.physics.growth.upkeep import down_mean, mean_covered_by, shortfall_share
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
    title = "Spare nodes"
    labels = ((RESOURCE, "Spare nodes"),)
    breaks = "nodes down exceed the spares for more than `spare_shortfall_share_most` of the time"
    cause_rank = 41
    grows_with = ("nodes",)
    needs = "`spares` under `[operations]` in the grow file"
    fixed_by = "more spare nodes"
    always_listed = True
    shown_when_constant = False

    def constraints(self, state: State, axis: Axis) -> Iterable[Constraint]:
        """Return the constraint on spares."""
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
            mean = down(factor)
            covered = f"{1 - shortfall_share(mean, spares):.1%}".replace(".0%", "%")
            verb = "covers" if spares == 1 else "cover"
            required = f"{1 - most:.1%}".replace(".0%", "%")
            return (
                f"{mean:,.1f} nodes down on average; {count(spares, 'spare')} {verb} them "
                f"{covered} of the time ({required} required)"
            )

        def relieve(multiple: float) -> list[Relief]:
            return [_more_spares(state, spares, enough * multiple * NEARLY)]

        return self.constraint(RESOURCE, down, enough, faults.evidence, symptom, relieve)


def _more_spares(state: State, spares: int, needed: float) -> Relief:
    most = state.grow.limits.spare_shortfall_share_most
    required = spares + 1
    while mean_covered_by(required, most) < needed:
        required += max(1, (required - spares) // 8)
    each = node_usd_per_month(state.spec)
    text = f"add {count(required - spares, 'spare node')} ({required:,} in total)"
    usd = None if each is None else each * (required - spares)
    apply = operated("spares", lambda old: replace(old, spares=required))
    return Relief("spares", text, usd, lead_weeks(state, "nodes"), apply)
