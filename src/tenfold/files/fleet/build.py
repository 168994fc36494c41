"""Build the fleet description from validated rows."""

from msgspec.structs import replace

from tenfold.files.fleet.defaults import fill_pool, fill_site, fill_tier
from tenfold.files.fleet.rows import FleetRows, RackRow
from tenfold.model.facts.catalogue import Catalogue
from tenfold.model.fleet import hostlist
from tenfold.model.fleet.finding import Finding
from tenfold.model.fleet.spec import (
    GENERATED_RACK,
    Dataset,
    Domain,
    Expectation,
    Fabric,
    FleetSpec,
    Pool,
    Rack,
    Site,
    SiteLink,
    Team,
)
from tenfold.model.ids import DomainId, FabricId, RackId, SiteId, TeamId
from tenfold.model.units import Bytes, bytes_per_second_from_gbit, usd_micros

DEFAULT_SITE = "main"


def build(
    rows: FleetRows, file_stem: str, catalogue: Catalogue, findings: list[Finding]
) -> FleetSpec | None:
    """Return the description with all defaults filled in.

    Errors that only show up now (a pool on another site's fabric) are added to `findings`.
    """
    sites = _sites(rows, catalogue)
    default_site = sites[0].id
    names, rack_nodes = _names_by_pool(rows)
    site_of = {site.id: site for site in sites}
    fabrics = _fabrics(rows, default_site)
    pools: list[Pool] = []
    for position, row in rows.pool.items():
        site = site_of[SiteId(row.site or default_site)]
        fabric = _fabric_of(row.fabric, row.name, site.id, fabrics, position, findings)
        pools.append(fill_pool(row, names[row.name], site, fabric, catalogue))
    racks = _racks(rows, rack_nodes, names, pools, default_site)
    _check_generated_racks(rows, pools, racks, findings)
    return FleetSpec(
        name=rows.name or file_stem,
        sites=tuple(sites),
        pools=tuple(pools),
        fabrics=tuple(_with_default_fabrics(fabrics, pools, catalogue)),
        links=_links(rows),
        racks=racks,
        domains=tuple(
            Domain(
                id=DomainId(row.name),
                kind=row.kind,
                members=tuple(row.members),
                nodes=row.nodes or "",
            )
            for row in rows.domain.values()
        ),
        tiers=tuple(
            fill_tier(row, SiteId(row.site or default_site), catalogue)
            for row in rows.tier.values()
        ),
        teams=_teams(rows, catalogue),
        data=tuple(
            Dataset(
                name=row.name,
                bytes=Bytes(round(row.gb * 1e9)),
                sites=tuple(SiteId(site) for site in row.sites),
            )
            for row in rows.data.values()
        ),
        expects=_expectation(rows, catalogue),
        lint=rows.lint,
    )


def _sites(rows: FleetRows, catalogue: Catalogue) -> list[Site]:
    pools = rows.pool.values()
    if not rows.site:
        return [fill_site(None, DEFAULT_SITE, pools, catalogue)]
    return [
        fill_site(
            row,
            row.name,
            [pool for pool in pools if pool.site == row.name or len(rows.site) == 1],
            catalogue,
        )
        for row in rows.site.values()
    ]


def _links(rows: FleetRows) -> tuple[SiteLink, ...]:
    return tuple(
        SiteLink(
            a=SiteId(row.between[0]),
            b=SiteId(row.between[1]),
            bandwidth=bytes_per_second_from_gbit(row.gbps),
            latency_us=row.latency_ms * 1000,
            egress_usd_micros_per_gb=usd_micros(row.usd_per_gb),
        )
        for row in rows.link.values()
    )


def _names_by_pool(rows: FleetRows) -> tuple[dict[str, str], dict[str, list[str]]]:
    """Return the nodes of each pool as a host list, and the nodes of each rack."""
    listed: dict[str, list[str]] = {}
    in_rack: dict[str, list[str]] = {}
    for node in rows.node.values():
        listed.setdefault(node.pool, []).append(node.name)
        if node.rack is not None:
            in_rack.setdefault(node.rack, []).append(node.name)
    names: dict[str, str] = {}
    for pool in rows.pool.values():
        stated = [pool.node_names or "", hostlist.fold(listed.get(pool.name, []))]
        text = ",".join(part for part in stated if part)
        names[pool.name] = text or f"{pool.name}-[1-{pool.nodes or 0}]"
    return names, in_rack


def _racks(
    rows: FleetRows,
    in_rack: dict[str, list[str]],
    names: dict[str, str],
    pools: list[Pool],
    default_site: SiteId,
) -> tuple[Rack, ...]:
    declared = {row.name: row for row in rows.rack.values()}
    for name in in_rack:
        declared.setdefault(name, RackRow(name=name))
    if not declared:
        return ()
    pool_site = {pool.id: pool.site for pool in pools}
    site_of_node = {
        node: pool_site[pool.id] for pool in pools for node in hostlist.expand(names[pool.id])
    }
    racks: list[Rack] = []
    for row in declared.values():
        stated = hostlist.expand(row.nodes) if row.nodes else []
        members = list(dict.fromkeys([*stated, *in_rack.get(row.name, [])]))
        site = row.site or (site_of_node[members[0]] if members else default_site)
        racks.append(
            Rack(
                id=RackId(row.name),
                site=SiteId(site),
                nodes=hostlist.fold(members),
                hall=row.hall,
                power_kw_limit=row.power_kw,
            )
        )
    return tuple(racks)


def _check_generated_racks(
    rows: FleetRows, pools: list[Pool], racks: tuple[Rack, ...], findings: list[Finding]
) -> None:
    """Add a finding for each domain that names a derived rack that does not exist."""
    placed = [name for rack in racks for name in hostlist.expand(rack.nodes)]
    generated: dict[str, None] = {}
    for pool in pools if rows.domain else ():
        own = dict.fromkeys(hostlist.expand(pool.node_names))
        unracked = pool.nodes - sum(name in own for name in placed)
        count = -(-unracked // pool.nodes_per_rack)
        generated.update(dict.fromkeys(f"{pool.id}{GENERATED_RACK}{n + 1}" for n in range(count)))
    for position, domain in rows.domain.items():
        for place, member in enumerate(domain.members):
            if (
                GENERATED_RACK in member
                and member not in generated
                and not _is_stated(member, rows)
            ):
                findings.append(
                    Finding(
                        code="unknown-member",
                        message=f"domain `{domain.name}` contains unknown rack `{member}`",
                        hint="`tenfold fleet show` lists the racks that are derived from pools",
                        path=("domain", position, "members", place),
                    )
                )


def _is_stated(name: str, rows: FleetRows) -> bool:
    tables = (rows.rack, rows.domain, rows.pool, rows.tier)
    return any(row.name == name for table in tables for row in table.values())


def _fabrics(rows: FleetRows, default_site: SiteId) -> list[Fabric]:
    return [
        Fabric(
            id=FabricId(row.name),
            site=SiteId(row.site or default_site),
            kind=row.kind,
            link=row.link or "",
            switch_ports=row.switch_ports,
            oversubscription=row.oversubscription,
            core_oversubscription=row.core_oversubscription,
            adaptive_routing=row.adaptive_routing,
            nodes_per_leaf=row.nodes_per_leaf,
            leaves_per_pod=row.leaves_per_pod,
            spines=row.spines,
            switches_per_group=row.switches_per_group,
        )
        for row in rows.fabric.values()
    ]


def _fabric_of(
    stated: str | None,
    pool: str,
    site: SiteId,
    fabrics: list[Fabric],
    position: int,
    findings: list[Finding],
) -> FabricId:
    """Return the fabric of a pool; add a finding if it is ambiguous."""
    local = [fabric.id for fabric in fabrics if fabric.site == site]
    if stated is None and len(local) <= 1:
        return local[0] if local else FabricId(f"{site}-fabric")
    if stated is None:
        findings.append(
            Finding(
                code="which-fabric",
                message=f"pool `{pool}` needs a `fabric`: site `{site}` has several",
                hint=f'add `fabric = "{local[0]}"` or another fabric of the site',
                path=("pool", position),
            )
        )
    elif stated not in local:
        findings.append(
            Finding(
                code="fabric-elsewhere",
                message=f"pool `{pool}` is in site `{site}`, but fabric `{stated}` is not",
                hint="use a fabric in the same site, or move the fabric",
                path=("pool", position, "fabric"),
            )
        )
    return FabricId(stated or "")


def _with_default_fabrics(
    fabrics: list[Fabric], pools: list[Pool], catalogue: Catalogue
) -> list[Fabric]:
    """Add a non-blocking fat tree for sites without a fabric, and fill in link classes."""
    known = {fabric.id: fabric for fabric in fabrics}
    for pool in pools:
        if pool.fabric is not None and pool.fabric not in known:
            known[pool.fabric] = Fabric(
                id=pool.fabric,
                site=pool.site,
                kind="fat-tree",
                link="",
                switch_ports=64,
                defaulted=True,
            )
    return [
        fabric if fabric.link else _with_link(fabric, pools, catalogue) for fabric in known.values()
    ]


def _with_link(fabric: Fabric, pools: list[Pool], catalogue: Catalogue) -> Fabric:
    nics = [pool for pool in pools if pool.fabric == fabric.id]
    if not nics:
        return fabric
    fastest = max(nics, key=lambda pool: pool.nic_bandwidth)
    shape = None if fastest.shape is None else catalogue.nodes.find(fastest.shape)
    if shape is not None and shape.nic_link:
        return replace(fabric, link=shape.nic_link)
    # GPUDirect needs RDMA.
    classes = [link for link in catalogue.links if link.kind == "fabric"]
    nearest = min(
        [link for link in classes if link.rdma or not fastest.gpudirect],
        key=lambda link: abs(link.gb_per_s * 1e9 - fastest.nic_bandwidth),
        default=None,
    )
    return fabric if nearest is None else replace(fabric, link=nearest.name)


def _teams(rows: FleetRows, catalogue: Catalogue) -> tuple[Team, ...]:
    teams: list[Team] = []
    for row in rows.team.values():
        quota: dict[str, int] = {}
        for accelerator, gpus in row.quota_gpus.items():
            part = catalogue.accelerators.find(accelerator)
            quota[accelerator if part is None else part.name] = gpus
        teams.append(
            Team(
                id=TeamId(row.name),
                parent=None if row.parent is None else TeamId(row.parent),
                weight=row.weight,
                quota_gpus=quota,
                residency=tuple(row.residency),
            )
        )
    return tuple(teams)


def _expectation(rows: FleetRows, catalogue: Catalogue) -> Expectation:
    model = None if rows.expects.model is None else catalogue.models.get(rows.expects.model).name
    return replace(rows.expects, model=model)
