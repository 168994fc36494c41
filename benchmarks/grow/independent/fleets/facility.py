"""Power, racks, floor and ports: nodes come in racks of a density, and buildings end."""

import math
import random
from collections.abc import Sequence

from benchmarks.grow.independent.made import (
    RULE,
    Answer,
    Check,
    Files,
    Made,
    Relief,
    Table,
    first_is,
    near,
    over_today,
    relief_holds,
    toml,
)


def racks_come_with_nodes(seed: int) -> Made:
    """Nodes of a density almost fill their racks; the floor ends, and no rack gets fuller."""
    draw = random.Random(seed)
    density, kw = draw.choice([2, 3, 4]), draw.choice([8.5, 10.2, 11.0])
    racks, floor = draw.randint(5, 12), draw.randint(14, 40)
    nodes = racks * density

    def files(floor_racks: int, stated: int | None = density) -> Files:
        return {
            "fleet.toml": toml(
                site=[
                    {
                        "name": "s",
                        "cooling": "hybrid",
                        "rack_kw": round(density * kw * 1.04, 2),
                        "pue": 1.2,
                    }
                ],
                pool=[_pool(nodes, kw, nodes_per_rack=stated)],
            ),
            "grow.toml": toml(facility={"floor_racks": floor_racks, "ports_free": 100_000}),
        }

    k = floor * density / nodes
    to = math.ceil(k * 2)

    def same_without_density(answer: Answer) -> str:
        # The rack takes exactly `density` nodes by its power, so leaving it out changes nothing.
        other = answer.again(files=files(floor, None)).first
        said = answer.first
        same = other.get("layer") == said.get("layer") and near(
            other.get("k"), said.get("k") or 0, 0.02
        )
        with_it, without = (f"{one.get('label')} {one.get('k')}" for one in (said, other))
        return "" if same else f"{with_it}, without it {without}"

    relief = Relief(
        "floor",
        "rack",
        lambda more: (floor + more) * density / nodes,
        lambda more: files(floor + more),
    )
    return Made(
        "1 racks",
        "floor",
        files(floor),
        ["--grow", "@grow.toml", "--axis", "nodes", "--to", str(to)],
        [
            *first_is("floor", k, 1.5 / nodes + 0.02),
            Check(RULE, "`nodes_per_rack` does not change the headline", same_without_density),
            *relief_holds(relief, to),
        ],
    )


def a_rack_is_over_today(seed: int) -> Made:
    """More nodes stand in a rack than its feed carries."""
    draw = random.Random(seed)
    density, kw = draw.choice([3, 4, 5]), draw.choice([9.0, 10.2])
    share = draw.uniform(0.7, 0.92)
    fleet = toml(
        site=[
            {
                "name": "s",
                "cooling": "hybrid",
                "rack_kw": round(density * kw * share, 2),
                "pue": 1.2,
            }
        ],
        pool=[_pool(density * draw.randint(3, 8), kw, nodes_per_rack=density)],
    )
    return Made(
        "1 racks",
        "rack-power",
        {"fleet.toml": fleet, "grow.toml": toml(facility={"ports_free": 100_000})},
        ["--grow", "@grow.toml", "--axis", "nodes", "--to", "2"],
        over_today("rack-power"),
    )


def a_site_runs_out_of_power(seed: int) -> Made:
    """Two sites end at their own factors; racks have room, and headroom is kept."""
    draw = random.Random(seed)
    kept = draw.choice([0.0, 0.1, 0.2])
    pue = draw.choice([1.1, 1.25, 1.4])
    kw, counts = draw.choice([6.0, 10.2]), (draw.randint(20, 60), draw.randint(20, 60))
    ks = (draw.uniform(1.3, 2.2), draw.uniform(2.8, 4.0))
    feeds = [
        math.ceil(k * count * kw * pue / (1 - kept)) for k, count in zip(ks, counts, strict=True)
    ]
    true = [
        feed * (1 - kept) / (count * kw * pue) for feed, count in zip(feeds, counts, strict=True)
    ]

    def files(more_kw: int) -> Files:
        sites = [
            {"name": name, "cooling": "hybrid", "power_kw": feed, "pue": pue, "rack_kw": 4.2 * kw}
            for name, feed in (("east", feeds[0] + more_kw), ("west", feeds[1]))
        ]
        pools = [
            _pool(count, kw, name=f"p-{site}", site=site, nodes_per_rack=4)
            for site, count in zip(("east", "west"), counts, strict=True)
        ]
        return {
            "fleet.toml": toml(site=sites, pool=pools),
            "grow.toml": toml(
                limits={"headroom_least": kept},
                facility={"ports_free": 100_000, "floor_racks": 100_000},
            ),
        }

    def k_with(more_kw: int) -> float:
        return (feeds[0] + more_kw) * (1 - kept) / (counts[0] * kw * pue)

    to = 3.0

    def second(answer: Answer) -> str:
        rows = answer.rows
        said = rows[0]["k_after"] if rows else None
        wanted = true[1] if true[1] < to else None
        if wanted is None:
            return "" if said is None else f"then {said}, but west holds {true[1]:.3g}x"
        return (
            ""
            if said is not None and near(said, wanted, 0.02)
            else f"then {said}, but west ends at {wanted:.3g}x"
        )

    # A feed is ordered in steps of at most 5% of what it is, or of 10 kW.
    step = max(10, math.ceil(0.05 * feeds[0]))
    return Made(
        "1 racks",
        "site-power",
        files(0),
        ["--grow", "@grow.toml", "--axis", "nodes", "--to", f"{to:g}"],
        [
            *first_is("site-power", true[0], 1 / counts[0] + 0.02, where="east"),
            Check(RULE, "the second site is what comes next", second),
            *relief_holds(
                Relief("site-power", "kW", k_with, files, step=step, then_within=0.05), to
            ),
        ],
    )


def power_of_all_sites(seed: int) -> Made:
    draw = random.Random(seed)
    kw, pue, counts = 8.0, 1.3, (draw.randint(10, 40), draw.randint(10, 40))
    k = draw.uniform(1.4, 3.0)
    most = round(k * sum(counts) * kw * pue, 1)
    sites = [
        {"name": name, "cooling": "hybrid", "power_kw": 50_000, "pue": pue, "rack_kw": 33}
        for name in ("a", "b")
    ]
    pools = [
        _pool(count, kw, name=f"p-{site}", site=site, nodes_per_rack=4)
        for site, count in zip("ab", counts, strict=True)
    ]
    return Made(
        "1 racks",
        "power-budget",
        {
            "fleet.toml": toml(site=sites, pool=pools),
            "grow.toml": toml(
                limits={"kw_most": most}, facility={"ports_free": 100_000, "floor_racks": 100_000}
            ),
        },
        ["--grow", "@grow.toml", "--axis", "all", "--to", "4"],
        first_is("power-budget", k, 0.02 + 1 / min(counts)),
    )


def ports_end(seed: int) -> Made:
    """Every node takes a port for each of its network cards."""
    draw = random.Random(seed)
    nodes, cards, free = draw.randint(8, 40), draw.choice([2, 4, 8]), draw.randint(40, 300)
    k = (nodes * cards + free) / (nodes * cards)
    to = math.ceil(k + 1)

    def files(more: int) -> Files:
        return {
            "fleet.toml": toml(
                site=[_roomy_site()], pool=[_pool(nodes, 8.0, nics_per_node=cards, nic_gbps=400)]
            ),
            "grow.toml": toml(facility={"ports_free": free + more, "floor_racks": 100_000}),
        }

    def k_with(more: int) -> float:
        return (nodes * cards + free + more) / (nodes * cards)

    # A node needs all of its ports, so ports are bought by the node.
    relief = Relief("switch-ports", "port", k_with, files, step=cards)
    return Made(
        "7 reliefs",
        "switch-ports",
        files(0),
        ["--grow", "@grow.toml", "--axis", "nodes", "--to", str(to)],
        [*first_is("switch-ports", k, 0.02 + 1 / nodes), *relief_holds(relief, to)],
    )


def a_cooling_class_is_too_weak(seed: int) -> Made:
    """A rack whose nodes draw more than its class removes is over today; the feed is not."""
    draw = random.Random(seed)
    density = draw.choice([3, 4])
    kw = draw.uniform(27, 40) / density
    site = {"name": "s", "cooling": "air", "rack_kw": 100, "pue": 1.5}
    fleet = toml(site=[site], pool=[_pool(density * 6, round(kw, 2), nodes_per_rack=density)])
    return Made(
        "1 racks",
        "cooling",
        {
            "fleet.toml": fleet,
            "grow.toml": toml(facility={"ports_free": 100_000, "floor_racks": 100_000}),
        },
        ["--grow", "@grow.toml", "--axis", "nodes", "--to", "2"],
        over_today("cooling"),
    )


def a_denser_pool_among_others(seed: int) -> Made:
    """Two pools of one hall grow alike; racks are counted for each, and none gets fuller."""
    draw = random.Random(seed)
    light, heavy = (draw.randint(3, 6) * 8, 8, 4.0), (draw.randint(4, 9) * 2, 2, 16.0)
    floor = draw.randint(24, 40)
    k = _floor_k([light, heavy], floor)
    pools = [
        _pool(nodes, kw, name=name, nodes_per_rack=density)
        for name, (nodes, density, kw) in (("light", light), ("heavy", heavy))
    ]
    site = {"name": "s", "cooling": "hybrid", "rack_kw": 34, "pue": 1.2}
    return Made(
        "1 racks",
        "floor",
        {
            "fleet.toml": toml(site=[site], pool=pools),
            "grow.toml": toml(facility={"floor_racks": floor, "ports_free": 100_000}),
        },
        ["--grow", "@grow.toml", "--axis", "nodes", "--to", str(math.ceil(k + 1))],
        # Between two whole numbers of racks the factor depends on how nodes are rounded.
        first_is("floor", k, 0.12),
    )


def _floor_k(pools: Sequence[tuple[int, int, float]], floor: int) -> float:
    k = 1.0
    while sum(math.ceil(round(k * nodes, 6) / density) for nodes, density, _ in pools) <= floor:
        k += 0.002
    return k


def _roomy_site() -> Table:
    return {"name": "s", "cooling": "hybrid", "rack_kw": 50, "power_kw": 1_000_000, "pue": 1.2}


def _pool(nodes: int, kw: float, name: str = "p", **more: object) -> Table:
    return {
        "name": name,
        "accelerator": "H100",
        "nodes": nodes,
        "gpus_per_node": 8,
        "power_kw_per_node": kw,
        **more,
    }
