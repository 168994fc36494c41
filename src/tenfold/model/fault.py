"""Faults: a node is down for a while, in this fleet or in a recorded trace."""

from msgspec import Struct

from tenfold.model.ids import NodeId
from tenfold.model.units import Millis


class Fault(Struct, frozen=True, gc=False):
    """A node that goes down at `at_ms` and is back at `until_ms`."""

    at_ms: Millis
    node_id: NodeId
    until_ms: Millis
    cause: str = ""


class TraceFault(Struct, frozen=True, gc=False):
    """One row of a recorded trace, with the node name of the trace."""

    node: str
    start_s: float
    end_s: float
    cause: str = ""
    is_open: bool = False
    """Whether the node had not come back at the end of the trace, which is then `end_s`."""


class FaultTrace(Struct, frozen=True, kw_only=True):
    """The faults of a recorded fleet, ordered by start."""

    file: str
    faults: tuple[TraceFault, ...]
    span_s: float
    """Length of the trace, from 0 to its last entry."""

    @property
    def nodes(self) -> list[str]:
        """Names of the nodes that failed, by first failure."""
        return list(dict.fromkeys(fault.node for fault in self.faults))
