"""A fleet with more nodes of the same kinds, on the same shared layers.

Every pool keeps its pattern: node names continue, and stated racks are followed by racks of the
same kind. Tiers, links between sites, switches and site power stay: what new nodes share with old
ones is what may break.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from heapq import heapify, heapreplace
from re import DOTALL
from re import compile as pattern

from msgspec.structs import replace

from tenfold.model.fleet import hostlist
from tenfold.model.fleet.spec import FleetSpec, Pool, Rack
from tenfold.model.ids import RackId, TeamId
from tenfold.model.policy.governance import GovernanceRules, TeamRules
from tenfold.sim.workload.scale import COPY, original_id

_NUMBERED = pattern(r"(.*?)([0-9]{1,12})([^0-9]*)\Z", DOTALL)


def grown_fleet(spec: FleetSpec, factor: float) -> FleetSpec:
    """Return a fleet with `factor` times the nodes; it never shrinks.

    Nodes are whole. They go one by one to the pool that is furthest behind, so a larger factor
    has every node that a smaller one has.
    """
    more = _more(spec.pools, round(spec.nodes * (factor - 1)))
    if not any(more):
        return spec
    names = [hostlist.expand(pool.node_names) for pool in spec.pools]
    taken = {name: True for own in names for name in own}
    racks = list(spec.racks)
    rack_names = {str(rack.id): True for rack in racks}
    pools: list[Pool] = []
    for pool, own, extra in zip(spec.pools, names, more, strict=True):
        fresh = _next_names(own, extra, taken)
        racks += _racks_for(own, fresh, spec.racks, rack_names)
        node_names = hostlist.fold([*own, *fresh]) if fresh else pool.node_names
        pools.append(replace(pool, nodes=pool.nodes + extra, node_names=node_names))
    return replace(spec, pools=tuple(pools), racks=tuple(racks))


def grown_govern(
    govern: GovernanceRules, teams: Iterable[str], sign: str = COPY
) -> GovernanceRules:
    """Return rules that know copies of teams: each has the terms of the team it is a copy of."""
    known = {team.id: team for team in govern.teams}
    added: dict[str, TeamRules] = {}
    for name in teams:
        if name in known or name in added:
            continue
        model = known.get(TeamId(original_id(name, sign)))
        if model is not None:
            added[name] = replace(model, id=TeamId(name))
    return replace(govern, teams=(*govern.teams, *added.values())) if added else govern


def _more(pools: Sequence[Pool], extra: int) -> list[int]:
    """Return the nodes added to each pool, by its size; the first of equal pools comes first."""
    more = [0] * len(pools)
    line = [(-float(pool.nodes), place) for place, pool in enumerate(pools) if pool.nodes]
    heapify(line)
    for _ in range(max(0, extra) if line else 0):
        place = line[0][1]
        more[place] += 1
        heapreplace(line, (-pools[place].nodes / (2 * more[place] + 1), place))
    return more


def _next_names(names: Sequence[str], extra: int, taken: dict[str, bool]) -> list[str]:
    """Return further names in the pattern of the last one, and mark them as used."""
    prefix, number, width, suffix = _split(names[-1])
    fresh: list[str] = []
    while len(fresh) < extra:
        number += 1
        name = f"{prefix}{number:0{width}d}{suffix}"
        if name not in taken:
            taken[name] = True
            fresh.append(name)
    return fresh


def _split(name: str) -> tuple[str, int, int, str]:
    """Return the text before a name's last number, the number, its width, and the rest."""
    match = _NUMBERED.match(name)
    if match is None:
        return f"{name}-", 1, 0, ""
    prefix, digits, suffix = match.groups()
    return prefix, int(digits), len(digits) if digits.startswith("0") else 0, suffix


def _racks_for(
    own: Sequence[str], fresh: Sequence[str], stated: Sequence[Rack], taken: dict[str, bool]
) -> list[Rack]:
    """Return racks like those of a pool; none if its racks are not stated."""
    holds = _pool_racks(own, stated)
    if not holds or not fresh:
        return []
    racks: list[Rack] = []
    start = 0
    while start < len(fresh):
        model, size = holds[len(racks) % len(holds)]
        members = fresh[start : start + size]
        [name] = _next_names([holds[-1][0].id], 1, taken)
        racks.append(replace(model, id=RackId(name), nodes=hostlist.fold(members)))
        start += size
    return racks


def _pool_racks(own: Sequence[str], stated: Sequence[Rack]) -> list[tuple[Rack, int]]:
    """Return the stated racks with nodes of a pool, and how many each holds.

    If the last node is in none of them, the pool has outgrown the stated racks.
    """
    mine: Mapping[str, bool] = dict.fromkeys(own, True)
    held = [(rack, hostlist.expand(rack.nodes)) for rack in stated]
    if not any(own[-1] in names for _, names in held):
        return []
    counts = [(rack, Counter(name in mine for name in names)[True]) for rack, names in held]
    return [(rack, count) for rack, count in counts if count]
