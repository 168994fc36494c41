"""Admission: limits, then a place in a replica or elsewhere, now or after a wait.

Every data plane goes through this: it knows requests only by their team and tokens.
"""

import asyncio

from tenfold.gateway.admit.identity import Caller
from tenfold.gateway.admit.limits import OverLimit, TeamUse
from tenfold.gateway.admit.refusals import RequestRefused
from tenfold.gateway.pool.grant import Grant
from tenfold.gateway.pool.pool import ServicePool
from tenfold.gateway.pool.service import ServiceState
from tenfold.gateway.pool.ticket import Ticket


class Admission:
    """One request of a team to a service, from its arrival to its end; end it with `close`."""

    __slots__ = ("_use", "service", "ticket", "tokens_used")

    def __init__(self, service: ServiceState, ticket: Ticket, use: TeamUse) -> None:
        self.service = service
        self.ticket = ticket
        self.tokens_used = 0
        """Tokens that the request used in fact; what the team is charged in the end."""
        self._use = use

    async def place(self, now_s: float) -> Grant:
        """Return where the request goes, as soon as there is a place; raise if none."""
        granted = self.service.grant_now(self.ticket, now_s)
        return granted if granted is not None else await self._wait()

    def tried(self, name: str) -> None:
        """Note that a target failed before the first byte of an answer."""
        self.ticket.is_retry = True
        self.ticket.is_gone = False
        self.ticket.tried = (*self.ticket.tried, name)

    def place_now(self, now_s: float) -> Grant | None:
        """Return another place if there is one at once."""
        granted = self.service.grant_now(self.ticket, now_s)
        self.service.retries += granted is not None
        return granted

    async def place_again(self, now_s: float) -> Grant:
        """Return another place, as soon as there is one."""
        self.service.retries += 1
        return await self.place(now_s)

    def close(self) -> None:
        """Note the end of the request."""
        self._use.end(self.ticket.tokens, self.tokens_used)

    async def _wait(self) -> Grant:
        ticket = self.ticket
        ticket.future = asyncio.get_running_loop().create_future()
        self.service.enqueue(ticket)
        try:
            return await ticket.future
        except asyncio.CancelledError:
            # The client left. It may have been granted a slot in the same moment.
            self.service.leave(ticket)
            future = ticket.future
            if future.done() and not future.cancelled() and future.exception() is None:
                ticket.future.result().abandon(asyncio.get_running_loop().time())
            raise


def admit(
    pool: ServicePool, caller: Caller, service: ServiceState, ticket: Ticket, now_s: float
) -> Admission:
    """Charge a request to its team; raise if that is beyond the team's limits."""
    service.arrive(ticket)
    use = pool.team(caller.team)
    ticket.priority = use.limits.priority
    over = use.begin(now_s, ticket.tokens)
    if over is not None:
        service.limited += 1
        raise _over(caller, over)
    return Admission(service, ticket, use)


def _over(caller: Caller, over: OverLimit) -> RequestRefused:
    words = over.limit.replace("_", " ")
    code = "rate_limit_exceeded"
    if over.limit == "concurrent_max":
        words, code = "requests at a time", "concurrency_limit_exceeded"
    message = f"team `{caller.team}` may use {over.most:,} {words}"
    return RequestRefused(code, message, over.retry_after_s)
