"""Nodes and their acceptance tests: list them, and change the state of one or of several."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from tenfold.model.ids import Name

NodeVerb = Literal["cordon", "uncordon", "fail", "test", "accept"]
NODES_MAX = 100_000
"""Nodes in one request."""
CAUSE_MAX = 200
"""Characters."""


class NodeActionRequest(
    Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """What is asked of several nodes."""

    nodes: Annotated[list[Name], Meta(min_length=1, max_length=NODES_MAX)]
    verb: NodeVerb
    cause: Annotated[str, Meta(max_length=CAUSE_MAX)] = ""


class NodeStatus(Struct, frozen=True, kw_only=True):
    """How a node stands after what was asked."""

    id: str
    state: str


class NodeStatuses(Struct, frozen=True, kw_only=True):
    """How several nodes stand after what was asked of all of them."""

    nodes: tuple[NodeStatus, ...]


class NodeFigure(Struct, frozen=True, kw_only=True):
    """One rate that was measured, or that the pool has and the node did not give."""

    name: str
    value: float | None
    unit: str
    median: float | None = None
    """The pool's median; None where there was nothing to compare with."""
    deviation: float | None = None
    """How far from the median, as a share of it; below 0 is slower."""
    allowed: float | None = None
    """How far below the median is still accepted."""
    judged: str = "first"
    """`alike`, `slow`, `fast`, `missing`, or `first` where there was nothing to compare with."""


class NodeTest(Struct, frozen=True, kw_only=True):
    """How a node did in its last acceptance test."""

    tested_at: str
    outcome: str
    """`accepted`, `refused`, or `overridden` where an operator accepted it in spite of the test."""
    accepted_by: str
    basis: str
    """What it was compared with: its `pool`, `itself` before, or nothing, as the `first`."""
    nodes: int
    """How many nodes that were."""
    code: str
    sentence: str
    figures: tuple[NodeFigure, ...]
    unmeasured: tuple[str, ...]
    notes: tuple[str, ...]


class Node(Struct, frozen=True, kw_only=True):
    """One node as it stands."""

    id: str
    site: str
    pool: str
    accelerator: str
    gpus: int
    state: str
    cause: str
    changed_at: str | None
    sentence: str = ""
    """The cause in words, where it is a code."""
    test: NodeTest | None = None
    """How it did in its acceptance test; None where it had none."""


class Nodes(Struct, frozen=True, kw_only=True):
    """Every node that ever joined."""

    nodes: tuple[Node, ...]


class CordonedNode(Struct, frozen=True, kw_only=True):
    """A node that is out of use, and why."""

    id: str
    code: str
    sentence: str
