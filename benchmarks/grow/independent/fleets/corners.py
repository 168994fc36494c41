"""Less common keys and fixes: stated rates, measured usage, headroom, spares in racks, dates."""

import math
import random
from collections.abc import Callable
from datetime import date, timedelta

from benchmarks.grow.independent.closed import any_of, longer_than
from benchmarks.grow.independent.failing import as_csv, renewals
from benchmarks.grow.independent.made import (
    FACTOR,
    RULE,
    Answer,
    Bare,
    Check,
    Files,
    Made,
    Relief,
    Table,
    covers,
    first_is,
    job_table,
    over_today,
    relief_holds,
    toml,
)

DAY_S = 86_400.0
GPUS = 8
PORTS: Table = {"ports_free": 1_000_000}


def technicians_at_a_stated_rate(seed: int) -> Made:
    """A published rate of failures a node-day, against repairs a day."""
    draw = random.Random(seed)
    nodes, crew, each, rate = draw.randint(200, 320), 2, draw.choice([1.5, 2.0]), 6.5 / 1_000
    k, to = crew * each / (nodes * rate), 4.0

    def files(more: int) -> Files:
        return {
            "fleet.toml": toml(pool=[_pool(nodes)]),
            "grow.toml": toml(
                operations={"crew": crew + more, "repairs_per_person_day": each}, facility=PORTS
            ),
        }

    relief = Relief(
        "operations",
        "technician",
        lambda more: (crew + more) * each / (nodes * rate),
        files,
    )
    words = ["--grow", "@grow.toml", "--failures", "rsc-1", "--axis", "nodes", "--to", f"{to:g}"]
    return Made(
        "7 reliefs",
        "operations",
        files(0),
        words,
        [*first_is("operations", k, 0.03), *relief_holds(relief, to)],
    )


def usage_was_measured(seed: int) -> Made:
    """Usage was measured at five factors and grows with a power of them."""
    draw = random.Random(seed)
    power, today = draw.choice([1.0, 1.3, 1.6]), draw.uniform(0.1, 0.2)
    k = draw.uniform(3.2, 4.5)
    limit = today * k**power
    lines = ["layer,resource,factor,usage,limit,unit,axis"]
    for factor in (1.0, 1.5, 2.0, 2.5, 3.0):
        usage = today * factor**power * draw.uniform(0.995, 1.005)
        lines.append(f"monitoring,gateway,{factor},{usage:.5f},{limit:.5f},cores,nodes")
    files = {
        "fleet.toml": toml(pool=[_pool(20)]),
        "grow.toml": toml(facility=PORTS),
        "measured.csv": "\n".join(lines) + "\n",
    }
    words = ["--grow", "@grow.toml", "--measured", "@measured.csv", "--axis", "nodes", "--to", "8"]
    return Made(
        "9 keys",
        "monitoring",
        files,
        words,
        [*first_is("monitoring", k, 0.08), covers("monitoring", k)],
    )


def headroom_is_kept(seed: int) -> Made:
    """A sixth of every capacity is kept free: a tier ends at five sixths."""
    draw = random.Random(seed)
    tb, k, kept = draw.randint(100, 300), draw.uniform(1.4, 2.5), round(1 / 6, 4)
    capacity = round(k * tb / (1 - kept), 2)
    files = {
        "fleet.toml": toml(
            pool=[_pool(4)], tier=[{"name": "t", "class": "warm", "capacity_tb": capacity}]
        ),
        "grow.toml": toml(
            limits={"headroom_least": kept},
            dataset=[
                {"name": "a", "tier": "t", "tb": round(tb / 2, 1)},
                {"name": "b", "tier": "t", "tb": tb - round(tb / 2, 1)},
            ],
            facility=PORTS,
        ),
    }
    return Made(
        "9 keys",
        "storage-capacity",
        files,
        ["--grow", "@grow.toml", "--axis", "all", "--to", "4"],
        first_is("storage-capacity", k, 0.02),
    )


def spares_draw_power(seed: int) -> Made:
    """Spare nodes stand in racks and draw power; they do not grow."""
    draw = random.Random(seed)
    nodes, spares, kw, pue = draw.randint(20, 40), draw.randint(4, 8), 10.0, 1.2
    k = draw.uniform(1.4, 2.4)
    site = {
        "name": "s",
        "cooling": "hybrid",
        "pue": pue,
        "power_kw": round((k * nodes + spares) * kw * pue, 1),
    }
    files = {
        "fleet.toml": toml(site=[site], pool=[_pool(nodes, power_kw_per_node=kw)]),
        "grow.toml": toml(operations={"spares": spares}, facility=PORTS),
    }
    words = ["--grow", "@grow.toml", "--failures", "none", "--axis", "nodes", "--to", "4"]
    return Made(
        "1 racks",
        "site-power",
        files,
        words,
        first_is("site-power", k, 0.02 + 1 / nodes),
    )


def one_rack_has_a_weak_feed(seed: int) -> Made:
    """Of five named racks one has a smaller feed than its nodes draw."""
    draw = random.Random(seed)
    weak = draw.randint(1, 5)
    racks = [
        {
            "name": f"r{rack}",
            "nodes": f"p-[{4 * rack - 3}-{4 * rack}]",
            "power_kw": 38.0 if rack == weak else 44.0,
        }
        for rack in range(1, 6)
    ]
    files = {
        "fleet.toml": toml(
            site=[{"name": "s", "cooling": "hybrid", "rack_kw": 44}],
            pool=[_pool(20, power_kw_per_node=10.2)],
            rack=racks,
        ),
        "grow.toml": toml(facility=PORTS),
    }
    return Made(
        "1 racks",
        "rack-power",
        files,
        ["--grow", "@grow.toml", "--axis", "nodes", "--to", "2"],
        over_today("rack-power"),
    )


def work_without_starts(seed: int) -> Made:
    """Small jobs, gangs and half GPUs: GPU time asked for, over days that have records."""
    draw = random.Random(seed)
    nodes, days = 6, 20
    rows, work, now = list[Table](), 0.0, 0.0
    while now < days * DAY_S:
        now += draw.expovariate(1 / 240)
        gpus = draw.choice([0.5, 1, 2, 4, 8, 16])
        seconds = max(60, round(draw.expovariate(1 / 1_000)))
        work += gpus * seconds
        rows.append({"submit_s": round(now), "duration_s": seconds, "gpus": gpus})
    load = work / (nodes * GPUS * days * DAY_S)
    files = {
        "fleet.toml": toml(pool=[_pool(nodes)]),
        "grow.toml": toml(
            limits={"wait_s_p90": 100_000_000, "stranded_share_most": 1.0}, facility=PORTS
        ),
        "jobs.csv": job_table(rows),
    }
    words = ["--jobs", "@jobs.csv", "--policy", "fifo", "--grow", "@grow.toml"]
    return Made(
        "4 no starts",
        "compute",
        files,
        [*words, "--axis", "jobs", "--to", "4"],
        first_is("compute", 1 / load, 0.04),
    )


def spares_of_two_pools(seed: int) -> Made:
    """Spares stand in for nodes of two pools that fail apart from each other."""
    draw = random.Random(seed)
    counts, up_h, down_h = (draw.randint(50, 70), draw.randint(50, 70)), 600.0, 36.0
    nodes, down = sum(counts), down_h / (up_h + down_h)

    def enough(count: int, spares: int) -> bool:
        return longer_than(any_of([down] * (count + spares)), spares) <= 0.01

    spares = next(spares for spares in range(100) if enough(nodes, spares)) + draw.randint(3, 5)
    k = 1.0
    while enough(round(k * nodes), spares):
        k += 0.01
    faults = renewals(seed, 700, [(up_h, down_h)] * nodes)
    both = as_csv([one for one in faults if one.node < counts[0]], "a")
    second = [
        type(one)(one.node - counts[0], one.start_s, one.end_s)
        for one in faults
        if one.node >= counts[0]
    ]
    files = {
        "fleet.toml": toml(pool=[_pool(counts[0], name="a"), _pool(counts[1], name="b")]),
        "grow.toml": toml(operations={"spares": spares}, facility=PORTS),
        "faults.csv": both + "".join(as_csv(second, "b").splitlines(keepends=True)[1:]),
    }
    words = ["--grow", "@grow.toml", "--failures", "@faults.csv", "--axis", "nodes", "--to", "2.5"]
    return Made(
        "2 spares",
        "spares",
        files,
        words,
        [*first_is("spares", k, 0.15), covers("spares", k)],
    )


def a_feed_takes_a_year(seed: int) -> Made:
    """Growth reaches the feed before one ordered today arrives: the date is in the past."""
    draw = random.Random(seed)
    nodes, k, months, weeks = 20, draw.uniform(1.15, 1.4), 8, 52
    today = date(2026, 11, 15)
    reached = today + timedelta(days=math.log2(k) * months * 365.25 / 12)
    wanted = reached - timedelta(weeks=weeks)
    site = {"name": "s", "cooling": "hybrid", "pue": 1.2, "power_kw": round(k * nodes * 12, 1)}
    files = {
        "fleet.toml": toml(site=[site], pool=[_pool(nodes, power_kw_per_node=10.0)]),
        "grow.toml": toml(
            lead_time=[{"thing": "site-power", "weeks_p50": 30, "weeks_p90": weeks}],
            pace={"today": Bare(f"{today}"), "doubles_in_months": months},
            facility=PORTS,
        ),
    }

    def order(answer: Answer) -> str:
        row = next((row for row in answer.rows if row["layer"] == "site-power"), None)
        if row is None:
            return "the feed has no row"
        said = row["order_by"]
        if not said or abs((date.fromisoformat(said) - wanted).days) > 20:
            return f"order by {said or 'no date'}, truth {wanted}"
        return "" if row["late"] else "it is not said to be late"

    def told(answer: Answer) -> str:
        return "" if "past" in answer.text() or "late" in answer.text() else "lateness is not told"

    return Made(
        "8 money",
        "site-power",
        files,
        ["--grow", "@grow.toml", "--axis", "nodes", "--to", "2"],
        [
            *first_is("site-power", k, 0.06),
            Check(FACTOR, f"order by {wanted}", order),
            Check(RULE, "lateness is told", told),
        ],
    )


def a_store_of_samples_fills(seed: int) -> Made:
    """Samples are kept for a year on a disk of a known size, at two bytes each."""
    draw = random.Random(seed)
    nodes, cpu, every_s, days = draw.randint(20, 50), draw.randint(10, 30), 20, 365
    k = draw.uniform(1.5, 3.0)
    series = (nodes + cpu) * 1_200 + nodes * GPUS * 90
    tb = round(k * series / every_s * days * DAY_S * 2.0 / 1e12, 5)
    pools = [
        _pool(nodes),
        {
            "name": "cpu",
            "nodes": cpu,
            "gpus_per_node": 0,
            "cpus_per_node": 64,
            "memory_gib_per_node": 256,
        },
    ]
    files = {
        "fleet.toml": toml(pool=pools),
        "grow.toml": toml(
            monitoring={
                "series_per_node": 1_200,
                "series_per_gpu": 90,
                "interval_s": every_s,
                "retention_days": days,
                "bytes_per_sample": 2.0,
                "store_tb": tb,
            },
            facility=PORTS,
        ),
    }
    return Made(
        "9 keys",
        "monitoring",
        files,
        ["--grow", "@grow.toml", "--axis", "nodes", "--to", "5"],
        first_is("monitoring", k, 0.04),
    )


def a_faster_link(seed: int) -> Made:
    """Jobs read over a link; the fix is as many Gbit/s as the factor asks for."""
    draw = random.Random(seed)
    tb, copies, to = draw.randint(140, 320), 6, 4.0
    month_s = 365.25 / 12 * DAY_S
    per_k = tb * 8e12 * copies / month_s / 1e9
    # Links are sold by the Gbit/s.
    gbps = math.ceil(draw.uniform(1.5, 2.5) * per_k)
    k = gbps / per_k

    def files(more: int) -> Files:
        return {
            "fleet.toml": toml(
                site=[{"name": "near"}, {"name": "far"}],
                link=[{"between": ["near", "far"], "gbps": gbps + more, "latency_ms": 5}],
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

    relief = Relief("site-links", "Gbit", lambda more: (gbps + more) / per_k, files)
    return Made(
        "7 reliefs",
        "site-links",
        files(0),
        ["--grow", "@grow.toml", "--axis", "data", "--to", f"{to:g}"],
        [*first_is("site-links", k, 0.03), *relief_holds(relief, to)],
    )


def _pool(nodes: int, **more: object) -> Table:
    given = {"name": "p", "accelerator": "H100", "nodes": nodes, "gpus_per_node": GPUS}
    return {**given, **more}


KINDS: dict[str, tuple[Callable[[int], Made], int]] = {
    "stated-rate": (technicians_at_a_stated_rate, 1),
    "measured-usage": (usage_was_measured, 3),
    "headroom": (headroom_is_kept, 1),
    "spares-power": (spares_draw_power, 1),
    "weak-rack": (one_rack_has_a_weak_feed, 1),
    "mixed-work": (work_without_starts, 1),
    "two-spare-pools": (spares_of_two_pools, 1),
    "late-feed": (a_feed_takes_a_year, 1),
    "sample-store": (a_store_of_samples_fills, 1),
    "faster-link": (a_faster_link, 1),
}
