"""The page that `tenfold capacity plan --html` writes: the printed plan, with charts."""

from tenfold.cli.capacity.render import (
    COST,
    CURVE,
    DRIVERS,
    MIX,
    PHASES,
    binding_lines,
    break_even_lines,
    cost_rows,
    curve_rows,
    driver_rows,
    mix_rows,
    optimum_line,
    phase_rows,
    stock_out_line,
)
from tenfold.report.charts.capacity import CapacityMonth
from tenfold.report.pages.capacity import CapacityPage, capacity_report
from tenfold.study.capacity.answer import CapacityAnswer


def plan_page(answer: CapacityAnswer) -> str:
    """Return the page of a plan."""
    first = answer.sentence[:1].upper() + answer.sentence[1:]
    return capacity_report(
        CapacityPage(
            title=f"Capacity plan: {answer.fleet}",
            lead=f"{first}.",
            phases=(_names(PHASES), phase_rows(answer.phases)),
            mix=(_names(MIX), mix_rows(answer.mix)),
            years=(_names(COST), cost_rows(answer.years)),
            curve=(_names(CURVE), curve_rows(answer.curve)),
            drivers=(_names(DRIVERS), driver_rows(answer)),
            months=[
                CapacityMonth(
                    day=one.day,
                    demand=one.demand,
                    low=one.demand_low,
                    high=one.demand_high,
                    own=one.own,
                    with_reserved=one.own + one.reserved,
                )
                for one in answer.mix
            ],
            costs=[
                (one.factor, one.usd_owned + one.usd_rented, one.usd_delay) for one in answer.curve
            ],
            limits=[
                *binding_lines(answer.binding),
                *break_even_lines(answer.break_even),
                stock_out_line(answer),
                optimum_line(answer),
            ],
            assumptions=answer.notes,
        )
    )


def _names(columns: list[str]) -> list[str]:
    return [one.lstrip(">") for one in columns]
