"""Requests wait in one queue per team, so that one team's storm leaves others answered.

A few requests are worked on at a time. A free slot goes to the team that holds the fewest, and
within a team to the token that holds the fewest; among equals, to the one that waits longest since
its last turn. No team holds more than its share of the slots, so one is free for the others at any
moment. A team whose queue is full is refused.
"""

import asyncio
from collections import Counter, deque
from contextvars import ContextVar
from itertools import count

from tenfold.server.runtime.budgets import Exceeded, Flow, Limits

_Queue = deque[asyncio.Future[None]]


class QueueFull(Exception):
    """The queue of a token or team is full."""

    def __init__(self, exceeded: Exceeded) -> None:
        super().__init__(exceeded)
        self.exceeded = exceeded


class RequestSlot:
    """The right to be worked on; released once, however often that is asked."""

    def __init__(self, queue: "FairQueue", flow: Flow) -> None:
        self._queue: FairQueue | None = queue
        self._flow = flow

    def release(self) -> None:
        """Let the next request begin."""
        queue, self._queue = self._queue, None
        if queue is not None:
            queue.release(self._flow)


class FairQueue:
    """Slots, and the queues of requests that wait for one."""

    def __init__(self, slots: int, waiting: int, limits: Limits) -> None:
        self.slots = slots
        self._team_slots = max(1, int(slots * limits.team_share))
        self._team_waiting = int(limits.share(waiting, limits.team_share))
        self._token_waiting = int(limits.share(waiting, limits.token_share))
        self._most_waiting = waiting
        self._tokens: Counter[Flow] = Counter()
        self._teams: Counter[str] = Counter()
        self._queues: dict[str, dict[Flow, _Queue]] = {}
        """By team and token."""
        self._turns = count(1)
        self._turn: dict[Flow | str, int] = {}
        self.busy = 0
        self.waiting = 0

    async def slot(self, flow: Flow) -> RequestSlot:
        """Return a slot as soon as one is free; raise `QueueFull` where too many wait already."""
        if self.busy < self.slots and self._may_start(flow.team) and flow.team not in self._queues:
            self._start(flow)
            return RequestSlot(self, flow)
        exceeded = self._exceeded(flow)
        if exceeded is not None:
            raise QueueFull(exceeded)
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queues.setdefault(flow.team, {}).setdefault(flow, deque()).append(turn)
        self.waiting += 1
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                self._leave(flow, turn)
            else:
                self.release(flow)
            raise
        return RequestSlot(self, flow)

    def release(self, flow: Flow) -> None:
        """Free a slot, and give it to the next request."""
        self._count(flow, -1)
        while self.busy < self.slots:
            teams = [team for team in self._queues if self._may_start(team)]
            if not teams:
                return
            team = min(teams, key=lambda one: (self._teams[one], self._turn.get(one, 0)))
            queues = self._queues[team]
            first = min(queues, key=lambda one: (self._tokens[one], self._turn.get(one, 0)))
            turn = queues[first].popleft()
            self._drop_empty(first)
            self.waiting -= 1
            if not turn.cancelled():
                self._start(first)
                turn.set_result(None)

    def _exceeded(self, flow: Flow) -> Exceeded | None:
        queues = self._queues.get(flow.team, {})
        for whose, waiting, most in (
            ("token", len(queues.get(flow, ())), self._token_waiting),
            ("team", sum(map(len, queues.values())), self._team_waiting),
            ("server", self.waiting, self._most_waiting),
        ):
            if waiting >= most:
                return Exceeded("requests_waiting", whose, most)
        return None

    def _may_start(self, team: str) -> bool:
        return self._teams[team] < self._team_slots

    def _start(self, flow: Flow) -> None:
        self._turn[flow] = self._turn[flow.team] = next(self._turns)
        self._count(flow, 1)

    def _count(self, flow: Flow, change: int) -> None:
        self.busy += change
        self._tokens[flow] += change
        self._teams[flow.team] += change
        if not self._tokens[flow]:
            del self._tokens[flow]
        if not self._teams[flow.team]:
            del self._teams[flow.team]
        if not self.busy and not self._queues:
            self._turn.clear()

    def _leave(self, flow: Flow, turn: asyncio.Future[None]) -> None:
        queue = self._queues.get(flow.team, {}).get(flow, deque())
        if turn in queue:
            queue.remove(turn)
            self._drop_empty(flow)
            self.waiting -= 1

    def _drop_empty(self, flow: Flow) -> None:
        queues = self._queues[flow.team]
        if not queues[flow]:
            del queues[flow]
        if not queues:
            del self._queues[flow.team]


CURRENT: ContextVar[RequestSlot | None] = ContextVar("tenfold-slot", default=None)
"""The slot of the request that is being worked on."""


def leave_slot() -> None:
    """Let another request begin, because this one only waits from here on."""
    slot = CURRENT.get()
    if slot is not None:
        slot.release()
