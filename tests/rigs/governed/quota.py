"""What teams hold and may hold, worked out the slow way from what they declared.

Nothing here is kept up to date: every question is answered from the records alone, by the
definitions. A team demands of those above it what it holds, and at least what it does not
lend; it may demand its quota and what it may borrow; all together no more than there is.
"""

from collections.abc import Iterable, Mapping, Sequence

from tenfold.fleet.fleet import FleetView, more_than
from tenfold.model.fleet.node import Node
from tenfold.model.ids import NodeId, TeamId
from tenfold.model.job.job import WHOLE, Run, Slot
from tenfold.model.job.terms import Hours
from tenfold.model.policy.governance import ANY, USD, Amounts, GovernanceRules, TeamRules
from tenfold.model.units import DAY, Millis

ALL = TeamId("")
"""Stands above all teams; jobs of teams that nobody named are right below it."""

Held = dict[TeamId, Amounts]
"""What the jobs of each team hold, without those of teams below it."""


class Quotas:
    """The limits of all teams at one moment."""

    def __init__(
        self, govern: GovernanceRules, nodes: Mapping[NodeId, Node], now_ms: Millis
    ) -> None:
        self._govern = govern
        self._known = {terms.id: terms for terms in govern.teams}
        self._of_day = (now_ms + govern.timezone_ms) % DAY
        self._below: dict[TeamId, list[TeamId]] = {ALL: [], **{name: [] for name in self._known}}
        for terms in govern.teams:
            self._below[self.parent(terms.id)].append(terms.id)
        self.capacity = _joined(govern, nodes)
        self.resources = tuple(
            dict.fromkeys(
                name
                for terms in govern.teams
                for amounts in (terms.quota, terms.borrow, terms.lend, *_by_hour(terms))
                for name in amounts
            )
        )
        """What anybody's terms name; nothing else is limited."""

    def parent(self, team: TeamId) -> TeamId:
        """Return the team right above one."""
        terms = self._known.get(team)
        above = terms.parent if terms is not None else None
        return above if above is not None and above in self._known else ALL

    def path(self, team: TeamId) -> list[TeamId]:
        """Return a team and those above it, without the one above all.

        A job of a team with others below it counts beside these, in a part of its own.
        """
        found = [team]
        while (above := self.parent(found[-1])) != ALL:
            found.append(above)
        return found

    def quota(self, team: TeamId, resource: str) -> int:
        """Return what a team and those below it are sure of."""
        stated = self._stated(team).get(resource, 0)
        return max(stated, sum(self.quota(one, resource) for one in self._below.get(team, ())))

    def own_quota(self, team: TeamId, resource: str) -> int:
        """Return what is left of it for jobs of the team itself."""
        below = sum(self.quota(one, resource) for one in self._below.get(team, ()))
        return max(0, self._stated(team).get(resource, 0) - below)

    def held_below(self, held: Held, team: TeamId, resource: str) -> int:
        """Return what a team and those below it hold."""
        own = held.get(team, {}).get(resource, 0)
        return own + sum(self.held_below(held, one, resource) for one in self._below.get(team, ()))

    def is_parent(self, team: TeamId) -> bool:
        """Return whether teams stand below one."""
        return bool(self._below.get(team))

    def excess(self, held: Held) -> dict[tuple[TeamId, str], int]:
        """Return by how much teams demand more than they may, where they do."""
        found: dict[tuple[TeamId, str], int] = {}
        for resource in self.resources:
            for team, terms in self._known.items():
                borrow = terms.borrow.get(resource)
                if borrow is not None:
                    limit = self.quota(team, resource) + borrow
                    found[team, resource] = self._demand(held, team, resource) - limit
            granted = sum(self.quota(one, resource) for one in self._below[ALL])
            # Where more is granted than there is, room is what limits all together.
            limit = max(granted, self.capacity.get(resource, 0))
            found[ALL, resource] = self._of_all(held, resource) - limit
        return {key: amount for key, amount in found.items() if amount > 0}

    def _stated(self, team: TeamId) -> Amounts:
        terms = self._known.get(team)
        if terms is None:
            return {}
        for hours, quota in terms.hours:
            if is_in(hours, self._of_day):
                return quota
        return terms.quota

    def _kept(self, team: TeamId, resource: str) -> int:
        """Return how much of its quota a team keeps from all others, used or not."""
        below = sum(self._kept(one, resource) for one in self._below[team])
        lend = self._known[team].lend.get(resource)
        return below if lend is None else max(below, self.quota(team, resource) - lend)

    def _demand(self, held: Held, team: TeamId, resource: str) -> int:
        demand = held.get(team, {}).get(resource, 0)
        for one in self._below[team]:
            demand += max(self._demand(held, one, resource), self._kept(one, resource))
        return demand

    def _of_all(self, held: Held, resource: str) -> int:
        demand = sum(
            amounts.get(resource, 0) for team, amounts in held.items() if team not in self._known
        )
        for one in self._below[ALL]:
            demand += max(self._demand(held, one, resource), self._kept(one, resource))
        return demand


def amounts_of(
    govern: GovernanceRules, nodes: Mapping[NodeId, Node], slots: Sequence[Slot]
) -> Amounts:
    """Return what slots take from quotas."""
    found: Amounts = {}
    for slot in slots:
        kind = nodes[slot.node].accelerator
        milli = slot.milli or slot.gpus * WHOLE
        found[kind] = found.get(kind, 0) + milli
    total = dict(found)
    total[ANY] = sum(found.values())
    prices = govern.usd_micros_per_gpu_hour
    total[USD] = sum(milli * prices.get(kind, 0) // WHOLE for kind, milli in found.items())
    return {name: amount for name, amount in total.items() if amount}


def held_by_teams(govern: GovernanceRules, view: FleetView, *, promised: bool = False) -> Held:
    """Return what everybody holds who runs or is being started; on request who is promised, too."""
    held: Held = {}
    for one in (*view.running.values(), *view.orders.values()):
        slots = one.slots
        if isinstance(one, Run) and one.becoming is not None:
            slots = (*slots, *more_than(one.becoming, slots))
        add_to(held, one.job.team, amounts_of(govern, view.nodes, slots))
    for job_id, reservation in view.reservations.items() if promised else ():
        amounts = amounts_of(govern, view.nodes, reservation.slots)
        add_to(held, view.pending[job_id].team, amounts)
    return held


def add_to(held: Held, team: TeamId, amounts: Amounts, sign: int = 1) -> None:
    """Count that a team holds more (1) or less (-1)."""
    mine = held.setdefault(team, {})
    for name, amount in amounts.items():
        mine[name] = mine.get(name, 0) + amount * sign


def is_in(hours: Hours, of_day: int) -> bool:
    """Return whether a moment of the day lies in a part of it, which may pass midnight."""
    return any(hours.from_ms <= moment < hours.to_ms for moment in (of_day, of_day + DAY))


def _by_hour(terms: TeamRules) -> Iterable[Amounts]:
    return (quota for _, quota in terms.hours)


def _joined(govern: GovernanceRules, nodes: Mapping[NodeId, Node]) -> Amounts:
    """Return all that there is, up or not."""
    every = [Slot(node.id, node.gpus) for node in nodes.values()]
    return amounts_of(govern, nodes, every)
