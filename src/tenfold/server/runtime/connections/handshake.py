"""TLS handshakes are counted like connections, end within seconds, and can be closed."""

import asyncio
import ssl
from collections.abc import Callable
from typing import cast

from tenfold.server.runtime.connections.connection import SPARE, ConnectionTable, GuardedConnection

HANDSHAKE_S = 5.0
"""From an open connection to the end of its TLS handshake."""


class TlsHandshake(asyncio.Protocol):
    """A TLS handshake that has not ended; it is counted, takes a few seconds, and can be closed."""

    is_silent = True

    def __init__(
        self, table: ConnectionTable, context: ssl.SSLContext, make: Callable[[], GuardedConnection]
    ) -> None:
        self._table, self._context, self._make = table, context, make
        self._loop = asyncio.get_running_loop()
        self._task: asyncio.Task[None] | None = None
        self.opened_s: float = self._loop.time()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin, unless there are too many."""
        self._transport = cast("asyncio.Transport", transport)
        self._transport.pause_reading()
        table = self._table
        is_admitted = table.admit(self, self.opened_s)
        if not is_admitted or table.count >= table.limit + SPARE:
            # No response is possible before the TLS handshake.
            table.refuse(self.opened_s)
            table.unauthenticated.pop(self, None)
            self._transport.abort()
            return
        table.handshakes.add(self)
        self._task = self._loop.create_task(self._run())
        self._task.add_done_callback(lambda _: None)

    def close_now(self) -> None:
        """End it."""
        self._table.unauthenticated.pop(self, None)
        self._transport.abort()

    async def _run(self) -> None:
        connection, secured = self._make(), None
        try:
            secured = await self._loop.start_tls(
                self._transport,
                connection,
                self._context,
                server_side=True,
                ssl_handshake_timeout=HANDSHAKE_S,
            )
        except OSError:
            # Not TLS, too slow, or gone.
            self._transport.abort()
        finally:
            self._table.handshakes.discard(self)
            was_admitted = self in self._table.unauthenticated
            self._table.unauthenticated.pop(self, None)
        if secured is None or connection.is_lost:
            return
        if was_admitted:
            self._table.unauthenticated[connection] = None
        connection.connection_made(secured)
