"""What `tenfold plan` prints."""

from collections.abc import Sequence

from tenfold.cli.output import print_json, show, table
from tenfold.cli.screen import Text
from tenfold.decide.layout.outcome import Outcome
from tenfold.decide.layout.serve import ServeAnswer
from tenfold.model.plan import ServiceDemand
from tenfold.model.reason import Misfit
from tenfold.report.charts.axes import short
from tenfold.report.charts.terminal import bars, scaling_chart
from tenfold.report.figures import count, quantity_bytes, rate_bytes
from tenfold.report.pages.plan.words import part_name, recompute_text, seconds
from tenfold.report.reasons.render import duration_text, render
from tenfold.study.plan.requirements import Requirements, requirements
from tenfold.study.plan.train import TrainPlanResult

PLANS_SHOWN = 6
LEAST_CENT = 0.005
"""Dollars that still round to a cent."""
PRICES = {"fleet": "at the fleet's price", "on-demand": "on demand", "spot": "on spot"}
"""Prices in words that follow a cost."""


def show_misfit(answer: Misfit, as_json: bool) -> None:
    """Print why there is no plan."""
    if as_json:
        print_json({"plans": [], "why": answer.reasons})
        return
    if len(answer.reasons) > 1:
        show(Text("no plan meets the targets:", style="bold red"))
    mark = ("no plan: ", "bold red") if len(answer.reasons) == 1 else ("- ", "")
    for reason in answer.reasons:
        show(Text.assemble(mark, render(reason), (f" [{reason.code}]", "dim")))


def assumed(planned: TrainPlanResult) -> list[tuple[str, str]]:
    """Return the assumptions about the fleet that a reader of the report should know."""
    chosen = planned.chosen
    return [
        ("Pools", ", ".join(chosen.pools)),
        ("Price basis", chosen.price_basis),
        ("Failure preset", chosen.failures),
        *(("Note", note) for note in planned.notes),
    ]


def show_train(planned: TrainPlanResult) -> None:
    """Print the best plans, the scaling curve and the reasons."""
    answer, request = planned.answer, planned.request
    assert not isinstance(answer, Misfit), "a misfit has been reported by now"
    best = answer.plans[0]
    knee = None if answer.curve.scales_throughout else answer.curve.knee
    show(
        f"{request.job.model} on {best.plan.gpus:,} x {best.plan.accelerator}: "
        f"{best.plan.global_batch:,} sequences of {request.seq:,} tokens per step, "
        f"{request.job.precision}",
        "",
    )
    rows = [_train_row(place, one, planned) for place, one in enumerate(answer.plans[:PLANS_SHOWN])]
    columns = [
        "",
        "layout",
        ">step s",
        ">80% interval",
        ">tok/s/GPU",
        ">MFU",
        ">GiB/GPU",
        ">$/step",
    ]
    show(table("", columns, rows), "")
    parts = {part_name(name): part for name, part in best.breakdown_s.items()}
    show(bars(parts, seconds), "")
    _show_run(planned, best)
    show(scaling_chart(answer.curve), "")
    show(
        table(
            "",
            [">GPUs", ">step s", ">tokens/s", ">efficiency", "layout"],
            [
                [
                    f"{point.gpus:,}{' knee' if point.gpus == knee else ''}",
                    f"{point.step_s:.3g}",
                    f"{point.tokens_per_s:,.0f}",
                    f"{point.efficiency:.0%}",
                    _degrees(point.plan.tp, point.plan.pp, point.plan.dp, point.plan.cp)
                    + _other_batch(point.plan.global_batch, request.global_batch),
                ]
                for point in answer.curve.points
            ],
        ),
        "",
    )
    for reason in answer.why:
        show(Text.assemble("- ", render(reason), (f" [{reason.code}]", "dim")))
    for note in planned.notes:
        show(Text(f"note: {note}", style="dim"))
    show(Text(f"{answer.searched:,} layouts searched", style="dim"))


def _train_row(place: int, one: Outcome, planned: TrainPlanResult) -> list[str]:
    plan = one.plan
    low, high = planned.estimates[place].interval_s
    extra = [f"mb {plan.micro_batch}"]
    extra += [f"vp {plan.virtual_stages}"] if plan.virtual_stages > 1 else []
    extra += [f"ep {plan.ep}"] if plan.ep > 1 else []
    extra += [plan.shard] if plan.shard != "none" else []
    extra += [f"recompute {recompute_text(plan)}"] if plan.recompute != "none" else []
    return [
        str(place + 1),
        f"{_degrees(plan.tp, plan.pp, plan.dp, plan.cp)} {' '.join(extra)}",
        f"{one.step_s:.3g}",
        f"{low:.3g}-{high:.3g}",
        f"{one.tokens_per_s_per_gpu:,.0f}",
        f"{one.mfu:.0%}",
        f"{one.memory_gib:.0f}",
        _cents(one.usd_per_step) if one.usd_per_step else "-",
    ]


def _cents(usd: float) -> str:
    """Return dollars and cents, or two digits of what is less than a cent."""
    return f"{usd:,.2f}" if usd >= LEAST_CENT else f"{usd:.2g}"


def _other_batch(used: int, requested: int) -> str:
    return "" if used == requested else f" (batch {used:,})"


def _degrees(tp: int, pp: int, dp: int, cp: int) -> str:
    named = {"tp": tp, "pp": pp, "dp": dp, "cp": cp}
    return " ".join(f"{name}{degree}" for name, degree in named.items() if degree > 1) or "one GPU"


def _show_run(planned: TrainPlanResult, best: Outcome) -> None:
    show(
        f"{best.failures_per_day:.2g} failures per day; with a checkpoint every "
        f"{duration_text(1_000 * best.checkpoint_interval_s)}, {best.effective_share:.1%} of the "
        "time goes to training"
    )
    if best.run is not None:
        cost = f", cost ${best.run.usd:,.0f}" if best.run.usd else ""
        show(
            f"{short(best.run.tokens)} tokens take {best.run.days:,.1f} days{cost} and use "
            f"{best.run.kwh / 1000:,.0f} MWh ({best.run.co2e_kg / 1000:,.0f} t CO2e)"
        )
    costs = ", ".join(
        f"${f'{usd:,.0f}' if best.run else _cents(usd)} {PRICES.get(kind, kind)}"
        for kind, usd in planned.usd_by_kind.items()
    )
    show(f"cost of {'the run' if best.run else 'a step'}: {costs or 'no price known'}")
    show(_requirements_text(requirements(best, planned.chosen.target)), "")


def _requirements_text(needed: Requirements) -> str:
    network = f"{needed.network_gbps_per_gpu:,.0f} Gbit/s per GPU, " if needed.nodes > 1 else ""
    return (
        f"requires {count(needed.nodes, 'node')}, {network}{needed.power_kw:,.0f} kW, checkpoints "
        f"of {quantity_bytes(needed.checkpoint_bytes)} written at "
        f"{rate_bytes(needed.checkpoint_write_bytes_per_s)} (available: "
        f"{rate_bytes(needed.checkpoint_write_bytes_per_s_available)})"
    )


def show_serve(demand: ServiceDemand, answer: ServeAnswer, notes: Sequence[str] = ()) -> None:
    """Print the cheapest ways to serve and the reasons."""
    show(
        f"{demand.model} at {demand.qps:g} requests/s, {demand.input_tokens:,} tokens in, "
        f"{demand.output_tokens:,} out, TTFT {demand.ttft_s:g} s, TPOT {demand.tpot_s:g} s",
        "",
    )
    share = f"p{100 * demand.attainment:g}"
    rows = [
        [
            plan.pool,
            plan.precision,
            f"{plan.replicas:,} x {_degrees(plan.tp, plan.pp, 1, 1)}",
            f"{plan.gpus:,}" if plan.enough_gpus else f"{plan.gpus:,} (pool too small)",
            f"{plan.qps_per_replica_max:.3g}",
            f"{plan.utilisation:.0%}",
            f"{plan.ttft_s_attained * 1000:,.0f} ms",
            f"{plan.tpot_s_attained * 1000:,.1f} ms",
            f"{plan.memory_gib:.0f}",
            f"{plan.cold_start_s:,.0f} s",
            f"{plan.usd_per_million_tokens:,.2f}" if plan.usd_per_million_tokens else "-",
        ]
        for plan in answer.plans[:PLANS_SHOWN]
    ]
    columns = [
        "pool",
        "precision",
        "replicas",
        ">GPUs",
        ">QPS each",
        ">used",
        f">TTFT {share}",
        f">TPOT {share}",
        ">GiB/GPU",
        ">start",
        ">$/M tok",
    ]
    show(table("", columns, rows), "")
    for reason in answer.why:
        show(Text.assemble("- ", render(reason), (f" [{reason.code}]", "dim")))
    for note in notes:
        show(Text(f"note: {note}", style="dim"))
    show(Text(f"{answer.searched:,} candidates searched", style="dim"))
