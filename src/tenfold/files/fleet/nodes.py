"""Check the node names of a fleet file: each node is in one pool and at most one rack.

A pool that states only a count gets node names generated from its own name, which clash
only if another pool states the same names.
"""

from collections.abc import Mapping

from tenfold.files.fleet.rows import FleetRows
from tenfold.model.fleet import hostlist
from tenfold.model.fleet.finding import Finding, Path


def check_nodes(rows: FleetRows, names: Mapping[str, list[str]], findings: list[Finding]) -> None:
    """Add a finding for each duplicate node, wrong node count and unknown node."""
    owner: dict[str, str] = {}
    # Keys that already have an error are skipped.
    faulty = {found.path for found in findings}
    listed = _listed(rows, names, owner, findings)
    for position, pool in rows.pool.items():
        path: Path = ("pool", position)
        own = _expand(pool.node_names, (*path, "node_names"), findings)
        stated = len(own) + listed.get(pool.name, 0)
        count_missing = pool.nodes is None and pool.node_names is None and stated == 0
        if count_missing and not faulty & {(*path, "nodes"), (*path, "node_names")}:
            findings.append(
                Finding(
                    code="missing-key",
                    message=f"pool `{pool.name}` has no node count",
                    hint='add `nodes = 8`, or `node_names = "n[1-8]"`',
                    path=path,
                )
            )
        if pool.nodes is not None and stated not in (0, pool.nodes):
            findings.append(
                Finding(
                    code="node-count",
                    message=f"pool `{pool.name}` has `nodes = {pool.nodes}` and {stated} names",
                    hint="make the two agree, or remove `nodes`",
                    path=(*path, "nodes"),
                )
            )
        if not stated:
            own = hostlist.expand(_generated_names(pool.name, pool.nodes or 0))
        if (*path, "name") not in faulty:
            _claim(own, pool.name, owner, (*path, "node_names"), findings)
    _check_racks(rows, owner, findings)
    for position, domain in rows.domain.items():
        path = ("domain", position, "nodes")
        for name in _expand(domain.nodes, path, findings):
            if name not in owner:
                findings.append(_no_such_node(name, f"domain `{domain.name}`", path))
                break


def _generated_names(pool: str, nodes: int) -> str:
    return f"{pool}-[1-{nodes}]" if nodes else ""


def _listed(
    rows: FleetRows,
    names: Mapping[str, list[str]],
    owner: dict[str, str],
    findings: list[Finding],
) -> dict[str, int]:
    """Register the nodes that have a `[[node]]` table; return their number by pool."""
    pools, racks = dict.fromkeys(names["pool"]), dict.fromkeys(names["rack"])
    counts: dict[str, int] = {}
    for position, node in rows.node.items():
        counts[node.pool] = counts.get(node.pool, 0) + 1
        if node.pool not in pools:
            findings.append(
                Finding(
                    code="unknown-pool",
                    message=f"node `{node.name}` is in unknown pool `{node.pool}`",
                    hint=f"declared pools: {', '.join(pools) or 'none'}",
                    path=("node", position, "pool"),
                )
            )
        if racks and node.rack is not None and node.rack not in racks:
            findings.append(
                Finding(
                    code="unknown-rack",
                    message=f"node `{node.name}` is in unknown rack `{node.rack}`",
                    hint="declare this rack too, or declare no racks",
                    path=("node", position, "rack"),
                )
            )
        if node.name not in owner:
            owner[node.name] = node.pool
    return counts


def _claim(
    names: list[str], pool: str, owner: dict[str, str], path: Path, findings: list[Finding]
) -> None:
    for name in names:
        if name in owner:
            findings.append(
                Finding(
                    code="duplicate-name",
                    message=f"node `{name}` is in both pool `{pool}` and pool `{owner[name]}`",
                    hint="list each node in one pool only",
                    path=path,
                )
            )
            return
        owner[name] = pool


def _check_racks(rows: FleetRows, owner: dict[str, str], findings: list[Finding]) -> None:
    rack_of = {node.name: node.rack for node in rows.node.values() if node.rack is not None}
    for position, rack in rows.rack.items():
        path: Path = ("rack", position, "nodes")
        for name in _expand(rack.nodes, path, findings):
            if name not in owner:
                findings.append(_no_such_node(name, f"rack `{rack.name}`", path))
                break
            if rack_of.setdefault(name, rack.name) != rack.name:
                findings.append(
                    Finding(
                        code="node-in-two-racks",
                        message=f"node `{name}` is in racks `{rack_of[name]}` and `{rack.name}`",
                        hint="remove it from one of them",
                        path=path,
                    )
                )
                break


def _no_such_node(name: str, where: str, path: Path) -> Finding:
    return Finding(
        code="unknown-node",
        message=f"{where} lists node `{name}`, which is not in any pool",
        hint="pools without `node_names` name their nodes `<pool>-1`, `<pool>-2` and so on",
        path=path,
    )


def _expand(text: str | None, path: Path, findings: list[Finding]) -> list[str]:
    if text is None:
        return []
    try:
        return hostlist.expand(text)
    except hostlist.HostlistError as error:
        findings.append(
            Finding(
                code="bad-host-list",
                message=f"cannot parse `{path[-1]}`: {error}",
                hint="write it as `n[1-4],gpu[001-128]`",
                path=path,
            )
        )
        return []
