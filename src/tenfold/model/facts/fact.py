"""A fact: a row of figures about the world that says where they come from.

One row often mixes figures of several kinds, so `measured` and `assumed` name the
fields whose evidence differs from that of the row. Where a user's row changes some fields
of a shipped one, `changed` says which, and on what ground.
"""

import re
from functools import lru_cache
from typing import Literal

import msgspec
from msgspec import Struct

Evidence = Literal["measured", "datasheet", "published", "assumption"]


class Change(Struct, frozen=True, kw_only=True):
    """Where a single field of a fact comes from, if not from where the row does."""

    source: str
    date: str
    evidence: Evidence


class Fact(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The name of a row, its other spellings, and its provenance."""

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
        """Return how well one field of this row is known."""
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
    """Fold a name so that `H100_SXM`, `h100-sxm` and `H100 SXM` are one.

    Numbers stay apart where something stood between them: `OPT-1.3B` is not `OPT-13B`.
    """
    runs: list[str] = _RUNS.findall(name.casefold().replace("+", "plus"))
    return "".join(
        f".{run}" if place and run.isdigit() and runs[place - 1].isdigit() else run
        for place, run in enumerate(runs)
    )
