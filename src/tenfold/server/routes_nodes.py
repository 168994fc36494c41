"""Nodes and the fleet over HTTP: look, and say that a node takes no more work, is gone or back."""

from typing import Annotated

from litestar import Router, get, post
from litestar.params import FromPath, QueryParameter
from msgspec import Struct

from tenfold.journal import read
from tenfold.live.inbox import Accept, Examine, Mark
from tenfold.model.ids import NodeId
from tenfold.server.access import Asked, needs
from tenfold.server.asked import ask, check_writable
from tenfold.server.control import Control, Given
from tenfold.server.nodes_out import plain_node
from tenfold.server.tokens import Role
from tenfold.server.told import NodeTold, node_told

Cause = Annotated[str, QueryParameter(max_length=200, description="Why, for the record.")]


class NodesTold(Struct, frozen=True, kw_only=True):
    """Every node that ever joined."""

    nodes: list[NodeTold]


class Marked(Struct, frozen=True, kw_only=True):
    """How a node stands after what was asked."""

    id: str
    state: str


@get("/nodes", opt=needs(Role.viewer), sync_to_thread=True, operation_id="listNodes")
def list_nodes(request: Asked, control: Given) -> NodesTold:
    """List the nodes of the fleet."""
    rows = (plain_node(row, request.user) for row in read.nodes(control.store))
    return NodesTold(nodes=[node_told(row) for row in rows])


@post(
    "/nodes/{node_id:str}/cordon",
    opt=needs(Role.operator),
    status_code=200,
    operation_id="cordonNode",
)
async def cordon(request: Asked, control: Given, node_id: FromPath[str]) -> Marked:
    """Let a node take no new work; what runs there may end."""
    return await _mark(control, node_id, "cordoned", request.user.name)


@post(
    "/nodes/{node_id:str}/uncordon",
    opt=needs(Role.operator),
    status_code=200,
    operation_id="uncordonNode",
)
async def uncordon(request: Asked, control: Given, node_id: FromPath[str]) -> Marked:
    """Let a node take work again, or say that a lost one is back."""
    return await _mark(control, node_id, "up", request.user.name)


@post(
    "/nodes/{node_id:str}/fail", opt=needs(Role.operator), status_code=200, operation_id="failNode"
)
async def fail(request: Asked, control: Given, node_id: FromPath[str], cause: Cause = "") -> Marked:
    """Say that a node is gone: what ran there is ended and waits again."""
    return await _mark(control, node_id, "down", cause or f"said by {request.user.name}")


@post(
    "/nodes/{node_id:str}/test",
    opt=needs(Role.operator),
    status_code=200,
    operation_id="testNode",
)
async def test_again(control: Given, node_id: FromPath[str]) -> Marked:
    """Measure a node again; it takes no work until it is held against its pool."""
    check_writable(control.trouble())
    await ask(control.inbox, Examine(NodeId(node_id)), control.wait_s)
    return Marked(id=node_id, state="under test")


@post(
    "/nodes/{node_id:str}/accept",
    opt=needs(Role.operator),
    status_code=200,
    operation_id="acceptNode",
)
async def accept(request: Asked, control: Given, node_id: FromPath[str]) -> Marked:
    """Take a node in spite of its test; who did is recorded."""
    check_writable(control.trouble())
    await ask(control.inbox, Accept(NodeId(node_id), request.user.name), control.wait_s)
    return Marked(id=node_id, state="accepted")


async def _mark(control: Control, node_id: str, state: str, cause: str) -> Marked:
    check_writable(control.trouble())
    await ask(control.inbox, Mark(NodeId(node_id), state, cause), control.wait_s)
    return Marked(id=node_id, state=state)


ROUTES = Router("/api/v1", route_handlers=[list_nodes, cordon, uncordon, fail, test_again, accept])
