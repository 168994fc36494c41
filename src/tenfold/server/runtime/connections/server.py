"""The server: accepts connections, a few at a time, and checks them every second."""

import asyncio
import socket

import uvicorn
from uvicorn.server import ServerState

from tenfold.server.runtime.admission import Budgets
from tenfold.server.runtime.connections.connection import (
    ACCEPTS_AT_ONCE,
    ConnectionTable,
    GuardedConnection,
)
from tenfold.server.runtime.connections.handshake import TlsHandshake


class GuardedServer(uvicorn.Server):
    """A server that limits its connections."""

    def __init__(self, config: uvicorn.Config, limit: int, budgets: Budgets | None = None) -> None:
        super().__init__(config)
        self.table = ConnectionTable(limit, budgets)
        self.server_state: ServerState = self.table

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start accepting connections, a few at a time; the others wait in the kernel."""
        assert sockets, "the server listens before it starts"
        await self.lifespan.startup()
        loop, context = asyncio.get_running_loop(), self.config.ssl

        def connection() -> GuardedConnection:
            return GuardedConnection(
                config=self.config,
                server_state=self.server_state,
                app_state=self.lifespan.state,
                _loop=loop,
            )

        def handshake() -> TlsHandshake:
            assert context is not None, "only with TLS"
            return TlsHandshake(self.table, context, connection)

        make = connection if context is None else handshake
        self.servers = [
            await loop.create_server(make, sock=one, backlog=ACCEPTS_AT_ONCE) for one in sockets
        ]
        for one in sockets:
            one.listen(self.config.backlog)
        self.started = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop accepting connections, and finish requests in progress."""
        self.table.close_handshakes()
        await super().shutdown(sockets)

    async def on_tick(self, counter: int) -> bool:
        """Check connections every second."""
        if counter % 10 == 0:
            self.table.sweep(asyncio.get_running_loop().time())
        return await super().on_tick(counter)
