"""Spare nodes: nodes that are down against the spares that replace them.

There are too few spares if more nodes are down than spares for longer than the allowed share of
time. Nodes down are those of `sim failures`, with its bursts and repair times; spares fail like
other nodes.
"""

from collections.abc import Iterable
from math import ceil, inf

from msgspec.structs import replace

from tenfold.model.fault import FaultTrace
from tenfold.model.growth.growth import Axis, grown_by
from tenfold.report.figures import count
from tenfold.study.grow.layer import ComputedLayer, Constraint
from tenfold.study.grow.layers.compute.nodes import mixed_node_usd
from tenfold.study.grow.layers.upkeep.faults import NO_FAILURES, Faults, faults_of, operated
from tenfold.study.grow.relief import NEARLY, Relief, lead_weeks
from tenfold.study.grow.state import State
from tenfold.study.sim.nodes_down import End, SparesRange

RESOURCE = "nodes that stand in"
ENOUGH, TODAY = "spares", "spares-today"
"""Codes of the relief that holds up to the factor requested, and of the one for today."""
NEXT = 1.02
"""How much further a symptom looks for the spare that is missing."""
FAR = 3.0
"""Beyond so many times the spares the rest is not drawn: it is out of reach, by mean demand."""


class Spares(ComputedLayer):
    """Spares needed for the nodes that are down at once, against those available."""

    name = "spares"
    title = "Spare nodes"
    labels = ((RESOURCE, "Spare nodes"),)
    breaks = "nodes down exceed the spares for more than `spare_shortfall_share_most` of the time"
    cause_rank = 41
    grows_with = ("nodes",)
    grows_by = "nodes that fail"
    needs = "`spares` under `[operations]` in the grow file"
    fixed_by = "more spare nodes"
    always_listed = True
    only_if_stated = True
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
        need = SparesNeed(state, axis)
        # Parts of a trace that are drawn again differ in rate, too; a preset's rate is a guess.
        traced = isinstance(state.inputs.failures, FaultTrace)
        wide = 1.0 if traced else 1 + faults.evidence.spread

        def used(needed: float) -> float:
            return needed / spares if spares else inf if needed else 0.0

        def symptom(factor: float) -> str:
            at = need.at(factor)
            if at.needed <= spares < need.at(factor * NEXT).needed:
                # Nodes come whole: what breaks here is the next of them.
                at = need.at(factor * NEXT)
            share = f"{1 - need.share:.1%}".replace(".0%", "%")
            # Spares fail as well, so more may be needed than nodes are down.
            why = " (spares fail too)" if at.needed > at.down else ""
            return (
                f"{at.down_mean:,.1f} nodes down on average, at most {at.down:,} for {share} of "
                f"the time; {count(at.needed, 'spare')} needed{why}, {spares:,} available"
            )

        def relieve(_: Constraint, target: float) -> list[Relief]:
            # A shortage of today is fixed first; how many more growth takes is the next step.
            today = _more_spares(state, spares, need.total(1.0), TODAY)
            return [*today, *_more_spares(state, spares, need.total(target), ENOUGH)]

        return Constraint(
            self,
            RESOURCE,
            lambda factor: used(need.needed(factor, spares)),
            faults.evidence.spread,
            faults.evidence.grade,
            self.cause_rank,
            symptom=symptom,
            relieve=relieve,
            # The rate may be off, and other draws would have ended otherwise.
            bounds=(
                lambda factor: used(need.needed(factor * wide, spares, "high")),
                lambda factor: used(need.needed(factor / wide, spares, "low")),
            ),
        )


class SparesNeed:
    """Spares needed at a factor of the axis, on a fleet that reliefs may have changed."""

    def __init__(self, state: State, axis: Axis) -> None:
        self.state = state
        self.axis: Axis = axis
        self.share = state.grow.limits.spare_shortfall_share_most
        self._grown = state.spec.nodes / max(1, state.inputs.fleet.spec.nodes)

    def at(self, factor: float) -> SparesRange:
        """Return the spares needed at a factor, with their range."""
        return self.state.nodes_down.spares(self._level(factor), self.share)

    def needed(self, factor: float, spares: int, end: End = "needed") -> float:
        """Return the spares needed; far beyond those available in proportion to the nodes."""
        level, far = self._level(factor), max(1.0, FAR * (spares + 1))
        down = self.state.nodes_down
        mean = down.counts.mean * level
        if level > 1 and mean > far:
            # The mean alone is more than the spares: draws could only say by how much.
            return max(float(down.counts.needed(1.0, self.share)) * level, mean)
        return float(down.counts.needed(level, self.share, end))

    def total(self, factor: float) -> int:
        """Return the spares to have, with the share of every capacity that is kept free."""
        usable = 1 - self.state.grow.limits.headroom_least
        return ceil(self.at(factor).needed / usable * NEARLY)

    def _level(self, factor: float) -> float:
        return self._grown * grown_by(self.axis, "nodes", factor)


def _more_spares(state: State, spares: int, required: int, code: str) -> list[Relief]:
    if required <= spares:
        return []
    each, unpriced = mixed_node_usd(state.spec)
    total = f"{required:,} in total" if code == ENOUGH else f"{required:,} in total, needed today"
    text = f"add {count(required - spares, 'spare node')} ({total})"
    usd = None if each is None else each * (required - spares)
    apply = operated(code, lambda old: replace(old, spares=required))
    weeks = lead_weeks(state, "nodes")
    return [Relief(code, text, usd, weeks, apply, unpriced=0 if usd is None else unpriced)]
