"""Those who hold room, in the order in which they may be displaced.

Holders of one family and level share a turn and stand together. Nobody is given a stand
before somebody has to wait: most jobs start and end without ever being compared.
"""

from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Iterable, Iterator
from heapq import heappop, heappush

from tenfold.decide.place.ranked.ranking import NEVER, Family, Holder, Ranking, Stand, level_at
from tenfold.model.ids import JobId, NodeId
from tenfold.model.units import Millis

LOOSE_MOST = 20_000
"""Holders kept without a stand before those that are gone are cleared away."""


class Standing:
    """The holders under one ranking. `keep_factor` below 1 lets them stay longer."""

    def __init__(self, ranking: Ranking, keep_factor: float, review_ms: int) -> None:
        self._ranking = ranking
        self._keep_factor = keep_factor
        self._review_ms = review_ms
        self._minds = ranking.minds_holders
        self._bounds = ranking.bounds
        self._levels = len(self._bounds)
        self._compares = ranking.preempts and not ranking.live
        self.held: dict[JobId, Holder] = {}
        self.stopping: dict[JobId, Holder] = {}
        self._at: dict[NodeId, dict[JobId, tuple[Holder, int]]] = {}
        """Those with a stand, and their GPUs, by node."""
        self._settled_ms = -1
        self._loose: deque[Holder] = deque()
        """Holders without a stand, in order of start."""
        self._order: list[tuple[float, Family, int, Stand]] = []
        self._stands: dict[Family, dict[int, Stand]] = {}
        self._joined: list[Stand] = []
        """Stands that anybody has joined since turns were last given."""
        self._climbers: dict[int, list[Holder]] = {}
        """Holders by the review at which they will have reached their next level."""
        self._reviews: list[int] = []
        """A heap of those reviews."""

    def add(self, holder: Holder) -> None:
        """Count a job that holds room from now on."""
        self.held[holder.job.id] = holder
        if holder.before.runs:
            holder.level = level_at(self._ranking, holder.job, holder.before.ran_ms)
        if self._compares:
            loose = self._loose
            loose.append(holder)
            if len(loose) > LOOSE_MOST:
                kept = (each for each in loose if self.held.get(each.job.id) is each)
                self._loose = deque(kept)
        if self._minds:
            self._ranking.held(holder, 1)

    def remove(self, job_id: JobId) -> Holder:
        """Let a holder go, and return it."""
        holder = self.held.pop(job_id)
        if holder.stopping:
            self.stopping.pop(job_id, None)
        if holder.stand is not None:
            self._leave(holder)
            for slot in holder.slots:
                del self._at[slot.node][job_id]
        if self._minds:
            self._ranking.held(holder, -1)
        return holder

    def stop(self, holder: Holder) -> None:
        """Note that a holder's stop is ordered: it is not displaced twice."""
        holder.stopping = True
        self.stopping[holder.job.id] = holder
        if holder.may_go:
            holder.may_go = False
            if holder.stand is not None:
                self._less(holder.stand)

    def settle(self, review_ms: int) -> None:
        """Give holders their stands and levels as of a review.

        Who started since the review stands with the next one: nobody is displaced at once.
        The turns of stands that anybody joined are left to `reorder`: what is learned from
        those who move changes them once more.
        """
        if review_ms == self._settled_ms:
            return
        self._settled_ms = review_ms
        loose, held = self._loose, self.held
        while loose and loose[0].started_ms < review_ms:
            holder = loose.popleft()
            if held.get(holder.job.id) is holder:
                self._join(holder, review_ms)
        reviews = self._reviews
        while reviews and reviews[0] <= review_ms:
            for holder in self._climbers.pop(heappop(reviews)):
                if holder.stand is not None:
                    self._climb(holder, holder.stand, review_ms)

    def reorder(self, families: Iterable[Family] | None) -> float:
        """Place stands whose turns changed, and those that were joined; return the greatest turn.

        Without families, the turns of all may have changed.
        """
        if families is None:
            return self._reorder_all()
        turn_of, stands_by, greatest = self._ranking.stand_turn, self._stands, 0.0
        for family in families:
            stands = stands_by.get(family)
            if stands is None:
                continue
            for level, stand in stands.items():
                turn = turn_of(family, level)
                if turn != stand.turn or not stand.placed:
                    self._place(stand, turn)
                    greatest = max(greatest, turn)
        for stand in self._joined:
            if not stand.placed:
                turn = turn_of(stand.family, stand.level)
                self._place(stand, turn)
                greatest = max(greatest, turn)
        self._joined.clear()
        return greatest

    def _reorder_all(self) -> float:
        """Give every stand its turn and place anew: to sort once is less than to move each."""
        turn_of, greatest = self._ranking.stand_turn, 0.0
        order: list[tuple[float, Family, int, Stand]] = []
        for family, stands in self._stands.items():
            for level, stand in stands.items():
                turn = turn_of(family, level)
                if turn != stand.turn or not stand.placed:
                    stand.turn, stand.placed = turn, True
                    greatest = max(greatest, turn)
                stand.listed = stand.free_to_go > 0
                if stand.listed:
                    order.append((turn, family, level, stand))
        order.sort()
        self._order = order
        self._joined.clear()
        return greatest

    def _place(self, stand: Stand, turn: float) -> None:
        """Give a stand its turn, and its place where anybody in it is free to go."""
        if stand.listed and turn != stand.turn:
            self._strike(stand)
        stand.turn, stand.placed = turn, True
        if stand.free_to_go and not stand.listed:
            self._list(stand)

    def next_change_ms(self) -> int:
        """Return when a holder next gets a stand, or the review of its next level, or NEVER."""
        reviews, climbers = self._reviews, self._climbers
        while reviews:
            waiting = climbers[reviews[0]]
            while waiting and waiting[-1].stand is None:
                waiting.pop()
            if waiting:
                break
            del climbers[heappop(reviews)]
        next_ms = reviews[0] if reviews else NEVER
        loose = self._loose
        while loose and self.held.get(loose[0].job.id) is not loose[0]:
            loose.popleft()
        return min(next_ms, loose[0].started_ms + 1) if loose else next_ms

    def beside(self, node: NodeId) -> list[tuple[float, int]]:
        """Return for each stander on a node the turn that could displace it, and its GPUs."""
        keep = self._keep_factor
        return [
            (holder.stand.turn * keep, gpus)
            for holder, gpus in self._at.get(node, {}).values()
            if holder.may_go and holder.stand is not None
        ]

    def worst(self) -> float:
        """Return the turn below which a waiting job may displace anybody at all."""
        return self._order[-1][0] * self._keep_factor if self._order else 0.0

    def limit(self, turn: float) -> float:
        """Return the turn below which a waiting job may displace holders of this one."""
        return turn * self._keep_factor

    def candidates(self, turn: float, now_ms: Millis) -> Iterator[Holder]:
        """Yield those whom a job of this turn may displace, worst first."""
        keep = self._keep_factor
        if self._ranking.live:
            yield from self._live_candidates(turn, now_ms)
            return
        for _, _, _, stand in reversed(self._order):
            if stand.turn * keep <= turn:
                return
            if len(stand.holders) == 1:
                yield from stand.holders.values()
            else:
                free = [each for each in stand.holders.values() if each.may_go]
                yield from sorted(free, key=_arrival, reverse=True)

    def _live_candidates(self, turn: float, now_ms: Millis) -> Iterator[Holder]:
        turn_of = self._ranking.holder_turn
        places = [(turn_of(each, now_ms), *_arrival(each), each) for each in self.held.values()]
        for holder_turn, _, _, holder in sorted(places, key=_place, reverse=True):
            if holder_turn * self._keep_factor <= turn:
                return
            yield holder

    def _join(self, holder: Holder, review_ms: int) -> None:
        ranking, job = self._ranking, holder.job
        family = holder.family
        if family is None:
            family = holder.family = ranking.family(job)
            holder.weight = ranking.weight(job)
        served_ms = holder.before.ran_ms + review_ms - holder.started_ms
        level = bisect_right(self._bounds, served_ms * holder.weight) - 1
        if level != holder.level:
            ranking.climbed(job, family, holder.level, level)
            holder.level = level
        stands = self._stands.get(family)
        if stands is None:
            stands = self._stands[family] = {}
        stand = stands.get(level)
        if stand is None:
            stand = stands[level] = Stand(family, level)
        self._more(stand, holder)
        self._time(holder, level)
        for slot in holder.slots:
            beside = self._at.get(slot.node)
            if beside is None:
                beside = self._at[slot.node] = {}
            beside[job.id] = (holder, slot.gpus)

    def _climb(self, holder: Holder, stand: Stand, review_ms: int) -> None:
        """Move a holder to the level it has reached; one alone takes its stand along."""
        family = stand.family
        served_ms = holder.before.ran_ms + review_ms - holder.started_ms
        level = bisect_right(self._bounds, served_ms * holder.weight) - 1
        self._ranking.climbed(holder.job, family, holder.level, level)
        holder.level = level
        stands = self._stands[family]
        other = stands.get(level)
        if len(stand.holders) == 1:
            if stand.listed:
                self._strike(stand)
            del stands[stand.level]
            if other is None:
                stand.level = level
                stands[level] = stand
                if stand.placed:
                    stand.placed = False
                    self._joined.append(stand)
            else:
                self._more(other, holder)
        else:
            del stand.holders[holder.job.id]
            if holder.may_go:
                self._less(stand)
            if other is None:
                other = stands[level] = Stand(family, level)
            self._more(other, holder)
        self._time(holder, level)

    def _time(self, holder: Holder, level: int) -> None:
        """Note the review at which a holder will have reached its next level."""
        level += 1
        if level < self._levels:
            every_ms = self._review_ms
            left_ms = -(-self._bounds[level] // holder.weight) - holder.before.ran_ms
            review_ms = -(-(holder.started_ms + left_ms) // every_ms) * every_ms
            climbers = self._climbers.get(review_ms)
            if climbers is None:
                climbers = self._climbers[review_ms] = []
                heappush(self._reviews, review_ms)
            climbers.append(holder)

    def _leave(self, holder: Holder) -> None:
        stand = holder.stand
        assert stand is not None
        holder.stand = None
        del stand.holders[holder.job.id]
        if holder.may_go:
            self._less(stand)
        if not stand.holders:
            stands = self._stands[stand.family]
            del stands[stand.level]
            if not stands:
                del self._stands[stand.family]

    def _more(self, stand: Stand, holder: Holder) -> None:
        """Add a holder to a stand, which gets its turn and its place with `reorder`."""
        stand.holders[holder.job.id] = holder
        holder.stand = stand
        if stand.placed:
            stand.placed = False
            self._joined.append(stand)
        if holder.may_go:
            stand.free_to_go += 1

    def _less(self, stand: Stand) -> None:
        """Count one less who is free to go; a stand without any is not looked at."""
        stand.free_to_go -= 1
        if not stand.free_to_go and stand.listed:
            self._strike(stand)

    def _list(self, stand: Stand) -> None:
        stand.listed = True
        insort(self._order, (stand.turn, stand.family, stand.level, stand))

    def _strike(self, stand: Stand) -> None:
        stand.listed = False
        del self._order[bisect_left(self._order, (stand.turn, stand.family, stand.level))]


def _arrival(holder: Holder) -> tuple[int, int]:
    return holder.job.submitted_ms, holder.job.seq


def _place(place: tuple[float, int, int, Holder]) -> tuple[float, int, int]:
    return place[:3]
