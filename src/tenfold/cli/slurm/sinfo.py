"""`tenfold sinfo`: nodes by pool and state, as Slurm shows them."""

from collections.abc import Sequence
from typing import Annotated

from cyclopts import App, Parameter
from msgspec import UNSET

from tenfold.cli.job.columns import node_list
from tenfold.cli.slurm.aligned import print_columns
from tenfold.cli.slurm.partitions import in_partition
from tenfold.client.client import Client
from tenfold.model.api.nodes import Node

app = App(
    name="sinfo",
    help="List nodes by pool and state as Slurm does.",
    help_format="plaintext",
    default_parameter=Parameter(show_default=False),
)
NoHeader = Annotated[
    bool, Parameter(name=("--noheader", "-h"), negative="", help="Do not print the header")
]


@app.default
def sinfo_command(
    *,
    by_node: Annotated[
        bool, Parameter(name=("--Node", "-N"), negative="", help="Print one line per node")
    ] = False,
    partition: Annotated[
        str | None,
        Parameter(
            name=("--partition", "-p"),
            help="Only nodes in these pools or with these tags, separated by commas",
        ),
    ] = None,
    no_header: NoHeader = False,
) -> None:
    """List nodes by pool and state; the partition is the pool."""
    with Client() as client:
        nodes = in_partition(client.nodes(), partition)
    groups: dict[tuple[str, ...], list[Node]] = {}
    for node in nodes:
        key = (node.pool, _state(node), _gres(node), _size(node))
        groups.setdefault((*key, node.id) if by_node else key, []).append(node)
    rows = [
        [pool, "up", "infinite", str(len(group)), state, gres, size, _list(group)]
        for (pool, state, gres, size, *_), group in groups.items()
    ]
    titles = ["PARTITION", "AVAIL", "TIMELIMIT", "NODES", "STATE", "GRES", "CPUS:MEM", "NODELIST"]
    print_columns(titles, rows, right=(3,), has_header=not no_header)


def _list(nodes: Sequence[Node]) -> str:
    return node_list([node.id for node in nodes])


def _state(node: Node) -> str:
    if node.state != "up":
        return "drain" if node.state == "cordoned" else node.state
    if node.gpus_free is UNSET or node.gpus_free == node.gpus:
        return "idle"
    return "alloc" if not node.gpus_free else "mix"


def _gres(node: Node) -> str:
    return f"gpu:{node.accelerator}:{node.gpus}" if node.gpus else "(null)"


def _size(node: Node) -> str:
    if node.cpus is UNSET or node.memory_gib is UNSET:
        return "-"
    return f"{node.cpus:g}:{node.memory_gib:,.0f}G"
