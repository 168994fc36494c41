"""`tenfold node`: the nodes of the control plane that runs."""

from collections.abc import Sequence
from typing import Annotated

from cyclopts import App, Parameter

from tenfold.cli.errors import Exit
from tenfold.cli.job.live_render import show_nodes
from tenfold.cli.node.acceptance import show_refused, show_test, tested_at, wait_for_tests
from tenfold.cli.output import print_json, show
from tenfold.client.client import Client
from tenfold.model.api.nodes import NodeStatus, NodeVerb
from tenfold.model.errors import InputError
from tenfold.model.fleet import hostlist

app = App(
    name="node",
    help="List nodes, take them out of use and back, and test them.",
    help_format="plaintext",
    default_parameter=Parameter(show_default=False),
)

Names = Annotated[str, Parameter(help="A node, or several as a host list: n[01-08].")]
Cause = Annotated[str, Parameter(help="Why, for the record.")]
Json = Annotated[bool, Parameter(name="--json", negative="", help="Print JSON.")]


@app.command(name="list")
def list_command(*, as_json: Json = False) -> None:
    """List the nodes, with their state and whether they are virtual."""
    with Client() as client:
        nodes = client.nodes()
    if as_json:
        print_json(nodes)
        return
    show_nodes(nodes)
    show_refused(nodes)


@app.command(name="cordon")
def cordon_command(*nodes: Names, cause: Cause = "", as_json: Json = False) -> None:
    """Let nodes take no new work; what runs there may end. All of them or none."""
    _mark(nodes, "cordon", as_json, cause)


@app.command(name="uncordon")
def uncordon_command(*nodes: Names, as_json: Json = False) -> None:
    """Let nodes take work again, or say that lost ones are back. All of them or none."""
    _mark(nodes, "uncordon", as_json)


@app.command(name="fail")
def fail_command(*nodes: Names, cause: Cause = "", as_json: Json = False) -> None:
    """Say that nodes are gone: what runs there is ended and waits again. All of them or none."""
    _mark(nodes, "fail", as_json, cause)


@app.command(name="test")
def measure_command(*nodes: Names, as_json: Json = False) -> None:
    """Measure nodes again and hold them against their pool; they take no work meanwhile.

    Ends with status 1 where one is refused.
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
    """Take nodes in spite of their test; who did is recorded. All of them or none."""
    _mark(nodes, "accept", as_json)


def _mark(nodes: Sequence[str], verb: NodeVerb, as_json: bool, cause: str = "") -> None:
    """Ask for all nodes at once: what cannot be done to one is done to none."""
    names = _names(nodes)
    with Client() as client:
        _say(client.mark_nodes(names, verb, cause), as_json)


def _names(texts: Sequence[str]) -> list[str]:
    if not texts:
        raise InputError("no-node", "no node was named", "`tenfold node list` names them")
    try:
        return list(dict.fromkeys(name for text in texts for name in hostlist.expand(text)))
    except hostlist.HostlistError as error:
        said = f"the nodes cannot be read: {error}"
        raise InputError("bad-host-list", said, "write them like n[01-08]") from None


def _say(taken: Sequence[NodeStatus], as_json: bool) -> None:
    if as_json:
        print_json(taken)
        return
    for one in taken:
        show(f"`{one.id}` is {one.state}")
