"""Convert an inventory to the tables of a fleet file: identical nodes become a pool.

Nodes are identical if they have the same site, accelerator, counts and scheduling labels.
Other labels are kept on a pool only if all of its nodes have the same value. Slurm's partitions
and features overlap, so they do not divide a pool: it keeps those that all of its nodes have.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from msgspec import Struct

from tenfold.files.fleet.rows import FleetRows, NodeRow, PoolRow, RackRow, SiteRow
from tenfold.files.inventory.accelerators import part_of
from tenfold.files.inventory.checks import NAME_MAX, check_inventory
from tenfold.model.errors import InputError
from tenfold.model.facts.catalogue import Catalogue
from tenfold.model.fleet import hostlist
from tenfold.model.fleet.inventory import Inventory, InventoryNode

DEFAULT_SITE = "main"
REASONS_SHOWN = 12
SHARED_WORDS = ("partitions", "features")
"""Lists of words in a label: a pool keeps those that all of its nodes have."""
POOL_LABELS = (
    "taints",
    "node.kubernetes.io/instance-type",
    "cloud.google.com/gke-nodepool",
    "cloud.google.com/gke-tpu-topology",
    "eks.amazonaws.com/nodegroup",
    "kubernetes.azure.com/agentpool",
    "nvidia.com/mig.config",
)
_SIZE_WORD = re.compile(r"(\d+gb?|sxm\d?|pcie|nvl|se|\d+w)\Z")
_NOT_PLAIN = re.compile(r"[^a-z0-9]+")
_DIGITS = re.compile(r"([0-9]+)")


class FleetDraft(Struct, frozen=True, kw_only=True):
    """The tables of a new fleet file, and notes for its reader."""

    rows: FleetRows
    notes: tuple[str, ...]


class _PoolKey(Struct, frozen=True, order=True):
    """What the nodes of one pool have in common; also the sort order of pools."""

    without_gpus: bool
    accelerator: str
    site: str
    gpus: int
    cpus: int
    memory_gib: int
    shape: str
    labels: tuple[tuple[str, str], ...]


def pools_from(
    inventory: Inventory, catalogue: Catalogue, *, name: str = "", keep_unusable: bool = False
) -> FleetDraft:
    """Return the fleet of an inventory, with identical nodes grouped into pools."""
    check_inventory(inventory.nodes, inventory.source)
    nodes = [node for node in inventory.nodes if node.usable or keep_unusable]
    notes = [*inventory.notes, *_left_out(inventory, nodes)]
    if not nodes:
        raise InputError(
            "no-usable-nodes",
            f"none of the {len(inventory.nodes)} nodes in `{inventory.source}` is usable: "
            f"`{inventory.nodes[0].name}` is {inventory.nodes[0].why_unusable}",
            "bring nodes back, or add `--keep-unusable`",
            file=inventory.source,
        )
    groups: dict[_PoolKey, list[InventoryNode]] = {}
    has_sites = any(node.site for node in nodes)
    for node in sorted(nodes, key=_natural):
        groups.setdefault(_kind(node, has_sites, catalogue, notes), []).append(node)
    kinds = sorted(groups)
    pool_names = dict(zip(kinds, _pool_names(kinds), strict=True))
    racks = _racks(nodes, has_sites)
    listed = _listed(groups, racks)
    pools = [_pool(pool_names[kind], kind, groups[kind], kind not in listed) for kind in kinds]
    rows = FleetRows(
        name=name or inventory.name,
        site=dict(enumerate(_sites(nodes, has_sites))),
        pool=dict(enumerate(pools)),
        rack=dict(enumerate(_rack_rows(racks, listed, groups, has_sites))),
        node=dict(enumerate(_node_rows(kinds, groups, listed, pool_names, racks))),
    )
    for kind in kinds:
        notes += _words_left_out(pool_names[kind], groups[kind])
    return FleetDraft(rows=rows, notes=tuple(dict.fromkeys(notes)))


def _left_out(inventory: Inventory, kept: Sequence[InventoryNode]) -> list[str]:
    if len(kept) == len(inventory.nodes):
        return []
    reasons: dict[str, list[str]] = {}
    for node in inventory.nodes:
        if not node.usable:
            reasons.setdefault(node.why_unusable, []).append(node.name)
    total = sum(map(len, reasons.values()))
    notes = [f"skipped {total} of {len(inventory.nodes)} nodes as unusable"]
    for why, names in list(reasons.items())[:REASONS_SHOWN]:
        which = hostlist.fold(sorted(names, key=_natural_name))
        notes.append(f"skipped: {which if len(which) <= 120 else f'{len(names)} nodes'} ({why})")
    return notes


def _natural(node: InventoryNode) -> tuple[list[str | int], str]:
    return _natural_name(node.name), node.name


def _natural_name(name: str) -> list[str | int]:
    """Return a sort key that puts n2 before n10."""
    pieces = _DIGITS.split(name)
    return [int(piece) if place % 2 else piece for place, piece in enumerate(pieces)]


def _kind(node: InventoryNode, has_sites: bool, catalogue: Catalogue, notes: list[str]) -> _PoolKey:
    part = part_of(node, catalogue, notes)
    pool_labels = tuple((key, node.labels[key]) for key in POOL_LABELS if key in node.labels)
    return _PoolKey(
        without_gpus=node.gpus == 0,
        accelerator=part.accelerator,
        site=(node.site or DEFAULT_SITE) if has_sites else "",
        gpus=node.gpus,
        cpus=node.cpus,
        memory_gib=round(node.memory_gib),
        shape=part.shape,
        labels=pool_labels,
    )


def _pool_names(kinds: Sequence[_PoolKey]) -> list[str]:
    """Return a short name for each pool, with the site and then a number to make it unique."""
    bases = [_short(kind) for kind in kinds]
    shared = Counter(bases)
    has_sites = [
        f"{base}-{_slug(kind.site)}" if shared[base] > 1 and kind.site else base
        for base, kind in zip(bases, kinds, strict=True)
    ]
    return _unique(has_sites)


def _unique(wanted: Sequence[str]) -> list[str]:
    """Return the names, numbered where there are duplicates."""
    shared = Counter(wanted)
    names: dict[str, None] = {}
    for base in wanted:
        name, number = base, 0
        while name in names or (number == 0 and shared[base] > 1):
            number += 1
            name = f"{base}-{number}"
        names[name] = None
    return list(names)


def _short(kind: _PoolKey) -> str:
    """Return `h100` for `H100-80G-SXM`: drop memory size and form factor."""
    if kind.without_gpus:
        return "cpu"
    words = _slug(kind.accelerator).split("-")
    while len(words) > 1 and _SIZE_WORD.match(words[-1]):
        words.pop()
    return "-".join(words)


def _slug(text: str) -> str:
    return _NOT_PLAIN.sub("-", text.casefold()).strip("-")[:60] or "gpu"


def _racks(nodes: Sequence[InventoryNode], has_sites: bool) -> dict[str, list[InventoryNode]]:
    """Return nodes by rack; racks with the same name in several sites get a site prefix."""
    by_place: dict[tuple[str, str], list[InventoryNode]] = {}
    for node in sorted(nodes, key=_natural):
        if node.rack is not None:
            site = (node.site or DEFAULT_SITE) if has_sites else ""
            by_place.setdefault((site, node.rack), []).append(node)
    shared = Counter(rack for _, rack in by_place)
    places = sorted(by_place)
    wanted = [f"{site}-{rack}"[:190] if shared[rack] > 1 else rack for site, rack in places]
    return {name: by_place[place] for name, place in zip(_unique(wanted), places, strict=True)}


def _listed(
    groups: Mapping[_PoolKey, list[InventoryNode]], racks: Mapping[str, list[InventoryNode]]
) -> dict[_PoolKey, None]:
    """Return the pools whose host list is too long, so that each node needs a table."""
    long_racked = {
        node.name: None for members in racks.values() if not _fits(members) for node in members
    }
    return {
        kind: None
        for kind, members in groups.items()
        if not _fits(members) or any(node.name in long_racked for node in members)
    }


def _fits(members: Sequence[InventoryNode]) -> bool:
    return len(hostlist.fold(node.name for node in members)) <= NAME_MAX


def _sites(nodes: Sequence[InventoryNode], has_sites: bool) -> list[SiteRow]:
    regions: dict[str, dict[str, None]] = {}
    for node in nodes if has_sites else ():
        known = regions.setdefault(node.site or DEFAULT_SITE, {})
        known[node.labels.get("region", "")] = None
    return [
        SiteRow(name=site, region=next(iter(known)) if len(known) == 1 else "")
        for site, known in sorted(regions.items())
    ]


def _pool(
    name: str, kind: _PoolKey, members: Sequence[InventoryNode], in_host_list: bool
) -> PoolRow:
    first = members[0].labels
    common: dict[str, str] = {
        key: value
        for key, value in sorted(first.items())
        if key not in ("region", *SHARED_WORDS)
        and all(node.labels.get(key) == value for node in members)
    }
    for key in SHARED_WORDS:
        if words := _words(members, key)[0]:
            common[key] = ",".join(words)
    return PoolRow(
        name=name,
        accelerator=None if kind.without_gpus else kind.accelerator,
        gpus_per_node=kind.gpus,
        node_names=hostlist.fold(node.name for node in members) if in_host_list else None,
        shape=kind.shape or None,
        site=kind.site or None,
        cpus_per_node=kind.cpus,
        memory_gib_per_node=kind.memory_gib or None,
        labels=dict(sorted(common.items())),
    )


def _words(members: Sequence[InventoryNode], key: str) -> tuple[list[str], list[str]]:
    """Return the words of a label that all nodes have, and those that only some have."""
    lists = [[word for word in node.labels.get(key, "").split(",") if word] for node in members]
    every = dict.fromkeys(word for words in lists for word in words)
    shared = [word for word in every if all(word in words for words in lists)]
    return shared, [word for word in every if word not in shared]


def _words_left_out(pool: str, members: Sequence[InventoryNode]) -> list[str]:
    """Return a note for words of a label that only some nodes of a pool have."""
    notes: list[str] = []
    for key in SHARED_WORDS:
        some = _words(members, key)[1]
        if some:
            listed = ", ".join(f"`{word}`" for word in some[:REASONS_SHOWN])
            more = f" and {len(some) - REASONS_SHOWN} more" if len(some) > REASONS_SHOWN else ""
            notes.append(f"only some nodes of pool `{pool}` have {key} {listed}{more}: left out")
    return notes


def _rack_rows(
    racks: Mapping[str, list[InventoryNode]],
    listed: Mapping[_PoolKey, None],
    groups: Mapping[_PoolKey, list[InventoryNode]],
    has_sites: bool,
) -> list[RackRow]:
    in_tables = {node.name: None for kind in listed for node in groups[kind]}
    rows: list[RackRow] = []
    for rack, members in racks.items():
        names = [node.name for node in members if node.name not in in_tables]
        site = (members[0].site or DEFAULT_SITE) if has_sites else None
        rows.append(RackRow(name=rack, nodes=hostlist.fold(names) or None, site=site))
    return rows


def _node_rows(
    kinds: Sequence[_PoolKey],
    groups: Mapping[_PoolKey, list[InventoryNode]],
    listed: Mapping[_PoolKey, None],
    pool_names: Mapping[_PoolKey, str],
    racks: Mapping[str, list[InventoryNode]],
) -> list[NodeRow]:
    rack_of = {node.name: rack for rack, members in racks.items() for node in members}
    return [
        NodeRow(name=node.name, pool=pool_names[kind], rack=rack_of.get(node.name))
        for kind in kinds
        if kind in listed
        for node in groups[kind]
    ]
