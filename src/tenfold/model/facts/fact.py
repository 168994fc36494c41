"""A fact: a row of figures with their source.

One row often mixes figures of several kinds, so `measured` and `assumed` list the fields
whose evidence differs from that of the row. If a user's row overrides some fields of a
shipped one, `changed` lists them with their source.
"""

import re
from functools import lru_cache
from typing import Literal

import msgspec
from msgspec import Struct

Evidence = Literal["measured", "datasheet", "published", "assumption"]


class Change(Struct, frozen=True, kw_only=True):
    """The source of a single field of a fact, if it differs from that of the row."""

    source: str
    date: str
    evidence: Evidence


class Fact(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The name of a row, its aliases, and its provenance."""

    name: str
    source: str
    date: str
    evidence: Evidence
    aliases: tuple[str, ...] = ()
    measured: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()
    note: str = ""
    changed: dict[str, Change] = msgspec.field(default_factory=dict[str, Change])

    def evidence_of(self, field: str) -> Evidence:
        """Return the evidence for one field of this row."""
        if field in self.changed:
            return self.changed[field].evidence
        if field in self.measured:
            return "measured"
        if field in self.assumed:
            return "assumption"
        return self.evidence


SPELLINGS_MOST = 8_192
"""Names whose spelling is remembered: facts are asked for by the same few again and again."""
_RUNS = re.compile(r"\d+|[^\W\d_]+")


@lru_cache(SPELLINGS_MOST)
def spelling(name: str) -> str:
    """Normalise a name so that `H100_SXM`, `h100-sxm` and `H100 SXM` are the same.

    Digits separated by punctuation stay separate: `OPT-1.3B` is not `OPT-13B`.
    """
    runs: list[str] = _RUNS.findall(name.casefold().replace("+", "plus"))
    return "".join(
        f".{run}" if place and run.isdigit() and runs[place - 1].isdigit() else run
        for place, run in enumerate(runs)
    )
