"""Whole fleets: several layers end one after another, nothing ends, and less common layers."""

import math
import random
from collections.abc import Callable

from benchmarks.grow.independent.closed import (
    any_of,
    crossing,
    longer_than,
    md1_mean_wait,
)
from benchmarks.grow.independent.failing import Fault, as_csv
from benchmarks.grow.independent.fleets.requests import Slots
from benchmarks.grow.independent.made import (
    FACTOR,
    FIRST,
    RULE,
    Answer,
    Check,
    Made,
    Table,
    covers,
    first_is,
    job_table,
    near,
    toml,
)

DAY_S = 86_400.0
MONTH_S = 365.25 / 12 * DAY_S
GPUS = 8
ENDS = ("site-power", "floor", "switch-ports", "monitoring", "operations", "storage-capacity")


def six_layers_end(seed: int) -> Made:
    """Six layers of one fleet end at factors that are known; the table lists them in order."""
    draw = random.Random(seed)
    ks = {name: 1.3 + 0.25 * place for place, name in enumerate(draw.sample(ENDS, len(ENDS)))}
    racks, density, kw, pue, cards = 20, 4, 9.0, 1.3, 8
    nodes = racks * density
    per_s, every_s, tb = nodes * 2_000 / 30, 30, 300
    floor, ports = round(ks["floor"] * racks), round((ks["switch-ports"] - 1) * nodes * cards)
    files = {
        "fleet.toml": toml(
            site=[
                {
                    "name": "s",
                    "cooling": "hybrid",
                    "pue": pue,
                    "rack_kw": 40,
                    "power_kw": round(ks["site-power"] * nodes * kw * pue, 1),
                }
            ],
            pool=[
                _pool(
                    nodes,
                    power_kw_per_node=kw,
                    nodes_per_rack=density,
                    nics_per_node=cards,
                    nic_gbps=400,
                )
            ],
            tier=[
                {
                    "name": "hot",
                    "class": "cold",
                    "capacity_tb": round(tb * ks["storage-capacity"], 1),
                }
            ],
        ),
        "grow.toml": toml(
            facility={"floor_racks": floor, "ports_free": ports},
            dataset=[{"name": "d", "tier": "hot", "tb": tb, "grows_with": "nodes"}],
            monitoring={
                "series_per_node": 2_000,
                "interval_s": every_s,
                "samples_per_s_most": round(per_s * ks["monitoring"]),
            },
            operations={
                "crew": 2,
                "repairs_per_person_day": 1_000,
                "nodes_per_person_most": ks["operations"] * nodes / 2,
            },
        ),
    }
    first = min(ks, key=lambda name: ks[name])

    def order(answer: Answer) -> str:
        found = {name: answer.layer(name).get("k") for name in ENDS}
        wrong = {name: k for name, k in found.items() if not near(k, ks[name], 0.04)}
        return ", ".join(f"{name} at {k}x, truth {ks[name]:.3g}x" for name, k in wrong.items())

    def ladder(answer: Answer) -> str:
        said = [row["layer"] for row in answer.rows][:4]
        wanted = sorted(ks, key=lambda name: ks[name])[:4]
        return "" if said == wanted else f"rows {said}, truth {wanted}"

    return Made(
        "ladders",
        first,
        files,
        ["--grow", "@grow.toml", "--axis", "nodes", "--to", "3"],
        [
            *first_is(first, ks[first], 0.03),
            Check(FACTOR, "every layer at its factor", order),
            Check(RULE, "the layers follow in order", ladder),
        ],
    )


def nothing_ends(seed: int) -> Made:
    """Every layer has room for more than three times the fleet: no break is named."""
    draw = random.Random(seed)
    nodes = draw.randint(10, 20)
    of = Slots(seed + 500, nodes, 0.15, days=21)
    files = {
        "fleet.toml": toml(
            site=[{"name": "s", "cooling": "hybrid", "power_kw": nodes * 60, "rack_kw": 50}],
            pool=[_pool(nodes, power_kw_per_node=10.2, nodes_per_rack=4)],
        ),
        "grow.toml": toml(
            facility={"floor_racks": 4 * nodes, "ports_free": 1_000_000},
            monitoring={
                "series_per_node": 1_000,
                "interval_s": 30,
                "samples_per_s_most": nodes * 200,
            },
            limits={"stranded_share_most": 1.0},
        ),
        "jobs.csv": job_table(of.rows(gpus=GPUS, gpus_per_node=GPUS)),
    }

    def none(answer: Answer) -> str:
        return f"first is {answer.first['label']}" if answer.first else ""

    words = ["--jobs", "@jobs.csv", "--policy", "fifo", "--grow", "@grow.toml"]
    return Made(
        "ladders",
        "none",
        files,
        [*words, "--axis", "all", "--to", "3"],
        [Check(FIRST, "nothing breaks", none)],
    )


def growth_brings_its_own_room(seed: int) -> Made:
    """Along `nodes`, jobs come with nodes: a busy queue gets no worse, and the floor ends."""
    draw = random.Random(seed)
    of = Slots(seed + 510, draw.randint(6, 8), 0.7)
    floor = of.slots + draw.randint(4, 8)
    files = {
        "fleet.toml": toml(
            site=[{"name": "s", "cooling": "hybrid", "rack_kw": 11}],
            pool=[_pool(of.slots, power_kw_per_node=10.2, nodes_per_rack=1)],
        ),
        "grow.toml": toml(
            facility={"floor_racks": floor, "ports_free": 1_000_000},
            limits={"wait_s_p90": 1.5 * of.limit_s, "stranded_share_most": 1.0},
        ),
        "jobs.csv": job_table(of.rows(gpus=GPUS, gpus_per_node=GPUS)),
    }
    words = ["--jobs", "@jobs.csv", "--policy", "fifo", "--grow", "@grow.toml"]
    return Made(
        "5 axes",
        "floor",
        files,
        [*words, "--axis", "nodes", "--to", "3"],
        first_is("floor", floor / of.slots, 0.03),
    )


def copies_fill_a_link(seed: int) -> Made:
    """Datasets are copied every month over a link: bytes a month against its rate."""
    draw = random.Random(seed)
    tb, copies, k = draw.randint(40, 120), draw.choice([2, 4, 8]), draw.uniform(1.5, 3.0)
    gbps = round(k * tb * 1e12 * 8 * copies / MONTH_S / 1e9, 3)
    files = {
        "fleet.toml": toml(
            site=[{"name": "near"}, {"name": "far"}],
            link=[{"between": ["near", "far"], "gbps": gbps, "latency_ms": 5}],
            pool=[_pool(4, site="far")],
            tier=[{"name": "hot", "class": "hot", "site": "far", "capacity_tb": 100 * tb}],
        ),
        "grow.toml": toml(
            dataset=[
                {
                    "name": "d",
                    "tier": "hot",
                    "tb": tb,
                    "source_site": "near",
                    "copies_per_month": copies,
                }
            ]
        ),
    }
    return Made(
        "9 keys",
        "site-links",
        files,
        ["--grow", "@grow.toml", "--axis", "data", "--to", "5"],
        first_is("site-links", k, 0.03),
    )


def several_pools_share_a_feed(seed: int) -> Made:
    """GPU nodes and CPU nodes grow alike at one site; its feed carries the sum."""
    draw = random.Random(seed)
    gpu, cpu, pue = draw.randint(8, 20), draw.randint(10, 40), draw.choice([1.15, 1.35])
    k = draw.uniform(1.4, 2.6)
    sum_kw = (gpu * 10.2 + cpu * 0.8) * pue
    pools = [
        _pool(gpu, power_kw_per_node=10.2, site="s"),
        {
            "name": "cpu",
            "nodes": cpu,
            "gpus_per_node": 0,
            "cpus_per_node": 128,
            "memory_gib_per_node": 512,
            "power_kw_per_node": 0.8,
            "site": "s",
        },
        _pool(6, name="away", power_kw_per_node=10.2, site="t"),
    ]
    sites = [
        {"name": "s", "cooling": "hybrid", "pue": pue, "power_kw": round(k * sum_kw, 1)},
        {"name": "t", "cooling": "hybrid", "pue": pue, "power_kw": 10_000},
    ]
    files = {
        "fleet.toml": toml(site=sites, pool=pools),
        "grow.toml": toml(facility={"ports_free": 1_000_000}),
    }
    return Made(
        "1 racks",
        "site-power",
        files,
        ["--grow", "@grow.toml", "--axis", "nodes", "--to", "4"],
        first_is("site-power", k, 0.02 + 1 / gpu, where="s"),
    )


def one_queue_of_kueue(seed: int) -> Made:
    """Kueue looks at one head of each queue in a cycle; the busiest queue waits by M/D/1."""
    draw = random.Random(seed)
    per_min, load = 0.2, draw.uniform(0.4, 0.5)
    service_s, wait_s = 60 / per_min, 1_800.0
    rows: list[Table] = []
    for team, own in (("deep", load), ("calm", 0.1)):
        now = 0.0
        while (now := now + draw.expovariate(own / service_s)) < 25 * DAY_S:
            rows.append(
                {
                    "submit_s": round(now),
                    "duration_s": 300,
                    "gpus": GPUS,
                    "gpus_per_node": GPUS,
                    "team": team,
                }
            )
    rows.sort(key=lambda one: one["submit_s"])
    seen = sum(1 for one in rows if one["team"] == "deep") * service_s / (25 * DAY_S)
    k = crossing(lambda k: md1_mean_wait(k * seen, service_s), wait_s)
    files = {
        "fleet.toml": toml(pool=[_pool(64)]),
        "grow.toml": toml(
            limits={
                "admission_wait_s_most": wait_s,
                "wait_s_p90": 100_000_000,
                "stranded_share_most": 1.0,
            },
            controller=[{"kind": "kueue", "cycles_per_min": per_min}],
            facility={"ports_free": 1_000_000},
        ),
        "jobs.csv": job_table(rows),
    }
    words = ["--jobs", "@jobs.csv", "--policy", "fifo", "--grow", "@grow.toml"]
    return Made(
        "9 keys",
        "admission",
        files,
        [*words, "--axis", "jobs", "--to", "4"],
        first_is("admission", k, 0.1, where="deep"),
    )


def a_slow_scheduler(seed: int) -> Made:
    """A controller that spends seconds on every job: M/D/1 by its measured cost."""
    draw = random.Random(seed)
    service_s, load, wait_s = draw.choice([20.0, 40.0]), draw.uniform(0.4, 0.5), 60.0
    rows, now = list[Table](), 0.0
    while (now := now + draw.expovariate(load / service_s)) < 6 * DAY_S:
        rows.append({"submit_s": round(now), "duration_s": 60, "gpus": 1})
    seen = len(rows) * service_s / (6 * DAY_S)
    k = crossing(lambda k: md1_mean_wait(k * seen, service_s), wait_s)
    files = {
        "fleet.toml": toml(pool=[_pool(64)]),
        "grow.toml": toml(
            limits={
                "admission_wait_s_most": wait_s,
                "wait_s_p90": 100_000_000,
                "stranded_share_most": 1.0,
            },
            controller=[{"kind": "slurm", "cost_ms_per_job": service_s * 1_000}],
            facility={"ports_free": 1_000_000},
        ),
        "jobs.csv": job_table(rows),
    }
    words = ["--jobs", "@jobs.csv", "--policy", "fifo", "--grow", "@grow.toml"]
    return Made(
        "9 keys",
        "admission",
        files,
        [*words, "--axis", "jobs", "--to", "4"],
        first_is("admission", k, 0.1),
    )


def repairs_are_uneven(seed: int) -> Made:
    """Nine repairs of ten take two hours and one takes two weeks; nodes fail one by one."""
    draw = random.Random(seed)
    nodes, up_h = draw.randint(100, 150), 700.0
    short_h, long_h, rare = 2.0, 336.0, 0.1
    mean_h = short_h * (1 - rare) + long_h * rare
    down = mean_h / (up_h + mean_h)

    def needed(count: int, spares: int) -> bool:
        return longer_than(any_of([down] * (count + spares)), spares) <= 0.01

    spares = next(spares for spares in range(100) if needed(nodes, spares)) + draw.randint(3, 5)
    k = 1.0
    while needed(round(k * nodes), spares):
        k += 0.01
    faults, until_s = list[Fault](), 900 * DAY_S
    for node in range(nodes):
        # Nodes are apart in their lives: the first time up begins before the record.
        now = -draw.uniform(0, 30 * DAY_S * 10)
        while (now := now + draw.expovariate(1 / (up_h * 3_600))) < until_s:
            hours = draw.expovariate(1 / (long_h if draw.random() < rare else short_h))
            end_s = now + hours * 3_600
            if end_s > 0:
                faults.append(Fault(node, max(0.0, now), end_s))
            now = end_s
    faults.sort(key=lambda fault: fault.start_s)
    files = {
        "fleet.toml": toml(pool=[_pool(nodes)]),
        "grow.toml": toml(operations={"spares": spares}, facility={"ports_free": 1_000_000}),
        "faults.csv": as_csv(faults, "p"),
    }
    words = ["--grow", "@grow.toml", "--failures", "@faults.csv", "--axis", "nodes", "--to", "2.5"]
    return Made(
        "2 spares",
        "spares",
        files,
        words,
        [*first_is("spares", k, 0.15), covers("spares", k)],
    )


def a_budget_of_two_pools(seed: int) -> Made:
    """A rented pool and a rented pool by the node: rent grows with the nodes, staff does not."""
    draw = random.Random(seed)
    first, second = draw.randint(10, 20), draw.randint(5, 10)
    gpu_usd, node_usd, hours = 2.2, 9.5, 730.0
    staff, k = 4 * 11_000, draw.uniform(1.4, 2.4)
    rent = (first * GPUS * gpu_usd + second * node_usd) * hours
    pools = [
        _pool(first, price={"kind": "on-demand", "usd_per_gpu_hour": gpu_usd}),
        _pool(
            second,
            name="old",
            accelerator="A100",
            price={"kind": "reserved", "usd_per_node_hour": node_usd},
        ),
    ]
    files = {
        "fleet.toml": toml(pool=pools),
        "grow.toml": toml(
            limits={"usd_per_month_most": round(staff + k * rent)},
            operations={
                "crew": 4,
                "repairs_per_person_day": 1_000,
                "usd_per_person_month": 11_000,
            },
            facility={"ports_free": 1_000_000},
        ),
    }
    return Made(
        "8 money",
        "money",
        files,
        ["--grow", "@grow.toml", "--axis", "nodes", "--to", "4"],
        first_is("money", k, 0.03 + 0.5 / second),
    )


def racks_of_two_sites(seed: int) -> Made:
    """Partly filled racks at two sites; the building of both counts rack positions."""
    draw = random.Random(seed)
    counts, density = (draw.randint(9, 17), draw.randint(9, 17)), 4
    floor = sum(math.ceil(count / density) for count in counts) + draw.randint(4, 9)
    k = 1.0
    while sum(math.ceil(round(k * count, 6) / density) for count in counts) <= floor:
        k += 0.005
    sites = [{"name": name, "cooling": "hybrid", "rack_kw": 50} for name in ("a", "b")]
    pools = [
        _pool(count, name=f"p-{site}", site=site, nodes_per_rack=density, power_kw_per_node=10.2)
        for site, count in zip("ab", counts, strict=True)
    ]
    files = {
        "fleet.toml": toml(site=sites, pool=pools),
        "grow.toml": toml(facility={"floor_racks": floor, "ports_free": 1_000_000}),
    }
    return Made(
        "1 racks",
        "floor",
        files,
        ["--grow", "@grow.toml", "--axis", "all", "--to", "4"],
        first_is("floor", k, 0.1),
    )


def _pool(nodes: int, **more: object) -> Table:
    given = {"name": "p", "accelerator": "H100", "nodes": nodes, "gpus_per_node": GPUS}
    return {**given, **more}


KINDS: dict[str, tuple[Callable[[int], Made], int]] = {
    "six-layers": (six_layers_end, 3),
    "calm": (nothing_ends, 1),
    "own-room": (growth_brings_its_own_room, 1),
    "copies": (copies_fill_a_link, 1),
    "shared-feed": (several_pools_share_a_feed, 1),
    "kueue-queue": (one_queue_of_kueue, 1),
    "slow-scheduler": (a_slow_scheduler, 1),
    "uneven-repairs": (repairs_are_uneven, 1),
    "two-prices": (a_budget_of_two_pools, 1),
    "two-halls": (racks_of_two_sites, 1),
}
