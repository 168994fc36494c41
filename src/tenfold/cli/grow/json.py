"""The JSON document of `tenfold grow`, with the requirement.

Nothing in it comes from the clock or the machine: the same question gives the same bytes.
"""

from math import inf
from typing import Literal

from msgspec import Struct

from tenfold.study.grow.answer import GrowAnswer, Missing, Row
from tenfold.study.grow.layer import with_resource
from tenfold.study.grow.question import GrowQuestion

Verdict = Literal["met", "not met", "unknown"]


class Required(Struct, frozen=True, kw_only=True):
    """A factor that today's fleet must reach, and whether it does."""

    factor: float
    verdict: Verdict
    met: bool
    """Whether the verdict is `met`; with `--allow-unknown`, also if it is `unknown`."""


class GrowDocument(Struct, frozen=True, kw_only=True):
    """What `--json` prints."""

    question: GrowQuestion
    required: Required | None
    answer: GrowAnswer


def document(answer: GrowAnswer, question: GrowQuestion) -> GrowDocument:
    """Return an answer with its question."""
    factor = question.require
    required = (
        None
        if factor is None
        else Required(
            factor=factor,
            verdict=verdict(answer, factor),
            met=meets_requirement(answer, question),
        )
    )
    return GrowDocument(question=question, required=required, answer=answer)


def meets_requirement(answer: GrowAnswer, question: GrowQuestion) -> bool:
    """Return whether today's fleet reaches the required factor without any fix.

    Limits that could not be checked count as not reached only if the question allows it.
    """
    if question.require is None:
        return True
    found = verdict(answer, question.require)
    return found == "met" or (found == "unknown" and question.allow_unknown)


def verdict(answer: GrowAnswer, need: float) -> Verdict:
    """Return whether today's fleet reaches a factor, or that this cannot be told.

    It cannot be told if a limit that could be reached along the axis was not checked, or if one
    that rests on an assumption may be reached earlier.
    """
    first = answer.first
    if first is not None and first.k is not None and first.k < need:
        return "not met"
    if any(row.grade != "assumed" for row in answer.over):
        return "not met"
    return "unknown" if unchecked(answer) or early_assumed(answer, need) else "met"


def unchecked(answer: GrowAnswer) -> dict[str, list[str]]:
    """Return the layers that could break unseen, by the input that is missing."""
    shown = layers_shown(answer)
    found: dict[str, list[str]] = {}
    for one in answer.unknown:
        if one.could_break:
            names, name = found.setdefault(one.needs, []), missing_name(one, shown)
            names += [name] if name not in names else []
    return found


def layers_shown(answer: GrowAnswer) -> set[str]:
    """Return the layers of which at least a part was evaluated."""
    return {row.layer for row in (*answer.rows, *answer.layers)}


def missing_name(one: Missing, shown: set[str]) -> str:
    """Return the name of a layer that was not evaluated, or of its part if the rest was."""
    return with_resource(one.title, one.resource if one.layer in shown else "")


def early_assumed(answer: GrowAnswer, need: float) -> list[Row]:
    """Return the layers that may break below a factor, but rest on an assumption."""
    rows = [
        row
        for row in answer.layers
        if row not in answer.over
        and row.grade == "assumed"
        and min(row.k or inf, inf if row.low is None else row.low) < need
    ]
    return [*answer.over, *rows]
