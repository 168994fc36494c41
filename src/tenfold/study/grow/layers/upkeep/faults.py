"""Node failures: how often they happen, and which need a technician.

The rate comes from a preset or from your own trace. A fault that a restart clears takes the node
down for a while but needs no technician.
"""

from collections.abc import Callable
from math import sqrt
from typing import NamedTuple

from msgspec.structs import replace

from tenfold.model.fault import FaultTrace
from tenfold.model.growth.growth import Axis, Operations, grown_by
from tenfold.model.units import DAY, SECOND
from tenfold.physics.growth.breaking import ASSUMED, DEFAULTED, STATED, Evidence
from tenfold.study.grow.relief import with_relief
from tenfold.study.grow.state import State

NO_FAILURES = "`--failures`: a failure preset or a trace of your own"
TRACE_SPREAD_LEAST = 0.05


class Faults(NamedTuple):
    """Faults per node and day, and the share that needs a technician."""

    per_node_day: float
    technician_share: float
    evidence: Evidence


def faults_of(state: State) -> Faults | None:
    """Return how often nodes fail; None without a preset or a trace."""
    source = state.inputs.failures
    if isinstance(source, FaultTrace):
        return _traced(state, source)
    if not source.faults_per_1000_node_days:
        return None
    guessed = "failures_per_1000_node_days" in source.assumed
    return Faults(
        per_node_day=source.faults_per_1000_node_days / 1_000,
        technician_share=1.0 - source.transient_share,
        evidence=ASSUMED if guessed else DEFAULTED,
    )


def _traced(state: State, trace: FaultTrace) -> Faults | None:
    """A trace is of today's fleet; it does not say which faults needed a technician."""
    seen, days = len(trace.faults), trace.span_s * SECOND / DAY
    moments = len({fault.start_s for fault in trace.faults})
    nodes = max(len(trace.nodes), state.inputs.fleet.spec.nodes)
    if not seen or not days:
        return None
    # Nodes that fail together are one event, and events are what is left to chance.
    spread = max(TRACE_SPREAD_LEAST, 1 / sqrt(moments))
    return Faults(
        per_node_day=seen / days / nodes,
        technician_share=1.0,
        evidence=Evidence(STATED.grade, spread),
    )


def nodes_at(state: State, axis: Axis) -> Callable[[float], float]:
    """Return the number of nodes at a factor."""
    return lambda factor: state.spec.nodes * grown_by(axis, "nodes", factor)


def operated(relief: str, change: Callable[[Operations], Operations]) -> Callable[[State], State]:
    """Return a relief that changes `[operations]`."""

    def apply(now: State) -> State:
        operations = change(now.grow.operations)
        return replace(with_relief(now, relief), grow=replace(now.grow, operations=operations))

    return apply
