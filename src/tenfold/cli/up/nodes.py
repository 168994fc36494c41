"""The nodes of `tenfold up`: this machine, or nodes that only stand for nodes.

Virtual nodes run real processes, all on this machine. Their pools begin with `virtual`, so that
every listing says so, and they carry the tag `virtual`, so that a job can avoid them.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from tenfold.compose.fleet import UNREAD_FACTS, load_facts
from tenfold.compose.inputs import policy_of
from tenfold.compose.policy_fleet import NO_FLEET, join_fleet
from tenfold.files.fleet.read import load_fleet
from tenfold.files.inventory.accelerators import part_of
from tenfold.live.this_machine import discover_this_machine
from tenfold.model.errors import InputError
from tenfold.model.fleet import hostlist
from tenfold.model.fleet.inventory import InventoryNode
from tenfold.model.fleet.node import Node
from tenfold.model.fleet.spec import FleetSpec
from tenfold.model.ids import NodeId, PoolId, SiteId
from tenfold.model.policy.policy import Policy
from tenfold.physics.nodes import nodes_of
from tenfold.report.figures import count

VIRTUAL = "virtual"
VIRTUAL_GPUS = 8
"""GPUs of a virtual node that no file describes. An assumption: what most training nodes have."""
VIRTUAL_MOST = 4_096
LOCAL = "local"


class Ground(Struct, frozen=True, kw_only=True):
    """What a control plane is given to decide about, and by which policy."""

    nodes: tuple[Node, ...]
    policy: Policy
    says: str
    """What there is, for whoever starts it."""
    is_virtual: bool = False
    """Whether the nodes only stand for nodes: their figures would all be this machine's."""
    notes: tuple[str, ...] = ()


def ground(fleet: Path | None, policy: str, virtual_nodes: int | None, before: list[str]) -> Ground:
    """Return the nodes of a fleet file, virtual ones, or this machine; `before` keeps its name."""
    if fleet is not None and virtual_nodes is not None:
        raise InputError(
            "two-fleets",
            "--fleet and --virtual-nodes both say which nodes there are",
            "leave out one of them",
        )
    if fleet is not None:
        return _from_file(fleet, policy)
    machine = discover_this_machine()
    this = machine.nodes[0]
    stated = join_fleet(policy_of(policy), NO_FLEET)
    if virtual_nodes is not None:
        nodes = _copies(this, virtual_nodes)
        says = f"{_said(nodes)}, all virtual: their processes run on this machine"
        return Ground(nodes=nodes, policy=stated, says=says, is_virtual=True)
    notes = list(machine.notes)
    node = _this_node(this, before[0] if len(before) == 1 else this.name, notes)
    if not before:
        notes.append("this machine is measured for some seconds before it takes its first job")
    says = f"this machine, `{node.id}`: {_has(node)}"
    return Ground(nodes=(node,), policy=stated, says=says, notes=tuple(notes))


def leaf_of(nodes: Sequence[Node]) -> str:
    """Return the nodes below the first leaf switch, as a host list."""
    first = nodes[0].leaf
    return hostlist.fold(str(node.id) for node in nodes if node.leaf == first)


def _from_file(file: Path, policy: str) -> Ground:
    catalogue = load_facts(None, without=UNREAD_FACTS)
    spec: FleetSpec = load_fleet(file, catalogue, unknown_accelerators=True)
    nodes = tuple(_as_virtual(node) for node in nodes_of(spec))
    return Ground(
        nodes=nodes,
        policy=join_fleet(policy_of(policy), spec),
        says=f"fleet `{spec.name}`: {_said(nodes)}, all virtual: processes run on this machine",
        is_virtual=True,
    )


def _as_virtual(node: Node) -> Node:
    tags = tuple(sorted(dict.fromkeys((*node.tags, VIRTUAL))))
    return replace(node, pool=PoolId(f"{VIRTUAL}-{node.pool}"), tags=tags)


def _copies(this: InventoryNode, number: int) -> tuple[Node, ...]:
    """Return copies of this machine, each with GPUs that are only numbers."""
    if not 1 <= number <= VIRTUAL_MOST:
        raise InputError(
            "bad-number",
            f"--virtual-nodes is {number}",
            f"ask for 1 to {VIRTUAL_MOST:,}",
            field="--virtual-nodes",
        )
    digits = len(str(number))
    return tuple(
        Node(
            id=NodeId(f"{VIRTUAL}-{place:0{digits}d}"),
            pool=PoolId(VIRTUAL),
            site=SiteId(LOCAL),
            accelerator="virtual-gpu",
            gpus=VIRTUAL_GPUS,
            cpus_milli=this.cpus * 1_000,
            memory_mib=round(this.memory_gib * 1_024),
            tags=(VIRTUAL,),
        )
        for place in range(1, number + 1)
    )


def _this_node(this: InventoryNode, name: str, notes: list[str]) -> Node:
    accelerator = ""
    if this.gpus:
        catalogue = load_facts(None, without=UNREAD_FACTS)
        accelerator = part_of(this, catalogue, notes).accelerator
    return Node(
        id=NodeId(name),
        pool=PoolId(LOCAL),
        site=SiteId(LOCAL),
        accelerator=accelerator,
        gpus=this.gpus,
        cpus_milli=this.cpus * 1_000,
        memory_mib=round(this.memory_gib * 1_024),
    )


def _said(nodes: Iterable[Node]) -> str:
    listed = list(nodes)
    return f"{count(len(listed), 'node')}, {count(sum(n.gpus for n in listed), 'GPU')}"


def _has(node: Node) -> str:
    gpus = f"{node.gpus} x {node.accelerator}" if node.gpus else "no GPU"
    cpus = count(node.cpus_milli // 1_000, "CPU")
    return f"{cpus}, {node.memory_mib / 1_024:,.0f} GiB, {gpus}"
