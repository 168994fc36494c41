"""Laws of upkeep: nodes that are down against spares, and repairs against those who do them.

How often nodes fail is said by a preset or by a trace of one's own. A fault that a restart
mends takes a node away for a while, but no hands.
"""

from collections.abc import Callable
from math import sqrt
from typing import NamedTuple

from tenfold.model.fault import FaultTrace
from tenfold.model.growth import Axis, grown_by, moves
from tenfold.model.units import DAY, HOUR, SECOND
from tenfold.physics.growth.law import ASSUMED, STATED, SUPPOSED, Evidence, Law, Named
from tenfold.physics.growth.upkeep import down_mean, mean_for
from tenfold.report.figures import count
from tenfold.study.grow.state import State

SPARES = Named("spares", "nodes that stand in", 41)
CREW = Named("operations", "repairs", 42)
CARE = Named("operations", "nodes a person", 43)
NO_FAILURES = "`--failures`: how often nodes fail, a preset or a trace"
NO_SPARES = "`spares` under `[operations]` of the grow file"
NO_CREW = "`crew` and `repairs_per_person_day` under `[operations]` of the grow file"
TRACE_SPREAD_LEAST = 0.05


class Faults(NamedTuple):
    """Faults a day of one node, the part that takes hands, and how long a node is away."""

    per_node_day: float
    hands_share: float
    away_h: float
    evidence: Evidence


def upkeep_laws(state: State, axis: Axis) -> list[Law]:
    """Return the laws of spares, of repairs, and of nodes that a person looks after."""
    if not moves(axis, "nodes"):
        return []
    faults = _faults(state)
    laws = [_spares(state, axis, faults), _repairs(state, axis, faults)]
    care = _care(state, axis)
    return [*laws, care] if care else laws


def _faults(state: State) -> Faults | None:
    source = state.inputs.failures
    if isinstance(source, FaultTrace):
        return _traced(state, source)
    if not source.faults_per_1000_node_days:
        return None
    guessed = "failures_per_1000_node_days" in source.assumed
    return Faults(
        per_node_day=source.faults_per_1000_node_days / 1_000,
        hands_share=1.0 - source.transient_share,
        away_h=source.away_h_mean,
        evidence=ASSUMED if guessed else SUPPOSED,
    )


def _traced(state: State, trace: FaultTrace) -> Faults | None:
    """A trace is of this fleet as it is today; its causes do not tell what took hands."""
    seen, days = len(trace.faults), trace.span_s * SECOND / DAY
    nodes = max(len(trace.nodes), state.inputs.fleet.spec.nodes)
    if not seen or not days:
        return None
    away_s = sum(fault.end_s - fault.start_s for fault in trace.faults) / seen
    spread = max(TRACE_SPREAD_LEAST, 1 / sqrt(seen))
    return Faults(
        per_node_day=seen / days / nodes,
        hands_share=1.0,
        away_h=away_s * SECOND / HOUR,
        evidence=Evidence(STATED.grade, spread),
    )


def _nodes(state: State, axis: Axis) -> Callable[[float], float]:
    return lambda factor: state.spec.nodes * grown_by(axis, "nodes", factor)


def _spares(state: State, axis: Axis, faults: Faults | None) -> Law:
    """Spares are too few where they fall short for a larger share of time than is allowed.

    They stand in until the mean number of nodes down exceeds what so many spares carry.
    """
    spares, most = state.grow.operations.spares, state.grow.limits.spare_shortfall_share_most
    if spares is None or faults is None:
        return SPARES.unknown(NO_SPARES if spares is None else NO_FAILURES)
    nodes, enough = _nodes(state, axis), mean_for(spares, most)

    def down(factor: float) -> float:
        return down_mean(faults.per_node_day * nodes(factor), faults.away_h)

    def seen(factor: float) -> str:
        return (
            f"{down(factor):,.1f} nodes are down on average; "
            f"{count(spares, 'spare')} stand in for {enough:,.1f} but {most:.2g} of the time"
        )

    return SPARES.law(down, enough, faults.evidence, seen)


def _repairs(state: State, axis: Axis, faults: Faults | None) -> Law:
    crew, each = state.grow.operations.crew, state.grow.operations.repairs_per_person_day
    if crew is None or each is None or faults is None:
        return CREW.unknown(NO_FAILURES if crew is not None and each is not None else NO_CREW)
    nodes, most = _nodes(state, axis), crew * each

    def repairs(factor: float) -> float:
        return faults.per_node_day * faults.hands_share * nodes(factor)

    def seen(factor: float) -> str:
        return f"{repairs(factor):,.1f} repairs a day for {crew:g} people who do {most:,.1f}"

    return CREW.law(repairs, most, faults.evidence, seen)


def _care(state: State, axis: Axis) -> Law | None:
    operations = state.grow.operations
    each, crew = operations.nodes_per_person_most, operations.crew
    if each is None or crew is None:
        return None
    nodes, most = _nodes(state, axis), crew * each

    def seen(factor: float) -> str:
        return f"{nodes(factor):,.0f} nodes for {crew:g} people who look after {most:,.0f}"

    return CARE.law(nodes, most, STATED, seen)
