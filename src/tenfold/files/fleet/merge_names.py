"""Rename the things of one fleet, and every reference to them.

Implicit sites are written out, because a file with several sites must name the site of
everything in it.
"""

from collections.abc import Callable, Iterable
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from tenfold.files.fleet.rows import (
    DataRow,
    DomainRow,
    FleetRows,
    LinkRow,
    NodeRow,
    PoolRow,
    RackRow,
    Row,
    SiteRow,
)
from tenfold.model.fleet import hostlist
from tenfold.model.fleet.spec import FleetSpec

R = TypeVar("R", bound=Row)


class Renames(Struct, frozen=True, kw_only=True):
    """New names by namespace and old name; other names do not change."""

    label: str
    namespaces: dict[str, dict[str, str]]
    nodes: dict[str, str]
    notes: tuple[str, ...]
    spec: FleetSpec

    def of(self, namespace: str, name: str) -> str:
        """Return the new name for an old one."""
        return self.namespaces[namespace].get(name, name)

    def maybe(self, namespace: str, name: str | None) -> str | None:
        """Return the new name for an optional one."""
        return None if name is None else self.of(namespace, name)

    def host_list(self, text: str | None) -> str | None:
        """Return a host list with its nodes renamed."""
        if text is None or not self.nodes:
            return text
        return hostlist.fold(self.nodes.get(node, node) for node in hostlist.expand(text))


def rename(rows: FleetRows, renames: Renames) -> FleetRows:
    """Return the renamed tables of a fleet, with every site stated."""
    spec = renames.spec
    site_of: dict[tuple[str, str], str] = {
        **{("pool", pool.id): pool.site for pool in spec.pools},
        **{("rack", rack.id): rack.site for rack in spec.racks},
        **{("tier", tier.id): tier.site for tier in spec.tiers},
        **{("fabric", fabric.id): fabric.site for fabric in spec.fabrics},
    }

    def site(table: str, name: str) -> str:
        return renames.of("site", site_of[table, name])

    sites = rows.site or {0: SiteRow(name=spec.sites[0].id)}
    declared = {row.name: row for row in rows.rack.values()}
    # A file may declare no racks, but the merged file must if another file declares some.
    racks = [declared.get(rack.id) or RackRow(name=rack.id) for rack in spec.racks]
    return replace(
        rows,
        site=_numbered(sites.values(), lambda row: replace(row, name=renames.of("site", row.name))),
        link=_numbered(rows.link.values(), lambda row: _link(row, renames)),
        fabric=_numbered(
            rows.fabric.values(),
            lambda row: replace(
                row, name=renames.of("fabric", row.name), site=site("fabric", row.name)
            ),
        ),
        pool=_numbered(
            rows.pool.values(), lambda row: _pool(row, rows, renames, site("pool", row.name))
        ),
        rack=_numbered(racks, lambda row: _rack(row, renames, site("rack", row.name))),
        node=_numbered(rows.node.values(), lambda row: _node(row, renames)),
        domain=_numbered(rows.domain.values(), lambda row: _domain(row, renames)),
        tier=_numbered(
            rows.tier.values(),
            lambda row: replace(
                row, name=renames.of("member", row.name), site=site("tier", row.name)
            ),
        ),
        team=_numbered(
            rows.team.values(),
            lambda row: replace(
                row, name=renames.of("team", row.name), parent=renames.maybe("team", row.parent)
            ),
        ),
        data=_numbered(rows.data.values(), lambda row: _data(row, renames)),
    )


def _numbered(rows: Iterable[R], change: Callable[[R], R]) -> dict[int, R]:
    return {place: change(row) for place, row in enumerate(rows)}


def _data(row: DataRow, renames: Renames) -> DataRow:
    sites = [renames.of("site", site) for site in row.sites]
    return replace(row, name=renames.of("data", row.name), sites=sites)


def _pool(row: PoolRow, rows: FleetRows, renames: Renames, site: str) -> PoolRow:
    return replace(
        row,
        name=renames.of("member", row.name),
        site=site,
        fabric=renames.maybe("fabric", row.fabric),
        node_names=_pool_nodes(row, rows, renames),
    )


def _pool_nodes(row: PoolRow, rows: FleetRows, renames: Renames) -> str | None:
    """Return the host list of a pool; generated names stay implicit if still valid."""
    if row.node_names is not None or any(node.pool == row.name for node in rows.node.values()):
        return renames.host_list(row.node_names)
    pool, numbers = renames.of("member", row.name), range(1, (row.nodes or 0) + 1)
    generated = [f"{row.name}-{number}" for number in numbers]
    wanted = [renames.nodes.get(node, node) for node in generated]
    if wanted == [f"{pool}-{number}" for number in numbers]:
        return None
    return renames.host_list(hostlist.fold(generated))


def _rack(row: RackRow, renames: Renames, site: str) -> RackRow:
    return replace(
        row,
        name=renames.of("member", row.name),
        site=site,
        nodes=renames.host_list(row.nodes),
    )


def _node(row: NodeRow, renames: Renames) -> NodeRow:
    return replace(
        row,
        name=renames.nodes.get(row.name, row.name),
        pool=renames.of("member", row.pool),
        rack=renames.maybe("member", row.rack),
    )


def _domain(row: DomainRow, renames: Renames) -> DomainRow:
    return replace(
        row,
        name=renames.of("member", row.name),
        members=[renames.of("member", member) for member in row.members],
        nodes=renames.host_list(row.nodes),
    )


def _link(row: LinkRow, renames: Renames) -> LinkRow:
    return replace(row, between=[renames.of("site", site) for site in row.between])
