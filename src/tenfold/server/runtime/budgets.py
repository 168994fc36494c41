"""Budgets that no token and no team can use up alone.

Every budget has a total. A team may hold half of it and a token a quarter, so a storm from one team
leaves the other half. Checking and counting are one step: nothing is admitted between them.

All of this runs in the event loop of the server, and nothing here is thread-safe.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from msgspec import Struct, structs

from tenfold.model.errors import InputError

MIB = 1 << 20
BURST_S = 2.0
"""A quiet client may send this many seconds' worth of requests at once."""
RATES_MAX = 20_000
"""Rates of clients that are remembered; beyond this, those that are at rest are dropped."""


class Limits(Struct, frozen=True, kw_only=True):
    """What all clients together may use; `tenfold up --limit NAME=NUMBER` changes them."""

    connections: int = 0
    """0: as many as the open file limit allows."""
    unauthenticated_connections: int = 512
    """Connections that have not sent a valid token yet."""
    requests_per_second: float = 1_000
    requests_at_once: int = 8
    """Requests that are worked on; the others wait in one queue per team."""
    requests_waiting: int = 1_024
    streams: int = 256
    """Event streams and followed logs."""
    body_mib: float = 64
    """Request bodies that are being received or worked on."""
    response_mib: float = 64
    """Large responses that clients have not read yet."""
    team_share: float = 0.5
    """How much of each one team may use."""
    token_share: float = 0.25

    def share(self, total: float, share: float) -> float:
        """Return a share of a total; never less than one."""
        return max(1.0, total * share)


class Flow(NamedTuple):
    """Who uses a budget: a token and its team, or an address without a token."""

    team: str
    token: str


class Exceeded(NamedTuple):
    """A budget that is used up, and whose share of it."""

    budget: str
    whose: str
    """`token`, `team` or `server`."""
    most: float


class Budget:
    """One resource, counted for each token, each team and in all."""

    def __init__(self, name: str, total: float, limits: Limits) -> None:
        self.name = name
        self.total = total
        self._team_most = limits.share(total, limits.team_share)
        self._token_most = min(self._team_most, limits.share(total, limits.token_share))
        self._tokens: Counter[Flow] = Counter()
        self._teams: Counter[str] = Counter()
        self.used = 0
        self._waiting: set[asyncio.Future[None]] = set()

    def used_by(self, team: str) -> int:
        """Return what a team holds."""
        return self._teams[team]

    def take(self, flow: Flow, amount: int = 1) -> Exceeded | None:
        """Count an amount, or return what is used up. Who holds nothing may take any amount."""
        for whose, used, most in (
            ("token", self._tokens[flow], self._token_most),
            ("team", self._teams[flow.team], self._team_most),
            ("server", self.used, self.total),
        ):
            if used and used + amount > most:
                return Exceeded(self.name, whose, most)
        self._add(flow, amount)
        return None

    def give(self, flow: Flow, amount: int = 1) -> None:
        """Return an amount."""
        self._add(flow, -amount)
        for one in self._waiting:
            if not one.done():
                one.set_result(None)

    async def wait(self, flow: Flow, amount: int) -> None:
        """Count an amount as soon as there is enough left."""
        while self.take(flow, amount) is not None:
            changed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.add(changed)
            try:
                await changed
            finally:
                self._waiting.discard(changed)

    @contextmanager
    def held(self, flow: Flow, amount: int) -> Generator[None, None, None]:
        """Return an amount that was taken, at the end."""
        try:
            yield
        finally:
            self.give(flow, amount)

    def _add(self, flow: Flow, amount: int) -> None:
        self.used += amount
        for counts, key in ((self._tokens, flow), (self._teams, flow.team)):
            counts[key] += amount  # pyright: ignore[reportArgumentType]
            if not counts[key]:  # pyright: ignore[reportArgumentType]
                del counts[key]  # pyright: ignore[reportArgumentType]


class RateLimit:
    """Requests a second, for each token, each team and in all."""

    def __init__(self, limits: Limits, now_s: Callable[[], float]) -> None:
        total = limits.requests_per_second
        team = limits.share(total, limits.team_share)
        token = min(team, limits.share(total, limits.token_share))
        self._rates = {"token": token, "team": team, "server": total}
        self._now_s = now_s
        self._next_s: dict[Flow | str, float] = {}
        """When each would be at rest again, if it sent nothing more."""

    def take(self, flow: Flow) -> tuple[Exceeded, float] | None:
        """Count a request, or return what is used up and the seconds until it is not."""
        now_s = self._now_s()
        keys: list[tuple[str, Flow | str]] = [
            ("token", flow),
            ("team", flow.team),
            ("server", ""),
        ]
        at = {whose: max(now_s, self._next_s.get(key, 0.0)) for whose, key in keys}
        for whose, _ in keys:
            late_s = at[whose] - now_s - BURST_S
            if late_s > 0:
                return Exceeded("requests_per_second", whose, self._rates[whose]), late_s
        for whose, key in keys:
            self._next_s[key] = at[whose] + 1 / self._rates[whose]
        if len(self._next_s) > RATES_MAX:
            self._next_s = {key: one for key, one in self._next_s.items() if one > now_s}
        return None


def limits_of(pairs: Sequence[str]) -> Limits:
    """Return limits from `NAME=NUMBER`, with dashes or underscores in the names."""
    names = [one.replace("_", "-") for one in Limits.__struct_fields__]
    changes: dict[str, float] = {}
    for pair in pairs:
        name, _, text = pair.partition("=")
        field = name.strip().replace("-", "_")
        if field not in Limits.__struct_fields__:
            raise InputError(
                "wrong-value",
                f"unknown limit `{name}`",
                f"use `--limit NAME=NUMBER` with one of {', '.join(names)}",
                field="--limit",
            )
        changes[field] = _number(pair, field, text)
    return structs.replace(Limits(), **changes)


def _number(pair: str, field: str, text: str) -> float:
    is_share = field.endswith("_share")
    least = 0 if field == "connections" else 1
    try:
        value = float(text.replace("_", ""))
        number = value if is_share or field.endswith(("_mib", "_second")) else int(value)
        is_right = 0 < number <= 1 if is_share else least <= number <= 1 << 30 and number == value
    except (ValueError, OverflowError):
        is_right, number = False, 0.0
    if not is_right:
        wanted = "a share above 0 and up to 1" if is_share else f"a number of at least {least}"
        name = field.replace("_", "-")
        message = f"`--limit {name}` must be {wanted}, got `{text}`"
        hint = f"write it like `--limit {name}={0.5 if is_share else 512}`"
        raise InputError("wrong-value", message, hint, field="--limit")
    return number
