"""A request that was admitted: what it costs, and what it waits for."""

from asyncio import Future
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tenfold.gateway.pool.grant import Grant


class Ticket:
    """One admitted request, from its arrival to its end."""

    __slots__ = (
        "arrived_s",
        "future",
        "input_tokens",
        "is_gone",
        "is_retry",
        "output_tokens",
        "prefix",
        "priority",
        "prompt_bytes",
        "session",
        "team",
        "tokens",
        "tried",
    )

    def __init__(
        self,
        team: str,
        arrived_s: float,
        tokens: tuple[int, int],
        *,
        prompt_bytes: int = 0,
        prefix: tuple[int, ...] = (),
    ) -> None:
        self.team = team
        self.arrived_s = arrived_s
        self.input_tokens, self.output_tokens = tokens
        self.tokens = self.input_tokens + self.output_tokens
        self.priority = 0
        self.prompt_bytes = prompt_bytes
        self.prefix = prefix
        """Keys of the beginnings of its prompt; empty without affinity."""
        self.session: int | None = None
        """A number that is the same for all requests of a session."""
        self.tried: tuple[str, ...] = ()
        """Replicas that failed it."""
        self.is_retry = False
        self.is_gone = False
        """It waits no longer."""
        self.future: Future[Grant] | None = None
        """Resolved with the replica that answers it, while it waits."""
