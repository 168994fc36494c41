"""Print a ladder for people: what breaks first, what relieves it, and what is not known."""

from collections.abc import Sequence
from itertools import groupby
from textwrap import wrap

from rich.table import Table
from rich.text import Text

from tenfold.cli.grow.bill import bill_of, order_day
from tenfold.cli.grow.json import meets_requirement
from tenfold.cli.output import console, show, table
from tenfold.physics.growth.breaking import FACTOR_LEAST
from tenfold.study.grow.answer import GrowAnswer, Row
from tenfold.study.grow.question import GrowQuestion

BOTTLENECK_COLUMNS = [
    ">k*",
    ">interval",
    "layer",
    "seen then",
    "evidence",
    "relief",
    ">$/month",
    ">then",
]
NARROW = [">k*", "layer", "seen then", "relief", ">then"]
"""The ladder where there is no room: what is left out stands below its neighbour."""
WIDE_LEAST = 96
LAYERS = [">k*", ">interval", "layer", "seen then", "evidence"]
WHOLE = ("layer", "evidence")
"""Columns whose lines are never broken."""
ROW_NAME_WIDTH, LAYER_NAME_WIDTH = 18, 26
"""How wide names may be, beside sentences."""


def show_grow(answer: GrowAnswer, question: GrowQuestion) -> None:
    """Print the ladder, the layers beside it, and those that are unknown."""
    upto = f"{question.most:g}x"
    show(
        Text(f"{answer.fleet}: {answer.axis} up to {upto}; {answer.calibration.sentence}"),
        Text(answer.sentence, style="bold"),
        "",
    )
    if answer.rows:
        show(_bottleneck_table(answer.rows, upto), "")
        for line in _orders(answer.rows):
            show(line)
        show(_top(answer, upto), "")
    others = _others(answer)
    broken = [row for row in others if row.status == "breaks"]
    if broken:
        title = "other layers of the fleet as it stands"
        show(_table(title, LAYERS, [_layer(row) for row in broken]), "")
    free = _free(answer)
    if free:
        show(f"free: {', '.join(free)} (stand all that was looked at; `--html` shows each)")
    for line in (*(f"unknown: {one}" for one in needs_lines(answer)), *answer.assumptions):
        show(line)
    if question.require is not None:
        said = "stands" if meets_requirement(answer, question) else "does not stand"
        show(f"required: {question.require:g}x, which the fleet {said} by what could be judged")


def _bottleneck_table(rows: Sequence[Row], upto: str) -> Table:
    wide = [_bottleneck_row(row, upto) for row in rows]
    if console().width >= WIDE_LEAST:
        return _table("", BOTTLENECK_COLUMNS, wide)
    return _table("", NARROW, [_narrow(cells) for cells in wide])


def _narrow(cells: Sequence[str]) -> list[str]:
    k, interval_, name, seen, grade, relief, cost, then = cells
    paid = f"{relief}\n$/month: {cost}" if cost else relief
    return [f"{k}\n{interval_}", f"{name}\n({grade})", seen, paid, then]


def _table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """Return a table in which sentences give way to names, and not names to sentences."""
    made = table(title, columns, rows)
    for column in made.columns:
        column.no_wrap = column.no_wrap or column.header in WHOLE
    return made


def _named(row: Row, width: int) -> str:
    """Return a layer with its resource below it, in lines of a width where words allow it."""
    parts = (row.layer, row.resource)
    lines = (
        line
        for part in parts
        for line in wrap(part, width, break_long_words=False, break_on_hyphens=False)
    )
    return "\n".join(lines)


def _bottleneck_row(row: Row, upto: str) -> list[str]:
    relief = row.relief.sentence if row.relief else row.sentence
    then = f">{upto}" if row.relief and row.k_after is None else factor(row.k_after)
    return [
        factor(row.k),
        interval(row),
        _named(row, ROW_NAME_WIDTH),
        row.symptom,
        row.grade or "",
        relief,
        _money(row),
        then if row.relief else "",
    ]


def _money(row: Row) -> str:
    if row.relief is None:
        return ""
    return "unknown" if row.usd is None else "free" if row.usd == 0 else f"{row.usd:,.0f}"


def _orders(rows: tuple[Row, ...]) -> list[str]:
    return [
        f"order by {order_day(row)}: {row.relief.sentence}"
        for row in rows
        if row.relief and row.order_by
    ]


def _top(answer: GrowAnswer, upto: str) -> str:
    """Say how far the ladder reaches, and for how much."""
    bill = bill_of(answer.rows)
    if not bill.reliefs and answer.ok_up_to is not None:
        return f"the fleet stands {factor(answer.ok_up_to)}, and no relief is known"
    paid = bill.sentence
    if answer.ok_up_to is None:
        return f"with all of these the fleet stands {upto}, by what could be judged: {paid}"
    return f"with all of these the fleet stands {factor(answer.ok_up_to)}: {paid}"


def _others(answer: GrowAnswer) -> list[Row]:
    """Return the layers that have no rung: assumed ones, and those that hold longer."""
    named = {(row.layer, row.resource) for row in answer.rows}
    return [row for row in answer.layers if (row.layer, row.resource) not in named]


def _free(answer: GrowAnswer) -> list[str]:
    """Return the layers that break nowhere; with the resource where another of them breaks."""
    breaks = {row.layer for row in (*answer.rows, *answer.layers) if row.status == "breaks"}
    names = (
        f"{row.layer} ({row.resource})" if row.layer in breaks else row.layer
        for row in answer.layers
        if row.status == "free"
    )
    return list(dict.fromkeys(names))


def _layer(row: Row) -> list[str]:
    return [
        factor(row.k),
        interval(row),
        _named(row, LAYER_NAME_WIDTH),
        row.symptom,
        row.grade or "",
    ]


def needs_lines(answer: GrowAnswer) -> list[str]:
    """Return one line for each missing figure, then the layers that nothing would answer."""
    told = [one for one in answer.unknown if one.needs]
    untold = [one.layer for one in answer.unknown if not one.needs]
    lines: list[str] = []
    for needs, group in groupby(told, key=lambda one: one.needs):
        names = ", ".join(dict.fromkeys(one.layer for one in group))
        lines.append(f"{names} (needs {needs})")
    if untold:
        lines.append(f"{', '.join(untold)} (not judged)")
    return lines


def interval(row: Row) -> str:
    """Return how far a factor may be off; empty where nothing says so."""
    if row.low is None and row.high is None:
        return ""
    return f"[{factor(row.low)}, {factor(row.high)}]"


def factor(value: float | None) -> str:
    """Return a factor as it is printed; what lies beyond the search has none."""
    if value is None:
        return "-"
    if value <= FACTOR_LEAST:
        return f"<{FACTOR_LEAST:.2f}x"
    return f"{value:.2f}x" if value < 10 else f"{value:.0f}x"
