"""Replay a recorded fault trace on the nodes of a fleet.

Nodes are matched by name. If no name matches, nodes of the trace are mapped to nodes of the
fleet in order, several to one if the fleet is smaller.
"""

from collections.abc import Iterator, Sequence

from tenfold.model.fault import Fault, FaultTrace
from tenfold.model.fleet.node import Node
from tenfold.model.ids import NodeId
from tenfold.model.units import SECOND, Millis


def replay_faults(
    trace: FaultTrace, nodes: Sequence[Node], horizon_ms: Millis
) -> tuple[Iterator[Fault], list[str]]:
    """Return the faults of a trace on these nodes in order of time, and notes on assumptions."""
    if not nodes:
        return iter(()), []
    mapping, notes = _node_mapping(trace, nodes)
    return _replayed(trace, mapping, horizon_ms), notes


def _node_mapping(trace: FaultTrace, nodes: Sequence[Node]) -> tuple[dict[str, NodeId], list[str]]:
    known = {str(node.id): node.id for node in nodes}
    names = trace.nodes
    matching = [name for name in names if name in known]
    if matching:
        missing = len(names) - len(matching)
        note = f"{missing} of {len(names)} nodes of the trace are not in the fleet and are skipped"
        return {name: known[name] for name in matching}, [note] if missing else []
    mapping = {name: nodes[place % len(nodes)].id for place, name in enumerate(names)}
    notes = [f"no node name matches: the {len(names)} nodes of the trace are mapped in order"]
    if len(names) > len(nodes):
        notes.append(
            f"the fleet has only {len(nodes)} nodes: several nodes of the trace map to one"
        )
    return mapping, notes


def _replayed(trace: FaultTrace, mapping: dict[str, NodeId], horizon_ms: Millis) -> Iterator[Fault]:
    """Yield faults; a fault that starts while the node is down extends the outage.

    A node that did not come back in the trace does not come back before the horizon either.
    """
    open_faults: dict[NodeId, Fault] = {}
    merged: list[Fault] = []
    for row in trace.faults:
        node_id = mapping.get(row.node)
        at_ms = round(row.start_s * SECOND)
        until_ms = horizon_ms if row.is_open else round(row.end_s * SECOND)
        if node_id is None or until_ms <= at_ms or at_ms >= horizon_ms:
            continue
        last = open_faults.get(node_id)
        if last is not None and at_ms <= last.until_ms:
            extended = Fault(
                last.at_ms, node_id, Millis(max(last.until_ms, until_ms)), last.cause or row.cause
            )
            open_faults[node_id] = extended
            continue
        if last is not None:
            merged.append(last)
        open_faults[node_id] = Fault(Millis(at_ms), node_id, Millis(until_ms), row.cause)
    merged.extend(open_faults.values())
    merged.sort(key=lambda fault: (fault.at_ms, fault.node_id))
    return iter(merged)
