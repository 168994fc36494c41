"""The tree of teams: what each holds, may still take, and whose turn that makes it.

A quota is what a team can always get back. What it leaves unused others may borrow, except
for the part that it does not lend. Above a team stand its parents: their quota covers all
of their teams, and what a subtree may borrow is limited at each of its roots.

A gang sits in one piece: shares are compared as they would be with it, so that a team is
not put off for ever because its next job is large.
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
"""(Whose limit is in the way, number of the resource, how much would flow there)."""


class BlockingLimit(NamedTuple):
    """What must be free at a team before somebody is worth trying."""

    node: "Team"
    number: int
    amount: int
    of_quota: bool = False
    """Whether its quota must have so much left, or its limit."""


class Team:
    """One team, or a parent of teams. Amounts are lists by number of resource."""

    __slots__ = (
        "borrow",
        "children",
        "classes",
        "decayed_usage",
        "effective",
        "gates",
        "guaranteed",
        "head",
        "heads",
        "held",
        "id",
        "idle",
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
        """All that its jobs and those below it hold."""
        self.usage = [0] * size
        """What it takes of its pool: what those below hold beyond what they do not lend."""
        self.taken = [0] * size
        """What it takes of its pool by holdings alone, without promises and with all who leave."""
        self.decayed_usage = [0] * size
        """What is counted on top of that for the use of late, where shares look at it."""
        self.effective = [0] * size
        """Its quota, and at least those of all below it."""
        self.guaranteed = [0] * size
        """The part of its quota that it does not lend."""
        self.pool = [0] * size
        """Its quota less what those below it do not lend."""
        self.borrow = [UNLIMITED] * size
        self.classes: dict[Any, Any] = {}
        """Those who wait in it; kept by `queues`, as are the next."""
        self.idle: dict[Any, None] = {}
        """Classes in a whole branch that found no room, or nobody to displace."""
        self.head: Any = None
        """The first class that waits in or below it; kept by `turns`, as are the next four."""
        self.heads: list[Any] = []
        """Teams right below it in which anybody waits, by turn."""
        self.waits: dict[BlockingLimit | None, list[Any]] = {}
        """Those of them with somebody behind a hurdle, or (None) with somebody worth trying."""
        self.gates: dict[tuple[int, bool], list[int]] = {}
        """The amounts of the hurdles at this team, in order."""
        self.stamp = 0


class Tree:
    """All teams of a fleet with what they hold."""

    def __init__(self, govern: GovernanceRules, resources: Resources, now_ms: Millis) -> None:
        self.resources = resources
        size = len(resources.names)
        self.root = Team(TeamRules(id=ROOT), None, size)
        self.named: dict[TeamId, Team] = {}
        """Teams of the policy, parents included."""
        self.teams: dict[TeamId, Team] = {}
        """Where the jobs of a team are counted: below a parent, apart from its teams."""
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
        """Return a team; one that nobody named has no quota and may borrow."""
        team = self.teams.get(team_id)
        if team is None:
            team = Team(TeamRules(id=team_id), self.root, self._size)
            self.teams[team_id] = team
            self.root.children.append(team)
        return team

    def add(self, team: Team, amounts: Amounts, sign: int) -> None:
        """Count that so much more (1) or less (-1) is held or spoken for."""
        for number, amount in amounts:
            flow = held = amount * sign
            for node in team.path:
                node.held[number] += held
                before = node.usage[number]
                node.usage[number] = after = before + flow
                if kept := node.guaranteed[number]:
                    flow = max(0, after - kept) - max(0, before - kept)

    def take(self, team: Team, amounts: Amounts, sign: int) -> None:
        """Count that a job of a team really takes so much (1) or gives it back (-1)."""
        self.add(team, amounts, sign)
        for number, amount in amounts:
            flow = amount * sign
            for node in team.path:
                before = node.taken[number]
                node.taken[number] = after = before + flow
                if kept := node.guaranteed[number]:
                    flow = max(0, after - kept) - max(0, before - kept)

    def is_beyond(self, team: Team, amounts: Amounts) -> bool:
        """Return whether so much more would pass a limit while all who leave are still there."""
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
        """Return the first limit that so much more would pass."""
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
        """Return the limit that so much would pass even if nobody held anything."""
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

    def room(self, node: Team, number: int) -> int:
        """Return how much more may flow into a team before its limit is reached."""
        return node.pool[number] + node.borrow[number] - node.usage[number]

    def left(self, node: Team, number: int, of_quota: bool) -> int:
        """Return how much of a team's quota, or below its limit, is left."""
        if of_quota:
            return node.effective[number] - node.held[number]
        return self.room(node, number)

    def is_within(
        self, team: Team, amounts: Amounts, less: Mapping[int, int] = NOTHING_LESS
    ) -> bool:
        """Return whether a team would hold no more than its quota with so much more, and less."""
        governed, held, effective = self.resources.governed, team.held, team.effective
        for number, amount in amounts:
            if not governed[number] or not amount:
                continue
            if held[number] + amount - (less.get(number, 0) if less else 0) > effective[number]:
                return False
        return True

    def share(self, team: Team, amounts: Amounts) -> float:
        """Return the dominant share that a team would hold with so much more, by weight."""
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
        """Count on top of what teams hold what they used of late."""
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
        """Return the turn of a team with so much more: those within their quota go first."""
        return (0 if self.is_within(team, amounts) else 1), self.share(team, amounts)

    def path_key(self, path: Sequence[Team], amounts: Amounts) -> tuple[tuple[int, float], ...]:
        """Return the turn of a gang, from the widest of its teams down."""
        return tuple(self.fair_share_key(node, amounts) for node in reversed(path))

    def is_over(self, node: Team) -> bool:
        """Return whether a team holds more than its quota of anything."""
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
        """Work out quotas from the leaves up, as they are at this hour."""
        for team in _leaves_first(self.root):
            quota = quota_at(team.terms, Millis(now_ms + govern.timezone_ms))
            names = self.resources.names
            for number, name in enumerate(names):
                below = sum(child.effective[number] for child in team.children)
                kept = sum(_unlent(child, number) for child in team.children)
                stated = quota.get(name, 0)
                if name == ANY and ANY not in quota:
                    # Who names types alone has as much of all types together.
                    stated = sum(quota.get(each, 0) for each in names[: self.resources.types])
                if team is self.root:
                    stated = self.resources.capacity[number]
                elif team.children:
                    # What a parent has beyond its teams is for jobs of its own.
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
    """Return the part of a team's quota that nobody outside it may use."""
    return team.effective[number] - team.pool[number] + team.guaranteed[number]


def quota_at(terms: TeamRules, local_ms: Millis) -> dict[str, int]:
    """Return a team's quota at a moment of local time."""
    of_day = local_ms % DAY
    for hours, quota in terms.hours:
        if _is_within(of_day, hours.from_ms, hours.to_ms):
            return quota
    return terms.quota


def _is_within(of_day: int, from_ms: int, to_ms: int) -> bool:
    return from_ms <= of_day < to_ms or from_ms <= of_day + DAY < to_ms


def next_hours_ms(govern: GovernanceRules, now_ms: Millis) -> int | None:
    """Return the next moment after now at which a quota or the off-peak hours change."""
    edges: list[int] = []
    for hours in (*govern.off_peak, *(each for team in govern.teams for each, _ in team.hours)):
        edges += (hours.from_ms, hours.to_ms)
    if not edges:
        return None
    local = now_ms + govern.timezone_ms
    return now_ms + min((edge - local - 1) % DAY + 1 for edge in edges)


def is_off_peak(govern: GovernanceRules, now_ms: Millis) -> bool:
    """Return whether jobs that ask for off-peak hours may start now."""
    of_day = (now_ms + govern.timezone_ms) % DAY
    return not govern.off_peak or any(
        _is_within(of_day, hours.from_ms, hours.to_ms) for hours in govern.off_peak
    )


def next_off_peak_ms(govern: GovernanceRules, at_ms: int) -> int:
    """Return the first moment from one on at which off-peak jobs may start."""
    edges = {hours.from_ms % DAY for hours in govern.off_peak}
    if is_off_peak(govern, Millis(at_ms)):
        return at_ms
    of_day = (at_ms + govern.timezone_ms) % DAY
    return at_ms + min((edge - of_day) % DAY for edge in edges)


def _leaves_first(team: Team) -> Iterator[Team]:
    for child in team.children:
        yield from _leaves_first(child)
    yield team
