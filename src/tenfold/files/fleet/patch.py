"""Change the tables of a fleet file so that they describe a fleet that was grown from it.

Only what growth changes is written: nodes, racks, power, switches, links and shelves. What the
file leaves to defaults stays so, unless a change would move a default.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from tenfold.files.fleet.build import build
from tenfold.files.fleet.rows import (
    FabricRow,
    FleetRows,
    LinkRow,
    NodeRow,
    PoolRow,
    RackRow,
    SiteRow,
    TierRow,
)
from tenfold.model.facts.catalogue import Catalogue
from tenfold.model.fleet import hostlist
from tenfold.model.fleet.spec import Fabric, FleetSpec, Pool, Rack, Site, SiteLink, Tier

R = TypeVar("R", bound=Struct)


def grown_rows(rows: FleetRows, old: FleetSpec, new: FleetSpec, catalogue: Catalogue) -> FleetRows:
    """Return the tables of a fleet that was grown from the one that the tables describe."""
    listed = {node.pool for node in rows.node.values()}
    changed = replace(
        rows,
        node=_nodes(rows, listed, old.pools, new.pools),
        site=_sites(rows.site, old.sites, new.sites),
        link=_links(rows.link, old.links, new.links),
        fabric=_each(rows.fabric, old.fabrics, new.fabrics, _fabric),
        pool=_each(rows.pool, old.pools, new.pools, _pool_unless(listed)),
        rack=_racks(rows, old.racks, new.racks),
        tier=_each(rows.tier, old.tiers, new.tiers, _tier),
    )
    return _pinned(changed, new, catalogue)


def _each(
    rows: Mapping[int, Any], old: Sequence[Any], new: Sequence[Any], change: Callable[..., Any]
) -> dict[int, Any]:
    """Return rows in which those of changed things are changed."""
    before = {one.id: one for one in old}
    changed = {str(one.id): one for one in new if before.get(one.id) not in (None, one)}
    return {
        at: change(row, before[changed[row.name].id], changed[row.name])
        if row.name in changed
        else row
        for at, row in rows.items()
    }


def _sites(
    rows: Mapping[int, SiteRow], old: Sequence[Site], new: Sequence[Site]
) -> dict[int, SiteRow]:
    known = dict(rows) or {0: SiteRow(name=str(old[0].id))}
    changed = _each(known, old, new, _site)
    return changed if changed != known else dict(rows)


def _site(row: SiteRow, old: Site, new: Site) -> SiteRow:
    if new.power_kw_limit != old.power_kw_limit:
        row = replace(row, power_kw=new.power_kw_limit)
    if new.rack_kw_limit != old.rack_kw_limit:
        row = replace(row, rack_kw=new.rack_kw_limit)
    return row


def _links(
    rows: Mapping[int, LinkRow], old: Sequence[SiteLink], new: Sequence[SiteLink]
) -> dict[int, LinkRow]:
    """Links have no names: their order is that of the file."""
    return {
        at: replace(row, gbps=after.bandwidth * 8 / 1e9)
        if after.bandwidth != before.bandwidth
        else row
        for (at, row), before, after in zip(rows.items(), old, new, strict=True)
    }


def _fabric(row: FabricRow, old: Fabric, new: Fabric) -> FabricRow:
    del old
    return replace(
        row,
        oversubscription=new.oversubscription,
        core_oversubscription=new.core_oversubscription,
        nodes_per_leaf=new.nodes_per_leaf,
        leaves_per_pod=new.leaves_per_pod,
        spines=new.spines,
    )


def _nodes(
    rows: FleetRows, listed: Collection[str], old: Sequence[Pool], new: Sequence[Pool]
) -> dict[int, NodeRow]:
    """Return the listed nodes, with the new ones of pools whose nodes are listed."""
    fresh = [
        NodeRow(name=name, pool=str(after.id))
        for before, after in zip(old, new, strict=True)
        if str(after.id) in listed
        for name in hostlist.expand(after.node_names)[before.nodes :]
    ]
    return dict(enumerate([*rows.node.values(), *fresh]))


def _pool_unless(listed: Collection[str]) -> Callable[[PoolRow, Pool, Pool], PoolRow]:
    """Return how a pool changes; new nodes of one whose nodes are listed are listed, too."""

    def change(row: PoolRow, old: Pool, new: Pool) -> PoolRow:
        if row.name not in listed:
            return _pool(row, old, new)
        row = _pool(row, old, replace(new, nodes=old.nodes))
        return row if row.nodes is None else replace(row, nodes=new.nodes)

    return change


def _pool(row: PoolRow, old: Pool, new: Pool) -> PoolRow:
    if new.nodes_per_rack != old.nodes_per_rack:
        row = replace(row, nodes_per_rack=new.nodes_per_rack)
    if new.nodes == old.nodes:
        return row
    before, after = hostlist.expand(old.node_names), hostlist.expand(new.node_names)
    fresh = after[len(before) :]
    generated = [f"{row.name}-{number}" for number in range(1, len(after) + 1)]
    if row.node_names is None and row.nodes is not None and after == generated:
        return replace(row, nodes=new.nodes)
    own = hostlist.expand(row.node_names) if row.node_names else []
    if not own and row.nodes is not None and before == generated[: len(before)]:
        own = before
    return replace(
        row,
        nodes=None if row.nodes is None else new.nodes,
        node_names=hostlist.fold([*own, *fresh]),
    )


def _racks(rows: FleetRows, old: Sequence[Rack], new: Sequence[Rack]) -> dict[int, RackRow]:
    """Return the racks, with new ones; once one is declared, all have to be."""
    if tuple(old) == tuple(new):
        return dict(rows.rack)
    before = {one.id: one for one in old}
    stated = {row.name: row for row in rows.rack.values()}
    made: list[RackRow] = []
    for rack in new:
        row = stated.get(str(rack.id))
        if row is None:
            nodes = None if rack.id in before else rack.nodes
            row = RackRow(name=str(rack.id), nodes=nodes, site=str(rack.site), hall=rack.hall)
        was = before.get(rack.id)
        if was is None or rack.power_kw_limit != was.power_kw_limit:
            row = replace(row, power_kw=rack.power_kw_limit)
        made.append(row)
    return dict(enumerate(made))


def _tier(row: TierRow, old: Tier, new: Tier) -> TierRow:
    """What the file states of a tier is of all its shelves."""
    row = replace(row, shelves=new.shelves)
    figures = {
        "capacity_tb": (old.capacity, new.capacity, 1e12),
        "read_gb_per_s": (old.read_bandwidth, new.read_bandwidth, 1e9),
        "write_gb_per_s": (old.write_bandwidth, new.write_bandwidth, 1e9),
        "iops": (old.iops, new.iops, 1),
        "streams": (old.streams, new.streams, 1),
    }
    changed = {
        key: after / unit if unit != 1 else after
        for key, (before, after, unit) in figures.items()
        if getattr(row, key) is not None and before != after
    }
    return replace(row, **changed)


def _pinned(rows: FleetRows, new: FleetSpec, catalogue: Catalogue) -> FleetRows:
    """Return rows that state what the changes would otherwise have moved by default."""
    built = build(rows, new.name, catalogue, [])
    assert built is not None, "the tables were valid before"
    after_sites = {str(site.id): site for site in new.sites}
    moved = {
        str(one.id): after_sites[str(one.id)]
        for one in built.sites
        if one != after_sites[str(one.id)]
    }
    sites = dict(rows.site) or dict(enumerate(SiteRow(name=name) for name in moved))
    sites = {
        at: replace(row, rack_kw=moved[row.name].rack_kw_limit, pue=moved[row.name].pue)
        if row.name in moved
        else row
        for at, row in sites.items()
    }
    rows = replace(rows, site=sites)
    built = build(rows, new.name, catalogue, [])
    assert built is not None, "the tables were valid before"
    wanted = {str(pool.id): pool.nodes_per_rack for pool in new.pools}
    dense = {str(pool.id): pool.nodes_per_rack for pool in built.pools}
    pools = {
        at: replace(row, nodes_per_rack=wanted[row.name])
        if wanted[row.name] != dense[row.name]
        else row
        for at, row in rows.pool.items()
    }
    return replace(rows, pool=pools)
