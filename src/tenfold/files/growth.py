"""Read a grow file: limits, controllers, services, datasets, staff, lead times and pace.

The fleet file describes the hardware; the grow file describes demand and limits. Everything is
optional: a layer with missing inputs is unknown and says so.
"""

from collections.abc import Collection, Iterator
from datetime import date
from pathlib import Path
from typing import TypeVar, cast

from msgspec import Struct, field
from msgspec.structs import replace

from tenfold.files.core.document import Table, read_document
from tenfold.files.core.rows import read_row, read_rows
from tenfold.model.errors import InvalidFile
from tenfold.model.facts.catalogue import Catalogue
from tenfold.model.fleet.finding import Finding
from tenfold.model.fleet.spec import FleetSpec
from tenfold.model.growth.growth import (
    Controller,
    Dataset,
    Facility,
    Grown,
    GrowSpec,
    GrowTable,
    GrowthLimits,
    LeadStage,
    LeadTime,
    Monitoring,
    Months,
    Operations,
    OrderItem,
    Pace,
    Prices,
    ServiceLoad,
    Weeks,
)
from tenfold.physics.operations.lead_time import total_of

R = TypeVar("R", bound=Struct)


class PaceTable(GrowTable, frozen=True, kw_only=True):
    """`[pace]` as read: the core has no calendar and keeps the day as text."""

    today: date
    doubles_in_months: Months


class LeadTimeTable(GrowTable, frozen=True, kw_only=True):
    """`[[lead_time]]` as read: two quantiles of the total, or of each stage."""

    thing: OrderItem
    weeks_p50: Weeks | None = None
    weeks_p90: Weeks | None = None
    stages: dict[LeadStage, tuple[Weeks, Weeks]] = field(
        default_factory=dict[LeadStage, tuple[Weeks, Weeks]]
    )


SINGLE: dict[str, type[Struct]] = {
    "limits": GrowthLimits,
    "monitoring": Monitoring,
    "operations": Operations,
    "facility": Facility,
    "prices": Prices,
    "pace": PaceTable,
    "grown": Grown,
}
MANY: dict[str, type[Struct]] = {
    "controller": Controller,
    "service": ServiceLoad,
    "dataset": Dataset,
    "lead_time": LeadTimeTable,
}


class _Tables:
    """The tables of one file as structs, and their errors."""

    def __init__(self, values: Table) -> None:
        self.values = values
        self.findings: list[Finding] = []

    def one(self, name: str, kind: type[R]) -> R | None:
        if name not in self.values:
            return None
        return read_row(kind, self.values[name], (name,), self.findings)

    def many(self, name: str, kind: type[R]) -> dict[int, R]:
        if name not in self.values:
            return {}
        return read_rows(kind, self.values[name], (name,), self.findings)


class _Lists(Struct, frozen=True, kw_only=True):
    """Tables in lists, by their position."""

    controllers: dict[int, Controller]
    services: dict[int, ServiceLoad]
    datasets: dict[int, Dataset]
    lead_times: dict[int, LeadTimeTable]


def read_grow(path: Path, catalogue: Catalogue, fleet: FleetSpec | None = None) -> GrowSpec:
    """Return a grow file, or raise `InvalidFile` with all its errors.

    If a fleet is given, the file may only name its tiers, pools and sites.
    """
    document = read_document(path)
    tables = _Tables(_without_empty_limits(document.values))
    tables.findings += _unknown_tables(document.values)
    lists = _Lists(
        controllers=tables.many("controller", Controller),
        services=tables.many("service", ServiceLoad),
        datasets=tables.many("dataset", Dataset),
        lead_times=tables.many("lead_time", LeadTimeTable),
    )
    spec = _spec(tables, lists)
    tables.findings += [*_duplicates(lists), *_lead_time_order(lists), *_models(lists, catalogue)]
    if fleet is not None:
        tables.findings += _references(lists, fleet)
    if tables.findings:
        located = [
            replace(found, file=document.file, line=document.line_of(found.path))
            for found in tables.findings
        ]
        located.sort(key=lambda found: (found.line or 0, found.code))
        raise InvalidFile(str(path), located)
    return spec


def _without_empty_limits(values: Table) -> Table:
    """Return the tables without empty limits: in YAML `kw_most:` states none."""
    limits = values.get("limits")
    if not isinstance(limits, dict):
        return values
    table = cast(dict[str, object], limits)
    stated = {key: value for key, value in table.items() if value is not None}
    return {**values, "limits": stated}


def _spec(tables: _Tables, lists: _Lists) -> GrowSpec:
    pace = tables.one("pace", PaceTable)
    return GrowSpec(
        limits=tables.one("limits", GrowthLimits) or GrowthLimits(),
        controllers=tuple(lists.controllers.values()),
        services=tuple(lists.services.values()),
        datasets=tuple(lists.datasets.values()),
        monitoring=tables.one("monitoring", Monitoring) or Monitoring(),
        operations=tables.one("operations", Operations) or Operations(),
        facility=tables.one("facility", Facility) or Facility(),
        prices=tables.one("prices", Prices) or Prices(),
        lead_times=tuple(_lead_time(row) for row in lists.lead_times.values()),
        pace=None
        if pace is None
        else Pace(today=pace.today.isoformat(), doubles_in_months=pace.doubles_in_months),
        grown=tables.one("grown", Grown),
    )


def _unknown_tables(values: Table) -> Iterator[Finding]:
    for key in values:
        if key not in SINGLE and key not in MANY:
            yield Finding(
                code="unknown-key",
                message=f"unknown key `{key}`",
                hint=f"a grow file has only the tables {', '.join((*SINGLE, *MANY))}",
                path=(key,),
            )


def _duplicates(lists: _Lists) -> Iterator[Finding]:
    named: dict[str, dict[int, str]] = {
        "controller": {
            at: f"{row.kind} {row.queue}".strip() for at, row in lists.controllers.items()
        },
        "service": {at: row.name for at, row in lists.services.items()},
        "dataset": {at: row.name for at, row in lists.datasets.items()},
        "lead_time": {at: row.thing for at, row in lists.lead_times.items()},
    }
    for table, names in named.items():
        seen: dict[str, bool] = {}
        for at, name in names.items():
            if name in seen:
                yield Finding(
                    code="duplicate-name",
                    message=f"two `{table}` entries are named `{name}`",
                    hint="give each its own name",
                    path=(table, at),
                )
            seen[name] = True


def _lead_time(row: LeadTimeTable) -> LeadTime:
    """Return a lead time; that of several stages has the quantiles of their sum."""
    if not row.stages:
        p50, p90 = row.weeks_p50 or 0.0, row.weeks_p90 or 0.0
        return LeadTime(thing=row.thing, weeks_p50=p50, weeks_p90=p90)
    total = total_of(row.stages.values())
    return LeadTime(
        thing=row.thing,
        weeks_p50=total.quantile(0.5),
        weeks_p90=total.quantile(0.9),
        stages=row.stages,
    )


def _lead_time_order(lists: _Lists) -> Iterator[Finding]:
    for at, row in lists.lead_times.items():
        place = ("lead_time", at)
        if row.stages and (row.weeks_p50, row.weeks_p90) != (None, None):
            yield Finding(
                code="wrong-value",
                message=f"lead time of `{row.thing}` has `stages` and a total",
                hint="leave out `weeks_p50` and `weeks_p90`: they follow from the stages",
                path=(*place, "stages"),
            )
        elif not row.stages and None in (row.weeks_p50, row.weeks_p90):
            missing = "weeks_p50" if row.weeks_p50 is None else "weeks_p90"
            yield Finding(
                code="missing-key",
                message=f"lead time of `{row.thing}` has no `{missing}`",
                hint=f"add `{missing}`, or state `stages`",
                path=place,
            )
        elif (row.weeks_p50 or 0.0) > (row.weeks_p90 or 0.0):
            yield Finding(
                code="wrong-value",
                message=(
                    f"lead time of `{row.thing}`: `weeks_p90` is {row.weeks_p90:g}, below "
                    f"`weeks_p50` of {row.weeks_p50:g}"
                ),
                hint="set `weeks_p90` to at least `weeks_p50`",
                path=(*place, "weeks_p90"),
            )
        for name, (p50, p90) in row.stages.items():
            if p50 > p90:
                yield Finding(
                    code="wrong-value",
                    message=f"stage `{name}` of `{row.thing}`: P90 of {p90:g} is below {p50:g}",
                    hint="state P50 first, then P90, such as `[2, 4]`",
                    path=(*place, "stages"),
                )


def _models(lists: _Lists, catalogue: Catalogue) -> Iterator[Finding]:
    for at, row in lists.services.items():
        if catalogue.models.find(row.model) is None:
            yield Finding(
                code="unknown-model",
                message=f"unknown model `{row.model}`",
                hint=catalogue.models.hint(row.model),
                path=("service", at, "model"),
            )


def _references(lists: _Lists, fleet: FleetSpec) -> Iterator[Finding]:
    tiers = [str(tier.id) for tier in fleet.tiers]
    sites = [str(site.id) for site in fleet.sites]
    pools = [str(pool.id) for pool in fleet.pools]
    for at, row in lists.datasets.items():
        if row.tier not in tiers:
            yield _unknown_reference("unknown-tier", row.tier, tiers, ("dataset", at, "tier"))
        if row.source_site and row.source_site not in sites:
            path = ("dataset", at, "source_site")
            yield _unknown_reference("unknown-site", row.source_site, sites, path)
        yield from _copies(at, row, fleet)
    for at, row in lists.services.items():
        if row.pool and row.pool not in pools:
            yield _unknown_reference("unknown-pool", row.pool, pools, ("service", at, "pool"))


def _copies(at: int, row: Dataset, fleet: FleetSpec) -> Iterator[Finding]:
    """A source without a frequency, or at the tier's own site, would change nothing."""
    path = ("dataset", at, "source_site" if row.source_site else "copies_per_month")
    if bool(row.source_site) != (row.copies_per_month is not None):
        missing = "copies_per_month" if row.source_site else "source_site"
        yield Finding(
            code="missing-key",
            message=f"dataset `{row.name}` has `{path[2]}` but no `{missing}`",
            hint=f"add `{missing}`, or leave out both",
            path=path,
        )
        return
    end = next((tier.site for tier in fleet.tiers if tier.id == row.tier), None)
    known = any(site.id == row.source_site for site in fleet.sites)
    if not known or end is None:
        return
    if row.source_site not in _linked(fleet, end):
        yield Finding(
            code="no-route",
            message=f"no `[[link]]` leads from site `{row.source_site}` to `{end}` of `{row.tier}`",
            hint="add the link to the fleet file, or leave out `source_site`",
            path=path,
        )


def _linked(fleet: FleetSpec, site: str) -> set[str]:
    """Return the other sites that links lead to, directly or through others."""
    found, left = {site}, [site]
    while left:
        here = left.pop()
        for link in fleet.links:
            other = link.b if link.a == here else link.a if link.b == here else here
            if other not in found:
                found.add(other)
                left.append(other)
    return found - {site}


def _unknown_reference(
    code: str, name: str, known: Collection[str], path: tuple[str | int, ...]
) -> Finding:
    kind = code.removeprefix("unknown-")
    declared = ", ".join(f"`{one}`" for one in sorted(known)[:8])
    hint = (
        f"declared {kind}s: {declared}"
        if declared
        else f"add a `[[{kind}]]` with this name to the fleet file"
    )
    return Finding(code=code, message=f"no {kind} `{name}` in the fleet file", hint=hint, path=path)
