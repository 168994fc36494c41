"""Render reasons as sentences, limited to what a reader may see.

What to hide is decided by the type of a value, never by its text: a job of another team becomes
"a job of another team", whatever its name, and free text is left out. Records from before reasons
had fields hold prose that may name anyone: readers of one team see only the meaning of its code.
"""

from collections.abc import Sequence
from math import ceil
from typing import Any, cast

from msgspec import Struct
from msgspec.structs import replace

from tenfold.model.job.job import WHOLE
from tenfold.model.policy.governance import ANY, USD
from tenfold.model.reason import (
    Amount,
    Causes,
    JobRef,
    NodeRef,
    Reason,
    TeamRef,
    Text,
    UserRef,
    Value,
)
from tenfold.model.units import HOUR, MINUTE, SECOND
from tenfold.report.reasons.registry import shown_code, template_of
from tenfold.report.reasons.template import VERB, Field, Template
from tenfold.report.visible import visible_line

NAMED_MOST = 4
"""Jobs or nodes listed by name; the rest are counted."""
LEVELS = {"": "domain", "scale-up": "scale-up domain"}
"""Display names of domain levels that differ from their own name."""


class Reader(Struct, frozen=True):
    """The reader: a member of one team, or an operator who may see all teams."""

    team: str = ""
    sees_all: bool = False

    def may_see(self, team: str | None) -> bool:
        """Return whether this reader may see a team's names; names of no known team are hidden."""
        return self.sees_all or (team is not None and team == self.team)


OPERATOR = Reader(sees_all=True)


def render(reason: Reason, reader: Reader = OPERATOR, about: str | None = None) -> str:
    """Return a reason as a sentence; `about` is the team of the job it concerns, if any.

    Names and messages in it come from users and jobs: it is one line without control characters.
    """
    template = template_of(reason.code)
    if reason.sentence and (reader.sees_all or not reason.fields):
        return visible_line(reason.sentence) if reader.sees_all else plain(reason.code)
    text = None if template is None else _sentence(template, reason, reader, about)
    return visible_line(text or plain(reason.code))


def redacted(reason: Reason, reader: Reader, about: str | None = None) -> Reason:
    """Return a reason with its sentence, its shown code and the fields the reader may see."""
    fields = {
        name: shown
        for name, value in reason.fields.items()
        if (shown := _redacted(value, reader, about)) is not None
    }
    return Reason(shown_code(reason.code), fields, render(reason, reader, about))


def plain(code: str) -> str:
    """Return the meaning of a code, without any fields."""
    template = template_of(code)
    return (template.plain if template is not None else "") or code.replace("-", " ")


def duration_text(ms: float) -> str:
    """Return a duration for people: `3d 04h`, `2h 05m`, `35 min`, `12 s`."""
    seconds = round(ms / SECOND)
    if seconds < MINUTE // SECOND:
        return f"{seconds} s" if seconds or not ms else "under 1 s"
    minutes = round(ms / MINUTE)
    if minutes < 60:
        return f"{minutes} min"
    hours = round(ms / HOUR)
    if hours < 24:
        return f"{minutes // 60}h {minutes % 60:02d}m"
    return f"{hours // 24:,}d {hours % 24:02d}h"


def at_most(ms: float) -> str:
    """Return a forecast duration, rounded up: `25 min`, `1h 15m`, `7 h`, `3 days`."""
    minutes = ceil(ms / MINUTE)
    if minutes <= 10:
        return f"{max(1, minutes)} min"
    if minutes <= 55:
        return f"{5 * ceil(minutes / 5)} min"
    if minutes <= 6 * 60:
        quarters = ceil(minutes / 15)
        return f"{quarters // 4}h {15 * (quarters % 4):02d}m"
    hours = ceil(minutes / 60)
    return f"{hours} h" if hours < 48 else f"{ceil(hours / 24):,} days"


def amount_of(amount: int, unit: str) -> str:
    """Return an amount of a quota resource with its unit."""
    if unit == USD:
        return f"${amount / 1e6:,.2f}/h"
    gpus = f"{amount / WHOLE:,g}"
    if unit == ANY:
        return f"{gpus} GPU" if amount == WHOLE else f"{gpus} GPUs"
    return f"{gpus} {unit}"


def number_of(amount: int, unit: str) -> str:
    """Return an amount without its unit, for sentences that name it elsewhere."""
    return amount_of(amount, unit) if unit == USD else f"{amount / WHOLE:,g}"


def plural(number: float, noun: str) -> str:
    """Return a number with its noun, in the plural unless it is one."""
    return f"{number:,g} {noun}" if number == 1 else f"{number:,g} {noun}s"


def with_sentences(value: Any, reader: Reader = OPERATOR, about: str | None = None) -> Any:
    """Return a record in which every reason has its sentence, redacted for the reader."""
    if isinstance(value, Reason):
        return redacted(value, reader, about)
    if isinstance(value, Struct):
        changed: dict[str, object] = {}
        for name in value.__struct_fields__:
            before = getattr(value, name)
            after = with_sentences(before, reader, about)
            if after is not before:
                changed[name] = after
        return replace(value, **changed) if changed else value
    if isinstance(value, list | tuple):
        items = cast("Sequence[object]", value)
        made = [with_sentences(one, reader, about) for one in items]
        if all(one is before for one, before in zip(made, items, strict=True)):
            return items
        return tuple(made) if isinstance(value, tuple) else made
    if isinstance(value, dict):
        table = cast("dict[object, object]", value)
        return {key: with_sentences(one, reader, about) for key, one in table.items()}
    return value


def _sentence(template: Template, reason: Reason, reader: Reader, about: str | None) -> str | None:
    def shown(place: Field) -> str | None:
        value = reason.fields.get(place.name)
        if value is None or not (value or place.shows_zero):
            return None
        words = template.words.get(place.name, {})
        text = words.get(value) if isinstance(value, str) else None
        return _text(value, place.kind, reader, about) if text is None else text

    text = template.filled(shown)
    also = reason.fields.get("also")
    if text is None or not isinstance(also, Causes):
        return text
    return f"{text}; and {_causes_text(also, reader, about)}"


def _text(value: Value, kind: str, reader: Reader, about: str | None) -> str | None:
    """Return a value as text; None if the reader may not see it."""
    match value:
        case tuple():
            return _list_text(value, kind, reader)
        case str():
            return _word_text(value, kind)
        case int() | float():
            return _number_text(value, kind)
        case Amount():
            return (number_of if kind == "number" else amount_of)(value.value, value.unit)
        case Causes():
            return _causes_text(value, reader, about, joint=kind == "steps") or None
        case Text():
            return value.text if reader.may_see(about) else None
        case _:
            return _name_text(value, reader)


def _name_text(value: JobRef | TeamRef | UserRef | NodeRef, reader: Reader) -> str | None:
    match value:
        case JobRef():
            if reader.may_see(value.team):
                return f"job `{value.id}`"
            return "another job" if value.team is None else "a job of another team"
        case TeamRef():
            return f"team `{value.id}`" if reader.may_see(value.id) else "another team"
        case UserRef():
            return value.name if reader.may_see(value.team) else None
        case NodeRef():
            return f"node `{value.id}`"


def _causes_text(value: Causes, reader: Reader, about: str | None, *, joint: bool = False) -> str:
    between = " and " if joint else "; "
    return between.join(render(one, reader, about) for one in value.reasons)


def _word_text(value: str, kind: str) -> str:
    if kind == "level":
        return LEVELS.get(value, value)
    return f"`{value}`" if kind == "name" else value


def _number_text(value: float, kind: str) -> str:
    if kind == "ms":
        return duration_text(value)
    if kind == "s":
        return f"{value * 1_000:.3g} ms" if 0 < value < 1 else f"{value:.3g} s"
    if kind == "GiB":
        return f"{value / (1 << 30):,.0f} GiB"
    if kind.startswith("#"):
        return plural(value, kind[1:])
    if kind == VERB:
        return "has" if value == 1 else "have"
    if kind == ",":
        return f"{value:,g}" if isinstance(value, float) else f"{value:,}"
    return format(value, kind)


def _list_text(values: Sequence[Value], kind: str, reader: Reader) -> str | None:
    if kind == "names":
        return " or ".join(f"`{value}`" for value in values) or None
    if kind in ("all", "listed"):
        *most, last = [f"`{value}`" for value in values] or [""]
        between = " and " if kind == "all" else ", "
        return f"{', '.join(most)}{between}{last}" if most else last or None
    if kind == "words":
        return ", ".join(f"{value:,}" if isinstance(value, int) else str(value) for value in values)
    named = [_quoted(one) for one in values if isinstance(one, NodeRef) or _may_see(one, reader)]
    hidden = len(values) - len(named)
    text = ", ".join(named[:NAMED_MOST])
    if len(named) > NAMED_MOST:
        text += f" and {len(named) - NAMED_MOST:,} more"
    if hidden:
        others = f"{plural(hidden, 'job')} of other teams"
        return f"{text} and {others}" if text else others
    return text or None


def _may_see(value: object, reader: Reader) -> bool:
    return isinstance(value, JobRef) and reader.may_see(value.team)


def _quoted(value: object) -> str:
    return f"`{cast('JobRef | NodeRef', value).id}`"


def _redacted(value: Value, reader: Reader, about: str | None) -> Value | None:
    if isinstance(value, tuple):
        kept = (_redacted(one, reader, about) for one in value)
        return tuple(cast("str", one) for one in kept if one is not None)
    match value:
        case JobRef() | UserRef():
            return value if reader.may_see(value.team) else None
        case TeamRef():
            return value if reader.may_see(value.id) else None
        case Text():
            return value if reader.may_see(about) else None
        case Causes():
            return replace(
                value, reasons=tuple(redacted(one, reader, about) for one in value.reasons)
            )
        case _:
            return value
