"""Check the trees of domains and teams for cycles and unknown members."""

from collections.abc import Iterable, Mapping

from tenfold.files.fleet.checks.names import References, require_fact
from tenfold.files.fleet.rows import FleetRows, PoolRow
from tenfold.model.facts.catalogue import Catalogue
from tenfold.model.fleet.finding import Path
from tenfold.model.fleet.spec import GENERATED_RACK

DECLARABLE = ("leaf", "pdu", "cooling-zone", "spine", "hall", "shelf")


def check_domains(rows: FleetRows, refs: References) -> None:
    """Add a finding for each domain that is empty, has unknown members or forms a cycle."""
    known = [name for table in ("pool", "rack", "tier", "domain") for name in refs.names[table]]
    known_racks = tuple(f"{pool}{GENERATED_RACK}" for pool in refs.names["pool"])
    parents: dict[str, tuple[str, ...]] = {}
    for position, domain in rows.domain.items():
        path: Path = ("domain", position)
        if domain.kind not in DECLARABLE:
            refs.add(
                "domain-kind",
                f"domains of kind `{domain.kind}` are derived and cannot be declared",
                f"kinds you can declare: {', '.join(DECLARABLE)}",
                (*path, "kind"),
            )
        if not domain.members and domain.nodes is None:
            refs.add(
                "empty-domain",
                f"domain `{domain.name}` is empty",
                'add `members = [...]` or `nodes = "n[1-8]"`',
                path,
            )
        for place, member in enumerate(domain.members):
            if member not in known and not member.startswith(known_racks):
                refs.add(
                    "unknown-member",
                    f"domain `{domain.name}` contains `{member}`, which is not a rack, pool, tier "
                    "or domain in this file",
                    "use one of those, or list nodes under `nodes`",
                    (*path, "members", place),
                )
        parents[domain.name] = tuple(domain.members)
    for position, domain in rows.domain.items():
        loop = _cycle(domain.name, parents)
        if loop:
            refs.add(
                "cycle",
                f"domain `{domain.name}` forms a cycle: {' > '.join(loop)}",
                "remove one of them from the other's `members`",
                ("domain", position, "members"),
            )


def check_teams(rows: FleetRows, refs: References, catalogue: Catalogue) -> None:
    """Add a finding for each team with an unknown parent, a cycle or an unknown quota."""
    parents = {team.name: (team.parent,) for team in rows.team.values() if team.parent}
    for position, team in rows.team.items():
        path: Path = ("team", position)
        refs.require("team", team.parent, (*path, "parent"))
        loop = _cycle(team.name, parents)
        if loop:
            refs.add(
                "cycle",
                f"the parents of team `{team.name}` form a cycle: {' > '.join(loop)}",
                "remove `parent` from the top team",
                (*path, "parent"),
            )
        for accelerator in team.quota_gpus:
            if catalogue.accelerators.find(accelerator) is None and not _is_pool_accelerator(
                accelerator, rows.pool.values()
            ):
                require_fact(
                    catalogue.accelerators, accelerator, (*path, "quota_gpus", accelerator), refs
                )


def _is_pool_accelerator(accelerator: str, pools: Iterable[PoolRow]) -> bool:
    return any(pool.accelerator == accelerator for pool in pools)


def _cycle(start: str, edges: Mapping[str, tuple[str, ...]]) -> list[str]:
    """Return a path from `start` back to itself along `edges`, or an empty list."""
    stack = [(start, [start])]
    seen: dict[str, bool] = {}
    while stack:
        name, route = stack.pop()
        for neighbour in edges.get(name, ()):
            if neighbour == start:
                return [*route, start]
            if neighbour not in seen:
                seen[neighbour] = True
                stack.append((neighbour, [*route, neighbour]))
    return []
