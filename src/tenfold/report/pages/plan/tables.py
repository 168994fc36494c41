"""Tables of plans side by side."""

from collections.abc import Sequence

from tenfold.decide.layout.outcome import Outcome
from tenfold.decide.layout.serve import ServePlan
from tenfold.report.charts.axes import usd
from tenfold.report.figures import share
from tenfold.report.pages.html import table_html
from tenfold.report.pages.plan.words import (
    SECONDS_PER_DAY,
    layout_code,
    recompute_text,
    seconds,
    serve_layout,
)

LAYOUT_KEY = (
    "Layouts: tp tensor, pp pipeline (v virtual stages), cp context, dp data and ep expert "
    "parallelism."
)


def outcomes_table(outcomes: Sequence[Outcome], marked: int | None, *, priced: bool) -> str:
    """Return training plans as rows, with their cost where a price is known."""
    columns = ["GPUs", "layout", "micro-batch", "shard", "recompute", "step", "MFU", "GiB per GPU"]
    rows = [
        [
            one.plan.gpus,
            layout_code(one.plan),
            one.plan.micro_batch,
            one.plan.shard,
            recompute_text(one.plan),
            seconds(one.step_s),
            share(one.mfu),
            f"{one.memory_gib:.1f}",
            *([usd(one.usd_per_million_tokens)] if priced else []),
            *([seconds(one.run.days * SECONDS_PER_DAY)] if one.run else []),
            *([f"${one.run.usd:,.0f}"] if one.run and priced else []),
        ]
        for one in outcomes
    ]
    run = any(one.run for one in outcomes)
    columns += ["$/M tokens"] if priced else []
    columns += ["run"] if run else []
    columns += ["run cost"] if run and priced else []
    return table_html(columns, rows, best=marked)


def candidates_table(plans: Sequence[ServePlan], *, priced: bool) -> str:
    """Return serving plans as rows, the first one highlighted."""
    columns = ["replica", "pool", "replicas", "GPUs", "requests/s each", "TTFT", "TPOT"]
    columns += ["$/M tokens", "$/hour"] if priced else []
    rows = [
        [
            serve_layout(plan),
            plan.pool,
            plan.replicas,
            plan.gpus,
            f"{plan.qps_per_replica_max:.3g}",
            seconds(plan.ttft_s),
            seconds(plan.tpot_s),
            *([usd(plan.usd_per_million_tokens), usd(plan.usd_per_hour)] if priced else []),
        ]
        for plan in plans
    ]
    return table_html(columns, rows, best=0)
