"""Print a growth analysis: what breaks first, how to fix it, and what is unknown."""

from collections.abc import Sequence
from itertools import groupby
from textwrap import wrap

from rich.table import Table

from tenfold.cli.grow.bill import bill_of, cost_cell, month_sentence, order_day
from tenfold.cli.grow.json import (
    early_assumed,
    layers_shown,
    missing_name,
    unchecked,
    verdict,
)
from tenfold.cli.output import console, show, table
from tenfold.cli.screen import Text
from tenfold.physics.growth.breaking import FACTOR_LEAST
from tenfold.study.grow.analyse import AXIS_WORDS
from tenfold.study.grow.answer import GrowAnswer, Row
from tenfold.study.grow.layers.budget.lead_time import LeadTimeLayer
from tenfold.study.grow.question import GrowQuestion

TITLE = "What breaks first, in order"
BOTTLENECK_COLUMNS = [
    ">breaks at",
    ">range",
    "layer",
    "symptom",
    "based on",
    "fix",
    ">$/month",
    ">OK up to",
]
NARROW = [">breaks at", "layer", "symptom", "fix", ">OK up to"]
"""On a narrow terminal the other columns go below their neighbour."""
WIDE_LEAST = 96
LAYERS = [">breaks at", ">range", "layer", "symptom", "based on"]
WHOLE = ("layer", "based on")
"""Columns whose lines are never broken."""
ROW_NAME_WIDTH, LAYER_NAME_WIDTH = 18, 26
"""How wide layer names may be next to sentences."""
EVALUATED = "for the limits checked"


def show_grow(answer: GrowAnswer, question: GrowQuestion) -> None:
    """Print what breaks, in order, then the other layers and those that are unknown."""
    upto, axis = f"{question.most:g}x", AXIS_WORDS[answer.axis]
    show(
        Text(f"{answer.fleet}: {axis} up to {upto}; {answer.calibration.sentence}"),
        Text(answer.sentence, style="bold"),
        "",
    )
    if answer.rows:
        show(_bottleneck_table(answer.rows, upto), "")
        for line in _orders(answer.rows):
            show(line)
        show(_top(answer, upto))
        month = month_sentence(answer)
        show(*([month] if month else []), "")
    others = _others(answer)
    broken = [row for row in others if row.status == "breaks"]
    if broken:
        show(
            _table(
                _broken_title(answer, broken, question.most),
                LAYERS,
                [_layer(row) for row in broken],
            ),
            "",
        )
    free = _free(answer)
    if free:
        show(f"OK at every factor checked: {', '.join(free)} (details: `--html`)")
    constant = _constant(answer)
    if constant:
        show(f"not changed by this axis: {', '.join(constant)}")
    for line in (*needs_lines(answer), *answer.assumptions):
        show(line)
    if question.require is not None:
        need = question.require
        show(f"required {need:g}x: {_requirement(answer, need, question.allow_unknown)}")


def _requirement(answer: GrowAnswer, need: float, allow_unknown: bool) -> str:
    """Say whether the required factor is met, or what keeps this from being told."""
    found = verdict(answer, need)
    if found != "unknown":
        return found
    causes = [_assumed_break(row, need) for row in early_assumed(answer, need)]
    missing = unchecked(answer)
    if allow_unknown:
        titles = dict.fromkeys(title for group in missing.values() for title in group)
        causes += [f"not checked: {', '.join(titles)}"] if titles else []
        return "; ".join([f"met {EVALUATED}", *causes])
    causes += [
        f"{', '.join(titles)} not checked (needs {needs})" for needs, titles in missing.items()
    ]
    return f"unknown: {'; '.join(causes)}; `--allow-unknown` accepts this"


def _assumed_break(row: Row, need: float) -> str:
    if row.low is not None and (row.k is None or row.k >= need):
        if row.low < 1:
            return f"{row.label} (assumed) may be over its limit today"
        return f"{row.label} (assumed) may break from {factor(row.low)} on"
    return f"{row.label} (assumed) breaks at {factor(row.k)}"


def _broken_title(answer: GrowAnswer, broken: Sequence[Row], most: float) -> str:
    if answer.rows:
        first = answer.rows[0].k or 0.0
        early = any(row.grade == "assumed" and (row.k or first) < first for row in broken)
        return f"Other layers, before any fix{' (`assumed`: not ranked)' if early else ''}"
    beyond = all(row.k is not None and row.k > most for row in broken)
    return f"Limits beyond {most:g}x" if beyond else "Layers that break"


def _bottleneck_table(rows: Sequence[Row], upto: str) -> Table:
    wide = [
        cells
        for row in rows
        for cells in (_bottleneck_row(row, upto), *_alternative_rows(row, upto))
    ]
    if console().width >= WIDE_LEAST:
        return _table(TITLE, BOTTLENECK_COLUMNS, wide)
    return _table(TITLE, NARROW, [_narrow(cells) for cells in wide])


def _narrow(cells: Sequence[str]) -> list[str]:
    k, interval_, name, symptom, grade, fix, cost, then = cells
    priced = f"{fix}\n$/month: {cost}" if cost else fix
    if not k:
        return ["", "", "", priced, then]
    return [f"{k}\n{interval_}", f"{name}\n({grade})", symptom, priced, then]


def _table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """Return a table in which sentences are wrapped, and names are not."""
    made = table(title, columns, [[Text(cell) for cell in row] for row in rows])
    for column in made.columns:
        column.no_wrap = column.no_wrap or column.header in WHOLE
    return made


def _named(row: Row, width: int) -> str:
    """Return the name of a layer, wrapped to a width."""
    return "\n".join(wrap(row.label, width, break_long_words=False, break_on_hyphens=False))


def _bottleneck_row(row: Row, upto: str) -> list[str]:
    then = f">{upto}" if row.relief and row.k_after is None else factor(row.k_after)
    return [
        factor(row.k),
        interval(row),
        _named(row, ROW_NAME_WIDTH),
        row.symptom,
        row.grade or "",
        fix_of(row),
        cost_cell(row.relief),
        then if row.relief else "",
    ]


def fix_of(row: Row) -> str:
    """Return the fix of a row, with what is uncertain about it, or why there is none."""
    if row.relief is None:
        return row.sentence
    return f"{row.relief.sentence} ({row.sentence})" if row.sentence else row.relief.sentence


def _alternative_rows(row: Row, upto: str) -> list[list[str]]:
    """Return a row for each alternative to a fix, with what it reaches by itself."""
    return [
        [
            *("",) * 5,
            f"or: {one.relief.sentence}",
            cost_cell(one.relief),
            f">{upto}" if one.k_after is None else factor(one.k_after),
        ]
        for one in row.alternatives
    ]


def _orders(rows: tuple[Row, ...]) -> list[str]:
    dated = sorted(
        (row for row in rows if row.relief and row.order_by), key=lambda row: row.order_by
    )
    return [f"order by {order_day(row)}: {row.relief.sentence}" for row in dated if row.relief]


def _top(answer: GrowAnswer, upto: str) -> str:
    """Say how far all fixes together reach, and what they cost."""
    bill = bill_of(answer.rows)
    if not bill.reliefs and answer.ok_up_to is not None:
        return f"OK up to {factor(answer.ok_up_to)}; {answer.rows[-1].sentence}"
    if answer.ok_up_to is None:
        return f"with all fixes: OK up to {upto} ({EVALUATED}); fixes: {bill.sentence}"
    reached = factor(answer.ok_up_to)
    return f"{with_fixes(answer)}: OK up to {reached}; fixes: {bill.sentence}{then(answer)}"


def with_fixes(answer: GrowAnswer) -> str:
    """Return how many fixes are listed, if more are needed for the factor requested."""
    return f"with the first {len(answer.rows)} fixes" if answer.next_label else "with all fixes"


def then(answer: GrowAnswer) -> str:
    """Say what breaks next and how to go on, if the list of fixes is full."""
    if not answer.next_label:
        return ""
    more = f"`--apply {len(answer.rows)}` writes a fleet file with these fixes applied"
    return f"; next: {answer.next_label} ({more})"


def _others(answer: GrowAnswer) -> list[Row]:
    """Return the layers that are neither in the first table nor in the first line."""
    named = {(row.layer, row.resource) for row in (*answer.rows, *answer.over)}
    return [row for row in answer.layers if (row.layer, row.resource) not in named]


def _free(answer: GrowAnswer) -> list[str]:
    """Return the layers that never break; with the resource if another one of them does.

    Lead time is judged for computed layers only: it is not OK if the order for another is late.
    """
    late = {LeadTimeLayer.name} if any(row.late for row in answer.rows) else set[str]()
    breaks = {row.layer for row in (*answer.rows, *answer.layers) if row.status == "breaks"}
    names = (
        row.label if row.layer in breaks else row.title
        for row in answer.layers
        if row.status == "free" and row.layer not in late
    )
    return list(dict.fromkeys(names))


def _constant(answer: GrowAnswer) -> list[str]:
    """Return the layers that are OK and that the axis does not change."""
    breaks = {row.layer for row in (*answer.rows, *answer.layers) if row.status == "breaks"}
    free = {row.layer for row in answer.layers if row.status == "free"}
    names = (
        row.label if row.layer in breaks else row.title
        for row in answer.layers
        if row.status == "constant" and row.layer not in free
    )
    return list(dict.fromkeys(names))


def _layer(row: Row) -> list[str]:
    name = _named(row, LAYER_NAME_WIDTH)
    return [factor(row.k), interval(row), name, row.symptom, row.grade or ""]


def needs_lines(answer: GrowAnswer) -> list[str]:
    """Return one line for each missing input, then the layers that do not apply."""
    shown = layers_shown(answer)
    missing = [one for one in answer.unknown if one.needs]
    not_applicable = [one.title for one in answer.unknown if not one.needs]
    lines: list[str] = []
    for needs, group in groupby(missing, key=lambda one: one.needs):
        names = ", ".join(dict.fromkeys(missing_name(one, shown) for one in group))
        lines.append(f"not checked: {names} (needs {needs})")
    if not_applicable:
        lines.append(f"not applicable: {', '.join(not_applicable)}")
    return lines


def interval(row: Row) -> str:
    """Return the range of a factor; empty if unknown, or if it could be any."""
    if row.low is None and row.high is None:
        return ""
    if row.high is None and row.low is not None and row.low <= FACTOR_LEAST:
        return ""
    low, high = factor(row.low), factor(row.high)
    return f"{low}+" if row.high is None else f"{low.removesuffix('x')}-{high}"


def factor(value: float | None) -> str:
    """Return a factor as printed; `-` beyond the search."""
    if value is None:
        return "-"
    if value <= FACTOR_LEAST:
        return f"<{FACTOR_LEAST:.2f}x"
    return f"{value:.2f}x" if value < 10 else f"{value:.0f}x"
