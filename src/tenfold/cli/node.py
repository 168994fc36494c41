"""`tenfold node`: the nodes of the control plane that runs."""

from collections.abc import Sequence
from typing import Annotated

from cyclopts import App, Parameter

from tenfold.cli.errors import Done
from tenfold.cli.live_show import show_nodes
from tenfold.cli.node_tests import show_refused, show_test, tested_at, wait_for_tests
from tenfold.cli.output import print_json, show
from tenfold.client.answers import Taken
from tenfold.client.client import Client
from tenfold.model import hostlist
from tenfold.model.errors import InputError

app = App(
    name="node",
    help="List nodes, take them out of use and back, and test them.",
    help_format="plaintext",
    default_parameter=Parameter(show_default=False),
)

Names = Annotated[str, Parameter(help="A node, or several as a host list: n[01-08].")]
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
def cordon_command(nodes: Names, *, as_json: Json = False) -> None:
    """Let nodes take no new work; what runs there may end."""
    with Client() as client:
        _say([client.cordon(name) for name in _names(nodes)], as_json)


@app.command(name="uncordon")
def uncordon_command(nodes: Names, *, as_json: Json = False) -> None:
    """Let nodes take work again, or say that lost ones are back."""
    with Client() as client:
        _say([client.uncordon(name) for name in _names(nodes)], as_json)


@app.command(name="fail")
def fail_command(
    nodes: Names,
    *,
    cause: Annotated[str, Parameter(help="Why, for the record.")] = "",
    as_json: Json = False,
) -> None:
    """Say that nodes are gone: what runs there is ended and waits again."""
    with Client() as client:
        _say([client.fail(name, cause) for name in _names(nodes)], as_json)


@app.command(name="test")
def measure_command(nodes: Names, *, as_json: Json = False) -> None:
    """Measure nodes again and hold them against their pool; they take no work meanwhile.

    Ends with status 1 where one is refused.
    """
    names = _names(nodes)
    with Client() as client:
        before = tested_at(client)
        for name in names:
            client.test_node(name)
        found = wait_for_tests(client, names, before)
    if as_json:
        print_json(found)
    else:
        for node in found:
            show_test(node)
    if any(node.test is None or node.test.outcome == "refused" for node in found):
        raise Done(1)


@app.command(name="accept")
def accept_command(nodes: Names, *, as_json: Json = False) -> None:
    """Take nodes in spite of their test; who did is recorded."""
    with Client() as client:
        _say([client.accept_node(name) for name in _names(nodes)], as_json)


def _names(text: str) -> list[str]:
    try:
        return hostlist.expand(text)
    except hostlist.HostlistError as error:
        said = f"the nodes cannot be read: {error}"
        raise InputError("bad-host-list", said, "write them like n[01-08]") from None


def _say(taken: Sequence[Taken], as_json: bool) -> None:
    if as_json:
        print_json(taken)
        return
    for one in taken:
        show(f"`{one.id}` is {one.state}")
