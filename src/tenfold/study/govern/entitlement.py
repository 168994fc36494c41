"""What teams are entitled to at each moment of a run, and how much of it they received.

Fairness of waits or slowdowns says little about a shared fleet: a team that requests four times
its share has to wait, and a one-minute job that waits an hour outweighs all others. So a team is
measured by its entitlement. At each moment the fleet is divided among the teams with demand: up
to quota first, the rest by weight, level by level of the team tree, and never more than a team's
jobs request. What a team holds beyond that is borrowed and does not count; what it holds below
that is its shortfall.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from msgspec import Struct

from tenfold.model.ids import TeamId
from tenfold.model.job.job import WHOLE, Job
from tenfold.model.policy.governance import ANY, USD, Amounts, GovernanceRules, TeamRules
from tenfold.model.units import HOUR
from tenfold.sim.measure.meters import Meters, requested_milli
from tenfold.sim.measure.timeline import spans

Change = tuple[int, str, int, int, int]
"""(time, team, change in GPUs requested, in GPUs held, in jobs waiting)."""


class TeamEntitlement(Struct, frozen=True, kw_only=True):
    """One team's entitlement over a run, and what it received, in GPU-hours."""

    entitled: float
    got: float
    """Received while entitled to it."""
    beyond_quota: float
    """Held beyond its quota."""

    @property
    def served(self) -> float:
        """Share of its entitlement that it received; 1 if it was entitled to nothing."""
        return self.got / self.entitled if self.entitled else 1.0


class Entitlements(Struct, frozen=True, kw_only=True):
    """Entitlements of all teams, and how full the fleet was while any job waited."""

    teams: dict[str, TeamEntitlement]
    allocated_waiting: float
    """Share of GPUs allocated while jobs waited; 1 if none ever waited."""

    @property
    def jain(self) -> float:
        """Jain's index of the shares of entitlement received: 1 is even."""
        return jain([team.served for team in self.teams.values() if team.entitled])


def jain(values: Sequence[float]) -> float:
    """Return Jain's fairness index: 1 if all are equal, 1/n if one has everything."""
    squares = sum(value * value for value in values)
    return sum(values) ** 2 / (len(values) * squares) if squares else 1.0


class EntitlementModel:
    """Divides a fleet by the rules of a policy. Quotas of all types are added up."""

    def __init__(self, govern: GovernanceRules, teams: Iterable[str], gpus: int) -> None:
        self._milli = gpus * WHOLE
        self._root = _Node(TeamRules(id=TeamId("")))
        self._leaves: dict[str, _Node] = {}
        known = {str(terms.id): terms for terms in govern.teams}
        nodes: dict[str, _Node] = {}
        for name in known:
            self._add_team(name, known, nodes)
        for name in dict.fromkeys((*known, *teams)):
            node = nodes.get(name)
            if node is None or node.below:
                # Jobs of a parent team, or of an undeclared one, count as one more child team.
                above = node or self._root
                node = _Node(TeamRules(id=TeamId(name)))
                above.below.append(node)
            self._leaves[name] = node
        self._root.add_up()

    def quota_milli(self, team: str) -> int:
        """Return the quota of a team's own jobs."""
        return self._leaves[team].quota

    def entitled_milli(self, requested_milli: Mapping[str, int]) -> dict[str, float]:
        """Return what each team is entitled to for a given demand."""
        if sum(requested_milli.values()) <= self._milli:
            return {team: float(milli) for team, milli in requested_milli.items()}
        for team, leaf in self._leaves.items():
            leaf.requested = requested_milli.get(team, 0)
        self._root.demand()
        self._root.receive(float(self._milli))
        return {team: self._leaves[team].share for team in requested_milli}

    def _add_team(
        self, name: str, known: Mapping[str, TeamRules], nodes: dict[str, "_Node"]
    ) -> "_Node":
        if name not in nodes:
            terms = known[name]
            above = self._root
            if terms.parent is not None and terms.parent in known:
                above = self._add_team(terms.parent, known, nodes)
            nodes[name] = _Node(terms)
            above.below.append(nodes[name])
        return nodes[name]


class _Node:
    """A team or a parent of teams, while the fleet is divided."""

    def __init__(self, terms: TeamRules) -> None:
        self.weight = terms.weight
        self.quota = _milli(terms.quota)
        self.below: list[_Node] = []
        self.requested = 0
        self.share = 0.0

    def add_up(self) -> None:
        """Raise quotas to cover the children, and give a parent's own jobs the remainder."""
        for node in self.below:
            node.add_up()
        stated = sum(node.quota for node in self.below)
        if self.below and self.quota > stated:
            self.below[-1].quota += self.quota - stated
        self.quota = max(self.quota, stated)

    def demand(self) -> int:
        """Return the demand of this team and all below it."""
        if self.below:
            self.requested = sum(node.demand() for node in self.below)
        return self.requested

    def receive(self, amount: float) -> None:
        """Divide an amount among the children: quotas first, the rest by weight."""
        self.share = amount
        if not self.below:
            return
        guaranteed = water_fill(
            amount,
            [min(node.requested, node.quota) for node in self.below],
            [node.quota for node in self.below],
        )
        more = water_fill(
            amount - sum(guaranteed),
            [node.requested - part for node, part in zip(self.below, guaranteed, strict=True)],
            [node.weight for node in self.below],
        )
        for node, first, rest in zip(self.below, guaranteed, more, strict=True):
            node.receive(first + rest)


def water_fill(amount: float, most: Sequence[float], weights: Sequence[float]) -> list[float]:
    """Divide an amount by weight, with caps; what one cannot use goes to the others."""
    parts = [0.0] * len(most)
    active = [place for place, weight in enumerate(weights) if weight > 0 and most[place] > 0]
    active.sort(key=lambda place: (most[place] / weights[place], place))
    left, weight_left = amount, float(sum(weights[place] for place in active))
    for place in active:
        part = min(most[place], left * weights[place] / weight_left)
        parts[place] = part
        left = max(0.0, left - part)
        weight_left -= weights[place]
    return parts


def measure_entitlements(
    govern: GovernanceRules, jobs: Sequence[Job], meters: Meters, gpus: int
) -> Entitlements:
    """Return what each team was entitled to and received under the rules of a policy."""
    teams = list(dict.fromkeys(str(job.team) for job in jobs))
    model = EntitlementModel(govern, teams, gpus)
    totals = {team: _TeamTotals(model.quota_milli(team)) for team in teams}
    requested = dict.fromkeys(teams, 0)
    waiting = waited_ms = used = 0
    entitled: dict[str, float] = {}
    for (at_ms, team, ask, hold, wait), following in pairwise(_changes(jobs, meters)):
        totals[team].held += hold
        waiting += wait
        if ask:
            requested[team] += ask
            entitled = {}
        if not (span_ms := following[0] - at_ms):
            continue
        entitled = entitled or model.entitled_milli(requested)
        for name, total in totals.items():
            total.add(entitled[name], span_ms)
        if waiting > 0:
            waited_ms += span_ms
            used += span_ms * sum(total.held for total in totals.values())
    full = gpus * WHOLE * waited_ms
    return Entitlements(
        teams={team: totals[team].got() for team in sorted(teams)},
        allocated_waiting=used / full if full else 1.0,
    )


class _TeamTotals:
    """Running totals of one team, in milli-GPU milliseconds."""

    def __init__(self, quota: int) -> None:
        self._quota = quota
        self.held = 0
        self._entitled = self._got = self._beyond = 0.0

    def add(self, entitled: float, span_ms: int) -> None:
        self._entitled += entitled * span_ms
        self._got += min(float(self.held), entitled) * span_ms
        self._beyond += max(0, self.held - self._quota) * span_ms

    def got(self) -> TeamEntitlement:
        unit = WHOLE * HOUR
        return TeamEntitlement(
            entitled=self._entitled / unit,
            got=self._got / unit,
            beyond_quota=self._beyond / unit,
        )


def _changes(jobs: Sequence[Job], meters: Meters) -> list[Change]:
    """Return every change in order of time; rejected jobs do not count."""
    rejected = {job.id for job in meters.refused_jobs}
    changes: list[Change] = [
        (job.submitted_ms, job.team, requested_milli(job), 0, 1)
        for job in jobs
        if job.id not in rejected
    ]
    for job, _, _, _, end in meters.ends:
        changes.append((end, job.team, -requested_milli(job), 0, -1))
    for job, slots, start, end in spans(meters):
        held = sum(slot.milli or slot.gpus * WHOLE for slot in slots)
        changes += ((start, job.team, 0, held, -1), (end, job.team, 0, -held, 1))
    changes.sort(key=lambda change: change[0])
    return changes


def _milli(quota: Amounts) -> int:
    if ANY in quota:
        return quota[ANY]
    return sum(amount for name, amount in quota.items() if name != USD)
