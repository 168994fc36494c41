"""Print a ladder for people: what breaks first, what relieves it, and what is not known."""

from itertools import groupby

from rich.text import Text

from tenfold.cli.grow_json import stood
from tenfold.cli.output import show, table
from tenfold.physics.growth.law import FACTOR_LEAST
from tenfold.study.grow.answer import GrowAnswer, Row
from tenfold.study.grow.question import GrowQuestion

LADDER = [">k*", ">interval", "layer", "seen then", "evidence", "relief", ">$/month", ">then"]
LAYERS = [">k*", ">interval", "layer", "seen then", "evidence"]


def show_grow(answer: GrowAnswer, question: GrowQuestion) -> None:
    """Print the ladder, the layers beside it, and those that are unknown."""
    upto = f"{question.most:g}x"
    show(
        Text(f"{answer.fleet}: {answer.axis} up to {upto}; {answer.calibration.sentence}"),
        Text(answer.sentence, style="bold"),
        "",
    )
    if answer.rows:
        show(table("", LADDER, [_rung(row, upto) for row in answer.rows]), "")
        for line in _orders(answer.rows):
            show(line)
        show(_top(answer, upto), "")
    others = _others(answer)
    if others:
        title = "other layers of the fleet as it stands"
        show(table(title, LAYERS, [_layer(row) for row in others]), "")
    for line in (*_unknown(answer), *answer.assumptions):
        show(line)
    if question.require is not None:
        said = "stands" if stood(answer, question) else "does not stand"
        show(f"required: {question.require:g}x, which the fleet {said} by what could be judged")


def _rung(row: Row, upto: str) -> list[str]:
    relief = row.relief.sentence if row.relief else row.sentence
    then = f">{upto}" if row.relief and row.k_after is None else factor(row.k_after)
    return [
        factor(row.k),
        _interval(row),
        f"{row.layer}\n{row.resource}",
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
        f"order by {row.order_by}: {row.relief.sentence}"
        for row in rows
        if row.relief and row.order_by
    ]


def _top(answer: GrowAnswer, upto: str) -> str:
    """Say how far the ladder reaches."""
    if answer.stands is None:
        return f"with all of these the fleet stands {upto}, by what could be judged"
    return f"with all of these the fleet stands {factor(answer.stands)}"


def _others(answer: GrowAnswer) -> list[Row]:
    """Return the layers that have no rung: assumed ones, and those that hold longer."""
    named = {(row.layer, row.resource) for row in answer.rows}
    return [row for row in answer.layers if (row.layer, row.resource) not in named]


def _layer(row: Row) -> list[str]:
    k = factor(row.k) if row.status == "breaks" else row.status
    return [k, _interval(row), f"{row.layer}\n{row.resource}", row.symptom, row.grade or ""]


def _unknown(answer: GrowAnswer) -> list[str]:
    """Return one line for each missing figure, then the layers that nothing would answer."""
    told = [one for one in answer.unknown if one.needs]
    untold = [one.layer for one in answer.unknown if not one.needs]
    lines: list[str] = []
    for needs, group in groupby(told, key=lambda one: one.needs):
        names = ", ".join(dict.fromkeys(one.layer for one in group))
        lines.append(f"unknown: {names} (needs {needs})")
    if untold:
        lines.append(f"unknown: {', '.join(untold)} (not judged)")
    return lines


def _interval(row: Row) -> str:
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
