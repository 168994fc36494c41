"""`tenfold objects tier simulate`: what a fast tier in front of a slow one costs and delivers."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter, validators

from tenfold.cli.arguments import Facts, Json
from tenfold.cli.output import print_json, show, table
from tenfold.report.figures import file_bytes

_POSITIVE = validators.Number(gt=0)


def simulate_command(
    trace: Annotated[
        Path, Parameter(help="CSV with columns key, size_bytes, op, epoch, compute_s")
    ],
    *,
    fast_gb: Annotated[float, Parameter(help="Size of the fast tier in GB", validator=_POSITIVE)],
    slow_gb_per_s: Annotated[
        float | None,
        Parameter(
            help="Read throughput of the slow tier for this job, in GB/s (default: that of one "
            "storage shelf of --slow)",
            validator=_POSITIVE,
        ),
    ] = None,
    fast: Annotated[str, Parameter(help="Tier class of the fast tier (default: hot)")] = "hot",
    slow: Annotated[str, Parameter(help="Tier class of the slow tier (default: warm)")] = "warm",
    facts: Facts = None,
    as_json: Json = False,
) -> None:
    """Replay accesses of a training job and compare what its fast tier should hold.

    The policies are all-flash, LRU, LRU with prefetch, and the epoch-aware cache, which is the code
    that decides in production. Prices and speeds are those of the tier classes in the facts.
    """
    from tenfold.facts.loader import load_catalogue  # noqa: PLC0415
    from tenfold.files.accesses import read_accesses  # noqa: PLC0415
    from tenfold.sim.storage.tier_replay import Speed  # noqa: PLC0415
    from tenfold.study.tiering.compare import TierPrice, compare  # noqa: PLC0415

    accesses = read_accesses(trace)
    catalogue = load_catalogue(facts)
    prices: list[TierPrice] = []
    for name, rate in ((fast, None), (slow, slow_gb_per_s)):
        found = catalogue.tiers.get(name)
        rate_gb_per_s = found.read_gb_per_s if rate is None else rate
        speed = Speed(rate_gb_per_s * 1e9, found.latency_us / 1e6)
        prices.append(TierPrice(speed, found.usd_per_tb_month))
    results = compare(accesses, prices[0], prices[1], round(fast_gb * 1e9))
    if as_json:
        print_json(results)
        return
    rows = [
        [
            one.policy,
            f"${one.usd_per_month:,.2f}",
            f"{one.stall_s:,.1f} s",
            f"{one.stall_share:.1%}",
            f"{one.hit_rate:.1%}",
            file_bytes(one.slow_tb * 1e12),
        ]
        for one in results
    ]
    columns = ["policy", ">per month", ">read wait", ">% of run time", ">hits", ">slow tier"]
    show(table("", columns, rows))
