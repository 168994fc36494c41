"""Check facts for consistency: dates, names and references."""

import re
from collections.abc import Iterator
from itertools import pairwise

from tenfold.facts.kinds import KINDS
from tenfold.model.facts.catalogue import Catalogue, FactTable
from tenfold.model.facts.fact import Fact, spelling
from tenfold.model.fleet.finding import Finding, Path
from tenfold.model.fleet.hardware import LinkClass

_DATE = re.compile(r"\d{4}(-\d{2}(-\d{2})?)?\Z")


def check_row(fact: Fact, path: Path) -> Iterator[Finding]:
    """Yield the faults of a single row."""
    if not _DATE.match(fact.date):
        yield Finding(
            code="bad-date",
            message=f"`{fact.name}` has an invalid date: `{fact.date}`",
            hint="write it as 2026, 2026-08 or 2026-08-22",
            path=(*path, "date"),
        )
    if not fact.source.strip():
        yield Finding(
            code="missing-source",
            message=f"`{fact.name}` has an empty source",
            hint="add where the figures come from",
            path=(*path, "source"),
        )
    fields = fact.__struct_fields__
    for key in ("measured", "assumed"):
        for field in getattr(fact, key):
            if field not in fields:
                yield Finding(
                    code="unknown-field",
                    message=f"`{key}` of `{fact.name}` names `{field}`, which is not a field",
                    hint="list fields of the row",
                    path=(*path, key),
                )
    if isinstance(fact, LinkClass):
        points = fact.efficiency
        if any(a[0] >= b[0] for a, b in pairwise(points)):
            yield Finding(
                code="unordered-efficiency",
                message=f"the `efficiency` of link `{fact.name}` is not sorted by message size",
                hint="sort the points by message size",
                path=(*path, "efficiency"),
            )


def check_catalogue(catalogue: Catalogue) -> Iterator[tuple[str, str, Finding]]:
    """Yield (kind, row, finding) for duplicate names and broken references."""
    for kind in KINDS:
        yield from _spellings(kind, getattr(catalogue, KINDS[kind].table))
    wanted = [
        ("accelerator", "scaleup_link", catalogue.accelerators, catalogue.links),
        ("node", "accelerator", catalogue.nodes, catalogue.accelerators),
        ("node", "nic_link", catalogue.nodes, catalogue.links),
        ("tier", "medium", catalogue.tiers, catalogue.media),
        ("price", "accelerator", catalogue.prices, catalogue.accelerators),
    ]
    for kind, field, rows, table in wanted:
        for fact in rows:
            name = getattr(fact, field)
            known = table.find(name) if name else None
            if name and (known is None or known.name != name):
                yield (
                    kind,
                    fact.name,
                    Finding(
                        code=f"unknown-{table.kind}",
                        message=f"{kind} `{fact.name}` refers to unknown {table.kind} `{name}`",
                        hint=f"write `{known.name}`" if known else table.hint(name),
                        path=(field,),
                    ),
                )


def _spellings(kind: str, table: FactTable[Fact]) -> Iterator[tuple[str, str, Finding]]:
    owner: dict[str, str] = {}
    for fact in table:
        owner[spelling(fact.name)] = fact.name
    for fact in table:
        for alias in fact.aliases:
            other = owner.setdefault(spelling(alias), fact.name)
            if other != fact.name:
                found = Finding(
                    code="alias-taken",
                    message=f"alias `{alias}` of {kind} `{fact.name}` is also used by `{other}`",
                    hint="remove it from one of them",
                    path=("aliases",),
                )
                yield kind, fact.name, found
