"""Print a capacity plan: phases with dates, capacity by quarter, costs and limits."""

from collections.abc import Sequence

from tenfold.cli.output import show, table
from tenfold.cli.screen import Text
from tenfold.report.figures import count, share
from tenfold.study.capacity.answer import (
    Binding,
    BreakEven,
    CapacityAnswer,
    CostYear,
    CurvePoint,
    MixMonth,
    Phase,
)

QUARTER = 3
PHASES = ["order by", "needed", "what", "for", ">$/month", ">in time"]
MIX = ["from", ">demand", ">P10 to P90", ">own", ">reserved", ">on demand", ">spot", ">missing"]
CURVE = [">bought", ">$ bought", ">$ rented", ">$ delays", ">$ total", ">idle"]
COST = [
    "year",
    ">today's fleet",
    ">bought",
    ">reserved",
    ">on demand",
    ">spot",
    ">total",
    ">delays",
]
DRIVERS = [
    "driver",
    "group",
    "planner's estimate",
    ">GPU-hours, year 1",
    ">GPU-hours",
    ">share of demand",
]


def show_plan(answer: CapacityAnswer) -> None:
    """Print a plan."""
    show(
        Text(f"{answer.fleet}: {count(answer.months, 'month')} from {answer.start}"),
        Text(answer.sentence, style="bold"),
        "",
    )
    if answer.phases:
        show(table("What to order, in order of need", PHASES, phase_rows(answer.phases)), "")
    show(table("GPUs, mean over scenarios", MIX, mix_rows(answer.mix)), "")
    show(table("Expected cost, $", COST, cost_rows(answer.years)), "")
    if answer.curve:
        title = "If you buy and reserve less or more than planned"
        show(table(title, CURVE, curve_rows(answer.curve)), "")
    if answer.drivers:
        show(table("What drivers add", DRIVERS, driver_rows(answer)), "")
    for line in (*binding_lines(answer.binding), *break_even_lines(answer.break_even)):
        show(line)
    show(stock_out_line(answer), optimum_line(answer))
    for line in answer.notes:
        show(line)


def phase_rows(phases: Sequence[Phase]) -> list[list[str]]:
    """Return one row for each phase."""
    return [
        [
            f"{one.order_by} (past)" if one.late else one.order_by or "-",
            one.needed or "-",
            one.what,
            one.reason,
            "-" if one.usd_per_month is None else f"{one.usd_per_month:,.0f}",
            "-" if one.confidence is None else share(one.confidence),
        ]
        for one in phases
    ]


def mix_rows(mix: Sequence[MixMonth]) -> list[list[str]]:
    """Return one row for each quarter."""
    return [
        [
            one.day,
            f"{one.demand:,.0f}",
            f"{one.demand_low:,.0f} to {one.demand_high:,.0f}",
            f"{one.own:,.0f}",
            f"{one.reserved:,.0f}",
            f"{one.on_demand:,.0f}",
            f"{one.spot:,.0f}",
            f"{one.unmet:,.0f}",
        ]
        for one in mix[::QUARTER]
    ]


def cost_rows(years: Sequence[CostYear]) -> list[list[str]]:
    """Return one row for each year, and their sum."""
    fields = ("fixed", "own", "reserved", "on_demand", "spot", "paid", "delay")
    rows = [[str(one.year), *(f"{getattr(one, name):,.0f}" for name in fields)] for one in years]
    sums = (sum(getattr(one, name) for one in years) for name in fields)
    return [*rows, ["total", *(f"{total:,.0f}" for total in sums)]]


def curve_rows(curve: Sequence[CurvePoint]) -> list[list[str]]:
    """Return one row for each multiple of the purchases."""
    return [
        [
            f"{one.factor:g}x",
            f"{one.usd_owned:,.0f}",
            f"{one.usd_rented:,.0f}",
            f"{one.usd_delay:,.0f}",
            f"{one.usd:,.0f}",
            share(one.idle_share),
        ]
        for one in curve
    ]


def driver_rows(answer: CapacityAnswer) -> list[list[str]]:
    """Return one row for each driver."""
    return [
        [
            one.name,
            one.group,
            one.per_unit,
            f"{one.gpu_hours_first_year:,.0f}",
            f"{one.gpu_hours:,.0f}",
            share(one.share),
        ]
        for one in answer.drivers
    ]


def binding_lines(binding: Sequence[Binding]) -> list[str]:
    """Return what raising each binding limit would save."""
    return [
        f"binding: {one.name} ({count(one.months, 'month')}); {_more(one)} would save "
        f"${one.usd_per_unit * one.step:,.0f}"
        for one in binding
    ]


def _more(one: Binding) -> str:
    if one.unit.startswith("$"):
        return f"${one.step:,.0f} a month more"
    return f"+{one.step:g} {one.unit}"


def break_even_lines(lines: Sequence[BreakEven]) -> list[str]:
    """Return when owning beats renting, by pool."""
    return [
        f"pool {one.option}: owning costs ${one.owned_usd_per_hour:.2f} per GPU-hour, {one.offer} "
        f"${one.rented_usd_per_hour:.2f}; "
        + (
            "renting is always cheaper"
            if one.utilisation is None
            else f"owning is cheaper above {share(one.utilisation)} utilisation"
        )
        + f" (planned: {share(one.planned)})"
        for one in lines
    ]


def stock_out_line(answer: CapacityAnswer) -> str:
    """Return the probability of a stock-out."""
    return f"probability that demand cannot be met in some month: {share(answer.stock_out)}"


def optimum_line(answer: CapacityAnswer) -> str:
    """Return how close the plan is to the best one."""
    return f"optimal to within {share(answer.optimal_within)}"
