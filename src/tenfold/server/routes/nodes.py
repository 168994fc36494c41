"""Nodes and the fleet over HTTP: look, and say that a node takes no more work, is gone or back.

One node is named in the path; several in the body of one request, which is done to all of them
or to none and stands in the journal in one piece.
"""

from typing import Annotated

from litestar import Router, get, post
from litestar.params import FromPath, QueryParameter

from tenfold.journal import read
from tenfold.live.inbox import AcceptNode, NodeBatch, RetestNode, SetNodeState
from tenfold.model.api.nodes import (
    CAUSE_MOST,
    Marked,
    MarkNodes,
    Nodes,
    NodesMarked,
    NodeVerb,
)
from tenfold.model.ids import NodeId
from tenfold.server.auth.access import Asked, needs
from tenfold.server.auth.tokens import Role
from tenfold.server.inbox_client import ask, check_writable
from tenfold.server.runtime.deps import Control, Given
from tenfold.server.schemas import node_told
from tenfold.server.submissions import read_body

STANDS: dict[NodeVerb, str] = {
    "cordon": "cordoned",
    "uncordon": "up",
    "fail": "down",
    "test": "under test",
    "accept": "accepted",
}
"""How a node stands after each."""
Cause = Annotated[str, QueryParameter(max_length=CAUSE_MOST, description="Why, for the record.")]


@get("/nodes", opt=needs(Role.viewer), sync_to_thread=True, operation_id="listNodes")
def list_nodes(request: Asked, control: Given) -> Nodes:
    """List the nodes of the fleet."""
    rows = read.nodes(control.store)
    return Nodes(nodes=tuple(node_told(row, request.user) for row in rows))


@post("/nodes", opt=needs(Role.operator), status_code=200, operation_id="markNodes")
async def mark_nodes(request: Asked, control: Given) -> NodesMarked:
    """Do one thing to several nodes, to all of them or to none: `{"nodes": [...], "verb": ...}`.

    Verbs: `cordon`, `uncordon`, `fail`, `test`, `accept`; the first and third with a `cause`.
    """
    row = read_body(MarkNodes, await request.body(), "the request")
    names = list(dict.fromkeys(row.nodes))
    made = tuple(wish(row.verb, name, request.user.name, row.cause) for name in names)
    check_writable(control.trouble())
    await ask(control.inbox, NodeBatch(made), control.wait_s)
    return NodesMarked(nodes=tuple(Marked(id=name, state=STANDS[row.verb]) for name in names))


@post(
    "/nodes/{node_id:str}/cordon",
    opt=needs(Role.operator),
    status_code=200,
    operation_id="cordonNode",
)
async def cordon(
    request: Asked, control: Given, node_id: FromPath[str], cause: Cause = ""
) -> Marked:
    """Let a node take no new work; what runs there may end."""
    return await _one(control, "cordon", node_id, request.user.name, cause)


@post(
    "/nodes/{node_id:str}/uncordon",
    opt=needs(Role.operator),
    status_code=200,
    operation_id="uncordonNode",
)
async def uncordon(request: Asked, control: Given, node_id: FromPath[str]) -> Marked:
    """Let a node take work again, or say that a lost one is back."""
    return await _one(control, "uncordon", node_id, request.user.name)


@post(
    "/nodes/{node_id:str}/fail", opt=needs(Role.operator), status_code=200, operation_id="failNode"
)
async def fail(request: Asked, control: Given, node_id: FromPath[str], cause: Cause = "") -> Marked:
    """Say that a node is gone: what ran there is ended and waits again."""
    return await _one(control, "fail", node_id, request.user.name, cause)


@post(
    "/nodes/{node_id:str}/test",
    opt=needs(Role.operator),
    status_code=200,
    operation_id="testNode",
)
async def test_again(request: Asked, control: Given, node_id: FromPath[str]) -> Marked:
    """Measure a node again; it takes no work until it is held against its pool."""
    return await _one(control, "test", node_id, request.user.name)


@post(
    "/nodes/{node_id:str}/accept",
    opt=needs(Role.operator),
    status_code=200,
    operation_id="acceptNode",
)
async def accept(request: Asked, control: Given, node_id: FromPath[str]) -> Marked:
    """Take a node in spite of its test; who did is recorded."""
    return await _one(control, "accept", node_id, request.user.name)


def wish(
    verb: NodeVerb, node: str, by: str, cause: str = ""
) -> SetNodeState | RetestNode | AcceptNode:
    """Return what the loop is asked to do to one node."""
    if verb == "test":
        return RetestNode(NodeId(node))
    if verb == "accept":
        return AcceptNode(NodeId(node), by)
    said = f"{cause}, said by {by}" if cause and verb == "cordon" else cause
    if not said and verb == "fail":
        said = f"said by {by}"
    return SetNodeState(NodeId(node), STANDS[verb], said)


async def _one(control: Control, verb: NodeVerb, node_id: str, by: str, cause: str = "") -> Marked:
    check_writable(control.trouble())
    await ask(control.inbox, wish(verb, node_id, by, cause), control.wait_s)
    return Marked(id=node_id, state=STANDS[verb])


ROUTES = Router(
    "/api/v1", route_handlers=[list_nodes, mark_nodes, cordon, uncordon, fail, test_again, accept]
)
