"""`tenfold fleet import|discover|merge`: describe an existing fleet.

These functions read, build and write; the calling command prints the result.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from msgspec import Struct

from tenfold.cli.arguments import Facts, Force
from tenfold.compose.fleet import load_facts
from tenfold.files.core.document import read_text
from tenfold.files.core.write import write_new_file
from tenfold.files.fleet.merge import CapacityView, compare, merge_fleets, read_source
from tenfold.files.fleet.rows import FleetRows
from tenfold.files.fleet.write import render_fleet_toml
from tenfold.files.inventory.inventory import FleetDraft, pools_from
from tenfold.files.inventory.nodes_csv import read_nodes_csv
from tenfold.files.kubernetes.nodes import read_kubernetes_nodes
from tenfold.files.slurm.nodes import UNNAMED, read_slurm_file, read_slurm_nodes
from tenfold.live.slurm.attach.gather import slurm_environment
from tenfold.live.slurm.commands import SlurmCommands
from tenfold.model.fleet import hostlist
from tenfold.model.fleet.inventory import THIS_MACHINE, Inventory, SoftwareFacts

# An export has kilobytes per node, mostly container images; a fleet file has bytes.
EXPORT_MAX_BYTES = 512 * 1024 * 1024
NOTES_IN_FILE = 20


class PoolSummary(Struct, frozen=True, kw_only=True):
    """One pool of an imported fleet."""

    pool: str
    site: str | None
    accelerator: str | None
    nodes: int
    gpus_per_node: int
    cpus_per_node: int | None
    memory_gib_per_node: float | None


class SoftwareSummary(Struct, frozen=True, kw_only=True):
    """Software versions shared by a number of nodes; more than one row means drift."""

    nodes: int
    software: SoftwareFacts


class ImportSummary(Struct, frozen=True, kw_only=True):
    """What the source has, and what is in the fleet file."""

    source: str
    fleet: str
    nodes_found: int
    nodes: int
    gpus: int
    racks: int
    pools: tuple[PoolSummary, ...]
    software: tuple[SoftwareSummary, ...]


class ImportResult(Struct, frozen=True, kw_only=True):
    """A fleet file as text, with notes and a summary."""

    toml: str
    notes: tuple[str, ...]
    summary: ImportSummary | CapacityView


@dataclass(frozen=True, kw_only=True)
class Target:
    """The name of the fleet, and the file to write it to."""

    out: Annotated[Path | None, Parameter(help="Output file (default: standard output)")] = None
    name: Annotated[str, Parameter(help="Name of the fleet")] = ""
    force: Force = False
    facts: Facts = None


@dataclass(frozen=True, kw_only=True)
class ImportTarget(Target):
    """The same, with the choice of nodes to import."""

    keep_unusable: Annotated[
        bool, Parameter(negative="", help="Also import nodes that are down or drained")
    ] = False


NO_TARGET = Target()


def import_slurm(source: Path | None, target: Target = NO_TARGET) -> ImportResult:
    """Import a Slurm cluster from saved output, or from the one running here."""
    if source is None:
        text = SlurmCommands(slurm_environment()).run_json("scontrol", "show", "nodes")
        inventory = read_slurm_nodes(text, "scontrol show nodes")
    else:
        inventory = read_slurm_file(source, EXPORT_MAX_BYTES)
    return _import(inventory, target)


def import_kubernetes(source: Path, target: Target = NO_TARGET) -> ImportResult:
    """Import a Kubernetes cluster from a saved `kubectl get nodes -o json`."""
    text = read_text(source, EXPORT_MAX_BYTES)
    return _import(read_kubernetes_nodes(text, str(source)), target)


def import_csv(source: Path, target: Target = NO_TARGET) -> ImportResult:
    """Import nodes from a CSV file with one row per node."""
    text = read_text(source, EXPORT_MAX_BYTES)
    return _import(read_nodes_csv(text, str(source)), target)


def discover(target: Target = NO_TARGET) -> ImportResult:
    """Describe this machine as a fleet of one node."""
    # psutil and NVML are only needed here, and slow to import.
    from tenfold.live.this_machine import discover_this_machine  # noqa: PLC0415

    return _import(discover_this_machine(), target)


def merge(
    files: Sequence[Path], target: Target = NO_TARGET, *, prefix_nodes: bool = False
) -> ImportResult:
    """Merge several fleet files, and compare capacity before and after."""
    catalogue = load_facts(target.facts)
    sources = [read_source(path, catalogue) for path in files]
    draft = merge_fleets(sources, target.name or "merged", prefix_nodes=prefix_nodes)
    view = compare(sources, draft, catalogue)
    names = [path.name for path in files]
    if len(dict.fromkeys(names)) < len(names):
        names = [str(path) for path in files]
    origin = f"Merged from {', '.join(f'`{name}`' for name in names)}."
    return ImportResult(toml=_write_toml(draft, origin, target), notes=draft.notes, summary=view)


def _import(inventory: Inventory, target: Target) -> ImportResult:
    draft = pools_from(
        inventory,
        load_facts(target.facts),
        name=target.name,
        keep_unusable=isinstance(target, ImportTarget) and target.keep_unusable,
    )
    format = f", {inventory.format}" if inventory.format else ""
    origin = (
        "Describes this machine."
        if inventory.source == THIS_MACHINE
        else f"Imported from `{Path(inventory.source).name}`{format}."
    )
    read_as = [f"detected {inventory.format}"] if inventory.format else []
    if inventory.name == UNNAMED and not target.name:
        read_as.append(
            f"the cluster's name is not in it: the fleet is named `{UNNAMED}`; set `--name`"
        )
    return ImportResult(
        toml=_write_toml(draft, origin, target),
        notes=(*read_as, *draft.notes),
        summary=_summary(inventory, draft.rows),
    )


def _write_toml(draft: FleetDraft, origin: str, target: Target) -> str:
    comments = [origin, *draft.notes[:NOTES_IN_FILE]]
    if len(draft.notes) > NOTES_IN_FILE:
        comments.append(f"{len(draft.notes) - NOTES_IN_FILE} more notes were printed by the import")
    toml = render_fleet_toml(draft.rows, comments)
    if target.out is not None:
        write_new_file(target.out, toml, force=target.force)
    return toml


def _summary(inventory: Inventory, rows: FleetRows) -> ImportSummary:
    listed: dict[str, int] = {}
    for node in rows.node.values():
        listed[node.pool] = listed.get(node.pool, 0) + 1
    pools = tuple(
        PoolSummary(
            pool=row.name,
            site=row.site,
            accelerator=row.accelerator,
            nodes=len(hostlist.expand(row.node_names or "")) + listed.get(row.name, 0),
            gpus_per_node=row.gpus_per_node or 0,
            cpus_per_node=row.cpus_per_node,
            memory_gib_per_node=row.memory_gib_per_node,
        )
        for row in rows.pool.values()
    )
    software: dict[SoftwareFacts, int] = {}
    for node in inventory.nodes:
        software[node.software] = software.get(node.software, 0) + 1
    most_first = sorted(software.items(), key=lambda item: -item[1])
    return ImportSummary(
        source=inventory.source,
        fleet=rows.name,
        nodes_found=len(inventory.nodes),
        nodes=sum(pool.nodes for pool in pools),
        gpus=sum(pool.nodes * pool.gpus_per_node for pool in pools),
        racks=len(rows.rack),
        pools=pools,
        software=tuple(SoftwareSummary(nodes=count, software=one) for one, count in most_first),
    )
