"""Those who hold room, in the order in which they may be displaced.

Holders of one family and level share a turn and stand together. Nobody is given a stand
before somebody has to wait: most jobs start and end without ever being compared.
"""

from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Iterable, Iterator
from heapq import heappop, heappush

from tenfold.decide.place.ranking import NEVER, Family, Holder, Ranking, Stand, level_at
from tenfold.model.ids import JobId, NodeId
from tenfold.model.units import Millis

LOOSE_MOST = 20_000
"""Holders kept without a stand before those that are gone are cleared away."""


class Standing:
    """The holders under one ranking. `keep_factor` below 1 lets them stay longer."""

    def __init__(self, ranking: Ranking, keep_factor: float) -> None:
        self._ranking = ranking
        self._keep_factor = keep_factor
        self._minds = ranking.minds_holders
        self._bounds = ranking.bounds
        self._compares = ranking.preempts and not ranking.live
        self.held: dict[JobId, Holder] = {}
        self.stopping: dict[JobId, Holder] = {}
        self._at: dict[NodeId, dict[JobId, Holder]] = {}
        self._settled_ms = -1
        self._loose: deque[Holder] = deque()
        """Holders without a stand, in order of start."""
        self._order: list[tuple[float, Family, int, Stand]] = []
        self._stands: dict[Family, dict[int, Stand]] = {}
        self._timers: list[tuple[int, int, Holder]] = []
        self._timed = 0

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
        if holder.stand is not None:
            self._less(holder.stand)

    def settle(self, review_ms: int) -> float:
        """Give holders their stands and levels as of a review; return the greatest new turn.

        Who started since the review stands with the next one: nobody is displaced at once.
        """
        if review_ms == self._settled_ms:
            return 0.0
        self._settled_ms = review_ms
        greatest = 0.0
        loose, held = self._loose, self.held
        while loose and loose[0].started_ms < review_ms:
            holder = loose.popleft()
            if held.get(holder.job.id) is holder:
                for slot in holder.slots:
                    self._at.setdefault(slot.node, {})[holder.job.id] = holder
                greatest = max(greatest, self._join(holder, review_ms))
        timers = self._timers
        while timers and timers[0][0] <= review_ms:
            holder = heappop(timers)[2]
            if holder.stand is not None:
                turn = self._climb(holder, holder.stand, review_ms)
                if turn > greatest:  # noqa: PLR1730 - `max` costs a call for every level reached.
                    greatest = turn
        return greatest

    def reorder(self, families: Iterable[Family] | None) -> float:
        """Place again stands whose turns changed; return the greatest new turn."""
        ranking, stands_by, greatest = self._ranking, self._stands, 0.0
        for family in list(stands_by) if families is None else families:
            stands = stands_by.get(family)
            if stands is None:
                continue
            for level, stand in stands.items():
                turn = ranking.stand_turn(family, level)
                if turn != stand.turn:
                    listed = stand.listed
                    if listed:
                        self._strike(stand)
                    stand.turn = turn
                    if listed:
                        self._list(stand)
                    greatest = max(greatest, turn)
        return greatest

    def next_change_ms(self) -> int:
        """Return when a holder next gets a stand or reaches a level, or NEVER."""
        timers = self._timers
        while timers and timers[0][2].stand is None:
            heappop(timers)
        next_ms = timers[0][0] if timers else NEVER
        loose = self._loose
        while loose and self.held.get(loose[0].job.id) is not loose[0]:
            loose.popleft()
        return min(next_ms, loose[0].started_ms + 1) if loose else next_ms

    def beside(self, node: NodeId) -> list[tuple[float, int]]:
        """Return for each stander on a node the turn that could displace it, and its GPUs."""
        keep = self._keep_factor
        return [
            (holder.stand.turn * keep, slot.gpus)
            for holder in self._at.get(node, {}).values()
            if holder.stand is not None
            for slot in holder.slots
            if slot.node == node
        ]

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
                free = [each for each in stand.holders.values() if not each.stopping]
                yield from sorted(free, key=_arrival, reverse=True)

    def _live_candidates(self, turn: float, now_ms: Millis) -> Iterator[Holder]:
        turn_of = self._ranking.holder_turn
        places = [(turn_of(each, now_ms), *_arrival(each), each) for each in self.held.values()]
        for holder_turn, _, _, holder in sorted(places, key=_place, reverse=True):
            if holder_turn * self._keep_factor <= turn:
                return
            yield holder

    def _join(self, holder: Holder, review_ms: int) -> float:
        ranking, job = self._ranking, holder.job
        family = holder.family
        if family is None:
            family = holder.family = ranking.family(job)
            holder.weight = ranking.weight(job)
        bounds, weight = self._bounds, holder.weight
        served_ms = holder.before.ran_ms + review_ms - holder.started_ms
        level = bisect_right(bounds, served_ms * weight) - 1
        if level != holder.level:
            ranking.climbed(job, family, holder.level, level)
            holder.level = level
        stands = self._stands.get(family)
        if stands is None:
            stands = self._stands[family] = {}
        stand = stands.get(level)
        if stand is None:
            stand = stands[level] = Stand(family, level, ranking.stand_turn(family, level))
        self._more(stand, holder)
        if level + 1 < len(bounds):
            self._timed += 1
            at_ms = holder.started_ms - holder.before.ran_ms - (-bounds[level + 1] // weight)
            heappush(self._timers, (at_ms, self._timed, holder))
        return stand.turn

    def _climb(self, holder: Holder, stand: Stand, review_ms: int) -> float:
        """Move a holder to the level it has reached; one alone takes its stand along."""
        ranking, bounds, family, weight = self._ranking, self._bounds, stand.family, holder.weight
        job_id, before_ms = holder.job.id, holder.before.ran_ms - holder.started_ms
        level = bisect_right(bounds, (before_ms + review_ms) * weight) - 1
        ranking.climbed(holder.job, family, holder.level, level)
        holder.level = level
        stands = self._stands[family]
        other = stands.get(level)
        if len(stand.holders) == 1:
            if stand.listed:
                self._strike(stand)
            del stands[stand.level]
            if other is None:
                other = stand
                stand.level = level
                stand.turn = ranking.stand_turn(family, level)
                stands[level] = stand
                if stand.free_to_go:
                    self._list(stand)
            else:
                self._more(other, holder)
        else:
            del stand.holders[job_id]
            if not holder.stopping:
                self._less(stand)
            if other is None:
                turn = ranking.stand_turn(family, level)
                other = stands[level] = Stand(family, level, turn)
            self._more(other, holder)
        turn = other.turn
        if level + 1 < len(bounds):
            self._timed += 1
            at_ms = -before_ms - (-bounds[level + 1] // weight)
            heappush(self._timers, (at_ms, self._timed, holder))
        return turn

    def _leave(self, holder: Holder) -> None:
        stand = holder.stand
        assert stand is not None
        holder.stand = None
        del stand.holders[holder.job.id]
        if not holder.stopping:
            self._less(stand)
        if not stand.holders:
            stands = self._stands[stand.family]
            del stands[stand.level]
            if not stands:
                del self._stands[stand.family]

    def _more(self, stand: Stand, holder: Holder) -> None:
        """Add a holder to a stand."""
        stand.holders[holder.job.id] = holder
        holder.stand = stand
        if not holder.stopping:
            stand.free_to_go += 1
            if not stand.listed:
                self._list(stand)

    def _less(self, stand: Stand) -> None:
        """Count one less who is free to go; a stand without any is not looked at."""
        stand.free_to_go -= 1
        if not stand.free_to_go:
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
