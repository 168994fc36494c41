"""Money and dates: what a month costs in whole, sums of known parts, and when to order."""

import math
import random
import re
from datetime import date, timedelta

from benchmarks.grow.independent.fleets.storage import busy_rows
from benchmarks.grow.independent.made import (
    FACTOR,
    RULE,
    Answer,
    Bare,
    Check,
    Files,
    Made,
    Table,
    first_is,
    job_table,
    toml,
)

HOURS = 8_760 / 12
GPUS = 8


def owned_nodes_and_their_energy(seed: int) -> Made:
    """Capital by month, energy at the site's price, storage and staff; only nodes grow."""
    draw = random.Random(seed)
    nodes, capex, years = draw.randint(10, 30), draw.choice([200_000, 240_000]), 4
    kw, pue, kwh = 12.0, 1.5, draw.choice([0.3, 0.5])
    node = capex / (years * 12) + kw * pue * HOURS * kwh
    tb, tb_usd = 2_000, draw.choice([10, 20])
    crew, wage = 3, 12_000
    fixed = tb * tb_usd + crew * wage
    k = draw.uniform(1.4, 2.6)
    most = round(fixed + k * nodes * node)
    price = {"kind": "owned", "capex_usd_per_node": capex, "lifetime_years": years}
    site = {"name": "s", "cooling": "hybrid", "pue": pue, "usd_per_kwh": kwh}
    tier = {"name": "hot", "class": "hot", "capacity_tb": tb, "usd_per_tb_month": tb_usd}
    files = {
        "fleet.toml": toml(
            site=[site], pool=[_pool(nodes, price, power_kw_per_node=kw)], tier=[tier]
        ),
        "grow.toml": toml(
            limits={"usd_per_month_most": most},
            operations={
                "crew": crew,
                "repairs_per_person_day": 1_000,
                "usd_per_person_month": wage,
            },
            facility={"ports_free": 1_000_000},
        ),
    }
    return Made(
        "8 money",
        "money",
        files,
        ["--grow", "@grow.toml", "--axis", "nodes", "--to", "4"],
        [*first_is("money", k, 0.05), Check(RULE, "known parts are summed", sums)],
    )


def spares_are_paid(seed: int) -> Made:
    """Spare nodes cost what nodes cost; they are bought beside the nodes of the fleet."""
    draw = random.Random(seed)
    nodes, spares, hourly = draw.randint(10, 20), draw.randint(6, 9), 2.0
    node = GPUS * hourly * HOURS
    k = draw.uniform(1.4, 2.4)
    most = round((k * nodes + spares) * node)
    files = {
        "fleet.toml": toml(pool=[_pool(nodes, {"kind": "on-demand", "usd_per_gpu_hour": hourly})]),
        "grow.toml": toml(
            limits={"usd_per_month_most": most},
            operations={"spares": spares},
            facility={"ports_free": 1_000_000},
        ),
    }
    return Made(
        "8 money",
        "money",
        files,
        ["--grow", "@grow.toml", "--failures", "none", "--axis", "nodes", "--to", "4"],
        first_is("money", k, 0.05),
    )


def egress_is_paid(seed: int) -> Made:
    """Jobs read over a link that is paid by the gigabyte."""
    draw = random.Random(seed)
    nodes, hourly, rate, per_gb = draw.randint(6, 10), 2.0, 0.02, 0.02
    pay = nodes * GPUS * (hourly * HOURS + rate * HOURS * 3_600 * per_gb)
    tb, tb_usd = 100, 5
    k = draw.uniform(1.4, 2.4)
    files = {
        "fleet.toml": toml(
            site=[{"name": "near"}, {"name": "far"}],
            link=[
                {"between": ["near", "far"], "gbps": 10_000, "latency_ms": 5, "usd_per_gb": per_gb}
            ],
            pool=[_pool(nodes, {"kind": "on-demand", "usd_per_gpu_hour": hourly}, site="far")],
            tier=[
                {
                    "name": "hot",
                    "class": "hot",
                    "site": "near",
                    "capacity_tb": tb,
                    "usd_per_tb_month": tb_usd,
                    "read_gb_per_s": 10_000,
                    "streams": 1_000_000,
                }
            ],
        ),
        "grow.toml": toml(
            limits={
                "usd_per_month_most": round(k * pay + tb * tb_usd),
                "wait_s_p90": 100_000_000,
                "stranded_share_most": 1.0,
            },
            facility={"ports_free": 1_000_000},
        ),
        "profiles.toml": toml(**{"profile.job": {"read_gb_per_s_per_gpu": rate, "tier": "hot"}}),
        "jobs.csv": job_table(busy_rows(nodes)),
    }
    words = [
        "--jobs",
        "@jobs.csv",
        "--profiles",
        "@profiles.toml",
        "--policy",
        "fifo",
        "--grow",
        "@grow.toml",
    ]
    return Made(
        "8 money",
        "money",
        files,
        [*words, "--axis", "nodes", "--to", "3"],
        first_is("money", k, 0.05),
    )


def purchases_enter_the_budget(seed: int) -> Made:
    """What the fixes cost comes out of the same budget as the fleet."""
    draw = random.Random(seed)
    nodes, hourly, spares = draw.randint(60, 90), 2.0, 1
    node = GPUS * hourly * HOURS
    to = 2.0
    # The fleet at 2x fits by two nodes; the spares that are missing do not.
    most = round((to * nodes + spares + 2) * node)
    files = {
        "fleet.toml": toml(pool=[_pool(nodes, {"kind": "on-demand", "usd_per_gpu_hour": hourly})]),
        "grow.toml": toml(
            limits={"usd_per_month_most": most},
            operations={"spares": spares},
            facility={"ports_free": 1_000_000},
        ),
    }

    def within(answer: Answer) -> str:
        bought = sum(row["usd"] or 0 for row in answer.rows)
        says_money = any(row["layer"] == "money" for row in answer.rows)
        if says_money or not answer.rows:
            return (
                ""
                if answer.rows
                else "nothing breaks, although one spare covers a fleet that needs several"
            )
        total = to * nodes * node + bought
        return (
            ""
            if total <= most
            else f"fleet and fixes cost ${total:,.0f} of ${most:,.0f}, and no row says so"
        )

    return Made(
        "8 money",
        "money",
        files,
        ["--grow", "@grow.toml", "--failures", "rsc-1", "--axis", "nodes", "--to", f"{to:g}"],
        [Check(RULE, "purchases enter the budget", within)],
    )


def dates_and_sums(seed: int) -> Made:
    """Two fixes: order dates follow from pace and lead time, and sums name what is left out."""
    draw = random.Random(seed)
    nodes, free = draw.randint(10, 20), draw.randint(20, 60)
    months, weeks = draw.choice([6, 9, 12]), draw.choice([10, 20, 40])
    today = date(2026, 11, 15)
    k = (nodes * 8 + free) / (nodes * 8)
    files = {
        "fleet.toml": toml(
            pool=[
                _pool(
                    nodes,
                    {"kind": "on-demand", "usd_per_gpu_hour": 2.0},
                    nics_per_node=8,
                    nic_gbps=400,
                )
            ]
        ),
        "grow.toml": toml(
            facility={"ports_free": free},
            operations={"spares": 2},
            lead_time=[{"thing": "switch", "weeks_p50": weeks / 2, "weeks_p90": weeks}],
            pace={"today": Bare(f"{today}"), "doubles_in_months": months},
        ),
    }
    reached = today + timedelta(days=math.log2(k) * months * 365.25 / 12)
    wanted = reached - timedelta(weeks=weeks)

    def order(answer: Answer) -> str:
        row = next((row for row in answer.rows if row["layer"] == "switch-ports"), None)
        if row is None:
            return "ports have no row"
        said = row["order_by"]
        if not said or abs((date.fromisoformat(said) - wanted).days) > 4:
            return f"order by {said or 'no date'}, truth {wanted}"
        return (
            ""
            if row["late"] == (wanted < today)
            else f"late is {row['late']}, but {wanted} against {today}"
        )

    def earliest(answer: Answer) -> str:
        dates = [row["order_by"] for row in answer.rows if row["order_by"]]
        text = answer.text()
        return "" if not dates or min(dates) in text else f"{min(dates)} is not printed"

    return Made(
        "8 money",
        "lead-time",
        files,
        ["--grow", "@grow.toml", "--failures", "rsc-1", "--axis", "nodes", "--to", "6"],
        [
            Check(FACTOR, f"order by {wanted}", order),
            Check(RULE, "known parts are summed", sums),
            Check(RULE, "the earliest order date is told", earliest),
        ],
    )


def sums(answer: Answer) -> str:
    """The line with all fixes sums what is known, counts what is not, and contradicts no row."""
    lines = answer.text().splitlines()
    line = next((line for line in lines if line.startswith("with all fixes")), "")
    known = sum(row["usd"] or 0 for row in answer.rows)
    open_ones = sum(1 for row in answer.rows if row["usd"] is None)
    paid = [float(found.replace(",", "")) for found in re.findall(r"\$([\d,.]*\d)", line)]
    if known and re.search(r"nothing to pay|no cost", line):
        return f"`{line}` beside rows of ${known:,.0f}"
    if known and not any(abs(one - known) <= 0.02 * known for one in paid):
        return f"known parts are ${known:,.0f}: `{line}`"
    if open_ones and not re.search(r"unknown|unpriced|no price", line):
        return f"{open_ones} rows have no price: `{line}`"
    return "" if line else "there is no line with all fixes"


def unknown_things_have_no_lead_time(seed: int) -> Made:
    thing = random.Random(seed).choice(["unicorn", "node", "GPU", "fans"])
    files: Files = {
        "fleet.toml": toml(pool=[_pool(4, None)]),
        "grow.toml": toml(lead_time=[{"thing": thing, "weeks_p50": 1, "weeks_p90": 2}]),
    }

    def refused(answer: Answer) -> str:
        return (
            ""
            if answer.status == 2 and thing in answer.errors
            else f"`{thing}` is accepted (status {answer.status})"
        )

    return Made(
        "9 keys",
        "lead-time",
        files,
        ["--grow", "@grow.toml", "--axis", "nodes"],
        [Check(RULE, "an unknown thing is refused", refused)],
    )


def _pool(nodes: int, price: Table | None, **more: object) -> Table:
    return {
        "name": "p",
        "accelerator": "H100",
        "nodes": nodes,
        "gpus_per_node": GPUS,
        "price": price,
        **more,
    }
