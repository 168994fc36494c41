"""`tenfold node`: list, cordon, fail, test and accept nodes of the running control plane."""

from collections.abc import Sequence
from typing import Annotated

from cyclopts import App, Parameter

from tenfold.cli.arguments import Json
from tenfold.cli.errors import Exit
from tenfold.cli.job.live_render import show_nodes
from tenfold.cli.node.acceptance import show_refused, show_test, tested_at, wait_for_tests
from tenfold.cli.output import print_json, show
from tenfold.client.client import Client
from tenfold.model.api.nodes import NodeVerb
from tenfold.model.errors import InputError
from tenfold.model.fleet import hostlist

app = App(
    name="node",
    help="List, cordon, fail and test nodes.",
    help_format="plaintext",
    default_parameter=Parameter(show_default=False),
)

Names = Annotated[str, Parameter(help="Node names, or host lists such as n[01-08]")]
Cause = Annotated[str, Parameter(help="Reason, stored in the journal")]


@app.command(name="list")
def list_command(*, as_json: Json = False) -> None:
    """List nodes with their state."""
    with Client() as client:
        nodes = client.nodes()
    if as_json:
        print_json(nodes)
        return
    show_nodes(nodes)
    show_refused(nodes)


@app.command(name="cordon")
def cordon_command(*nodes: Names, cause: Cause = "", as_json: Json = False) -> None:
    """Stop scheduling jobs on nodes; running jobs continue.

    If one node cannot be changed, none are.
    """
    _mark(nodes, "cordon", as_json, cause)


@app.command(name="uncordon")
def uncordon_command(*nodes: Names, as_json: Json = False) -> None:
    """Return cordoned or failed nodes to service.

    If one node cannot be changed, none are.
    """
    _mark(nodes, "uncordon", as_json)


@app.command(name="fail")
def fail_command(*nodes: Names, cause: Cause = "", as_json: Json = False) -> None:
    """Mark nodes as failed; their jobs are stopped and requeued.

    If one node cannot be changed, none are.
    """
    _mark(nodes, "fail", as_json, cause)


@app.command(name="test")
def measure_command(*nodes: Names, as_json: Json = False) -> None:
    """Benchmark nodes again and compare them with their pool.

    No jobs are scheduled on the nodes during the test. Exits with status 1 if a node is rejected.
    """
    names = _names(nodes)
    with Client() as client:
        before = tested_at(client)
        client.mark_nodes(names, "test")
        found = wait_for_tests(client, names, before)
    if as_json:
        print_json(found)
    else:
        for node in found:
            show_test(node)
    if any(node.test is None or node.test.outcome == "refused" for node in found):
        raise Exit(1)


@app.command(name="accept")
def accept_command(*nodes: Names, as_json: Json = False) -> None:
    """Accept nodes despite a failed acceptance test.

    Your name is recorded. If one node cannot be changed, none are.
    """
    _mark(nodes, "accept", as_json)


def _mark(nodes: Sequence[str], verb: NodeVerb, as_json: bool, cause: str = "") -> None:
    """Change all nodes in one request: if one cannot be changed, none is."""
    names = _names(nodes)
    with Client() as client:
        before = {node.id: node.state for node in client.nodes()}
        marked = client.mark_nodes(names, verb, cause)
    if as_json:
        print_json(marked)
        return
    for node in marked:
        already = "already " if before.get(node.id) == node.state else ""
        show(f"`{node.id}` is {already}{node.state}")


def _names(texts: Sequence[str]) -> list[str]:
    if not texts:
        raise InputError(
            "no-node", "no node given", "pass one or more nodes; `tenfold node list` lists them"
        )
    try:
        return list(dict.fromkeys(name for text in texts for name in hostlist.expand(text)))
    except hostlist.HostlistError as error:
        message = f"cannot parse the node list: {error}"
        raise InputError("bad-host-list", message, "write it like `n[01-08]`") from None
