"""Tiers and links: bytes stored, read and saved, over max-min shares where jobs compete."""

import math
import random
from collections.abc import Mapping, Sequence

from benchmarks.grow.independent.closed import crossing
from benchmarks.grow.independent.made import (
    FACTOR,
    RULE,
    Answer,
    Check,
    Files,
    Made,
    Relief,
    Table,
    first_is,
    job_table,
    near,
    relief_holds,
    toml,
)
from benchmarks.grow.independent.sharing import readers_lose

DAY_S = 86_400
GPUS = 8
NEVER_S = 100_000_000


def all_gpus_read(seed: int) -> Made:
    """Every GPU reads all the time; a GPU's rate does not grow with the dataset."""
    draw = random.Random(seed)
    nodes, rate = draw.randint(6, 12), draw.choice([0.05, 0.1, 0.2])
    k = draw.uniform(1.5, 3.5)
    read = round(k * nodes * GPUS * rate, 2)
    axis = draw.choice(["nodes", "all"])
    files = _files(
        nodes,
        {"read_gb_per_s": read, "streams": 1_000_000},
        {"read_gb_per_s_per_gpu": rate, "tier": "hot"},
    )
    return Made(
        "5 axes",
        "storage-read",
        files,
        _words(axis, 5),
        [*first_is("storage-read", k, 0.04), _alike("storage-read", k)],
    )


def all_jobs_save(seed: int) -> Made:
    """Jobs save at their interval; what a job saves does not grow with the dataset."""
    draw = random.Random(seed)
    nodes, gib, every_s = draw.randint(6, 12), draw.choice([200, 400]), draw.choice([3_600, 7_200])
    k = draw.uniform(1.5, 3.0)
    write = round(k * nodes * gib * 1.073741824 / every_s, 3)
    tier = {"read_gb_per_s": 100_000, "write_gb_per_s": write, "streams": 1_000_000}
    files = _files(
        nodes, tier, {"checkpoint_gib": gib, "checkpoint_every_s": every_s, "tier": "hot"}
    )
    return Made(
        "5 axes",
        "checkpoint-burst",
        files,
        _words("all", 5),
        [*first_is("checkpoint-burst", k, 0.06), _alike("checkpoint-burst", k)],
    )


def streams_end(seed: int) -> Made:
    draw = random.Random(seed)
    nodes = draw.randint(6, 12)
    streams = round(nodes * GPUS * draw.uniform(1.5, 3.0))
    files = _files(
        nodes,
        {"read_gb_per_s": 100_000, "streams": streams},
        {"read_gb_per_s_per_gpu": 0.05, "tier": "hot"},
    )
    return Made(
        "5 axes",
        "storage-streams",
        files,
        _words("nodes", 4, "--count-assumed"),
        first_is("storage-streams", streams / (nodes * GPUS), 0.05),
    )


def a_tier_fills_up(seed: int) -> Made:
    """One dataset grows and the other does not; the tier ends when both fill it."""
    draw = random.Random(seed)
    still, grows = draw.randint(50, 200), draw.randint(100, 300)
    k = draw.uniform(1.4, 2.8)
    capacity = round(still + k * grows)
    true, to = (capacity - still) / grows, 4

    def files(more_tb: int) -> Files:
        tier = {"name": "hot", "class": "hot", "capacity_tb": capacity + more_tb}
        datasets = [
            {"name": "grows", "tier": "hot", "tb": grows, "grows_with": "data"},
            {"name": "still", "tier": "hot", "tb": still, "grows_with": "traffic"},
        ]
        return {
            "fleet.toml": toml(pool=[_pool(4)], tier=[tier]),
            "grow.toml": toml(dataset=datasets),
        }

    relief = Relief(
        "storage-capacity",
        "TB",
        lambda more: (capacity + more - still) / grows,
        files,
        step=max(1, math.ceil(0.05 * capacity)),
        then_within=0.05,
    )
    checks = first_is("storage-capacity", true, 0.02)

    def sized_in_tb(answer: Answer) -> bool:
        fix = (answer.first.get("relief") or {}).get("sentence", "")
        return "TB" in fix

    # A fix in shelves has no size in TB that a user could check.
    sized = [
        Check(
            check.kind,
            check.name,
            lambda answer, judge=check.judge: judge(answer) if sized_in_tb(answer) else None,
        )
        for check in relief_holds(relief, to)
    ]
    return Made(
        "5 axes",
        "storage-capacity",
        files(0),
        ["--grow", "@grow.toml", "--axis", "data", "--to", f"{to}"],
        [*checks, *sized],
    )


def a_link_between_sites(seed: int) -> Made:
    """Jobs of one site read a tier of the other, whose link is the narrowest part."""
    draw = random.Random(seed)
    nodes, rate, k = draw.randint(6, 12), draw.choice([0.05, 0.1]), draw.uniform(1.5, 3.0)
    gbps = round(k * nodes * GPUS * rate * 8, 2)
    files = _files(
        nodes,
        {"read_gb_per_s": 100_000, "streams": 1_000_000},
        {"read_gb_per_s_per_gpu": rate, "tier": "hot"},
    )
    files["fleet.toml"] = _two_sites(
        nodes, {"read_gb_per_s": 100_000, "streams": 1_000_000}, {"gbps": gbps}
    )
    return Made(
        "9 keys",
        "site-links",
        files,
        _words("nodes", 4),
        first_is("site-links", k, 0.05),
    )


def a_dataset_comes_from_elsewhere(seed: int) -> Made:
    """`source_site` must change an answer or be refused: staged bytes cross the link."""
    draw = random.Random(seed)
    pools = [_pool(4, site="far")]
    sites = [{"name": "near"}, {"name": "far"}]
    links = [{"between": ["near", "far"], "gbps": 1.0, "latency_ms": 10, "usd_per_gb": 0.05}]
    tier = {"name": "hot", "class": "hot", "site": "far", "capacity_tb": 900}

    tb = draw.randint(100, 200)

    def files(source: str | None) -> Files:
        dataset = {"name": "d", "tier": "hot", "tb": tb, "source_site": source}
        return {
            "fleet.toml": toml(site=sites, link=links, pool=pools, tier=[tier]),
            "grow.toml": toml(limits={"usd_per_month_most": 10_000_000}, dataset=[dataset]),
        }

    here, there = files(None), files("near")

    def matters(answer: Answer) -> str:
        if answer.status == 2:
            return ""
        same = answer.again(files=here).body
        return (
            ""
            if _told(answer.body) != _told(same)
            else "`source_site` changes nothing and is not refused"
        )

    return Made(
        "9 keys",
        "site-links",
        there,
        ["--grow", "@grow.toml", "--axis", "data", "--to", "5"],
        [Check(RULE, "`source_site` does something", matters)],
    )


def saves_take_time(seed: int) -> Made:
    """A faster tier lets jobs grow further before saves cost too much."""
    draw = random.Random(seed)
    nodes, write = draw.choice([16, 32]), draw.choice([2.0, 4.0])

    def files(write: float) -> Files:
        tier = {"name": "hot", "class": "hot", "write_gb_per_s": write, "read_gb_per_s": 2 * write}
        fleet = toml(pool=[_pool(nodes)], tier=[tier], expects={"model": "Llama 3.1 405B"})
        return {"fleet.toml": fleet, "grow.toml": toml(facility={"ports_free": 1_000_000})}

    def faster(answer: Answer) -> str:
        slow = answer.layer("checkpoint-saves").get("k")
        fast = answer.again(files=files(4 * write)).layer("checkpoint-saves")
        if slow is None:
            return "checkpoint overhead is not judged"
        return (
            ""
            if fast.get("k") is None or fast["k"] > 1.2 * slow
            else f"{slow}x, {fast['k']}x at four times the rate"
        )

    words = ["--grow", "@grow.toml", "--axis", "job-size", "--to", "10", "--count-assumed"]
    return Made(
        "9 keys",
        "checkpoint-saves",
        files(write),
        words,
        [Check(RULE, "a faster tier lets jobs grow further", faster)],
    )


def readers_compete(seed: int) -> Made:
    """Jobs come and go by chance and share a tier: time lost to waiting for data, by max-min."""
    draw = random.Random(seed)
    mean, long_s, rate = draw.uniform(4.0, 6.0), 7_200.0, 0.5
    read = round(mean * draw.uniform(1.8, 2.2) * GPUS * rate, 2)
    coming: list[tuple[float, float]] = []
    now = 0.0
    while now < 40 * DAY_S:
        now += draw.expovariate(mean / long_s)
        coming.append((float(round(now)), float(max(60, round(draw.expovariate(1 / long_s))))))
    rows = [
        {
            "submit_s": round(start),
            "duration_s": round(work),
            "gpus": GPUS,
            "gpus_per_node": GPUS,
            "start_s": round(start),
            "profile": "job",
        }
        for start, work in coming
    ]
    # Durations of a history already hold its stalls, so the limit is far above what today loses.
    k = crossing(
        lambda k: readers_lose([(start / k, work) for start, work in coming], GPUS, rate, read),
        0.05,
        0.5,
        4.0,
        12,
    )
    files = _files(
        64,
        {"read_gb_per_s": read, "streams": 1_000_000},
        {"read_gb_per_s_per_gpu": rate, "tier": "hot"},
    )
    files["jobs.csv"] = job_table(rows)

    def factor(answer: Answer) -> str:
        found = answer.layer("contention").get("k")
        return "" if near(found, k, 0.15) else f"contention at {found}x, truth {k:.3g}x"

    def earlier(answer: Answer) -> str:
        said = answer.first
        return (
            ""
            if said.get("layer") in ("contention", "storage-read")
            else f"first is {said.get('label')}, not the tier"
        )

    return Made(
        "9 keys",
        "contention",
        files,
        _words("jobs", 3, policy="fifo"),
        [
            Check("first break", "the tier is first", earlier),
            Check(FACTOR, f"contention at {k:.3g}x", factor),
        ],
    )


def _told(body: Mapping[str, object]) -> object:
    return {key: body.get(key) for key in ("first", "rows", "layers", "unknown")}


def _alike(layer: str, k: float) -> Check:
    """Return a check that `nodes` and `all` move a layer by the same factor."""

    def judged(answer: Answer) -> str:
        found = {}
        for axis in ("nodes", "all"):
            asked = [*answer.asked]
            asked[asked.index("--axis") + 1] = axis
            found[axis] = answer.again(words=asked).layer(layer).get("k")
        return (
            ""
            if all(near(one, k, 0.06) for one in found.values())
            else f"{layer} at {found}, truth {k:.3g}x on both"
        )

    return Check(RULE, f"`all` moves {layer} as `nodes` does", judged)


def _files(nodes: int, tier: Table, profile: Table) -> Files:
    """Return a fleet whose nodes are always busy: each runs one job after the other."""
    return {
        "fleet.toml": toml(
            pool=[_pool(nodes)], tier=[{"name": "hot", "class": "hot", "capacity_tb": 1000, **tier}]
        ),
        "grow.toml": toml(
            limits={"wait_s_p90": NEVER_S, "stranded_share_most": 1.0},
            facility={"ports_free": 1_000_000},
        ),
        "profiles.toml": toml(**{"profile.job": profile}),
        "jobs.csv": job_table(busy_rows(nodes)),
    }


def busy_rows(nodes: int, days: int = 15, each_s: int = 8 * 3600) -> list[Mapping[str, object]]:
    starts = [turn * each_s for turn in range(days * DAY_S // each_s)]
    return [
        {
            "submit_s": start,
            "duration_s": each_s,
            "gpus": GPUS,
            "gpus_per_node": GPUS,
            "start_s": start,
            "profile": "job",
        }
        for start in starts
        for _ in range(nodes)
    ]


def _two_sites(nodes: int, tier: Table, link: Table) -> str:
    return toml(
        site=[{"name": "near"}, {"name": "far"}],
        link=[{"between": ["near", "far"], "latency_ms": 5, **link}],
        pool=[_pool(nodes, site="far")],
        tier=[{"name": "hot", "class": "hot", "site": "near", "capacity_tb": 1000, **tier}],
    )


def _pool(nodes: int, **more: object) -> Table:
    return {"name": "p", "accelerator": "H100", "nodes": nodes, "gpus_per_node": GPUS, **more}


def _words(axis: str, to: float, *more: str, policy: str = "fifo") -> Sequence[str]:
    given = ["--jobs", "@jobs.csv", "--profiles", "@profiles.toml", "--policy", policy]
    return [*given, "--grow", "@grow.toml", "--axis", axis, "--to", f"{to:g}", *more]
