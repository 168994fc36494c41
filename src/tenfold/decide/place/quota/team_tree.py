"""The tree of teams: what each uses, may still use, and its fair share order.

A quota is what a team can always get back. Others may borrow the unused part, except for what
the team does not lend. The quota of a parent covers all its teams, and borrowing is limited at
the root of each subtree.

Shares are compared as they would be with the next job running, so a team with a large next job
is not put off forever.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from tenfold.decide.place.quota.decayed_usage import Used
from tenfold.decide.place.quota.request import Amounts, Resources
from tenfold.model.ids import TeamId
from tenfold.model.policy.governance import ANY, GovernanceRules, TeamRules
from tenfold.model.units import DAY, Millis

ROOT = TeamId("")
NOTHING_LESS: Mapping[int, int] = {}
UNLIMITED = 1 << 62


Obstacle = tuple["Team", int, int]
"""(Team whose limit is hit, number of the resource, how much would count there)."""


class BlockingLimit(NamedTuple):
    """The headroom needed at a team before a blocked class is worth trying."""

    node: "Team"
    number: int
    amount: int
    of_quota: bool = False
    """Whether the headroom is below its quota rather than below its limit."""


class Team:
    """A team, or a parent of teams. Amounts are lists by number of resource."""

    __slots__ = (
        "blocked_classes",
        "borrow",
        "children",
        "classes",
        "decayed_usage",
        "effective",
        "guaranteed",
        "head",
        "heads",
        "held",
        "id",
        "limit_amounts",
        "parent",
        "path",
        "pool",
        "stamp",
        "taken",
        "terms",
        "usage",
        "waits",
        "weight",
    )

    def __init__(self, terms: TeamRules, parent: "Team | None", size: int) -> None:
        self.id = terms.id
        self.terms = terms
        self.parent = parent
        self.path: tuple[Team, ...] = (self, *(parent.path if parent else ()))
        """From itself up to the root."""
        self.children: list[Team] = []
        self.weight = terms.weight
        self.held = [0] * size
        """Total usage of its jobs and of all teams below it."""
        self.usage = [0] * size
        """What it uses of its pool: usage below it beyond what those teams do not lend."""
        self.taken = [0] * size
        """The same for allocations only: without reservations, with jobs that are being stopped."""
        self.decayed_usage = [0] * size
        """Decayed past usage counted on top, where fair share uses it."""
        self.effective = [0] * size
        """Its quota, or the sum of the quotas below it if that is larger."""
        self.guaranteed = [0] * size
        """The part of its quota that it does not lend."""
        self.pool = [0] * size
        """Its quota less what the teams below it do not lend."""
        self.borrow = [UNLIMITED] * size
        self.classes: dict[Any, Any] = {}
        """Its pending classes; maintained by `PendingQueues`, as is the next."""
        self.blocked_classes: dict[Any, None] = {}
        """Classes in its branch that did not fit or found no victims."""
        self.head: Any = None
        """The first pending class in or below it; `FairShareOrder` maintains this and the next."""
        self.heads: list[Any] = []
        """Child teams with pending jobs, in fair share order."""
        self.waits: dict[BlockingLimit | None, list[Any]] = {}
        """Child teams with classes behind a blocking limit, or (None) with classes worth trying."""
        self.limit_amounts: dict[tuple[int, bool], list[int]] = {}
        """The amounts of the blocking limits at this team, sorted."""
        self.stamp = 0


class Tree:
    """All teams of a fleet with their usage."""

    def __init__(self, govern: GovernanceRules, resources: Resources, now_ms: Millis) -> None:
        self.resources = resources
        size = len(resources.names)
        self.root = Team(TeamRules(id=ROOT), None, size)
        self.named: dict[TeamId, Team] = {}
        """Teams of the policy, parents included."""
        self.teams: dict[TeamId, Team] = {}
        """Where the jobs of a team are counted; jobs of a parent have a leaf of their own."""
        self._size = size
        known = {terms.id: terms for terms in govern.teams}
        for terms in govern.teams:
            self._plant(terms, known)
        for team in self.named.values():
            own = team
            if team.children:
                own = Team(TeamRules(id=team.id), team, size)
                team.children.append(own)
            self.teams[team.id] = own
        self._set_quotas(govern, now_ms)

    def team(self, team_id: TeamId) -> Team:
        """Return a team; one that the policy does not name has no quota and may borrow."""
        team = self.teams.get(team_id)
        if team is None:
            team = Team(TeamRules(id=team_id), self.root, self._size)
            self.teams[team_id] = team
            self.root.children.append(team)
        return team

    def add(self, team: Team, amounts: Amounts, sign: int) -> None:
        """Add (1) or subtract (-1) amounts from usage, reservations included."""
        for number, amount in amounts:
            flow = held = amount * sign
            for node in team.path:
                node.held[number] += held
                before = node.usage[number]
                node.usage[number] = after = before + flow
                if kept := node.guaranteed[number]:
                    flow = max(0, after - kept) - max(0, before - kept)

    def take(self, team: Team, amounts: Amounts, sign: int) -> None:
        """Add (1) or subtract (-1) amounts that a job actually holds."""
        self.add(team, amounts, sign)
        for number, amount in amounts:
            flow = amount * sign
            for node in team.path:
                before = node.taken[number]
                node.taken[number] = after = before + flow
                if kept := node.guaranteed[number]:
                    flow = max(0, after - kept) - max(0, before - kept)

    def is_beyond(self, team: Team, amounts: Amounts) -> bool:
        """Return whether these amounts exceed a limit while jobs being stopped still count."""
        governed = self.resources.governed
        for number, amount in amounts:
            flow = amount
            for node in team.path if governed[number] else ():
                before = node.taken[number]
                if before + flow > node.pool[number] + node.borrow[number]:
                    return True
                if kept := node.guaranteed[number]:
                    flow = max(0, before + flow - kept) - max(0, before - kept)
                if not flow:
                    break
        return False

    def obstacle(self, team: Team, amounts: Amounts) -> Obstacle | None:
        """Return the first limit that these amounts would exceed."""
        governed = self.resources.governed
        for number, amount in amounts:
            if not governed[number]:
                continue
            flow = amount
            for node in team.path:
                before = node.usage[number]
                limit = node.pool[number] + node.borrow[number]
                if before + flow > limit:
                    return node, number, flow
                kept = node.guaranteed[number]
                if kept:
                    flow = max(0, before + flow - kept) - max(0, before - kept)
                if not flow:
                    break
        return None

    def never(self, team: Team, amounts: Amounts) -> Obstacle | None:
        """Return the limit that these amounts would exceed even if nothing ran."""
        governed = self.resources.governed
        for number, amount in amounts:
            flow = amount
            for node in team.path if governed[number] else ():
                if any(node.terms.hours):
                    break
                if flow > node.pool[number] + node.borrow[number]:
                    return node, number, flow
                flow = max(0, flow - node.guaranteed[number])
        return None

    def headroom(self, node: Team, number: int) -> int:
        """Return how much more a team may use before its limit."""
        return node.pool[number] + node.borrow[number] - node.usage[number]

    def left(self, node: Team, number: int, of_quota: bool) -> int:
        """Return the headroom below a team's quota or below its limit."""
        if of_quota:
            return node.effective[number] - node.held[number]
        return self.headroom(node, number)

    def is_within(
        self, team: Team, amounts: Amounts, less: Mapping[int, int] = NOTHING_LESS
    ) -> bool:
        """Return whether a team stays within its quota with these amounts added, less others."""
        governed, held, effective = self.resources.governed, team.held, team.effective
        for number, amount in amounts:
            if not governed[number] or not amount:
                continue
            if held[number] + amount - (less.get(number, 0) if less else 0) > effective[number]:
                return False
        return True

    def share(self, team: Team, amounts: Amounts) -> float:
        """Return the dominant share of a team with these amounts added, divided by its weight."""
        capacity, types, held = self.resources.capacity, self.resources.types, team.held
        decayed_usage, most = team.decayed_usage, 0.0
        for number, amount in amounts:
            if number < types and (total := capacity[number]):
                share = (held[number] + decayed_usage[number] + amount) / total
                most = max(most, share)
        if types > 1:
            for number in range(types):
                if total := capacity[number]:
                    most = max(most, (held[number] + decayed_usage[number]) / total)
        return most / team.weight

    def add_decayed_usage(self, used: Used) -> None:
        """Add decayed past usage to the teams."""
        resources = self.resources
        for (team_id, accelerator), milli in used.items():
            numbers: list[int] = (
                [resources.number[accelerator]] if accelerator in resources.number else []
            )
            if not numbers:
                numbers = list(range(resources.types))
            whole = sum(resources.capacity[number] for number in numbers) or 1
            for node in self.team(team_id).path:
                for number in numbers:
                    node.decayed_usage[number] += milli * resources.capacity[number] // whole

    def fair_share_key(self, team: Team, amounts: Amounts) -> tuple[int, float]:
        """Return the sort key of a team with these amounts added: within quota first."""
        return (0 if self.is_within(team, amounts) else 1), self.share(team, amounts)

    def path_key(self, path: Sequence[Team], amounts: Amounts) -> tuple[tuple[int, float], ...]:
        """Return the sort key of a gang, from its top-level team down."""
        return tuple(self.fair_share_key(node, amounts) for node in reversed(path))

    def is_over(self, node: Team) -> bool:
        """Return whether a team exceeds its quota of any resource."""
        governed = self.resources.governed
        return any(
            governed[number] and held > quota
            for number, (held, quota) in enumerate(zip(node.held, node.effective, strict=True))
        )

    def _plant(self, terms: TeamRules, known: dict[TeamId, TeamRules]) -> Team:
        team = self.named.get(terms.id)
        if team is None:
            above = None if terms.parent is None else known.get(terms.parent)
            parent = self.root if above is None else self._plant(above, known)
            team = self.named[terms.id] = Team(terms, parent, self._size)
            parent.children.append(team)
        return team

    def _set_quotas(self, govern: GovernanceRules, now_ms: Millis) -> None:
        """Compute quotas from the leaves up, as they are at this time of day."""
        for team in _leaves_first(self.root):
            quota = quota_at(team.terms, Millis(now_ms + govern.timezone_ms))
            names = self.resources.names
            for number, name in enumerate(names):
                below = sum(child.effective[number] for child in team.children)
                kept = sum(_unlent(child, number) for child in team.children)
                stated = quota.get(name, 0)
                if name == ANY and ANY not in quota:
                    # A team that names only types may use their sum in total.
                    stated = sum(quota.get(each, 0) for each in names[: self.resources.types])
                if team is self.root:
                    stated = self.resources.capacity[number]
                elif team.children:
                    # What a parent has beyond its teams is for its own jobs.
                    own = self.teams[team.id]
                    own.effective[number] = own.pool[number] = max(0, stated - below)
                    below = max(stated, below)
                effective = max(stated, below)
                team.effective[number] = effective
                team.pool[number] = effective - kept
                lend = team.terms.lend.get(name)
                team.guaranteed[number] = 0 if lend is None else max(0, effective - kept - lend)
                borrow = team.terms.borrow.get(name)
                team.borrow[number] = UNLIMITED if borrow is None else borrow
            if team is self.root:
                team.borrow = [0] * len(names)
                team.guaranteed = [0] * len(names)


def _unlent(team: Team, number: int) -> int:
    """Return the part of a team's quota that others may not use."""
    return team.effective[number] - team.pool[number] + team.guaranteed[number]


def quota_at(terms: TeamRules, local_ms: Millis) -> dict[str, int]:
    """Return a team's quota at a local time of day."""
    of_day = local_ms % DAY
    for hours, quota in terms.hours:
        if _is_within(of_day, hours.from_ms, hours.to_ms):
            return quota
    return terms.quota


def _is_within(of_day: int, from_ms: int, to_ms: int) -> bool:
    return from_ms <= of_day < to_ms or from_ms <= of_day + DAY < to_ms


def next_hours_ms(govern: GovernanceRules, now_ms: Millis) -> int | None:
    """Return the next time after now at which a quota or the off-peak hours change."""
    edges: list[int] = []
    for hours in (*govern.off_peak, *(each for team in govern.teams for each, _ in team.hours)):
        edges += (hours.from_ms, hours.to_ms)
    if not edges:
        return None
    local = now_ms + govern.timezone_ms
    return now_ms + min((edge - local - 1) % DAY + 1 for edge in edges)


def is_off_peak(govern: GovernanceRules, now_ms: Millis) -> bool:
    """Return whether off-peak jobs may start now."""
    of_day = (now_ms + govern.timezone_ms) % DAY
    return not govern.off_peak or any(
        _is_within(of_day, hours.from_ms, hours.to_ms) for hours in govern.off_peak
    )


def next_off_peak_ms(govern: GovernanceRules, at_ms: int) -> int:
    """Return the first time from `at_ms` on at which off-peak jobs may start."""
    edges = {hours.from_ms % DAY for hours in govern.off_peak}
    if is_off_peak(govern, Millis(at_ms)):
        return at_ms
    of_day = (at_ms + govern.timezone_ms) % DAY
    return at_ms + min((edge - of_day) % DAY for edge in edges)


def _leaves_first(team: Team) -> Iterator[Team]:
    for child in team.children:
        yield from _leaves_first(child)
    yield team
