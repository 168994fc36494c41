"""Servers that take one thing after another: admission, monitoring, serving, and one large job."""

import random

from benchmarks.grow.independent.closed import crossing, md1_mean_wait
from benchmarks.grow.independent.failing import as_csv, renewals
from benchmarks.grow.independent.made import (
    FACTOR,
    RULE,
    Answer,
    Check,
    Files,
    Made,
    Table,
    first_is,
    first_is_at,
    job_table,
    near,
    toml,
)

DAY_S = 86_400
GPUS = 8
NEVER_S = 100_000_000


def a_controller_is_slow(seed: int) -> Made:
    """Jobs arrive by chance at a controller that admits one after another: M/D/1."""
    files, service_s, load = _controller(seed, wait_s=3_000)
    # The mean wait of M/D/1 reaches the limit; a tail would a little earlier.
    k = crossing(lambda k: md1_mean_wait(k * load, service_s), 3_000)
    return Made(
        "9 keys", "admission", files, _history_words("jobs", 4), first_is("admission", k, 0.12)
    )


def a_short_admission_wait(seed: int) -> Made:
    """`admission_wait_s_most` must do something: a short limit is passed long before saturation."""
    files, service_s, load = _controller(seed, wait_s=200)
    mean_k = crossing(lambda k: md1_mean_wait(k * load, service_s), 200)
    tail_k = crossing(lambda k: _md1_waits(k * load, service_s, 0.9), 200)

    def between(answer: Answer) -> str:
        k = answer.layer("admission").get("k")
        low, high = 0.9 * tail_k, 1.1 * mean_k
        return (
            ""
            if k is not None and low <= k <= high
            else f"admission at {k}x, truth {tail_k:.3g}x (P90) to {mean_k:.3g}x (mean)"
        )

    def shorter(answer: Answer) -> str:
        k = answer.layer("admission").get("k")
        longer = answer.again(files=_controller(seed, wait_s=3_000)[0]).layer("admission").get("k")
        return (
            "" if k and longer and k < 0.95 * longer else f"{k}x with 200 s, {longer}x with 3,000 s"
        )

    return Made(
        "9 keys",
        "admission",
        files,
        _history_words("jobs", 4),
        [
            Check(FACTOR, f"admission between {tail_k:.3g}x and {mean_k:.3g}x", between),
            Check(RULE, "`admission_wait_s_most` matters", shorter),
        ],
    )


def _controller(seed: int, wait_s: float) -> tuple[Files, float, float]:
    draw = random.Random(seed)
    per_min, heads, share = draw.choice([0.2, 0.25]), 1, draw.choice([0.5, 0.8])
    service_s = 60 / (per_min * heads * share)
    load = draw.uniform(0.35, 0.45)
    rows, now = [], 0.0
    while now < 20 * DAY_S:
        now += draw.expovariate(load / service_s)
        rows.append(
            {"submit_s": round(now), "duration_s": 600, "gpus": GPUS, "gpus_per_node": GPUS}
        )
    seen = len(rows) * service_s / (20 * DAY_S)
    controller = {
        "kind": "kueue",
        "cycles_per_min": per_min,
        "heads_per_cycle": heads,
        "admitted_share": share,
    }
    files = {
        "fleet.toml": toml(pool=[_pool(64)]),
        "grow.toml": toml(
            limits={
                "admission_wait_s_most": wait_s,
                "wait_s_p90": NEVER_S,
                "stranded_share_most": 1.0,
            },
            controller=[controller],
            facility={"ports_free": 1_000_000},
        ),
        "jobs.csv": job_table(rows),
    }
    return files, service_s, seen


def _md1_waits(load: float, service_s: float, share: float) -> float:
    """Return a quantile of waits in M/D/1, by Lindley's recursion."""
    if load >= 1:
        return float("inf")
    draw, wait, waits = random.Random(5), 0.0, list[float]()
    for _ in range(40_000):
        wait = max(0.0, wait + service_s - draw.expovariate(load / service_s))
        waits.append(wait)
    return sorted(waits)[int(share * len(waits))]


def samples_a_second(seed: int) -> Made:
    """Monitoring ends at its ingest rate or at its disk, whichever is first."""
    draw = random.Random(seed)
    nodes, per_node, per_gpu, every_s = draw.randint(10, 60), 1_500, 120, draw.choice([15, 30])
    rate = nodes * (per_node + GPUS * per_gpu) / every_s
    ingest, disk = draw.uniform(1.5, 3.5), draw.uniform(1.5, 3.5)
    most, days = round(rate * ingest), 30
    tb = round(rate * disk * days * DAY_S * 1.7 / 1e12, 5)
    k = min(most / rate, tb * 1e12 / (rate * days * DAY_S * 1.7))
    monitoring = {
        "series_per_node": per_node,
        "series_per_gpu": per_gpu,
        "interval_s": every_s,
        "samples_per_s_most": most,
        "retention_days": days,
        "store_tb": tb,
    }
    files = {
        "fleet.toml": toml(pool=[_pool(nodes)]),
        "grow.toml": toml(monitoring=monitoring, facility={"ports_free": 1_000_000}),
    }
    return Made(
        "9 keys",
        "monitoring",
        files,
        ["--grow", "@grow.toml", "--axis", "all", "--to", "5"],
        first_is("monitoring", k, 0.03),
    )


def replicas_end(seed: int) -> Made:
    """Twice the replicas carry twice the requests, and a stricter objective carries fewer."""
    draw = random.Random(seed)
    replicas, qps = draw.randint(3, 6), draw.uniform(4, 8)

    def files(replicas: int, qps: float, attainment: float | None = None) -> Files:
        service = {
            "name": "chat",
            "model": "Llama 3.1 70B",
            "qps": qps,
            "input_tokens": 1_500,
            "output_tokens": 300,
            "ttft_s": 2.0,
            "tpot_s": 0.05,
            "pool": "p",
            "replicas_most": replicas,
        }
        limits = {} if attainment is None else {"attainment_least": attainment}
        return {
            "fleet.toml": toml(pool=[_pool(64)]),
            "grow.toml": toml(limits=limits, service=[service], facility={"ports_free": 1_000_000}),
        }

    def k_of(answer: Answer, *given: float) -> float | None:
        return answer.again(files=files(int(given[0]), *given[1:])).layer("serving").get("k")

    def scales(answer: Answer) -> str:
        k, more, busier = (
            k_of(answer, replicas, qps),
            k_of(answer, 2 * replicas, qps),
            k_of(answer, replicas, 2 * qps),
        )
        right = k and near(more, 2 * k, 0.15) and near(busier, k / 2, 0.15)
        return (
            ""
            if right
            else f"{k}x; {more}x with twice the replicas; {busier}x with twice the requests"
        )

    def strict(answer: Answer) -> str:
        loose, tight = k_of(answer, replicas, qps, 0.5), k_of(answer, replicas, qps, 0.9999)
        return (
            ""
            if loose and tight and tight < 0.99 * loose
            else f"{loose}x at 0.5, {tight}x at 0.9999"
        )

    return Made(
        "9 keys",
        "serving",
        files(replicas, qps),
        ["--grow", "@grow.toml", "--axis", "traffic", "--to", "10"],
        [
            Check(FACTOR, "twice the replicas carry twice the requests", scales),
            Check(RULE, "`attainment_least` matters", strict),
        ],
    )


def one_job_scales_badly(seed: int) -> Made:
    """The efficiency that a profile states falls between two sizes, and the limit with it."""
    draw = random.Random(seed)
    gpus = draw.choice([16, 32])
    low, high = gpus * 2, round(gpus * 2.5)
    scaling = {f"{gpus}": 1.0, f"{low}": 0.97, f"{high}": 0.6, f"{gpus * 8}": 0.4}
    files = _gang_files(gpus, {"scaling": scaling})

    def between(answer: Answer) -> str:
        k = answer.layer("step-efficiency").get("k")
        return (
            ""
            if k is not None and low / gpus <= k <= high / gpus
            else f"step efficiency at {k}x, truth {low / gpus} to {high / gpus}x"
        )

    return Made(
        "9 keys",
        "step-efficiency",
        files,
        _history_words("job-size", 4, "--profiles", "@profiles.toml"),
        [*first_is("step-efficiency"), Check(FACTOR, "between the sizes that state it", between)],
    )


def one_job_leaves_its_leaf(seed: int) -> Made:
    """A job that outgrows its leaf sends part of its traffic over uplinks at 4:1.

    With m of n nodes beyond the leaf of 8, the traffic of 8 m / n nodes crosses uplinks that carry
    that of 2. With 0.2 of a step exposed, 5% of the time is lost where 2.53 nodes' worth crosses.
    """
    per_leaf, nodes, ratio = 8, 1 + seed, 4.0
    fabric = {
        "name": "f",
        "nodes_per_leaf": per_leaf,
        "oversubscription": ratio,
        "switch_ports": 128,
    }
    profile = {"network_gbps_per_gpu": 400, "network_share": 0.2}
    crossing_nodes = per_leaf / ratio * (1 + 0.05 / 0.95 / 0.2)
    beyond = per_leaf * crossing_nodes / (per_leaf - crossing_nodes)
    k = (per_leaf + beyond) / nodes

    def named(answer: Answer) -> str:
        said = answer.first
        # Contention on links is the same break as jobs see it.
        right = said.get("layer") in ("fabric-uplinks", "contention")
        return "" if right else f"first is {said.get('label')}, not the uplinks"

    return Made(
        "9 keys",
        "fabric-uplinks",
        _gang_files(nodes * GPUS, profile, fabric=fabric),
        _history_words("job-size", 8, "--profiles", "@profiles.toml"),
        # A job grows by whole nodes.
        [
            Check("first break", "uplinks are first", named),
            first_is_at("fabric-uplinks", k, 0.05 + 0.5 / (per_leaf + beyond)),
        ],
    )


def spines_end(seed: int) -> Made:
    """Jobs over two leaves each send half of their traffic over a spine of a known width."""
    spines = seed
    fabric = {"name": "f", "nodes_per_leaf": 8, "switch_ports": 128, "spines": spines}
    profile = {"network_gbps_per_gpu": 400, "network_share": 0.2}
    # Two jobs of 16 nodes fill 4 leaves; 128 GPUs' worth crosses, and a spine has 128 ports.
    starts = [turn * 6 * 3_600 for turn in range(60)]
    rows = [
        {
            "submit_s": start,
            "duration_s": 6 * 3_600,
            "gpus": 128,
            "gpus_per_node": GPUS,
            "start_s": start,
            "profile": "job",
        }
        for start in starts
        for _ in range(2)
    ]
    k = spines * (1 + 0.05 / 0.95 / 0.2)
    files = _gang_files(128, profile, fabric=fabric)
    files["fleet.toml"] = toml(
        pool=[{**_pool(32), "nics_per_node": 8, "nic_gbps": 400}], fabric=[fabric]
    )
    files["jobs.csv"] = job_table(rows)
    words = _history_words("nodes", 4, "--profiles", "@profiles.toml")
    return Made("9 keys", "fabric-spine", files, words, [first_is_at("fabric-spine", k, 0.1)])


def teams_share(seed: int) -> Made:
    """First come first gives every team what it asks for until GPU time ends."""
    draw = random.Random(seed)
    nodes, load = 8, draw.uniform(0.5, 0.6)
    rows, now = [], 0.0
    while now < 15 * DAY_S:
        now += draw.expovariate(load * nodes / 3_600)
        team = "large" if draw.random() < 0.9 else "small"
        rows.append(
            {
                "submit_s": round(now),
                "duration_s": max(1, round(draw.expovariate(1 / 3_600))),
                "gpus": GPUS,
                "gpus_per_node": GPUS,
                "team": team,
            }
        )
    files = {
        "fleet.toml": toml(pool=[_pool(nodes)], team=[{"name": "large"}, {"name": "small"}]),
        "grow.toml": toml(
            limits={"wait_s_p90": NEVER_S, "stranded_share_most": 1.0},
            facility={"ports_free": 1_000_000},
        ),
        "jobs.csv": job_table(rows),
    }

    def later(answer: Answer) -> str:
        row = answer.layer("governance")
        if not row:
            return "fairness is not judged"
        return (
            ""
            if row["k"] is None or row["k"] > 0.9 / load
            else f"unfair at {row['k']}x; all get what they ask for up to {1 / load:.3g}x"
        )

    return Made(
        "9 keys",
        "governance",
        files,
        _history_words("jobs", 3, "--count-assumed"),
        [Check(RULE, "teams are served up to full load", later)],
    )


def failures_cost_too_much(seed: int) -> Made:
    """A larger gang fails more often, and each failure costs half an interval of saves."""
    draw = random.Random(seed)
    nodes, gang, every_s = 60, 4, 4 * 3_600
    up_h = draw.uniform(160, 240)
    faults = renewals(seed, 80, [(up_h, 0.5)] * nodes)
    # Lost over useful is the gang's failure rate times half an interval; the limit is a share.
    k = 0.1 / 0.9 / (gang * every_s / 2 / (up_h * 3_600))
    rows, now = [], 0.0
    while now < 60 * DAY_S:
        now += draw.expovariate(0.35 * nodes / gang / (48 * 3_600))
        rows.append(
            {
                "submit_s": round(now),
                "duration_s": 48 * 3_600,
                "gpus": gang * GPUS,
                "gpus_per_node": GPUS,
                "start_s": round(now),
                "checkpoint_every_s": every_s,
            }
        )
    files = {
        "fleet.toml": toml(pool=[_pool(nodes)]),
        "grow.toml": toml(
            limits={"wait_s_p90": NEVER_S, "stranded_share_most": 1.0},
            facility={"ports_free": 1_000_000},
        ),
        "jobs.csv": job_table(rows),
        "faults.csv": as_csv(faults, "p"),
    }

    def factor(answer: Answer) -> str:
        found = answer.layer("failures").get("k")
        return "" if near(found, k, 0.25) else f"failures at {found}x, truth {k:.3g}x"

    return Made(
        "2 spares",
        "failures",
        files,
        _history_words("job-size", 6, "--failures", "@faults.csv", "--count-assumed"),
        [Check(FACTOR, f"failures at {k:.3g}x", factor)],
    )


def _gang_files(gpus: int, profile: Table, fabric: Table | None = None) -> Files:
    """Return a history of one gang after another on a fleet much larger than it."""
    rows = [
        {
            "submit_s": turn * 6 * 3_600,
            "duration_s": 6 * 3_600,
            "gpus": gpus,
            "gpus_per_node": GPUS,
            "start_s": turn * 6 * 3_600,
            "profile": "job",
        }
        for turn in range(60)
    ]
    pool = {**_pool(64), "nics_per_node": 8, "nic_gbps": 400}
    return {
        "fleet.toml": toml(pool=[pool], fabric=None if fabric is None else [fabric]),
        "grow.toml": toml(
            limits={"wait_s_p90": NEVER_S, "stranded_share_most": 1.0},
            facility={"ports_free": 1_000_000},
        ),
        "profiles.toml": toml(**{"profile.job": profile}),
        "jobs.csv": job_table(rows),
    }


def _pool(nodes: int) -> Table:
    return {"name": "p", "accelerator": "H100", "nodes": nodes, "gpus_per_node": GPUS}


def _history_words(axis: str, to: float, *more: str) -> list[str]:
    return [
        "--jobs",
        "@jobs.csv",
        "--policy",
        "fifo",
        "--grow",
        "@grow.toml",
        "--axis",
        axis,
        "--to",
        f"{to:g}",
        *more,
    ]
