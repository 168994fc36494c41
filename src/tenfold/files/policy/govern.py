"""Read the governance tables of a policy file."""

from msgspec import Struct

from tenfold.files.core.document import Table
from tenfold.files.core.rows import read_row, read_rows, wrong_value
from tenfold.files.policy.rows import GovernanceRow, HoursRow, PricesRow, TeamRow, WindowRow
from tenfold.files.policy.values import (
    amounts_of,
    fault,
    hours_of,
    millis,
    moment_of,
    numbers_of,
    span_of,
    warning,
    with_new_keys,
)
from tenfold.model.fleet import hostlist
from tenfold.model.fleet.finding import Finding, Path
from tenfold.model.ids import TeamId
from tenfold.model.job.terms import Hours, Window
from tenfold.model.policy.governance import Amounts, GovernanceRules, TeamRules
from tenfold.model.service.routing import InferenceLimits
from tenfold.model.units import DAY, HOUR, MINUTE, Millis, UsdMicros, usd_micros


class GovernanceTables(Struct, frozen=True, kw_only=True):
    """The rules of a file, with the position of each team and window in it."""

    govern: GovernanceRules
    teams: dict[int, TeamRules]
    windows: dict[int, Window]


class _Clock(Struct, frozen=True, kw_only=True):
    """How timestamps in the file map to times of the run."""

    offset_ms: Millis
    zero_ms: Millis | None
    """Time 0 of the run, in ms since 1970; None if the file does not set it."""


def read_governance(values: Table, findings: list[Finding]) -> GovernanceTables:
    """Return the rules of a file, and add findings for invalid values."""
    stated = with_new_keys(values.get("govern", {}), ("govern",), findings)
    row = read_row(GovernanceRow, stated, ("govern",), findings) or GovernanceRow()
    prices = read_row(PricesRow, values.get("prices", {}), ("prices",), findings) or PricesRow()
    offset_ms = millis(row.utc_offset_h, HOUR)
    zero_ms = None
    if row.zero is not None:
        zero_ms = moment_of(row.zero, offset_ms, ("govern", "zero"), findings)
    clock = _Clock(offset_ms=offset_ms, zero_ms=zero_ms)
    teams = _teams(values, findings)
    windows = _windows(values, clock, findings)
    spans = [
        span_of(text, ("govern", "off_peak", index), findings)
        for index, text in enumerate(row.off_peak)
    ]
    govern = GovernanceRules(
        teams=tuple(teams.values()),
        fair_share=row.fair_share,
        half_life_ms=millis(row.half_life_h, HOUR),
        reservations=row.reservations,
        reserve_after_ms=millis(row.reserve_after_min, MINUTE),
        backfill=row.backfill,
        preempts=row.preempts,
        min_run_ms=millis(row.min_run_min, MINUTE),
        delay_ms=millis(row.delay_min, MINUTE),
        stops_per_hour=row.stops_per_hour,
        stops_per_job=row.stops_per_job,
        restart_cost_ms=millis(row.restart_cost_min, MINUTE),
        defragment=row.defragment,
        idle_ms=None if row.idle_min is None else millis(row.idle_min, MINUTE),
        off_peak=tuple(span for span in spans if span is not None),
        windows=tuple(windows.values()),
        usd_micros_per_gpu_hour=_prices(prices, findings),
        timezone_ms=Millis(offset_ms if zero_ms is None else (offset_ms + zero_ms) % DAY),
    )
    return GovernanceTables(govern=govern, teams=teams, windows=windows)


def _prices(row: PricesRow, findings: list[Finding]) -> dict[str, UsdMicros]:
    figures = numbers_of(row.usd_per_gpu_hour, ("prices", "usd_per_gpu_hour"), findings)
    return {name: usd_micros(price) for name, price in figures.items()}


def _teams(values: Table, findings: list[Finding]) -> dict[int, TeamRules]:
    rows = read_rows(TeamRow, values.get("teams", []), ("teams",), findings)
    return {index: _team(row, ("teams", index), findings) for index, row in rows.items()}


def _team(row: TeamRow, path: Path, findings: list[Finding]) -> TeamRules:
    return TeamRules(
        id=TeamId(row.id),
        parent=None if row.parent is None else TeamId(row.parent),
        weight=row.weight,
        quota=amounts_of(row.quota, (*path, "quota"), findings),
        borrow=amounts_of(row.borrow, (*path, "borrow"), findings),
        lend=amounts_of(row.lend, (*path, "lend"), findings),
        hours=tuple(_hours(row.hours, (*path, "hours"), findings)),
        residency=tuple(row.residency),
        min_run_ms=None if row.min_run_min is None else millis(row.min_run_min, MINUTE),
        inference=_inference(row, path, findings),
    )


def _inference(row: TeamRow, path: Path, findings: list[Finding]) -> InferenceLimits:
    limits = read_row(InferenceLimits, row.inference, (*path, "inference"), findings)
    return limits or InferenceLimits()


def _hours(value: object, path: Path, findings: list[Finding]) -> list[tuple[Hours, Amounts]]:
    found: list[tuple[Hours, Amounts]] = []
    for index, row in read_rows(HoursRow, value, path, findings).items():
        here: Path = (*path, index)
        hours = hours_of(row.start, row.end, here, findings)
        quota = amounts_of(row.quota, (*here, "quota"), findings)
        if hours is not None:
            found.append((hours, quota))
    return found


def _windows(values: Table, clock: _Clock, findings: list[Finding]) -> dict[int, Window]:
    rows = read_rows(WindowRow, values.get("windows", []), ("windows",), findings)
    found = {
        index: _window(row, clock, ("windows", index), findings) for index, row in rows.items()
    }
    return {index: window for index, window in found.items() if window is not None}


def _window(row: WindowRow, clock: _Clock, path: Path, findings: list[Finding]) -> Window | None:
    start_ms = _start(row, clock, path, findings)
    nodes: list[str] = []
    if not row.nodes:
        expected = "at least one node, rack or pool"
        findings.append(wrong_value((*path, "nodes"), expected, row.nodes))
    for index, text in enumerate(row.nodes):
        try:
            nodes.extend(hostlist.expand(text))
        except hostlist.HostlistError as error:
            here: Path = (*path, "nodes", index)
            hint = "write host lists such as `n[1-4]`"
            findings.append(fault("bad-host-list", str(error), hint, here))
    if row.hours <= 0:
        findings.append(
            fault(
                "window-ends-first",
                f"window `{row.id}` has a duration of {row.hours:g} hours",
                "set `hours` above 0",
                (*path, "hours"),
            )
        )
    if row.every_h is not None and row.every_h < row.hours:
        findings.append(
            fault(
                "window-over-itself",
                f"window `{row.id}` lasts {row.hours:g} hours but repeats every {row.every_h:g}",
                "set `every_h` to at least `hours`",
                (*path, "every_h"),
            )
        )
    if start_ms is None:
        return None
    return Window(
        id=row.id,
        start_ms=start_ms,
        end_ms=Millis(start_ms + millis(row.hours, HOUR)),
        every_ms=None if row.every_h is None else millis(row.every_h, HOUR),
        nodes=tuple(dict.fromkeys(nodes)),
        team=row.team or "",
    )


def _start(row: WindowRow, clock: _Clock, path: Path, findings: list[Finding]) -> Millis | None:
    if (row.start is None) == (row.start_h is None):
        how = "no start" if row.start is None else "both `start` and `start_h`"
        findings.append(
            fault(
                "window-start",
                f"window `{row.id}` has {how}",
                "set either `start_h`, hours after time 0, or `start`, a date and time",
                path,
            )
        )
        return None
    if row.start_h is not None:
        return millis(row.start_h, HOUR)
    here: Path = (*path, "start")
    if clock.zero_ms is None:
        findings.append(
            warning(
                "date-without-zero",
                f"window `{row.id}` has a date, but the file does not set `zero`: "
                "the date is read as wall-clock time",
                "for a simulation, add `zero = 2026-11-16T00:00:00Z` to `[govern]`",
                here,
            )
        )
    at_ms = moment_of(row.start, clock.offset_ms, here, findings)
    return None if at_ms is None else Millis(at_ms - (clock.zero_ms or 0))
