"""`tenfold sinfo`: nodes by pool and state, as Slurm shows them."""

from collections.abc import Mapping, Sequence
from typing import Annotated

from cyclopts import App, Parameter
from msgspec import UNSET, Struct

from tenfold.cli.job.columns import node_list
from tenfold.cli.output import print_line
from tenfold.cli.slurm.aligned import print_columns
from tenfold.cli.slurm.formats import Field, checked_format, formatted, heading, letters_of
from tenfold.cli.slurm.partitions import in_partition
from tenfold.client.client import Client
from tenfold.model.api.nodes import Node
from tenfold.model.errors import InputError

app = App(
    name="sinfo",
    help="List nodes by pool and state as Slurm does.",
    help_format="plaintext",
    default_parameter=Parameter(show_default=False),
)
NoHeader = Annotated[
    bool, Parameter(name=("--noheader", "-h"), negative="", help="Do not print the header")
]
DEFAULT, LONG, BRIEF = "PalDtGzN", "PalDTGcmfN", "PalFN"
"""The columns of `sinfo`, `sinfo -l` and `sinfo -s`."""
OF_GROUP = frozenset("DFN")
"""Letters that say something about all nodes of a line; nodes that differ in others are apart."""
WORDS = {"alloc": "allocated", "mix": "mixed", "drain": "drained"}


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
    letters: Annotated[
        str | None, Parameter(name=("--format", "-o"), help='Columns, such as "%P %D %t %G %N"')
    ] = None,
    long: Annotated[
        bool, Parameter(name=("--long", "-l"), negative="", help="Also print tags")
    ] = False,
    summarize: Annotated[
        bool,
        Parameter(name=("--summarize", "-s"), negative="", help="Print one line per pool"),
    ] = False,
    no_header: NoHeader = False,
) -> None:
    """List nodes by pool and state; the partition is the pool."""
    if (letters is not None) + long + summarize > 1:
        raise InputError(
            "two-questions",
            "`--format`, `--long` and `--summarize` each choose the columns",
            "use one of them",
        )
    if letters is not None:
        checked_format(letters, FIELDS, "tenfold node list")
    chosen = LONG if long else BRIEF if summarize else DEFAULT
    with Client() as client:
        nodes = in_partition(client.nodes(), partition)
    shown = set(chosen) if letters is None else letters_of(letters)
    lines = _lines(nodes, sorted(shown - OF_GROUP), by_node=by_node)
    if letters is not None:
        for line in [heading(letters, FIELDS)] * (not no_header):
            print_line(line)
        for one in lines:
            print_line(formatted(letters, one, FIELDS))
        return
    titles = [FIELDS[letter].heading for letter in chosen]
    rows = [[FIELDS[letter].text(one) for letter in chosen] for one in lines]
    right = [place for place, letter in enumerate(chosen) if letter in "Dcm"]
    print_columns(titles, rows, right=right, has_header=not no_header)


class NodeLine(Struct, frozen=True):
    """Nodes that one line is about."""

    nodes: tuple[Node, ...]

    @property
    def first(self) -> Node:
        """One of them."""
        return self.nodes[0]


def _lines(nodes: Sequence[Node], letters: Sequence[str], *, by_node: bool) -> list[NodeLine]:
    """Return the nodes, together where these letters say the same of them."""
    groups: dict[tuple[str, ...], list[Node]] = {}
    for node in nodes:
        key = tuple(FIELDS[letter].text(NodeLine((node,))) for letter in letters)
        groups.setdefault((*key, node.id) if by_node else key, []).append(node)
    return [NodeLine(tuple(group)) for group in groups.values()]


def _state(node: Node) -> str:
    if node.state != "up":
        return "drain" if node.state == "cordoned" else node.state
    if node.gpus_free is UNSET or node.gpus_free == node.gpus:
        return "idle"
    return "alloc" if not node.gpus_free else "mix"


def _state_word(node: Node) -> str:
    return WORDS.get(_state(node), _state(node))


def _counts(nodes: Sequence[Node]) -> str:
    """Return how many nodes are allocated, idle and neither, and all."""
    states = [_state(node) for node in nodes]
    used = sum(state in ("alloc", "mix") for state in states)
    idle = states.count("idle")
    return f"{used}/{idle}/{len(states) - used - idle}/{len(states)}"


def _gres(node: Node) -> str:
    return f"gpu:{node.accelerator}:{node.gpus}" if node.gpus else "(null)"


def _cpus(node: Node) -> str:
    """Return the CPUs of a node; `-` if they are not known, and therefore not limited."""
    return "-" if node.cpus is UNSET or not node.cpus else f"{node.cpus:g}"


def _memory(node: Node) -> str:
    """Return the memory of a node in MB, as Slurm does."""
    return "-" if node.memory_gib is UNSET or not node.memory_gib else f"{node.memory_gib * 1024:g}"


def _size(node: Node) -> str:
    memory = "-" if node.memory_gib is UNSET or not node.memory_gib else f"{node.memory_gib:,.0f}G"
    return f"{_cpus(node)}:{memory}" if memory != "-" or _cpus(node) != "-" else "-"


def _tags(node: Node) -> str:
    return "(null)" if node.tags is UNSET or not node.tags else ",".join(node.tags)


FIELDS: Mapping[str, Field[NodeLine]] = {
    "P": Field("PARTITION", lambda line: line.first.pool),
    "a": Field("AVAIL", lambda line: "up"),
    "l": Field("TIMELIMIT", lambda line: "infinite"),
    "D": Field("NODES", lambda line: str(len(line.nodes))),
    "F": Field("NODES(A/I/O/T)", lambda line: _counts(line.nodes)),
    "t": Field("STATE", lambda line: _state(line.first)),
    "T": Field("STATE", lambda line: _state_word(line.first)),
    "G": Field("GRES", lambda line: _gres(line.first)),
    "c": Field("CPUS", lambda line: _cpus(line.first)),
    "m": Field("MEMORY", lambda line: _memory(line.first)),
    "z": Field("CPUS:MEM", lambda line: _size(line.first)),
    "f": Field("AVAIL_FEATURES", lambda line: _tags(line.first)),
    "n": Field("HOSTNAMES", lambda line: line.first.id),
    "N": Field("NODELIST", lambda line: node_list([node.id for node in line.nodes])),
}
