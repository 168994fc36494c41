"""Merge several fleets into one file; each keeps its own sites and fabrics.

Merging adds no cables: a gang still needs one fabric, and the capacity before and after shows
what sharing gains and what it does not. Names that clash are prefixed with their fleet's name.
Node names are used by executors, so they change only on request, or if they were generated
from the name of a pool that is renamed.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import cast

from msgspec import Struct
from msgspec.structs import replace

from tenfold.files.core.document import Table
from tenfold.files.core.rows import read_row, read_rows
from tenfold.files.fleet.build import build
from tenfold.files.fleet.merge_names import Renames, rename
from tenfold.files.fleet.read import read_fleet
from tenfold.files.fleet.rows import SINGLE_TABLES, TABLES, FleetRows
from tenfold.files.inventory.checks import NAME_MAX
from tenfold.files.inventory.inventory import FleetDraft
from tenfold.model.errors import InputError, InvalidFile
from tenfold.model.facts.catalogue import Catalogue
from tenfold.model.fleet import hostlist
from tenfold.model.fleet.finding import Finding
from tenfold.model.fleet.spec import FleetSpec

_NOT_PLAIN = re.compile(r"[^A-Za-z0-9._-]+")
MEMBER_TABLES = ("pool", "rack", "tier", "domain")


class FleetSource(Struct, frozen=True, kw_only=True):
    """One fleet to merge: the rows of its file and the full description."""

    file: str
    rows: FleetRows
    spec: FleetSpec


class Capacity(Struct, frozen=True, kw_only=True):
    """The capacity of one fleet; a gang uses one accelerator type in one fabric."""

    fleet: str
    sites: int
    nodes: int
    gpus: int
    gpus_by_accelerator: dict[str, int]
    gang_gpus_max: int


class CapacityView(Struct, frozen=True, kw_only=True):
    """Capacity of each fleet before the merge, and of the merged fleet."""

    before: tuple[Capacity, ...]
    after: Capacity


def read_source(path: Path, catalogue: Catalogue) -> FleetSource:
    """Read a fleet file to merge; unknown accelerators are allowed."""
    reading = read_fleet(path, catalogue, unknown_accelerators=True)
    if reading.spec is None:
        raise InvalidFile(str(path), reading.findings)
    return FleetSource(file=str(path), rows=_rows_of(reading.document.values), spec=reading.spec)


def _rows_of(values: Table) -> FleetRows:
    """Return the tables of a document that is known to be valid."""
    findings: list[Finding] = []
    tables: dict[str, object] = {"name": values.get("name", "")}
    for key, row_type in TABLES.items():
        tables[key] = read_rows(row_type, values.get(key, []), (key,), findings)
    for key, row_type in SINGLE_TABLES.items():
        tables[key] = read_row(row_type, values.get(key, {}), (key,), findings) or row_type()
    assert not findings, "a valid file has no findings"
    return FleetRows(**cast(dict[str, dict[int, object]], tables))  # pyright: ignore[reportArgumentType]


def capacity_of(spec: FleetSpec) -> Capacity:
    """Return the capacity of a fleet and the largest gang that fits in one fabric."""
    by_accelerator: dict[str, int] = {}
    by_fabric: dict[tuple[str, str], int] = {}
    for pool in spec.pools:
        if pool.gpus and pool.accelerator is not None:
            part = pool.accelerator
            by_accelerator[part] = by_accelerator.get(part, 0) + pool.gpus
            place = (pool.fabric or pool.id, part)
            by_fabric[place] = by_fabric.get(place, 0) + pool.gpus
    return Capacity(
        fleet=spec.name,
        sites=len(spec.sites),
        nodes=spec.nodes,
        gpus=spec.gpus,
        gpus_by_accelerator=dict(sorted(by_accelerator.items())),
        gang_gpus_max=max(by_fabric.values(), default=0),
    )


def compare(
    sources: Sequence[FleetSource], merged: FleetDraft, catalogue: Catalogue
) -> CapacityView:
    """Return the capacity of the fleets before and after the merge."""
    findings: list[Finding] = []
    spec = build(merged.rows, merged.rows.name, catalogue, findings)
    assert spec is not None, "valid fleets merge into a valid fleet"
    assert not findings, "valid fleets merge into a valid fleet"
    return CapacityView(
        before=tuple(capacity_of(source.spec) for source in sources), after=capacity_of(spec)
    )


def merge_fleets(
    sources: Sequence[FleetSource], name: str, *, prefix_nodes: bool = False
) -> FleetDraft:
    """Return the merged fleet, or raise if two nodes have the same name."""
    if len(sources) < 2:
        raise InputError(
            "nothing-to-merge",
            "merge needs at least two fleets",
            "pass two or more fleet files",
        )
    labels = _labels(sources)
    renames = _renames(sources, labels)
    notes = [note for one in renames for note in one.notes]
    renames = _rename_nodes(sources, renames, prefix_nodes, notes)
    parts = [rename(source.rows, one) for source, one in zip(sources, renames, strict=True)]
    tables = {table: _concatenated(parts, table) for table in TABLES}
    singles = {table: _common_table(parts, table, notes) for table in SINGLE_TABLES}
    names = [f"`{label}`" for label in labels]
    sites = f"{', '.join(names[:-1])} and {names[-1]}"
    notes.append(
        f"no links are known between the sites of {sites}: add a `[[link]]` for each that exists"
    )
    rows = FleetRows(name=name, **tables, **singles)  # pyright: ignore[reportArgumentType]
    return FleetDraft(rows=rows, notes=tuple(notes))


def _labels(sources: Sequence[FleetSource]) -> list[str]:
    """Return a unique name for each fleet that is valid in a host list."""
    labels: dict[str, None] = {}
    for source in sources:
        plain = _NOT_PLAIN.sub("-", source.spec.name).strip("-")[:60] or "fleet"
        label, number = plain, 1
        while label in labels:
            number += 1
            label = f"{plain}-{number}"
        labels[label] = None
    return list(labels)


def _renames(sources: Sequence[FleetSource], labels: Sequence[str]) -> list[Renames]:
    names = [
        _names_by_namespace(source, label) for source, label in zip(sources, labels, strict=True)
    ]
    assigned: dict[str, set[str]] = {namespace: set() for namespace in names[0]}
    renames: list[Renames] = []
    for place, (source, label) in enumerate(zip(sources, labels, strict=True)):
        namespaces: dict[str, dict[str, str]] = {}
        for namespace, own in names[place].items():
            others = {
                name for at, one in enumerate(names) if at != place for name in one[namespace]
            }
            namespaces[namespace] = _prefixed(own, others | assigned[namespace], label)
            assigned[namespace].update(namespaces[namespace].values())
        changed = [new for one in namespaces.values() for old, new in one.items() if old != new]
        if not source.rows.site:
            # An undeclared site is named after its fleet.
            namespaces["site"] = {source.spec.sites[0].id: namespaces["site"][label]}
        notes = (_prefix_note(label, changed),) if changed else ()
        renames.append(
            Renames(label=label, namespaces=namespaces, nodes={}, notes=notes, spec=source.spec)
        )
    return renames


def _prefix_note(label: str, changed: Sequence[str]) -> str:
    shown = ", ".join(f"`{name}`" for name in changed[:4])
    more = f" and {len(changed) - 4} more" if len(changed) > 4 else ""
    return f"names in fleet `{label}` that clash with another fleet are prefixed: {shown}{more}"


def _names_by_namespace(source: FleetSource, label: str) -> dict[str, list[str]]:
    """Return declared names by namespace; members of domains share one namespace."""

    def declared(table: str) -> list[str]:
        rows = cast(Mapping[int, object], getattr(source.rows, table))
        return [cast(str, getattr(row, "name", "")) for row in rows.values()]

    members = [name for table in MEMBER_TABLES for name in declared(table)]
    undeclared = [rack.id for rack in source.spec.racks]
    return {
        "site": declared("site") or [label],
        "fabric": declared("fabric"),
        "team": declared("team"),
        "data": declared("data"),
        "member": list(dict.fromkeys([*members, *undeclared])),
    }


def _prefixed(own: Sequence[str], used: set[str], label: str) -> dict[str, str]:
    """Return a new, unused name for each name that is already in use."""
    new: dict[str, str] = {}
    for name in own:
        wanted = name
        while wanted in used or (wanted != name and wanted in own):
            wanted = f"{label}-{wanted}"
        if len(wanted) > NAME_MAX:
            raise InputError(
                "name-too-long",
                f"`{name[:40]}` of fleet `{label}` clashes and is too long to prefix",
                f"rename it: names have at most {NAME_MAX} characters",
            )
        new[name] = wanted
    return new


def _rename_nodes(
    sources: Sequence[FleetSource], renames: Sequence[Renames], prefix: bool, notes: list[str]
) -> list[Renames]:
    """Rename nodes that clash; raise if `prefix` does not allow it."""
    owner: dict[str, str] = {}
    clashes: list[str] = []
    results: list[Renames] = []
    for source, one in zip(sources, renames, strict=True):
        nodes = _generated_nodes(source, one)
        own = [node for pool in source.spec.pools for node in hostlist.expand(pool.node_names)]
        duplicates = [node for node in own if nodes.get(node, node) in owner]
        if duplicates and prefix:
            nodes |= {node: f"{one.label}-{nodes.get(node, node)}" for node in duplicates}
            notes.append(
                f"{len(duplicates)} nodes of fleet `{one.label}` are prefixed with its name, "
                f"such as `{nodes[duplicates[0]]}`: another fleet uses the same names"
            )
            duplicates = [node for node in duplicates if nodes[node] in owner]
        clashes.extend(
            f"`{node}` (in `{source.file}` and `{owner[nodes.get(node, node)]}`)"
            for node in duplicates
        )
        owner.update((nodes.get(node, node), source.file) for node in own)
        results.append(replace(one, nodes=nodes))
    if clashes:
        more = f" and {len(clashes) - 4} more" if len(clashes) > 4 else ""
        raise InputError(
            "node-clash",
            f"node names used in more than one fleet: {', '.join(clashes[:4])}{more}",
            "remove the nodes from one of the files, or add `--prefix-nodes`",
            file=sources[-1].file,
        )
    return results


def _generated_nodes(source: FleetSource, renames: Renames) -> dict[str, str]:
    """Return new names for nodes that are named after a renamed pool."""
    listed = {row.pool for row in source.rows.node.values()}
    generated: dict[str, str] = {}
    for row in source.rows.pool.values():
        pool = renames.of("member", row.name)
        if row.node_names is None and row.name not in listed and pool != row.name:
            generated |= {
                f"{row.name}-{number + 1}": f"{pool}-{number + 1}"
                for number in range(row.nodes or 0)
            }
    return generated


def _concatenated(parts: Sequence[FleetRows], table: str) -> dict[int, object]:
    rows = [
        row for part in parts for row in cast(Mapping[int, object], getattr(part, table)).values()
    ]
    return dict(enumerate(rows))


def _common_table(parts: Sequence[FleetRows], table: str, notes: list[str]) -> object:
    """Return a single table if all fleets that state it agree, else an empty one."""
    empty: Callable[[], object] = SINGLE_TABLES[table]
    stated: list[object] = [getattr(part, table) for part in parts]
    nonempty = [row for row in stated if row != empty()]
    if all(row == nonempty[0] for row in nonempty):
        return nonempty[0] if nonempty else empty()
    notes.append(f"the fleets have different `[{table}]` tables: the merged fleet has none")
    return empty()


def merged_teams(sources: Sequence[FleetSource]) -> list[dict[str, str]]:
    """Return for each fleet what `merge_fleets` calls its declared teams."""
    return [dict(one.namespaces["team"]) for one in _renames(sources, _labels(sources))]
