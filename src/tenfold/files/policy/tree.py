"""The team tree, and the guaranteed quota of its branches at a time of day."""

from collections.abc import Iterator, Sequence

from tenfold.model.job.terms import Hours
from tenfold.model.policy.governance import Amounts, TeamRules
from tenfold.model.units import DAY, Millis


class TeamTree:
    """Teams by parent. Callers check for cycles first."""

    def __init__(self, teams: Sequence[TeamRules]) -> None:
        known = {team.id: team for team in teams}
        self.children: dict[str, list[TeamRules]] = {team.id: [] for team in teams}
        self.roots: list[TeamRules] = []
        for team in teams:
            if team.parent is None or team.parent not in known:
                self.roots.append(team)
            else:
                self.children[team.parent].append(team)

    def walk(self) -> Iterator[tuple[int, TeamRules]]:
        """Yield every team with its depth, each before those under it."""
        stack = [(0, team) for team in reversed(self.roots)]
        while stack:
            depth, team = stack.pop()
            yield depth, team
            stack.extend((depth + 1, child) for child in reversed(self.children[team.id]))

    def guaranteed(self, team: TeamRules, name: str, at_ms: int) -> int:
        """Return a team's guaranteed quota: its own, or the total of its children if larger."""
        below = sum(self.guaranteed(child, name, at_ms) for child in self.children[team.id])
        return max(below, quota_at(team, at_ms).get(name, 0))

    def sum(self, name: str, at_ms: int = 0) -> int:
        """Return the guaranteed quota of all teams together."""
        return sum(self.guaranteed(team, name, at_ms) for team in self.roots)


def quota_at(team: TeamRules, at_ms: int) -> Amounts:
    """Return the quota in force at a time of day."""
    for hours, quota in team.hours:
        if any(start <= at_ms < end for start, end in day_parts(hours)):
            return quota
    return team.quota


def day_parts(hours: Hours) -> list[tuple[int, int]]:
    """Return the parts of a day that hours cover: two if they cross midnight."""
    if hours.to_ms <= DAY:
        return [(hours.from_ms, hours.to_ms)]
    return [(hours.from_ms, DAY), (0, hours.to_ms - DAY)]


def quota_change_times(teams: Sequence[TeamRules]) -> list[Millis]:
    """Return every time of day at which the quota of a team changes, midnight first."""
    times = {0: None}
    for team in teams:
        for hours, _ in team.hours:
            times |= {hours.from_ms % DAY: None, hours.to_ms % DAY: None}
    return [Millis(at_ms) for at_ms in sorted(times)]


def resources_in(teams: Sequence[TeamRules]) -> list[str]:
    """Return every resource named in the quotas of these teams, in file order."""
    names: dict[str, None] = {}
    for team in teams:
        for quota in (team.quota, *(quota for _, quota in team.hours)):
            names |= dict.fromkeys(quota)
    return list(names)
