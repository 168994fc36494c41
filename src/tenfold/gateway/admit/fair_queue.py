"""The queue of a service: higher priorities first, teams by weight, each team in order.

Each team has a count of tokens that it was served, divided by its weight; among waiting teams of
the highest priority the one with the lowest count goes first. A team that was idle starts level
with the others, so idleness earns no credit. Counts are corrected when answers turn out longer or
shorter than expected.
"""

from collections import deque
from collections.abc import Callable, Iterator
from typing import Generic, Protocol, TypeVar


class Waiting(Protocol):
    """A request that may wait."""

    @property
    def team(self) -> str:
        """The team it belongs to."""
        ...

    @property
    def tokens(self) -> int:
        """Tokens that it is charged."""
        ...

    @property
    def is_gone(self) -> bool:
        """Whether it no longer waits: it timed out, or its client left."""
        ...


W = TypeVar("W", bound=Waiting)


class _Team(Generic[W]):
    __slots__ = ("in_service", "name", "priority", "queue", "served", "tokens", "waiting", "weight")

    def __init__(self, name: str) -> None:
        self.name = name
        self.weight = 1.0
        self.priority = 0
        self.served = 0.0
        self.in_service = 0
        self.waiting = 0
        self.tokens = 0
        self.queue: deque[W] = deque()

    @property
    def is_active(self) -> bool:
        return bool(self.waiting or self.in_service)


class FairQueue(Generic[W]):
    """Requests that wait for a service, by team."""

    def __init__(self, shares: Callable[[str], tuple[float, int]] = lambda team: (1.0, 0)) -> None:
        self._shares = shares
        """The weight and priority of a team."""
        self._teams: dict[str, _Team[W]] = {}
        self._first: deque[W] = deque()
        self._level = 0.0
        self._waiting = 0
        self._tokens = 0

    def __len__(self) -> int:
        return self._waiting

    @property
    def tokens(self) -> int:
        """Tokens of all that wait."""
        return self._tokens

    def __iter__(self) -> Iterator[W]:
        """Yield all that wait, in no particular order of teams."""
        yield from (one for one in self._first if not one.is_gone)
        for team in self._teams.values():
            yield from (one for one in team.queue if not one.is_gone)

    def reconfigure(self) -> None:
        """Read the shares of all teams again."""
        for team in self._teams.values():
            team.weight, team.priority = self._shares(team.name)

    def push(self, request: W) -> None:
        """Add a request behind the others of its team."""
        team = self._activated(request.team)
        team.queue.append(request)
        self._add(team, request.tokens)

    def push_first(self, request: W) -> None:
        """Add a request that was tried in vain before all others."""
        self._first.append(request)
        self._add(self._activated(request.team), request.tokens)

    def peek(self) -> W | None:
        """Return the request that goes next."""
        while self._first:
            if not self._first[0].is_gone:
                return self._first[0]
            self._first.popleft()
        team = self._next_team()
        return None if team is None else team.queue[0]

    def pop(self, request: W) -> None:
        """Remove the request that `peek` returned."""
        if self._first and self._first[0] is request:
            self._first.popleft()
        else:
            self._team(request.team).queue.popleft()
        self.forget(request)

    def forget(self, request: W) -> None:
        """Count a request as no longer waiting; it is removed when its turn comes."""
        team = self._team(request.team)
        team.waiting -= 1
        team.tokens -= request.tokens
        self._waiting -= 1
        self._tokens -= request.tokens

    def begin(self, team: str, tokens: int) -> None:
        """Charge a request that is served from now on."""
        one = self._activated(team)
        one.in_service += 1
        self._level = max(self._level, one.served)
        one.served += tokens / one.weight

    def end(self, team: str, tokens_charged: int, tokens_used: int) -> None:
        """Note the end of a request and what it used in fact."""
        one = self._team(team)
        one.in_service -= 1
        one.served += (tokens_used - tokens_charged) / one.weight

    def last_for(self, team: str, priority: int) -> W | None:
        """Return the request to refuse so that one of this team may wait; None for its own.

        The newest of the lowest priority, and there of the team with most tokens for its weight.
        """
        waiting = [one for one in self._teams.values() if one.waiting]
        if not waiting:
            return None
        worst = min(waiting, key=lambda one: (one.priority, -one.tokens / one.weight))
        own = self._team(team)
        is_better = priority > worst.priority or (
            priority == worst.priority and own.tokens / own.weight < worst.tokens / worst.weight
        )
        if not is_better or worst is own:
            return None
        return next((one for one in reversed(worst.queue) if not one.is_gone), None)

    def _add(self, team: _Team[W], tokens: int) -> None:
        team.waiting += 1
        team.tokens += tokens
        self._waiting += 1
        self._tokens += tokens

    def _team(self, name: str) -> _Team[W]:
        team = self._teams.get(name)
        if team is None:
            team = self._teams[name] = _Team(name)
            team.weight, team.priority = self._shares(name)
            team.served = self._level
        return team

    def _activated(self, name: str) -> _Team[W]:
        team = self._team(name)
        if not team.is_active:
            active = [one.served for one in self._teams.values() if one.is_active]
            team.served = max(team.served, min(active) if active else self._level)
        return team

    def _next_team(self) -> _Team[W] | None:
        best: _Team[W] | None = None
        for team in self._teams.values():
            while team.queue and team.queue[0].is_gone:
                team.queue.popleft()
            if team.queue and (
                best is None or (-team.priority, team.served) < (-best.priority, best.served)
            ):
                best = team
        return best
