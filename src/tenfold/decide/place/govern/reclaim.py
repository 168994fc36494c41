"""Whom to displace: the cheapest of those who may be, on nodes where it really helps.

A job may displace another where it is within its quota and the other has borrowed, or
where both are of one team and its priority is higher. A stop costs the work since the last
checkpoint and a restart, for every GPU it holds. The search goes node by node, and where
the members of a gang must stand together domain by domain; then everybody is let off
without whom it works as well. Nobody is displaced in vain.
"""

from collections.abc import Iterable, Iterator, Sequence

from tenfold.decide.place.govern.asks import Amounts
from tenfold.decide.place.govern.holdings import PLAIN, Holding, Holdings, lost_ms
from tenfold.decide.place.govern.lines import Option
from tenfold.decide.place.govern.tree import Team, Tree
from tenfold.fleet.capacity import Bank, Seat
from tenfold.fleet.fleet import NEVER_RAN, FleetView
from tenfold.fleet.topology import TopologyCapacity
from tenfold.model.govern import Govern
from tenfold.model.job import Job, Shape
from tenfold.model.units import Millis
from tenfold.model.where import Level


class Reclaim:
    """The search for those who must give way."""

    def __init__(
        self, govern: Govern, tree: Tree, holdings: Holdings, capacity: TopologyCapacity
    ) -> None:
        self._govern = govern
        self._tree = tree
        self._holdings = holdings
        self._capacity = capacity

    def victims(
        self, view: FleetView, job: Job, team: Team, option: Option, now_ms: Millis
    ) -> list[Holding] | None:
        """Return those whose going lets a job start, cheapest first; None where none do."""
        if now_ms - job.submitted_ms < self._govern.delay_ms:
            return None
        priced = sorted(
            (self._price(each, now_ms), -each.started_ms, -each.job.seq, each)
            for each in self._may_go(view, job, team, option.amounts, now_ms)
        )
        candidates = [(price, each) for price, _, _, each in priced]
        for_room = self._for_room(job.shape, option, candidates) if candidates else None
        if for_room is None:
            return None
        trial = _Trial(self._tree, self._capacity, job.shape, team, option)
        try:
            return _chosen(trial, for_room, candidates)
        finally:
            trial.end()

    def _may_go(
        self, view: FleetView, job: Job, team: Team, amounts: Amounts, now_ms: Millis
    ) -> Iterator[Holding]:
        tree, holdings = self._tree, self._holdings
        seen: dict[int, None] = {}
        for each in holdings.of(team):
            if each.job.priority < job.priority and self._is_free(view, each, now_ms):
                seen[id(each)] = None
                yield each
        for mine in team.path:
            above = mine.parent
            if above is None or not tree.is_within(mine, amounts):
                continue
            for other in above.children:
                if other is mine or not tree.is_over(other):
                    continue
                for each in holdings.borrowed(other):
                    if id(each) not in seen and self._is_free(view, each, now_ms):
                        seen[id(each)] = None
                        yield each

    def _is_free(self, view: FleetView, holding: Holding, now_ms: Millis) -> bool:
        """Return whether a holding may be stopped at all, now."""
        if holding.stopping or not (holding.job.terms or PLAIN).preemptible:
            return False
        if now_ms < self._holdings.ripe_ms(holding):
            return False
        run = view.running.get(holding.job.id)
        if run is None or run.becoming is not None:
            return False
        most = self._govern.stops_per_job
        return not most or view.past.get(holding.job.id, NEVER_RAN).runs < most

    def _price(self, holding: Holding, now_ms: Millis) -> int:
        return holding.gpus_milli * (lost_ms(holding, now_ms) + self._govern.restart_cost_ms)

    def _for_room(
        self, shape: Shape, option: Option, candidates: Sequence[tuple[int, Holding]]
    ) -> list[Holding] | None:
        """Return some candidates without whom the shape would find room, or None."""
        fits = self._capacity.claim_in(shape, option.accelerator)
        if fits is not None:
            self._capacity.give(fits, shape)
            return []
        best: tuple[int, list[Holding]] | None = None
        for seat in self._capacity.seats_in(shape, option.accelerator):
            found = _NodeSearch(self._capacity, seat, shape, candidates).cheapest()
            if found is not None and (best is None or found[0] < best[0]):
                best = found
        return None if best is None else best[1]


class _NodeSearch:
    """Choose the nodes of a gang so that those on them who must go cost least."""

    def __init__(
        self,
        capacity: TopologyCapacity,
        seat: Seat,
        shape: Shape,
        candidates: Sequence[tuple[int, Holding]],
    ) -> None:
        self._capacity = capacity
        self._bank: Bank = seat.bank
        self._gpus = max(1, seat.gpus)
        self._wanted = seat.members + (seat.rest > 0)
        where = shape.where
        self._level: Level = where.within if where is not None and where.how == "required" else ""
        self._on: dict[int, list[tuple[int, int, Holding]]] = {}
        """By node: (price, GPUs there, who), cheapest first."""
        for price, each in candidates:
            for slot in each.slots:
                bank, number = capacity.place[slot.node]
                if bank is self._bank and bank.is_open[number]:
                    self._on.setdefault(number, []).append((price, max(1, slot.gpus), each))

    def cheapest(self) -> tuple[int, list[Holding]] | None:
        """Return (cost, who), or None where even all of them are not enough."""
        best: tuple[int, list[Holding]] | None = None
        for ready, numbers in self._domains():
            found = self._in_domain(ready, numbers)
            if found is not None and (best is None or found[0] < best[0]):
                best = found
        return best

    def _domains(self) -> Iterator[tuple[int, list[int]]]:
        """Yield for each domain that may do how many nodes have room, and who could make some."""
        free, is_open, gpus = self._bank.free, self._bank.is_open, self._gpus
        if not self._level:
            numbers = [number for number in self._on if free[number] < gpus]
            yield self._bank.with_room(gpus), numbers
            return
        ready: dict[str, int] = {}
        makers: dict[str, list[int]] = {}
        for number, name in enumerate(self._bank.names):
            domain = self._capacity.domain_of(name, self._level)
            if is_open[number] and free[number] >= gpus:
                ready[domain] = ready.get(domain, 0) + 1
            elif number in self._on:
                makers.setdefault(domain, []).append(number)
        for domain, numbers in makers.items():
            yield ready.get(domain, 0), numbers

    def _in_domain(self, ready: int, numbers: Iterable[int]) -> tuple[int, list[Holding]] | None:
        wanted = self._wanted - ready
        going: dict[int, Holding] = {}
        left = list(numbers)
        spent = 0
        while wanted > 0:
            best: tuple[int, int, list[Holding]] | None = None
            for number in left:
                found = self._on_node(number, going)
                if found is not None and (best is None or (found[0], number) < best[:2]):
                    best = (found[0], number, found[1])
            if best is None:
                return None
            spent += best[0]
            left.remove(best[1])
            for each in best[2]:
                going[id(each)] = each
            wanted -= 1
        return spent, list(going.values())

    def _on_node(self, number: int, going: dict[int, Holding]) -> tuple[int, list[Holding]] | None:
        """Return (cost, who) to make room on a node, beside those who go already."""
        short = self._gpus - self._bank.free[number]
        for _, gpus, each in self._on[number]:
            if id(each) in going:
                short -= gpus
        spent = 0
        chosen: list[Holding] = []
        for price, gpus, each in self._on[number]:
            if short <= 0:
                break
            if id(each) not in going:
                chosen.append(each)
                spent += price
                short -= gpus
        return (spent, chosen) if short <= 0 else None


class _Trial:
    """Who is away for a trial, on the index and in the tree; all come back in the end."""

    def __init__(
        self, tree: Tree, capacity: TopologyCapacity, shape: Shape, team: Team, option: Option
    ) -> None:
        self._tree = tree
        self._capacity = capacity
        self._shape = shape
        self._team = team
        self._option = option
        self.away: list[Holding] = []

    def send(self, holding: Holding) -> None:
        """Try it without one more."""
        self.away.append(holding)
        self._tree.add(holding.team, holding.amounts, -1)
        self._capacity.give(holding.slots, holding.job.shape)

    def within_limits(self) -> bool:
        """Return whether quotas would let the job in."""
        return self._tree.obstacle(self._team, self._option.amounts) is None

    def works(self) -> bool:
        """Return whether the job would start."""
        if not self.within_limits():
            return False
        slots = self._capacity.claim_in(self._shape, self._option.accelerator)
        if slots is not None:
            self._capacity.give(slots, self._shape)
        return slots is not None

    def back(self, holding: Holding) -> None:
        """Put one back."""
        self.away.remove(holding)
        self._capacity.take(holding.slots, holding.job.shape)
        self._tree.add(holding.team, holding.amounts, 1)

    def end(self) -> None:
        """Put everybody back."""
        for holding in list(self.away):
            self.back(holding)


def _chosen(
    trial: _Trial, for_room: Sequence[Holding], candidates: Sequence[tuple[int, Holding]]
) -> list[Holding] | None:
    """Send those who must go for room, then the cheapest until quotas let the job in."""
    for each in for_room:
        trial.send(each)
    if not trial.within_limits():
        taken = {id(each) for each in for_room}
        for _, each in candidates:
            if id(each) not in taken:
                trial.send(each)
                if trial.within_limits():
                    break
    if not trial.works():
        return None
    # Let off, dearest first, everybody without whom it works as well.
    for each in reversed(list(trial.away)):
        trial.back(each)
        if not trial.works():
            trial.send(each)
    return list(trial.away)
