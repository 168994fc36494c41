"""A fault: one node is away for a while, in this fleet or in a recorded one."""

from msgspec import Struct

from tenfold.model.ids import NodeId
from tenfold.model.units import Millis


class Fault(Struct, frozen=True, gc=False):
    """A node that is lost at `at_ms` and back at `until_ms`."""

    at_ms: Millis
    node_id: NodeId
    until_ms: Millis
    cause: str = ""


class TraceFault(Struct, frozen=True, gc=False):
    """One row of a recorded trace, with the trace's own name for the node."""

    node: str
    start_s: float
    end_s: float
    cause: str = ""


class FaultTrace(Struct, frozen=True, kw_only=True):
    """The faults of a recorded fleet, in order of their start."""

    file: str
    faults: tuple[TraceFault, ...]
    span_s: float
    """From 0 to the last thing that the trace tells."""

    @property
    def nodes(self) -> list[str]:
        """Names of the nodes that failed, in the order in which they first did."""
        return list(dict.fromkeys(fault.node for fault in self.faults))
