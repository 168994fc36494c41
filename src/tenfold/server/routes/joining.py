"""Nodes that join and leave a running control plane, without a restart."""

from collections.abc import Sequence

import msgspec
from anyio import to_thread
from litestar import Router, post
from msgspec.structs import replace

from tenfold.live.inbox import JoinNodes, LeaveNodes
from tenfold.model.api.nodes import (
    JoinedNodes,
    JoiningNode,
    JoinRequest,
    LeaveRequest,
    LeavingNodes,
)
from tenfold.model.fleet.node import Node
from tenfold.model.ids import NodeId
from tenfold.model.reason import Reason
from tenfold.model.units import SECOND, Millis
from tenfold.server.auth.access import AuthedRequest, requires_role
from tenfold.server.auth.tokens import Role
from tenfold.server.inbox_client import call_loop, check_writable
from tenfold.server.problems import Problem
from tenfold.server.routes.nodes import refresh
from tenfold.server.runtime.deps import ControlDep
from tenfold.server.submissions import read_body


@post("/nodes/join", opt=requires_role(Role.admin), status_code=200, operation_id="joinNodes")
async def join_nodes(request: AuthedRequest, control: ControlDep) -> JoinedNodes:
    """Add nodes to the fleet, all or none: `{"nodes": [...], "test": false}`.

    Nodes that are in the fleet already stay as they are, also where the request describes them
    differently.
    """
    row = read_body(JoinRequest, await request.body(), "the request")
    nodes = _distinct(row.nodes)
    check_writable(control.trouble())
    await to_thread.run_sync(refresh, control)
    before = control.follower.snapshot().fleet.nodes
    fresh = tuple(one for one in nodes if one.id not in before)
    known = {one.id: one == _within_power(before[one.id]) for one in nodes if one.id in before}
    if fresh:
        await call_loop(control.inbox, JoinNodes(fresh, row.test), control.wait_s)
        await to_thread.run_sync(refresh, control)
        await to_thread.run_sync(control.note_nodes, [str(one.id) for one in fresh])
    return JoinedNodes(
        joined=tuple(str(one.id) for one in fresh),
        known=tuple(str(name) for name in known),
        differing=tuple(str(name) for name, is_same in known.items() if not is_same),
    )


@post("/nodes/leave", opt=requires_role(Role.admin), status_code=200, operation_id="leaveNodes")
async def leave_nodes(request: AuthedRequest, control: ControlDep) -> LeavingNodes:
    """Take nodes out of the fleet, all or none: `{"nodes": [...], "grace_s": null}`.

    No job starts there any more, and a node leaves once its last job has ended. With `grace_s`,
    jobs that still run after so many seconds are stopped and requeued. Uncordoning a node keeps it.
    """
    row = read_body(LeaveRequest, await request.body(), "the request")
    names = tuple(dict.fromkeys(NodeId(one) for one in row.nodes))
    grace_ms = None if row.grace_s is None else Millis(round(row.grace_s * SECOND))
    check_writable(control.trouble())
    departure = LeaveNodes(names, grace_ms, request.user.name)
    await call_loop(control.inbox, departure, control.wait_s)
    # Empty nodes leave at the next moment of the loop, which this request waits for.
    await call_loop(control.inbox, JoinNodes(()), control.wait_s)
    await to_thread.run_sync(refresh, control)
    here = control.follower.snapshot().fleet.nodes
    return LeavingNodes(
        left=tuple(str(one) for one in names if one not in here),
        leaving=tuple(str(one) for one in names if one in here),
    )


def _distinct(rows: Sequence[JoiningNode]) -> tuple[Node, ...]:
    """Return the nodes of a request; raise if it names one twice."""
    found: dict[str, Node] = {}
    for row in rows:
        if row.id in found:
            message = f"node `{row.id}` is named twice"
            reason = Reason("node-named-twice", sentence=message)
            raise Problem(422, reason, "name each node once; no nodes joined")
        try:
            found[row.id] = _within_power(msgspec.convert(msgspec.to_builtins(row), Node))
        except msgspec.ValidationError as error:
            reason = Reason("wrong-value", sentence=f"node `{row.id}`: {error}")
            raise Problem(422, reason, "correct this node; no nodes joined") from None
    return tuple(found.values())


def _within_power(node: Node) -> Node:
    """Return a node whose rack limit, if it has one, holds under every policy."""
    return replace(node, rack_watts_always=True) if node.rack_watts else node


ROUTES = Router("/api/v1", route_handlers=[join_nodes, leave_nodes])
