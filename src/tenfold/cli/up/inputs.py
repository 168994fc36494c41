"""What `tenfold up` starts with: nodes (this machine, or virtual ones), policy and shadow policy.

Virtual nodes run real processes, all on this machine. Their pool names begin with `virtual`, so
that every listing shows it, and they have the tag `virtual`, so that a job can avoid them.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from tenfold.cli.output import print_note
from tenfold.compose.fleet import UNUSED_FACTS, load_facts
from tenfold.compose.inputs import policy_of
from tenfold.compose.policy_fleet import NO_FLEET, policy_for_fleet, policy_for_record
from tenfold.files.fleet.read import load_fleet
from tenfold.files.inventory.accelerators import part_of
from tenfold.live.this_machine import discover_this_machine
from tenfold.model.errors import InputError
from tenfold.model.fleet import hostlist
from tenfold.model.fleet.inventory import InventoryNode
from tenfold.model.fleet.node import Node
from tenfold.model.fleet.spec import FleetSpec
from tenfold.model.ids import NodeId, PoolId, SiteId
from tenfold.model.policy.policy import ORACLES, Policy
from tenfold.physics.nodes import nodes_of
from tenfold.report.figures import count

VIRTUAL = "virtual"
VIRTUAL_GPUS = 8
"""GPUs of a virtual node without a fleet file. An assumption: most training nodes have 8."""
VIRTUAL_MAX = 4_096
LOCAL = "local"


class ControlPlaneInputs(Struct, frozen=True, kw_only=True):
    """The nodes and the policy of a control plane."""

    nodes: tuple[Node, ...]
    policy: Policy
    summary: str
    """The nodes in one line, for the user."""
    is_virtual: bool = False
    """Whether the nodes are virtual: benchmarks of them would all measure this machine."""
    notes: tuple[str, ...] = ()


def control_plane_inputs(
    fleet: Path | None, policy: str, virtual_nodes: int | None, previous: list[str]
) -> ControlPlaneInputs:
    """Return the nodes of a fleet file, virtual ones, or this machine under its previous name."""
    if fleet is not None and virtual_nodes is not None:
        raise InputError(
            "two-fleets",
            "`--fleet` and `--virtual-nodes` cannot be used together",
            "leave out one of them",
        )
    if fleet is not None:
        return _from_file(fleet, policy)
    machine = discover_this_machine()
    this = machine.nodes[0]
    stated = policy_for_fleet(policy_of(policy), NO_FLEET)
    if virtual_nodes is not None:
        nodes = _copies(this, virtual_nodes)
        summary = f"{_size_text(nodes)}, all virtual: their processes run on this machine"
        return ControlPlaneInputs(nodes=nodes, policy=stated, summary=summary, is_virtual=True)
    notes = list(machine.notes)
    node = _this_node(this, previous[0] if len(previous) == 1 else this.name, notes)
    if not previous:
        notes.append("this machine is benchmarked for a few seconds before its first job starts")
    summary = f"this machine, `{node.id}`: {_hardware_text(node)}"
    return ControlPlaneInputs(nodes=(node,), policy=stated, summary=summary, notes=tuple(notes))


def shadow_of(named: str | None, live: Policy, fleet: Path | None) -> Policy | None:
    """Return the policy of `--shadow`, with the teams of the fleet; None without one."""
    if named is None:
        return None
    stated = policy_of(named)
    if stated.name in ORACLES:
        raise InputError(
            "shadow-needs-durations",
            f"policy `{stated.name}` needs job durations, which are unknown for live jobs",
            f"try it on recorded jobs: `tenfold replay --policy {stated.name}`",
            field="--shadow",
        )
    joined, notes = policy_for_record(stated, live, fleet)
    for note in notes:
        print_note(note)
    return joined


def leaf_of(nodes: Sequence[Node]) -> str:
    """Return the nodes under the first leaf switch, as a host list."""
    first = nodes[0].leaf
    return hostlist.fold(str(node.id) for node in nodes if node.leaf == first)


def _from_file(file: Path, policy: str) -> ControlPlaneInputs:
    catalogue = load_facts(None, without=UNUSED_FACTS)
    spec: FleetSpec = load_fleet(file, catalogue, unknown_accelerators=True)
    nodes = tuple(_as_virtual(node) for node in nodes_of(spec))
    return ControlPlaneInputs(
        nodes=nodes,
        policy=policy_for_fleet(policy_of(policy), spec),
        summary=f"fleet `{spec.name}`: {_size_text(nodes)}, all virtual: "
        "their processes run on this machine",
        is_virtual=True,
    )


def _as_virtual(node: Node) -> Node:
    tags = tuple(sorted(dict.fromkeys((*node.tags, VIRTUAL))))
    return replace(node, pool=PoolId(f"{VIRTUAL}-{node.pool}"), tags=tags)


def _copies(this: InventoryNode, number: int) -> tuple[Node, ...]:
    """Return virtual copies of this machine, each with virtual GPUs."""
    if not 1 <= number <= VIRTUAL_MAX:
        raise InputError(
            "bad-number",
            f"`--virtual-nodes` must be from 1 to {VIRTUAL_MAX:,}, got {number:,}",
            "use a number in this range",
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
        catalogue = load_facts(None, without=UNUSED_FACTS)
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


def _size_text(nodes: Iterable[Node]) -> str:
    listed = list(nodes)
    return f"{count(len(listed), 'node')}, {count(sum(n.gpus for n in listed), 'GPU')}"


def _hardware_text(node: Node) -> str:
    gpus = f"{node.gpus} x {node.accelerator}" if node.gpus else "no GPU"
    cpus = count(node.cpus_milli // 1_000, "CPU")
    return f"{cpus}, {node.memory_mib / 1_024:,.0f} GiB, {gpus}"
