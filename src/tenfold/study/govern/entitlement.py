"""What teams deserve at each moment of a run, and how much of it they got.

Evenness of waits or of slowdowns says little about a shared fleet: who asks for four times
his part waits, and a job of a minute that waits for an hour outweighs all others. So a team
is measured by what it may claim. At each moment the fleet is dealt out to those who want
GPUs: everybody up to his quota first, the rest by weight, level by level of the tree, and
nobody is dealt more than his jobs ask for. What a team held beyond that was borrowed and
counts for nobody; what it held less was kept from it.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from msgspec import Struct

from tenfold.model.ids import TeamId
from tenfold.model.job.job import WHOLE, Job
from tenfold.model.policy.governance import ANY, USD, Amounts, GovernanceRules, TeamRules
from tenfold.model.units import HOUR
from tenfold.sim.measure.meters import Meters, asked_milli
from tenfold.sim.measure.timeline import spans

Change = tuple[int, str, int, int, int]
"""(when, whose, change of what is asked for, of what is held, of jobs that wait)."""


class Got(Struct, frozen=True, kw_only=True):
    """What one team deserved over a run, and what came of that. GPU-hours."""

    deserved: float
    got: float
    """Of what it deserved, when it deserved it."""
    beyond_quota: float
    """Held beyond its quota, whoever deserved it."""

    @property
    def served(self) -> float:
        """The part of what it deserved that it got; 1 where it deserved nothing."""
        return self.got / self.deserved if self.deserved else 1.0


class Dealt(Struct, frozen=True, kw_only=True):
    """What all teams got, and how full the fleet was while anybody waited."""

    teams: dict[str, Got]
    allocated_waiting: float
    """Share of the GPUs that were held while jobs waited; 1 where none ever did."""

    @property
    def jain(self) -> float:
        """Jain's index of the parts that teams got of what they deserved: 1 is even."""
        return jain([team.served for team in self.teams.values() if team.deserved])


def jain(values: Sequence[float]) -> float:
    """Return Jain's index of evenness: 1 where all are equal, 1/n where one has everything."""
    squares = sum(value * value for value in values)
    return sum(values) ** 2 / (len(values) * squares) if squares else 1.0


class Deal:
    """Deals a fleet out by the rules of a policy. Quotas of all types are added up."""

    def __init__(self, govern: GovernanceRules, teams: Iterable[str], gpus: int) -> None:
        self._milli = gpus * WHOLE
        self._root = _Node(TeamRules(id=TeamId("")))
        self._leaves: dict[str, _Node] = {}
        known = {str(terms.id): terms for terms in govern.teams}
        nodes: dict[str, _Node] = {}
        for name in known:
            self._plant(name, known, nodes)
        for name in dict.fromkeys((*known, *teams)):
            node = nodes.get(name)
            if node is None or node.below:
                # Jobs of a parent, or of a team that nobody named, stand beside the others.
                above = node or self._root
                node = _Node(TeamRules(id=TeamId(name)))
                above.below.append(node)
            self._leaves[name] = node
        self._root.add_up()

    def quota_milli(self, team: str) -> int:
        """Return the quota of a team's own jobs."""
        return self._leaves[team].quota

    def deal(self, asked_milli: Mapping[str, int]) -> dict[str, float]:
        """Return what each team deserves of the fleet while it asks for so much."""
        if sum(asked_milli.values()) <= self._milli:
            return {team: float(asked) for team, asked in asked_milli.items()}
        for team, leaf in self._leaves.items():
            leaf.asked = asked_milli.get(team, 0)
        self._root.ask()
        self._root.receive(float(self._milli))
        return {team: self._leaves[team].dealt for team in asked_milli}

    def _plant(
        self, name: str, known: Mapping[str, TeamRules], nodes: dict[str, "_Node"]
    ) -> "_Node":
        if name not in nodes:
            terms = known[name]
            above = self._root
            if terms.parent is not None and terms.parent in known:
                above = self._plant(terms.parent, known, nodes)
            nodes[name] = _Node(terms)
            above.below.append(nodes[name])
        return nodes[name]


class _Node:
    """A team or a parent of teams, while the fleet is dealt out."""

    def __init__(self, terms: TeamRules) -> None:
        self.weight = terms.weight
        self.quota = _milli(terms.quota)
        self.below: list[_Node] = []
        self.asked = 0
        self.dealt = 0.0

    def add_up(self) -> None:
        """Let quotas cover those below, and give jobs of a parent what it has beyond them."""
        for node in self.below:
            node.add_up()
        stated = sum(node.quota for node in self.below)
        if self.below and self.quota > stated:
            self.below[-1].quota += self.quota - stated
        self.quota = max(self.quota, stated)

    def ask(self) -> int:
        """Return what it and all below it ask for."""
        if self.below:
            self.asked = sum(node.ask() for node in self.below)
        return self.asked

    def receive(self, amount: float) -> None:
        """Take an amount and deal it out below: quotas first, the rest by weight."""
        self.dealt = amount
        if not self.below:
            return
        sure = filled(
            amount,
            [min(node.asked, node.quota) for node in self.below],
            [node.quota for node in self.below],
        )
        more = filled(
            amount - sum(sure),
            [node.asked - part for node, part in zip(self.below, sure, strict=True)],
            [node.weight for node in self.below],
        )
        for node, first, rest in zip(self.below, sure, more, strict=True):
            node.receive(first + rest)


def filled(amount: float, most: Sequence[float], weights: Sequence[float]) -> list[float]:
    """Deal an amount out by weight; what somebody cannot use goes to the others."""
    parts = [0.0] * len(most)
    taking = [place for place, weight in enumerate(weights) if weight > 0 and most[place] > 0]
    taking.sort(key=lambda place: (most[place] / weights[place], place))
    left, weight_left = amount, float(sum(weights[place] for place in taking))
    for place in taking:
        part = min(most[place], left * weights[place] / weight_left)
        parts[place] = part
        left = max(0.0, left - part)
        weight_left -= weights[place]
    return parts


def dealt(govern: GovernanceRules, jobs: Sequence[Job], meters: Meters, gpus: int) -> Dealt:
    """Return what each team of a run deserved and got under the rules of a policy."""
    teams = list(dict.fromkeys(str(job.team) for job in jobs))
    deal = Deal(govern, teams, gpus)
    tallies = {team: _Tally(deal.quota_milli(team)) for team in teams}
    asked = dict.fromkeys(teams, 0)
    waiting = waited_ms = used = 0
    deserved: dict[str, float] = {}
    for (at_ms, team, ask, hold, wait), then in pairwise(_changes(jobs, meters)):
        tallies[team].held += hold
        waiting += wait
        if ask:
            asked[team] += ask
            deserved = {}
        if not (lasts_ms := then[0] - at_ms):
            continue
        deserved = deserved or deal.deal(asked)
        for name, tally in tallies.items():
            tally.add(deserved[name], lasts_ms)
        if waiting > 0:
            waited_ms += lasts_ms
            used += lasts_ms * sum(tally.held for tally in tallies.values())
    full = gpus * WHOLE * waited_ms
    return Dealt(
        teams={team: tallies[team].got() for team in sorted(teams)},
        allocated_waiting=used / full if full else 1.0,
    )


class _Tally:
    """Running sums of one team, in thousandths of a GPU times ms."""

    def __init__(self, quota: int) -> None:
        self._quota = quota
        self.held = 0
        self._deserved = self._got = self._beyond = 0.0

    def add(self, deserved: float, lasts_ms: int) -> None:
        self._deserved += deserved * lasts_ms
        self._got += min(float(self.held), deserved) * lasts_ms
        self._beyond += max(0, self.held - self._quota) * lasts_ms

    def got(self) -> Got:
        unit = WHOLE * HOUR
        return Got(
            deserved=self._deserved / unit,
            got=self._got / unit,
            beyond_quota=self._beyond / unit,
        )


def _changes(jobs: Sequence[Job], meters: Meters) -> list[Change]:
    """Return all that changed, in order of time; jobs turned away never count."""
    away = {job.id for job in meters.turned_away}
    changes: list[Change] = [
        (job.submitted_ms, job.team, asked_milli(job), 0, 1) for job in jobs if job.id not in away
    ]
    for job, _, _, _, end in meters.ends:
        changes.append((end, job.team, -asked_milli(job), 0, -1))
    for job, slots, start, end in spans(meters):
        held = sum(slot.milli or slot.gpus * WHOLE for slot in slots)
        changes += ((start, job.team, 0, held, -1), (end, job.team, 0, -held, 1))
    changes.sort(key=lambda change: change[0])
    return changes


def _milli(quota: Amounts) -> int:
    if ANY in quota:
        return quota[ANY]
    return sum(amount for name, amount in quota.items() if name != USD)
