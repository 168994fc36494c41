"""Checks of a policy against a fleet: everything it names must exist there."""

from collections.abc import Iterator, Sequence

from tenfold.files.policy.amounts import amount_text, clock
from tenfold.files.policy.checks import unknown_team
from tenfold.files.policy.tree import TeamTree, quota_change_times, resources_in
from tenfold.files.policy.values import warning
from tenfold.files.policy.windows import window_conflicts
from tenfold.model.fleet import hostlist
from tenfold.model.fleet.finding import Finding
from tenfold.model.fleet.spec import FleetSpec
from tenfold.model.job.job import WHOLE
from tenfold.model.policy.governance import ANY, USD, Amounts, GovernanceRules, tags_needed
from tenfold.physics.layout import Layout


def check_fit(govern: GovernanceRules, layout: Layout) -> list[Finding]:
    """Return findings on what a policy names and the fleet lacks."""
    spec = layout.spec
    has = capacity(govern, spec)
    return [
        *_teams(govern, spec),
        *_types(govern, has),
        *_sums(govern, has),
        *_prices(govern, has),
        *_residency(govern, spec),
        *_windows(govern, layout),
    ]


def capacity(govern: GovernanceRules, spec: FleetSpec) -> Amounts:
    """Return the capacity of a fleet in quota amounts; dollars use the policy's prices."""
    has: Amounts = {}
    for pool in spec.pools:
        if pool.accelerator is not None and pool.gpus:
            has[pool.accelerator] = has.get(pool.accelerator, 0) + pool.gpus * WHOLE
    prices = govern.usd_micros_per_gpu_hour
    worth = sum(prices.get(name, 0) * milli // WHOLE for name, milli in has.items())
    return {**has, ANY: sum(has.values()), USD: worth}


def _teams(govern: GovernanceRules, spec: FleetSpec) -> Iterator[Finding]:
    named = [team.id for team in govern.teams]
    left = [f"`{team.id}`" for team in spec.teams if team.id not in named]
    if named and left:
        yield warning(
            "team-left-out",
            f"teams in the fleet file that the policy does not list: {', '.join(left)}",
            "add them to `[[teams]]`; until then they have no quota and weight 1",
            ("teams",),
        )
    for index, window in enumerate(govern.windows):
        if window.team and named and window.team not in named:
            yield unknown_team(window.team, named, ("windows", index, "team"))


def _types(govern: GovernanceRules, has: Amounts) -> Iterator[Finding]:
    for index, team in enumerate(govern.teams):
        stated = {"quota": team.quota, "borrow": team.borrow, "lend": team.lend}
        stated |= {"hours": {name: 0 for _, quota in team.hours for name in quota}}
        for key, amounts in stated.items():
            for name in amounts:
                if name not in has:
                    yield warning(
                        "type-not-in-fleet",
                        f"`{key}` of team `{team.id}` names `{name}`, which is not in the fleet",
                        f"the fleet has {_quoted([one for one in has if one not in (ANY, USD)])}",
                        ("teams", index, key, name),
                    )


def _sums(govern: GovernanceRules, has: Amounts) -> Iterator[Finding]:
    tree = TeamTree(govern.teams)
    times = quota_change_times(govern.teams)
    for name in resources_in(govern.teams):
        if name not in has or (name == USD and not has[USD]):
            continue
        worst = max(times, key=lambda at_ms: tree.sum(name, at_ms))
        granted = tree.sum(name, worst)
        if granted > has[name]:
            when = f" at {clock(worst)}" if len(times) > 1 else ""
            verb = "costs" if name == USD else "has"
            yield warning(
                "quota-over-fleet",
                f"quotas add up to {amount_text(name, granted)}{when}, but the fleet {verb} "
                f"{amount_text(name, has[name])}",
                "lower `quota` until the total fits the fleet",
                ("teams",),
            )


def _prices(govern: GovernanceRules, has: Amounts) -> Iterator[Finding]:
    stated = [held for team in govern.teams for held in (team.quota, team.borrow, team.lend)]
    if USD not in resources_in(govern.teams) and not any(USD in held for held in stated):
        return
    for name in has:
        if name not in (ANY, USD) and not govern.usd_micros_per_gpu_hour.get(name):
            yield warning(
                "quota-without-price",
                f"quotas are in dollars, but `{name}` has no price and counts as free",
                f"add `usd_per_gpu_hour = {{ {name} = 2.0 }}` to `[prices]`",
                ("prices",),
            )


def _residency(govern: GovernanceRules, spec: FleetSpec) -> Iterator[Finding]:
    teams = {team.id: team for team in govern.teams}
    for index, team in enumerate(govern.teams):
        needed = tags_needed(team, teams)
        pool_tags = [[*pool.residency, *pool.certifications] for pool in spec.pools if pool.gpus]
        if team.residency and not any(all(tag in tags for tag in needed) for tags in pool_tags):
            known = dict.fromkeys(tag for tags in pool_tags for tag in tags)
            yield warning(
                "residency-nowhere",
                f"team `{team.id}` needs nodes tagged {_quoted(needed)}, but no pool has them",
                f"the fleet has {_quoted(list(known))}",
                ("teams", index, "residency"),
            )


def _windows(govern: GovernanceRules, layout: Layout) -> Iterator[Finding]:
    if not govern.windows:
        return
    held = _nodes_by_name(layout)
    nodes: dict[int, dict[str, None]] = {}
    for index, window in enumerate(govern.windows):
        nodes[index] = {}
        for name in window.nodes:
            nodes[index] |= dict.fromkeys(held.get(name, ()))
        unknown = [name for name in window.nodes if name not in held]
        if unknown:
            yield warning(
                "window-nowhere",
                f"window `{window.id}` names {_quoted(unknown)}, which is not a node, rack or pool",
                "`tenfold fleet show` lists racks and pools; nodes without a name are called "
                "`<pool>-1`, `<pool>-2` and so on",
                ("windows", index, "nodes"),
            )
    yield from window_conflicts(dict(enumerate(govern.windows)), nodes)


def _nodes_by_name(layout: Layout) -> dict[str, list[str]]:
    """Return the nodes behind every name of a node, rack or pool."""
    held: dict[str, list[str]] = {}
    number = 0
    for pool in layout.spec.pools:
        names = hostlist.expand(pool.node_names)
        for name in names:
            rack = layout.racks[int(layout.rack_of[number])].name
            held.setdefault(rack, []).append(name)
            held[name] = [name]
            number += 1
        held[str(pool.id)] = names
    return held


def _quoted(names: Sequence[str], most: int = 4) -> str:
    shown = ", ".join(f"`{name}`" for name in names[:most])
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return f"{shown}{more}" if names else "none"
