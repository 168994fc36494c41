"""`tenfold node`: list, join, leave, cordon, fail, test and accept nodes of a control plane."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter, validators

from tenfold.cli.arguments import Json
from tenfold.cli.errors import Exit
from tenfold.cli.job.live_render import show_nodes
from tenfold.cli.node.acceptance import show_refused, show_test, tested_at, wait_for_tests
from tenfold.cli.output import print_json, print_note, show
from tenfold.client.client import Client
from tenfold.model.api.nodes import JoiningNode, NodeVerb
from tenfold.model.errors import InputError
from tenfold.model.fleet import hostlist
from tenfold.report.figures import count

app = App(
    name="node",
    help="List, join, leave, cordon, fail and test nodes.",
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


@app.command(name="join")
def join_command(
    *,
    fleet: Annotated[
        Path,
        Parameter(help="Fleet file; nodes that are not in the fleet yet join as virtual nodes"),
    ],
    as_json: Json = False,
) -> None:
    """Add the new nodes of a fleet file to the running control plane.

    Running jobs are not affected, and pending jobs may start on the new nodes at once. Nodes that
    are already in the fleet do not change. Pass this file to `tenfold up` next time.
    """
    # Reading a fleet takes most of a second of imports.
    import msgspec  # noqa: PLC0415

    from tenfold.cli.up.inputs import control_plane_inputs  # noqa: PLC0415

    inputs = control_plane_inputs(fleet, "tenfold", None, [])
    nodes = [msgspec.convert(msgspec.to_builtins(one), JoiningNode) for one in inputs.nodes]
    with Client() as client:
        found = client.join_nodes(nodes)
    if as_json:
        print_json(found)
        return
    if found.differing:
        names = hostlist.fold(found.differing)
        print_note(
            f"{names} keep their current description; the file describes them differently, for "
            "example because racks or switches were reassigned"
        )
    if not found.joined:
        show(f"no new nodes: {count(len(found.known), 'node')} of `{fleet}` are in the fleet")
        return
    known = f"; {len(found.known):,} were in the fleet already" if found.known else ""
    show(f"{count(len(found.joined), 'node')} joined: {hostlist.fold(found.joined)}{known}")


@app.command(name="leave")
def leave_command(
    *nodes: Names,
    grace: Annotated[
        float | None,
        Parameter(
            help="Seconds after which jobs that still run there are stopped and requeued "
            "(default: they may finish)",
            validator=validators.Number(gte=0, lte=31_536_000),
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Remove nodes from the running control plane.

    No job starts on them any more, and each leaves once its last job has ended. If any node cannot
    leave, none do. Remove them from the fleet file as well; `tenfold node uncordon` keeps a node
    that has not left yet, and `tenfold node join` brings one back.
    """
    names = _names(nodes)
    with Client() as client:
        found = client.leave_nodes(names, grace_s=grace)
    if as_json:
        print_json(found)
        return
    if found.left:
        show(f"{count(len(found.left), 'node')} left: {hostlist.fold(found.left)}")
    if found.leaving:
        until = "" if grace is None else f", or in {grace:g} s"
        show(
            f"{count(len(found.leaving), 'node')} leaving once their jobs have ended{until}: "
            f"{hostlist.fold(found.leaving)}"
        )


@app.command(name="cordon")
def cordon_command(*nodes: Names, cause: Cause = "", as_json: Json = False) -> None:
    """Stop scheduling jobs on nodes; running jobs continue.

    If any node cannot be changed, none are changed.
    """
    _mark(nodes, "cordon", as_json, cause)


@app.command(name="uncordon")
def uncordon_command(*nodes: Names, as_json: Json = False) -> None:
    """Return cordoned or failed nodes to service.

    If any node cannot be changed, none are changed.
    """
    _mark(nodes, "uncordon", as_json)


@app.command(name="fail")
def fail_command(*nodes: Names, cause: Cause = "", as_json: Json = False) -> None:
    """Mark nodes as failed; their jobs are stopped and requeued.

    If any node cannot be changed, none are changed.
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

    Your name is recorded. If any node cannot be changed, none are changed.
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
