"""What `tenfold policy show` prints: rules, the team tree and quota totals."""

from collections.abc import Sequence
from typing import cast

from msgspec import Struct, structs

from tenfold.cli.output import show, table
from tenfold.cli.screen import Text
from tenfold.files.policy.amounts import amounts_text, clock, file_key, file_units
from tenfold.files.policy.fit import capacity
from tenfold.files.policy.tree import TeamTree, quota_change_times, resources_in
from tenfold.model.fleet import hostlist
from tenfold.model.fleet.spec import FleetSpec
from tenfold.model.job.terms import Hours, Window
from tenfold.model.policy.governance import USD, GovernanceRules, TeamRules
from tenfold.model.policy.policy import Policy
from tenfold.model.units import HOUR, MINUTE, usd
from tenfold.report.figures import count

INDENT = "  "


class Sum(Struct, frozen=True, kw_only=True):
    """Total quota of one resource at the hour of the day when it is highest."""

    counts: str
    """A type, `any`, or `usd_per_hour`."""
    granted: float
    has: float | None
    """Capacity of the fleet; None if no fleet was given or GPUs have no price."""
    at: str


def show_policy(policy: Policy, spec: FleetSpec | None) -> None:
    """Print the rules that differ from the defaults, the team tree and the quota totals."""
    govern = policy.govern or GovernanceRules()
    on = f" on `{spec.name}`" if spec is not None else ""
    if policy.name != "governed":
        show(f"`{policy.name}`{on}: no quotas; placement `{policy.placement}`")
        return
    show(f"`governed`{on}: {count(len(govern.teams), 'team')}, {_rules_text(govern)}")
    if govern.teams:
        columns = ["team", ">weight", "quota", "borrow limit", "lend limit"]
        bound = any(team.residency for team in govern.teams)
        rows = [row for depth, team in _walk(govern) for row in _team_rows(depth, team, bound)]
        show("", table("", [*columns, *(["residency"] if bound else [])], rows))
    if govern.windows:
        windows = [_window_row(window) for window in govern.windows]
        show(
            "", table("", ["window", "for", ">starts at", ">duration", ">every", "nodes"], windows)
        )
    found = sums(govern, spec)
    if found:
        show("", table("", *_sums_table(found)))


def policy_json(policy: Policy, spec: FleetSpec | None) -> dict[str, object]:
    """Return the JSON of `policy show`, in the units of a policy file."""
    govern = policy.govern or GovernanceRules()
    return {
        "policy": policy.name,
        "placement": policy.placement,
        "fleet": None if spec is None else spec.name,
        "rules": {**rules_of(govern), **_old_rule_keys(govern)},
        "teams": [_team_json(depth, team) for depth, team in _walk(govern)],
        "windows": [_window_json(window) for window in govern.windows],
        "usd_per_gpu_hour": {
            name: usd(price) for name, price in govern.usd_micros_per_gpu_hour.items()
        },
        "sums": sums(govern, spec),
    }


def rules_of(govern: GovernanceRules) -> dict[str, object]:
    """Return the rules for all teams, with the keys of `[govern]`.

    `clock_offset_h` turns the clock of a run into the time of day: the UTC offset of the file
    plus the hour of its `zero`.
    """
    return {
        "fair_share": govern.fair_share,
        "half_life_h": govern.half_life_ms / HOUR,
        "reservations": govern.reservations,
        "reserve_after_min": govern.reserve_after_ms / MINUTE,
        "backfill": govern.backfill,
        "preempts": govern.preempts,
        "min_run_min": govern.min_run_ms / MINUTE,
        "delay_min": govern.delay_ms / MINUTE,
        "stops_per_hour": govern.stops_per_hour,
        "stops_per_job": govern.stops_per_job,
        "restart_cost_min": govern.restart_cost_ms / MINUTE,
        "defragment": govern.defragment,
        "idle_min": None if govern.idle_ms is None else govern.idle_ms / MINUTE,
        "off_peak": [_span(hours) for hours in govern.off_peak],
        "clock_offset_h": govern.timezone_ms / HOUR,
    }


def _old_rule_keys(govern: GovernanceRules) -> dict[str, object]:
    """Return rules under their names of the last version, kept for one more."""
    return {
        "promises": govern.reservations,
        "promise_after_min": govern.reserve_after_ms / MINUTE,
    }


def sums(govern: GovernanceRules, spec: FleetSpec | None) -> list[Sum]:
    """Return total quotas and the capacity of a fleet."""
    tree = TeamTree(govern.teams)
    times = quota_change_times(govern.teams)
    has = {} if spec is None else capacity(govern, spec)
    found: list[Sum] = []
    for name in resources_in(govern.teams):
        worst = max(times, key=lambda at_ms: tree.sum(name, at_ms))
        held = has.get(name, 0) if spec is not None and (name != USD or has[USD]) else None
        found.append(
            Sum(
                counts=file_key(name),
                granted=file_units({name: tree.sum(name, worst)})[file_key(name)],
                has=None if held is None else file_units({name: held})[file_key(name)],
                at=clock(worst) if len(times) > 1 else "",
            )
        )
    return found


def _walk(govern: GovernanceRules) -> list[tuple[int, TeamRules]]:
    return list(TeamTree(govern.teams).walk())


def _rules_text(govern: GovernanceRules) -> str:
    defaults = rules_of(GovernanceRules())
    other = {key: value for key, value in rules_of(govern).items() if value != defaults[key]}
    changed = ", ".join(f"{key} = {_value_text(value)}" for key, value in other.items())
    return f"default rules except {changed}" if other else "default rules"


def _value_text(value: object) -> str:
    match value:
        case bool():
            return str(value).lower()
        case float():
            return f"{value:g}"
        case list():
            return ", ".join(str(one) for one in cast(list[object], value))
        case _:
            return str(value)


def _team_rows(depth: int, team: TeamRules, bound: bool) -> list[list[str]]:
    residency = [", ".join(team.residency)] if bound else []
    rows = [
        [
            f"{INDENT * depth}{team.id}",
            f"{team.weight:g}",
            amounts_text(team.quota) or "none",
            amounts_text(team.borrow) or "no limit",
            amounts_text(team.lend) or "all",
            *residency,
        ]
    ]
    blank = [""] * (2 + len(residency))
    for hours, quota in team.hours:
        rows.append(
            [f"{INDENT * (depth + 1)}{_span(hours)}", "", amounts_text(quota) or "none", *blank]
        )
    return rows


def _window_row(window: Window) -> list[str]:
    return [
        window.id,
        f"team {window.team}" if window.team else "maintenance",
        f"{window.start_ms / HOUR:g} h",
        f"{(window.end_ms - window.start_ms) / HOUR:g} h",
        "once" if window.every_ms is None else f"{window.every_ms / HOUR:g} h",
        hostlist.fold(window.nodes),
    ]


def _window_json(window: Window) -> dict[str, object]:
    return {
        "id": window.id,
        "team": window.team or None,
        "start_h": window.start_ms / HOUR,
        "hours": (window.end_ms - window.start_ms) / HOUR,
        "every_h": None if window.every_ms is None else window.every_ms / HOUR,
        "nodes": list(window.nodes),
    }


def _team_json(depth: int, team: TeamRules) -> dict[str, object]:
    return {
        "id": team.id,
        "parent": team.parent,
        "depth": depth,
        "weight": team.weight,
        "quota": file_units(team.quota),
        "borrow": file_units(team.borrow),
        "lend": file_units(team.lend),
        "hours": [
            {"from": clock(hours.from_ms), "to": clock(hours.to_ms), "quota": file_units(quota)}
            for hours, quota in team.hours
        ],
        "residency": list(team.residency),
        "min_run_min": None if team.min_run_ms is None else team.min_run_ms / MINUTE,
        "inference": structs.asdict(team.inference),
    }


def _sums_table(found: Sequence[Sum]) -> tuple[list[str], list[list[str | Text]]]:
    """Return totals as a table, without columns that would be empty."""
    has_fleet = any(one.has is not None for one in found)
    by_hour = any(one.at for one in found)
    columns = ["total", ">quota", *([">fleet", ">unassigned"] if has_fleet else [])]
    rows: list[list[str | Text]] = []
    for one in found:
        row: list[str | Text] = [one.counts, _figure(one.granted)]
        if one.has is not None:
            over = one.granted > one.has
            left = Text(_figure(one.has - one.granted), style="bold red" if over else "")
            row += [_figure(one.has), left]
        elif has_fleet:
            row += ["unknown", ""]
        rows.append([*row, one.at] if by_hour else row)
    return [*columns, *(["at"] if by_hour else [])], rows


def _figure(value: float) -> str:
    return f"{value:,.2f}".removesuffix(".00")


def _span(hours: Hours) -> str:
    return f"{clock(hours.from_ms)}-{clock(hours.to_ms)}"
