"""Checks of a policy file by itself: duplicates, unknown teams, contradictions."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import cast

from tenfold.files.core.document import Table
from tenfold.files.policy.amounts import amount_text, clock
from tenfold.files.policy.govern import GovernanceTables
from tenfold.files.policy.tree import (
    TeamTree,
    day_parts,
    quota_at,
    quota_change_times,
    resources_in,
)
from tenfold.files.policy.values import fault, warning
from tenfold.files.policy.windows import window_conflicts
from tenfold.model.fleet.finding import Finding, Path
from tenfold.model.policy.governance import TeamRules


def check_governance(tables: GovernanceTables, values: Table) -> list[Finding]:
    """Return every error and warning found in the policy file alone."""
    declared = _declared(values.get("teams"))
    found = [
        *_twice(values.get("teams"), "team", "teams"),
        *_twice(values.get("windows"), "window", "windows"),
        *_parents(tables.teams, declared),
        *_cycles(tables.teams),
    ]
    whole = not found
    for index, team in tables.teams.items():
        found += _lend_limits(team, ("teams", index, "lend"))
        found += _hours(team, ("teams", index, "hours"))
    if whole:
        # Totals follow the tree, so it has to be valid first.
        found += _sums(tables.teams)
    for index, window in tables.windows.items():
        if window.team and declared and window.team not in declared:
            found.append(unknown_team(window.team, declared, ("windows", index, "team")))
    found += window_conflicts(
        tables.windows, {index: dict.fromkeys(one.nodes) for index, one in tables.windows.items()}
    )
    return found


def unknown_team(name: str, declared: Sequence[str], path: Path) -> Finding:
    """Return the error for an unknown team."""
    known = ", ".join(f"`{one}`" for one in declared[:8])
    hint = f"declared teams: {known}" if known else f'add a `[[teams]]` with `id = "{name}"`'
    return fault("unknown-team", f"unknown team `{name}`", hint, path)


def _declared(tables: object) -> list[str]:
    """Return the ids of raw tables, including rows with other errors."""
    rows = cast(list[object], tables) if isinstance(tables, list) else []
    ids = [cast(Table, row).get("id") for row in rows if isinstance(row, dict)]
    return list(dict.fromkeys(name for name in ids if isinstance(name, str)))


def _twice(tables: object, kind: str, table: str) -> Iterator[Finding]:
    rows = cast(list[object], tables) if isinstance(tables, list) else []
    first: dict[str, int] = {}
    for index, row in enumerate(rows):
        name = cast(Table, row).get("id") if isinstance(row, dict) else None
        if isinstance(name, str) and first.setdefault(name, index) != index:
            yield fault(
                "duplicate-name",
                f"{kind} {index + 1} and {kind} {first[name] + 1} have the same id: `{name}`",
                "give each a unique `id`",
                (table, index, "id"),
            )


def _parents(teams: Mapping[int, TeamRules], declared: Sequence[str]) -> Iterator[Finding]:
    for index, team in teams.items():
        if team.parent is not None and team.parent not in declared:
            yield unknown_team(team.parent, declared, ("teams", index, "parent"))


def _cycles(teams: Mapping[int, TeamRules]) -> Iterator[Finding]:
    parents = {team.id: team.parent for team in teams.values()}
    for index, team in teams.items():
        path_up, above = [team.id], team.parent
        while above is not None and above not in path_up:
            path_up.append(above)
            above = parents.get(above)
        if above is not None and above == team.id:
            yield fault(
                "cycle",
                f"parents of team `{team.id}` form a cycle: {' > '.join([*path_up, above])}",
                "remove `parent` from the topmost team",
                ("teams", index, "parent"),
            )


def _lend_limits(team: TeamRules, path: Path) -> Iterator[Finding]:
    for name, lent in team.lend.items():
        most = max(quota.get(name, 0) for quota in (team.quota, *(one for _, one in team.hours)))
        if lent > most:
            yield fault(
                "lend-over-quota",
                f"`lend` of team `{team.id}` is {amount_text(name, lent)}, more than its quota of "
                f"{amount_text(name, most)}",
                "lower `lend`, or remove the type from it to lend the whole quota",
                (*path, name),
            )


def _hours(team: TeamRules, path: Path) -> Iterator[Finding]:
    for (_, (first, _quota)), (index, (second, _)) in combinations(enumerate(team.hours), 2):
        if any(a < d and c < b for a, b in day_parts(first) for c, d in day_parts(second)):
            yield fault(
                "hours-overlap",
                f"the hours of team `{team.id}` from {clock(first.from_ms)} and from "
                f"{clock(second.from_ms)} overlap",
                "end one where the other begins",
                (*path, index),
            )


def _sums(teams: Mapping[int, TeamRules]) -> Iterator[Finding]:
    """Yield a warning if the quotas below a team add up to more than its own."""
    tree = TeamTree(list(teams.values()))
    for index, team in teams.items():
        below = tree.children[team.id]
        family = [team, *below]
        for name in resources_in([team]) if below else ():
            for at_ms in quota_change_times(family):
                own = quota_at(team, at_ms).get(name)
                together = sum(tree.guaranteed(child, name, at_ms) for child in below)
                if own is not None and together > own:
                    when = f" at {clock(at_ms)}" if len(quota_change_times(family)) > 1 else ""
                    yield warning(
                        "quota-over-parent",
                        f"quotas of the teams under `{team.id}` add up to "
                        f"{amount_text(name, together)}{when}, more than its own "
                        f"{amount_text(name, own)}",
                        f"lower them, or raise the quota of `{team.id}`; for now, the sum is used",
                        ("teams", index, "quota"),
                    )
                    break
