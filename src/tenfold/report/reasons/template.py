"""Sentence templates with typed fields, and the schema that they declare.

`{name:kind}` is a field. `[...]` is left out if a field in it is absent or hidden from the
reader, and, with `{name?:kind}`, if it is zero; `[first|second]` then falls back to the second.
The kinds of a template are the schema of its reason: `tests/architecture/test_reasons.py` checks
every constructor against it.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property

from tenfold.model.reason import Amount, Causes, JobRef, NodeRef, TeamRef, Text, UserRef

IDENTIFYING: Mapping[str, type] = {
    "job": JobRef,
    "jobs": JobRef,
    "team": TeamRef,
    "user": UserRef,
    "text": Text,
    "causes": Causes,
    "steps": Causes,
}
"""Kinds whose values may be hidden from a reader; `jobs` is a list, `steps` are
causes that all apply."""
OPEN: Mapping[str, type] = {
    "node": NodeRef,
    "nodes": NodeRef,
    "amount": Amount,
    "number": Amount,
}
"""Kinds that every reader may see; `number` is an amount without its unit."""
WORDS = ("word", "words", "name", "names", "listed", "all", "level")
"""Kinds of plain text: a word, a quoted name, lists of those, a level of domains. Of a list of
names, `names` means any of them and `all` every one; `listed` is followed by more."""
VERB = "has"
"""A verb that agrees with a number: `has` for 1, otherwise `have`. The field is shown elsewhere."""
_TOKEN = re.compile(r"\{(\w+)(\??)(?::([^}]*))?\}|[\[\]|]|[^\[\]{}|]+")


class Field:
    """A field in a template."""

    def __init__(self, name: str, kind: str, *, shows_zero: bool) -> None:
        self.name = name
        self.kind = kind
        self.shows_zero = shows_zero


class Choice:
    """Alternatives: the first whose fields are all present, or nothing."""

    def __init__(self, alternatives: "list[list[str | Field | Choice]]") -> None:
        self.alternatives = alternatives


class Template:
    """How a reason reads."""

    def __init__(
        self, text: str, plain: str = "", shown: str = "", **words: Mapping[str, str]
    ) -> None:
        self._text = text
        self.shown = shown
        """The code that people and JSON see where the stored code would mislead; "" if the same."""
        self.plain = plain
        """The sentence for readers who may not see the fields."""
        self.words = words
        """By field: the text for each of its values."""

    @cached_property
    def parts(self) -> "list[str | Field | Choice]":
        """The parsed template."""
        (alternative,) = _alternatives(_TOKEN.finditer(self._text), is_whole=True)
        return alternative

    @cached_property
    def kinds(self) -> dict[str, str]:
        """The kind of every field that the reason may have."""
        return {one.name: one.kind for one in _fields(self.parts) if one.kind != VERB}

    def filled(self, shown: Callable[[Field], str | None]) -> str | None:
        """Return the sentence; None if a required field is missing."""
        return _filled(self.parts, shown)


def _alternatives(
    tokens: Iterator[re.Match[str]], *, is_whole: bool = False
) -> "list[list[str | Field | Choice]]":
    alternatives: list[list[str | Field | Choice]] = [[]]
    for token in tokens:
        text = token[0]
        if text == "]":
            break
        if text == "[":
            alternatives[-1].append(Choice(_alternatives(tokens)))
        elif text == "|" and not is_whole:
            alternatives.append([])
        elif token[1]:
            alternatives[-1].append(Field(token[1], token[3] or ",", shows_zero=not token[2]))
        else:
            alternatives[-1].append(text)
    return alternatives


def _fields(parts: "list[str | Field | Choice]") -> Iterator[Field]:
    for part in parts:
        if isinstance(part, Field):
            yield part
        elif isinstance(part, Choice):
            for alternative in part.alternatives:
                yield from _fields(alternative)


def _filled(
    parts: "list[str | Field | Choice]", shown: Callable[[Field], str | None]
) -> str | None:
    texts: list[str] = []
    for part in parts:
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, Field):
            text = shown(part)
            if text is None:
                return None
            texts.append(text)
        else:
            alternatives = (_filled(alternative, shown) for alternative in part.alternatives)
            texts.append(
                next((alternative for alternative in alternatives if alternative is not None), "")
            )
    return "".join(texts)
