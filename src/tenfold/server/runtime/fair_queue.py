"""Requests wait in line, each team in its own, so that one team's storm leaves others answered.

A few requests are worked on at a time. A free seat goes to the team that holds the fewest, and
within a team to the token that holds the fewest; among equals, to the one that waits longest since
its last turn. No team holds more than its share of the seats, so one is free for the others at any
moment. A team whose line is full is refused.
"""

import asyncio
from collections import Counter, deque
from contextvars import ContextVar
from itertools import count

from tenfold.server.runtime.budgets import Exceeded, Holder, Limits

_Line = deque[asyncio.Future[None]]


class QueueFull(Exception):
    """The line of a token or team is full."""

    def __init__(self, exceeded: Exceeded) -> None:
        super().__init__(exceeded)
        self.exceeded = exceeded


class Seat:
    """The right to be worked on; released once, however often that is asked."""

    def __init__(self, queue: "FairQueue", holder: Holder) -> None:
        self._queue: FairQueue | None = queue
        self._holder = holder

    def release(self) -> None:
        """Let the next request begin."""
        queue, self._queue = self._queue, None
        if queue is not None:
            queue.release(self._holder)


class FairQueue:
    """Seats, and the lines of those that wait for one."""

    def __init__(self, seats: int, waiting: int, limits: Limits) -> None:
        self.seats = seats
        self._team_seats = max(1, int(seats * limits.team_share))
        self._team_waiting = int(limits.share(waiting, limits.team_share))
        self._token_waiting = int(limits.share(waiting, limits.token_share))
        self._most_waiting = waiting
        self._tokens: Counter[Holder] = Counter()
        self._teams: Counter[str] = Counter()
        self._lines: dict[str, dict[Holder, _Line]] = {}
        self._turns = count(1)
        self._turn: dict[Holder | str, int] = {}
        self.busy = 0
        self.waiting = 0

    async def seat(self, holder: Holder) -> Seat:
        """Return a seat as soon as one is free; raise `QueueFull` where too many wait already."""
        if self.busy < self.seats and self._may_sit(holder.team) and holder.team not in self._lines:
            self._sit(holder)
            return Seat(self, holder)
        exceeded = self._exceeded(holder)
        if exceeded is not None:
            raise QueueFull(exceeded)
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._lines.setdefault(holder.team, {}).setdefault(holder, deque()).append(turn)
        self.waiting += 1
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                self._leave(holder, turn)
            else:
                self.release(holder)
            raise
        return Seat(self, holder)

    def release(self, holder: Holder) -> None:
        """Free a seat, and give it to the next in line."""
        self._count(holder, -1)
        while self.busy < self.seats:
            teams = [team for team in self._lines if self._may_sit(team)]
            if not teams:
                return
            team = min(teams, key=lambda one: (self._teams[one], self._turn.get(one, 0)))
            lines = self._lines[team]
            first = min(lines, key=lambda one: (self._tokens[one], self._turn.get(one, 0)))
            turn = lines[first].popleft()
            self._drop_empty(first)
            self.waiting -= 1
            if not turn.cancelled():
                self._sit(first)
                turn.set_result(None)

    def _exceeded(self, holder: Holder) -> Exceeded | None:
        lines = self._lines.get(holder.team, {})
        for whose, waiting, most in (
            ("token", len(lines.get(holder, ())), self._token_waiting),
            ("team", sum(map(len, lines.values())), self._team_waiting),
            ("server", self.waiting, self._most_waiting),
        ):
            if waiting >= most:
                return Exceeded("requests_waiting", whose, most)
        return None

    def _may_sit(self, team: str) -> bool:
        return self._teams[team] < self._team_seats

    def _sit(self, holder: Holder) -> None:
        self._turn[holder] = self._turn[holder.team] = next(self._turns)
        self._count(holder, 1)

    def _count(self, holder: Holder, change: int) -> None:
        self.busy += change
        self._tokens[holder] += change
        self._teams[holder.team] += change
        if not self._tokens[holder]:
            del self._tokens[holder]
        if not self._teams[holder.team]:
            del self._teams[holder.team]
        if not self.busy and not self._lines:
            self._turn.clear()

    def _leave(self, holder: Holder, turn: asyncio.Future[None]) -> None:
        line = self._lines.get(holder.team, {}).get(holder, deque())
        if turn in line:
            line.remove(turn)
            self._drop_empty(holder)
            self.waiting -= 1

    def _drop_empty(self, holder: Holder) -> None:
        lines = self._lines[holder.team]
        if not lines[holder]:
            del lines[holder]
        if not lines:
            del self._lines[holder.team]


CURRENT: ContextVar[Seat | None] = ContextVar("tenfold-seat", default=None)
"""The seat of the request that is being worked on."""


def leave_seat() -> None:
    """Let another request begin, because this one only waits from here on."""
    seat = CURRENT.get()
    if seat is not None:
        seat.release()
