"""Nodes and their acceptance tests: list them, and change the state of one or several."""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from tenfold.model.strings import HOST_PREFIX, Line, Name, Tags

NodeVerb = Literal["cordon", "uncordon", "fail", "test", "accept"]
NODES_MAX = 100_000
"""Nodes in one request."""
JOINING_MAX = 10_000
"""Nodes that join in one request."""
NodeName = Annotated[str, Meta(min_length=1, max_length=200, pattern=HOST_PREFIX)]
Watts = Annotated[int, Meta(ge=0, le=10_000_000_000)]


class NodeActionRequest(
    Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """A change to several nodes."""

    nodes: Annotated[list[Name], Meta(min_length=1, max_length=NODES_MAX)]
    verb: NodeVerb
    cause: Line = ""


class JoiningNode(
    Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """A node that joins a running control plane, with the keys of a node of the fleet."""

    id: NodeName
    pool: Name
    site: Name
    accelerator: Line = ""
    gpus: Annotated[int, Meta(ge=0, le=1_024)] = 0
    cpus_milli: Annotated[int, Meta(ge=0, le=10_000_000)] = 0
    memory_mib: Annotated[int, Meta(ge=0, le=1 << 30)] = 0
    rack: Line = ""
    leaf: Line = ""
    pod: Line = ""
    scaleup: Line = ""
    tags: Tags = []
    watts_idle: Watts = 0
    watts_per_gpu: Watts = 0
    rack_watts: Watts = 0
    domains: Annotated[list[Name], Meta(max_length=64)] = []


class JoinRequest(
    Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """Nodes that join, all or none."""

    nodes: Annotated[list[JoiningNode], Meta(min_length=1, max_length=JOINING_MAX)]
    test: bool = False
    """Whether each is benchmarked before it gets jobs."""


class JoinedNodes(Struct, frozen=True, kw_only=True):
    """What became of a request to join."""

    joined: tuple[str, ...]
    known: tuple[str, ...]
    """Nodes that were in the fleet already, and stay as they are."""
    differing: tuple[str, ...]
    """Those of them that the request describes differently."""


class LeaveRequest(
    Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """Nodes that leave, all or none."""

    nodes: Annotated[list[Name], Meta(min_length=1, max_length=JOINING_MAX)]
    grace_s: Annotated[float, Meta(ge=0, le=31_536_000)] | None = None
    """Jobs that still run there after so many seconds are stopped and requeued; `null`: never."""


class LeavingNodes(Struct, frozen=True, kw_only=True):
    """What became of a request to leave."""

    left: tuple[str, ...]
    leaving: tuple[str, ...]
    """Nodes that leave once their jobs have ended."""


class NodeStatus(Struct, frozen=True, kw_only=True):
    """The state of a node after a change."""

    id: str
    state: str


class NodeStatuses(Struct, frozen=True, kw_only=True):
    """The states of several nodes after a change."""

    nodes: tuple[NodeStatus, ...]


class NodeFigure(Struct, frozen=True, kw_only=True):
    """One measured rate, or one that the pool has and the node lacks."""

    name: str
    value: float | None
    unit: str
    median: float | None = None
    """The pool's median; None without a comparison."""
    deviation: float | None = None
    """Difference from the median, as a share of it; negative is slower."""
    allowed: float | None = None
    """How far below the median is still accepted."""
    judged: str = "first"
    """`alike`, `slow`, `fast`, `missing`, or `first` without a comparison."""


class NodeTest(Struct, frozen=True, kw_only=True):
    """The result of a node's last acceptance test."""

    tested_at: str
    outcome: str
    """`accepted`, `refused`, or `overridden` if an operator accepted it despite the test."""
    accepted_by: str
    basis: str
    """What it was compared with: its `pool`, `itself` before, or nothing, as the `first`."""
    nodes: int
    """How many nodes it was compared with."""
    code: str
    sentence: str
    figures: tuple[NodeFigure, ...]
    unmeasured: tuple[str, ...]
    notes: tuple[str, ...]


class Node(Struct, frozen=True, kw_only=True):
    """One node."""

    id: str
    site: str
    pool: str
    accelerator: str
    gpus: int
    state: str
    cause: str
    changed_at: str | None
    sentence: str = ""
    """The cause as a sentence, if it is a code."""
    test: NodeTest | None = None
    """Its last acceptance test; None if it had none."""
    gpus_free: int | UnsetType = UNSET
    """GPUs that no job holds, even partly; `UNSET` for nodes that are not in the fleet."""
    cpus: float | UnsetType = UNSET
    memory_gib: float | UnsetType = UNSET
    tags: tuple[str, ...] | UnsetType = UNSET


class Nodes(Struct, frozen=True, kw_only=True):
    """Every node that ever joined."""

    nodes: tuple[Node, ...]


class CordonedNode(Struct, frozen=True, kw_only=True):
    """A node cordoned because jobs kept failing there."""

    id: str
    code: str
    sentence: str
