"""The JSON document of `tenfold grow`, with the requirement.

Nothing in it comes from the clock or the machine: the same question gives the same bytes.
"""

from msgspec import Struct

from tenfold.study.grow.answer import GrowAnswer
from tenfold.study.grow.question import GrowQuestion


class Required(Struct, frozen=True, kw_only=True):
    """A factor that today's fleet must reach, and whether it does."""

    factor: float
    met: bool


class GrowDocument(Struct, frozen=True, kw_only=True):
    """What `--json` prints."""

    question: GrowQuestion
    required: Required | None
    answer: GrowAnswer


def document(answer: GrowAnswer, question: GrowQuestion) -> GrowDocument:
    """Return an answer with its question."""
    factor = question.require
    required = (
        None if factor is None else Required(factor=factor, met=meets_requirement(answer, question))
    )
    return GrowDocument(question=question, required=required, answer=answer)


def meets_requirement(answer: GrowAnswer, question: GrowQuestion) -> bool:
    """Return whether today's fleet reaches the required factor without any fix.

    Layers that could not be evaluated do not count.
    """
    first = answer.first
    if question.require is None or first is None or first.k is None:
        return True
    return first.k >= question.require
