"""What `tenfold up` starts with: nodes (this machine, or virtual ones), policy and shadow policy.

Virtual nodes run real processes, all on this machine. Their pool names begin with `virtual`, so
that every listing shows it, and they have the tag `virtual`, so that a job can avoid them.
"""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from tenfold.cli.output import print_note
from tenfold.cli.up.state_dir import virtual_names
from tenfold.compose.fleet import UNUSED_FACTS, load_facts
from tenfold.compose.inputs import policy_of
from tenfold.compose.policy_fleet import NO_FLEET, policy_for_fleet, policy_for_record
from tenfold.files.fleet.read import load_fleet
from tenfold.files.fleet.write import render_fleet_toml
from tenfold.files.inventory.accelerators import part_of
from tenfold.files.inventory.inventory import pools_from
from tenfold.files.sites import SiteEngine, read_sites
from tenfold.files.slurm.node_use import read_node_use
from tenfold.files.slurm.nodes import read_slurm_nodes
from tenfold.live.ray.api import TOKEN, RayApi
from tenfold.live.ray.nodes import ray_inventory
from tenfold.live.slurm.attach.gather import slurm_environment
from tenfold.live.slurm.commands import SlurmCommands
from tenfold.live.this_machine import discover_this_machine
from tenfold.model.errors import InputError
from tenfold.model.fleet import hostlist
from tenfold.model.fleet.inventory import Inventory, InventoryNode
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
SLURM_COMMAND = "scontrol show nodes"
FLEET_FILE = "{}-fleet.toml"
COMMENT = "Written at every start from the nodes of the cluster; copy it to refine it."


class ExternalInputs(Struct, frozen=True, kw_only=True):
    """Where the nodes of a Slurm or Ray cluster come from."""

    fleet: Path | None = None
    """A fleet file that describes them; without one, the cluster is asked."""
    partition: str = ""
    """Of Slurm."""
    ray_address: str = ""
    """The URL of Ray's dashboard; empty for Slurm."""

    @property
    def system(self) -> str:
        """The name of the system."""
        return "ray" if self.ray_address else "slurm"


class ControlPlaneInputs(Struct, frozen=True, kw_only=True):
    """The nodes and the policy of a control plane."""

    nodes: tuple[Node, ...]
    policy: Policy
    summary: str
    """The nodes in one line, for the user."""
    is_here: bool = True
    """Whether the nodes are this machine: only then are they benchmarked and their GPUs read."""
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
        summary = f"{_size_text(nodes)}, all virtual: jobs run on this machine"
        return ControlPlaneInputs(nodes=nodes, policy=stated, summary=summary, is_here=False)
    notes = list(machine.notes)
    node = _this_node(this, previous[0] if len(previous) == 1 else this.name, notes)
    if not previous:
        notes.append(
            "this machine will be benchmarked for a few seconds before its first job starts"
        )
    summary = f"this machine, `{node.id}`: {_hardware_text(node)}"
    return ControlPlaneInputs(nodes=(node,), policy=stated, summary=summary, notes=tuple(notes))


def external_inputs(
    settings: ExternalInputs, policy: str, virtual_nodes: int | None, state_dir: Path
) -> ControlPlaneInputs:
    """Return the nodes that the cluster has, or those of a fleet file that describes them."""
    fleet = settings.fleet
    if virtual_nodes is not None:
        raise InputError(
            "two-fleets",
            f"`--virtual-nodes` cannot be combined with `--executor {settings.system}`, which has "
            "its own nodes",
            "leave out one of them",
        )
    catalogue = load_facts(None, without=UNUSED_FACTS)
    notes: tuple[str, ...] = ()
    file = fleet
    if file is None:
        draft = pools_from(_nodes_there(settings), catalogue, keep_unusable=True)
        file, notes = state_dir / FLEET_FILE.format(settings.system), draft.notes
        state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        file.write_text(render_fleet_toml(draft.rows, [COMMENT]), encoding="utf-8")
    spec = load_fleet(file, catalogue, unknown_accelerators=True)
    nodes = tuple(nodes_of(spec))
    return ControlPlaneInputs(
        nodes=nodes,
        policy=policy_for_fleet(policy_of(policy), spec),
        summary=f"{settings.system.capitalize()} cluster `{spec.name}`: {_size_text(nodes)}",
        is_here=False,
        notes=notes,
    )


def site_inputs(
    sites: Path, fleet: Path, policy: str, virtual_nodes: int | None
) -> tuple[ControlPlaneInputs, tuple[SiteEngine, ...]]:
    """Return the nodes of a fleet file and the engine of each of its sites.

    Nodes of local sites are virtual: their processes run on this machine.
    """
    if virtual_nodes is not None:
        raise InputError(
            "two-fleets",
            "`--sites` needs a fleet file, and no `--virtual-nodes`",
            "leave out one of them",
        )
    spec = load_fleet(fleet, load_facts(None, without=UNUSED_FACTS), unknown_accelerators=True)
    engines = read_sites(sites, spec)
    local = dict.fromkeys(one.name for one in engines if one.engine == "local")
    nodes = tuple(_as_virtual(node) if str(node.site) in local else node for node in nodes_of(spec))
    listed = ", ".join(f"{one.name} ({one.engine})" for one in engines)
    inputs = ControlPlaneInputs(
        nodes=nodes,
        policy=policy_for_fleet(policy_of(policy), spec),
        summary=f"fleet `{spec.name}`: {_size_text(nodes)}, at {listed}",
        is_here=False,
    )
    return inputs, engines


def _nodes_there(settings: ExternalInputs) -> Inventory:
    if not settings.ray_address:
        return _slurm_nodes(settings.partition)
    api = RayApi(settings.ray_address, os.environ.get(TOKEN, ""))
    try:
        return ray_inventory(api, settings.ray_address)
    finally:
        api.close()


def _slurm_nodes(partition: str) -> Inventory:
    """Return the nodes of Slurm, or of one of its partitions."""
    commands = SlurmCommands(slurm_environment())
    text = commands.run_json("scontrol", "show", "nodes")
    inventory = read_slurm_nodes(text, SLURM_COMMAND)
    if not partition:
        return inventory
    # Not `sinfo`: it refuses `--all` with a partition, and leaves hidden ones out without it.
    names = {one.name for one in read_node_use(text, SLURM_COMMAND) if partition in one.partitions}
    nodes = tuple(node for node in inventory.nodes if node.name in names)
    if not nodes:
        raise InputError(
            "no-such-partition",
            f"partition `{partition}` has no node in Slurm",
            "list partitions with `sinfo --summarize`",
            field="--slurm-partition",
        )
    return replace(inventory, nodes=nodes)


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
        summary=f"fleet `{spec.name}`: {_size_text(nodes)}, all virtual: jobs run on this machine",
        is_here=False,
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
            "leave out `--virtual-nodes` to use this machine as one real node",
            field="--virtual-nodes",
        )
    return tuple(
        Node(
            id=NodeId(name),
            pool=PoolId(VIRTUAL),
            site=SiteId(LOCAL),
            accelerator="virtual-gpu",
            gpus=VIRTUAL_GPUS,
            cpus_milli=this.cpus * 1_000,
            memory_mib=round(this.memory_gib * 1_024),
            tags=(VIRTUAL,),
        )
        for name in virtual_names(number)
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
