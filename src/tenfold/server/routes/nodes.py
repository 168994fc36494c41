"""Nodes over HTTP: list, cordon, fail, test and accept them.

One node is named in the path, several in the body of one request. Such a request applies to all of
them or to none, and is one entry in the journal.
"""

from typing import Annotated

from anyio import to_thread
from litestar import Router, get, post
from litestar.params import FromPath, QueryParameter
from msgspec import UNSET
from msgspec.structs import replace

from tenfold.fleet.fleet import Fleet
from tenfold.journal import read
from tenfold.journal.store import last_seq
from tenfold.live.inbox import AcceptNode, NodeBatch, RetestNode, SetNodeState
from tenfold.model.api.nodes import (
    Node,
    NodeActionRequest,
    Nodes,
    NodeStatus,
    NodeStatuses,
    NodeVerb,
)
from tenfold.model.ids import NodeId
from tenfold.model.strings import ONE_LINE
from tenfold.server.auth.access import AuthedRequest, requires_role
from tenfold.server.auth.tokens import Role
from tenfold.server.inbox_client import call_loop, check_writable
from tenfold.server.runtime.deps import Control, ControlDep
from tenfold.server.schemas import to_node
from tenfold.server.submissions import read_body

STATE_AFTER: dict[NodeVerb, str] = {
    "cordon": "cordoned",
    "uncordon": "up",
    "fail": "down",
    "test": "under test",
    "accept": "accepted",
}
"""The state of a node after each action."""
Cause = Annotated[
    str, QueryParameter(max_length=200, pattern=ONE_LINE, description="Reason, for the record.")
]


@get("/nodes", opt=requires_role(Role.viewer), sync_to_thread=True, operation_id="listNodes")
def list_nodes(request: AuthedRequest, control: ControlDep) -> Nodes:
    """List the nodes of the fleet."""
    rows = [row for row in read.nodes(control.store) if row.state != "left"]
    fleet = control.follower.snapshot().fleet
    return Nodes(nodes=tuple(_with_size(to_node(row, request.user), fleet) for row in rows))


def _with_size(shown: Node, fleet: Fleet) -> Node:
    """Return a node with its free GPUs, CPUs, memory and tags, if it is in the fleet."""
    node_id = NodeId(shown.id)
    node = fleet.nodes.get(node_id)
    if node is None:
        return shown
    return replace(
        shown,
        gpus_free=fleet.gpus_free.get(node_id, UNSET),
        cpus=node.cpus_milli / 1_000,
        memory_gib=node.memory_mib / 1_024,
        tags=node.tags,
    )


@post("/nodes", opt=requires_role(Role.operator), status_code=200, operation_id="markNodes")
async def mark_nodes(request: AuthedRequest, control: ControlDep) -> NodeStatuses:
    """Change the state of several nodes, all or none: `{"nodes": [...], "verb": ...}`.

    Verbs: `cordon`, `uncordon`, `fail`, `test`, `accept`. `cordon` and `fail` take a `cause`.
    """
    row = read_body(NodeActionRequest, await request.body(), "the request")
    names = list(dict.fromkeys(row.nodes))
    requests = tuple(node_request(row.verb, name, request.user.name, row.cause) for name in names)
    check_writable(control.trouble())
    await call_loop(control.inbox, NodeBatch(requests), control.wait_s)
    await to_thread.run_sync(refresh, control)
    return NodeStatuses(
        nodes=tuple(NodeStatus(id=name, state=STATE_AFTER[row.verb]) for name in names)
    )


@post(
    "/nodes/{node_id:str}/cordon",
    opt=requires_role(Role.operator),
    status_code=200,
    operation_id="cordonNode",
)
async def cordon(
    request: AuthedRequest, control: ControlDep, node_id: FromPath[str], cause: Cause = ""
) -> NodeStatus:
    """Stop scheduling jobs on a node; running jobs continue."""
    return await _one(control, "cordon", node_id, request.user.name, cause)


@post(
    "/nodes/{node_id:str}/uncordon",
    opt=requires_role(Role.operator),
    status_code=200,
    operation_id="uncordonNode",
)
async def uncordon(
    request: AuthedRequest, control: ControlDep, node_id: FromPath[str]
) -> NodeStatus:
    """Return a cordoned or failed node to service."""
    return await _one(control, "uncordon", node_id, request.user.name)


@post(
    "/nodes/{node_id:str}/fail",
    opt=requires_role(Role.operator),
    status_code=200,
    operation_id="failNode",
)
async def fail(
    request: AuthedRequest, control: ControlDep, node_id: FromPath[str], cause: Cause = ""
) -> NodeStatus:
    """Mark a node as failed: its jobs are stopped and requeued."""
    return await _one(control, "fail", node_id, request.user.name, cause)


@post(
    "/nodes/{node_id:str}/test",
    opt=requires_role(Role.operator),
    status_code=200,
    operation_id="testNode",
)
async def test_again(
    request: AuthedRequest, control: ControlDep, node_id: FromPath[str]
) -> NodeStatus:
    """Benchmark a node again; it gets no jobs until it passes against its pool."""
    return await _one(control, "test", node_id, request.user.name)


@post(
    "/nodes/{node_id:str}/accept",
    opt=requires_role(Role.operator),
    status_code=200,
    operation_id="acceptNode",
)
async def accept(request: AuthedRequest, control: ControlDep, node_id: FromPath[str]) -> NodeStatus:
    """Accept a node despite a failed acceptance test; your name is recorded."""
    return await _one(control, "accept", node_id, request.user.name)


def node_request(
    verb: NodeVerb, node: str, by: str, cause: str = ""
) -> SetNodeState | RetestNode | AcceptNode:
    """Return the request to the loop for one node."""
    if verb == "test":
        return RetestNode(NodeId(node))
    if verb == "accept":
        return AcceptNode(NodeId(node), by)
    cause_text = f"{cause} (by {by})" if cause and verb == "cordon" else cause
    if not cause_text and verb == "fail":
        cause_text = f"by {by}"
    return SetNodeState(NodeId(node), STATE_AFTER[verb], cause_text)


def refresh(control: Control) -> None:
    """Bring the snapshot up to date, so that the next request sees the change."""
    with control.store.reading() as connection:
        seq = last_seq(connection)
    control.follower.snapshot(seq)


async def _one(
    control: Control, verb: NodeVerb, node_id: str, by: str, cause: str = ""
) -> NodeStatus:
    check_writable(control.trouble())
    await call_loop(control.inbox, node_request(verb, node_id, by, cause), control.wait_s)
    await to_thread.run_sync(refresh, control)
    return NodeStatus(id=node_id, state=STATE_AFTER[verb])


ROUTES = Router(
    "/api/v1", route_handlers=[list_nodes, mark_nodes, cordon, uncordon, fail, test_again, accept]
)
