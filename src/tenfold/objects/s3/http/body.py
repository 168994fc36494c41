"""The body of a request: bytes wait here until the operation reads them, and no more than fit."""

import asyncio
from collections.abc import Callable
from typing import Protocol

BLOCK_BYTES = 1 << 20
"""What one read returns at most; larger blocks cost memory, smaller ones thread switches."""
BUFFERED_MAX = 2 << 20


class BodyFailed(Exception):
    """The rest of the body will not come, or is no valid body."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class Readable(Protocol):
    """A body, as it is sent or decoded."""

    async def read(self) -> bytes:
        """Return the next bytes; none at the end."""
        ...


class Flow(Protocol):
    """What a body tells its connection."""

    def wants_body(self) -> None:
        """Ask the client to send the body, if it waits for that."""
        ...

    def pause(self, is_paused: bool) -> None:
        """Stop or resume reading from the socket."""
        ...


class Body:
    """Bytes as they arrive; `length` is None where only the end tells."""

    def __init__(self, flow: Flow, length: int | None) -> None:
        self.length = length
        self.is_whole = length == 0
        self.was_read = False
        self._flow = flow
        self._blocks: list[bytes | memoryview] = []
        self._buffered = 0
        self._is_paused = False
        self._failure: BodyFailed | None = None
        self._waiter: asyncio.Future[None] | None = None

    def feed(self, data: bytes) -> None:
        """Take bytes from the connection."""
        self._blocks.append(data)
        self._buffered += len(data)
        if self._buffered >= BLOCK_BYTES:
            self._wake()
            if self._buffered >= BUFFERED_MAX and not self._is_paused:
                self._is_paused = True
                self._flow.pause(True)

    def finish(self) -> None:
        """Take note that the body is whole."""
        self.is_whole = True
        self._wake()

    def fail(self, failure: BodyFailed) -> None:
        """Take note that the rest will not come."""
        self._failure = self._failure or failure
        self._wake()

    async def read(self) -> bytes:
        """Return about a block, or what is left; nothing at the end."""
        if not self.was_read:
            self.was_read = True
            if not self.is_whole:
                self._flow.wants_body()
        while self._buffered < BLOCK_BYTES and not self.is_whole:
            if self._failure is not None:
                raise self._failure
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        return self._take()

    def drop(self) -> None:
        """Forget what was not read."""
        self._blocks, self._buffered = [], 0
        if self._is_paused:
            self._is_paused = False
            self._flow.pause(False)

    def _take(self) -> bytes:
        """Return a whole block where there is one: the writer of blobs copies no whole block."""
        blocks, self._blocks = self._blocks, []
        left = self._buffered - BLOCK_BYTES
        self._buffered = max(left, 0)
        if left > 0:
            at = len(blocks)
            while left > 0:
                at -= 1
                left -= len(blocks[at])
            self._blocks = blocks[at:]
            del blocks[at:]
            if left < 0:
                # The block ends within this piece.
                piece = memoryview(self._blocks[0])
                blocks.append(piece[:-left])
                self._blocks[0] = piece[-left:]
        if self._is_paused and self._buffered < BLOCK_BYTES:
            self._is_paused = False
            self._flow.pause(False)
        return bytes(blocks[0]) if len(blocks) == 1 else b"".join(blocks)

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


async def read_all(body: Readable, bytes_max: int, refuse: Callable[[], Exception]) -> bytes:
    """Return a whole body that must be small."""
    parts: list[bytes] = []
    size = 0
    while data := await body.read():
        size += len(data)
        if size > bytes_max:
            raise refuse()
        parts.append(data)
    return parts[0] if len(parts) == 1 else b"".join(parts)
