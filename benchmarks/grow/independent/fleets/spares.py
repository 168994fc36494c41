"""Spare nodes: how many are down at once under bursts, lemon nodes and independent failures."""

import json
import math
import os
import random
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

from benchmarks.grow.independent.closed import any_of, longer_than, poisson_longer
from benchmarks.grow.independent.failing import (
    Bursts,
    Fault,
    as_csv,
    grown,
    read_infinitehbd,
    renewals,
    short_share,
    spares_needed,
    time_by_count,
)
from benchmarks.grow.independent.made import (
    ENOUGH,
    MINIMAL,
    RULE,
    Answer,
    Check,
    Files,
    Made,
    covers,
    first_is,
    over_today,
    toml,
)

DATA = Path(os.environ.get("TENFOLD_SHARED_DATA", Path(__file__).parents[5] / "shared" / "data"))
INFINITEHBD = DATA / "failures" / "infinitehbd_raw.json"
SHARE = 0.01
DAY_S = 86_400.0


def independent_failures(seed: int) -> Made:
    """Nodes fail and are repaired apart from each other: a binomial count of nodes down."""
    draw = random.Random(seed)
    nodes, up_h, down_h = draw.randint(80, 140), draw.uniform(500, 800), draw.uniform(20, 40)
    down = down_h / (up_h + down_h)
    spares = _needed_of([down] * nodes) + draw.randint(3, 6)
    k = _k_of([down] * nodes, spares)
    faults = renewals(seed, 700, [(up_h, down_h)] * nodes)
    return _made(faults, nodes, spares, "2", [*first_is("spares", k, 0.15), covers("spares", k)])


def lemon_nodes(seed: int) -> Made:
    """A few nodes are down half of the time: more nodes down than most have, with less spread."""
    draw = random.Random(seed)
    nodes, lemons = draw.randint(100, 160), draw.randint(6, 10)
    means = [(30.0, 30.0)] * lemons + [(2_000.0, 24.0)] * (nodes - lemons)
    chances = [down / (up + down) for up, down in means]
    spares = _needed_of(chances) + draw.randint(2, 5)
    k = _k_of(chances, spares)
    return _made(
        renewals(seed, 700, means),
        nodes,
        spares,
        "2",
        [*first_is("spares", k, 0.15), covers("spares", k)],
    )


def bursts_beyond_the_spares(seed: int) -> Made:
    """Racks fail whole: enough spares if failures came one by one, and too few for this trace."""
    process, faults, days = _burst_trace(seed)
    seconds = time_by_count(faults, 0, days * DAY_S)
    needed = spares_needed(seconds, SHARE)
    mean = sum(down * span for down, span in seconds.items()) / sum(seconds.values())
    one_by_one = next(count for count in range(1000) if poisson_longer(mean, count) <= SHARE)
    spares = max(one_by_one, needed - 3)
    assert spares < needed, "the trace is not bursty"
    return _made(
        faults,
        process.nodes,
        spares,
        "1",
        [
            *over_today("spares"),
            *_total_is(spares, needed),
            Check(RULE, "`sim failures` agrees", _agrees(spares)),
        ],
    )


def bursts_within_the_spares(seed: int) -> Made:
    """Spares cover the bursts of today; the factor at which they no longer do."""
    process, faults, days = _burst_trace(seed + 100)
    seconds = time_by_count(faults, 0, days * DAY_S)
    needed = max(spares_needed(seconds, SHARE), spares_needed(_long_run(process), SHARE))
    spares = needed + 4
    k = next((k for k in _grid() if _short(process, k, spares) > SHARE), 4.0)
    sample = _sample_k(faults, process.nodes, process.nodes_per_rack, days, spares)
    return _made(
        faults,
        process.nodes,
        spares,
        "4",
        [*first_is("spares", k, 0.2, sample=sample), covers("spares", k)],
    )


def the_published_trace(seed: int) -> Made:
    """400 nodes with 20 spares under the InfiniteHBD trace, or its preset where there is none."""
    del seed
    files = _files(400, 20)
    if INFINITEHBD.exists():
        faults, until_s = read_infinitehbd(INFINITEHBD)
        needed = spares_needed(time_by_count(faults, 0, until_s), SHARE)
        given = str(INFINITEHBD)
    else:
        # Published with the trace: 31 nodes are down 1% of the time.
        needed, given = 31, "infinitehbd"

    def agrees(answer: Answer) -> str:
        return _agreement(answer, given, 20)

    return Made(
        "2 spares",
        "spares",
        files,
        ["--grow", "@grow.toml", "--failures", given, "--axis", "nodes", "--to", "1"],
        [
            *over_today("spares"),
            *_total_is(20, needed),
            Check(RULE, "`sim failures` agrees", agrees),
        ],
    )


def technicians(seed: int) -> Made:
    """Repairs a day against what the crew does: a product of rates."""
    draw = random.Random(seed)
    nodes, crew, each = draw.randint(100, 200), draw.choice([1, 2, 3]), draw.choice([1.0, 2.0])
    # Every node fails often enough that the rate of the trace is known to 3%.
    k = draw.uniform(1.4, 2.5)
    up_h = k * nodes * 24 / (crew * each) - 10
    faults = renewals(seed, 60_000 / nodes, [(up_h, 10.0)] * nodes)
    seen = len(faults) / (60_000 / nodes) / nodes
    true = crew * each / (nodes * seen)
    files = {
        "fleet.toml": _files(nodes, 0)["fleet.toml"],
        "grow.toml": toml(
            operations={"crew": crew, "repairs_per_person_day": each},
            facility={"ports_free": 1_000_000},
        ),
        "faults.csv": as_csv(faults, "p"),
    }
    return Made(
        "2 spares",
        "operations",
        files,
        ["--grow", "@grow.toml", "--failures", "@faults.csv", "--axis", "nodes", "--to", "4"],
        first_is("operations", true, 0.06),
    )


def _burst_trace(seed: int) -> tuple[Bursts, list[Fault], float]:
    draw = random.Random(seed)
    process = Bursts(draw.choice([96, 128, 160]), 8, draw.uniform(0.2, 0.35), draw.uniform(20, 36))
    return process, process.draw(seed, 500), 500.0


@cache
def _long_run(process: Bursts) -> dict[int, float]:
    return time_by_count(process.draw(7, 4_000), 100 * DAY_S, 4_000 * DAY_S)


def _short(process: Bursts, k: float, spares: int) -> float:
    """Return the share of time short of spares at a factor; spares fail as nodes do."""
    return short_share(_long_run(process.times(k + spares / process.nodes)), spares)


def _sample_k(
    faults: Sequence[Fault], nodes: int, nodes_per_rack: int, days: float, spares: int
) -> float:
    """Return the factor of this very trace, grown by its own racks at other times."""

    def short(k: float) -> float:
        factor = k + spares / nodes
        shares = [
            short_share(
                time_by_count(
                    grown(faults, nodes, nodes_per_rack, factor, days, seed), 0, days * DAY_S
                ),
                spares,
            )
            for seed in range(5)
        ]
        return sum(shares) / len(shares)

    return next((k for k in _grid() if short(k) > SHARE), 4.0)


def _grid() -> list[float]:
    return [round(1.0 + 0.1 * step, 2) for step in range(31)]


def _needed_of(chances: Sequence[float]) -> int:
    return next(
        spares
        for spares in range(len(chances))
        if longer_than(any_of(_alike(chances, len(chances) + spares)), spares) <= SHARE
    )


def _k_of(chances: Sequence[float], spares: int) -> float:
    """Return the factor at which nodes drawn alike outgrow the spares; spares fail as nodes do."""
    k = 1.0
    while longer_than(any_of(_alike(chances, round(k * len(chances)) + spares)), spares) <= SHARE:
        k += 0.02
    return k


def _alike(chances: Sequence[float], count: int) -> list[float]:
    return [chances[place * len(chances) // count] for place in range(count)]


def _total_is(spares: int, needed: int) -> list[Check]:
    """Return checks of the fix; spares fail too, so up to an eighth more than `needed` is right."""
    most = math.ceil(needed * 1.125) + 1

    def total(answer: Answer) -> tuple[int | None, str]:
        row = next((row for row in answer.rows if row["layer"] == "spares"), None)
        if row is None or row["relief"] is None:
            return None, f"no fix; {needed} spares are needed"
        words = row["relief"]["sentence"].split("add ")[-1].split()
        return (
            (spares + int(words[0].replace(",", "")), "")
            if words[0].isdigit()
            else (None, row["relief"]["sentence"])
        )

    def enough(answer: Answer) -> str:
        found, wrong = total(answer)
        if found is None:
            return wrong
        return "" if found >= needed else f"{found} in total, {needed} are needed"

    def minimal(answer: Answer) -> str:
        found, wrong = total(answer)
        if found is None:
            return wrong
        return "" if found <= most else f"{found} in total, {needed} to {most} are needed"

    return [
        Check(ENOUGH, "spares are enough", enough),
        Check(MINIMAL, "spares are no more", minimal),
    ]


def _agrees(spares: int) -> Callable[[Answer], str]:
    return lambda answer: _agreement(answer, "@faults.csv", spares)


def _agreement(answer: Answer, failures: str, spares: int) -> str:
    status, out, errors = answer.run(
        "sim", "failures", "--fleet", "@fleet.toml", "--failures", failures, "--json"
    )
    if status:
        return f"`sim failures` ends with {status}: {errors[:100]}"
    said = json.loads(out)
    short = said["spares"]["p99"] > spares
    k = answer.layer("spares").get("k")
    return (
        ""
        if (k is not None and k <= 1) == short
        else f"`sim failures` needs {said['spares']['p99']}, `grow` says {spares} last to {k}x"
    )


def _files(nodes: int, spares: int) -> Files:
    pool = {"name": "p", "accelerator": "H100", "nodes": nodes, "gpus_per_node": 8}
    return {
        "fleet.toml": toml(pool=[pool]),
        "grow.toml": toml(operations={"spares": spares}, facility={"ports_free": 1_000_000}),
    }


def _made(
    faults: Sequence[Fault], nodes: int, spares: int, to: str, checks: Sequence[Check]
) -> Made:
    return Made(
        "2 spares",
        "spares",
        {**_files(nodes, spares), "faults.csv": as_csv(faults, "p")},
        ["--grow", "@grow.toml", "--failures", "@faults.csv", "--axis", "nodes", "--to", to],
        checks,
    )
