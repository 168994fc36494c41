"""Files onto sockets: `sendfile` from the loop thread, without waiting for disk or client.

Pages that are not in memory are read by a worker thread first: `sendfile` would block the loop,
and every other connection with it.
"""

import asyncio
import os
import socket
from collections.abc import Iterator

from msgspec import Struct

from tenfold.objects.blobs.refs import FileRegion
from tenfold.objects.blobs.verified import is_in_memory

WINDOW_BYTES = 4 << 20
"""Sent from one file before other connections get their turn."""
_TOUCH_BYTES = 1 << 20


class ClientGone(Exception):
    """The client closed the connection, or reads nothing."""


class FileSender:
    """Sends files on one connection. The socket is a duplicate: the loop watches the other."""

    def __init__(self, fd: int) -> None:
        self._socket = socket.socket(fileno=os.dup(fd))
        self._socket.setblocking(False)
        self._waiter: asyncio.Future[None] | None = None
        self.sent_bytes = 0

    async def send(self, region: FileRegion) -> None:
        """Send a region; returns when the kernel has all of it."""
        offset, left = region.offset, region.count
        while left:
            window = min(left, WINDOW_BYTES)
            if not is_in_memory(region.fd, offset, window):
                await asyncio.to_thread(_read_in, region.fd, offset, window)
            await self._send_window(_Window(region.fd, offset, window))
            offset += window
            left -= window

    async def _send_window(self, window: "_Window") -> None:
        """Send a window; the socket is watched until it is sent, not once for each piece."""
        loop = asyncio.get_running_loop()
        fd = self._socket.fileno()
        if fd < 0:
            raise ClientGone("the connection is closed")
        waiter = self._waiter = loop.create_future()
        self._send_more(window, waiter)
        if not waiter.done():
            loop.add_writer(fd, self._send_more, window, waiter)
        try:
            await waiter
        finally:
            self._waiter = None
            if self._socket.fileno() >= 0:
                loop.remove_writer(fd)

    def _send_more(self, window: "_Window", waiter: asyncio.Future[None]) -> None:
        """Send what the socket takes now: one call, so that others get their turn."""
        if waiter.done():
            return
        try:
            done = os.sendfile(self._socket.fileno(), window.fd, window.offset, window.left)
        except BlockingIOError:
            return
        except OSError as error:
            waiter.set_exception(ClientGone(str(error)))
            return
        if done == 0:
            waiter.set_exception(OSError("a file ended before its region"))
            return
        self.sent_bytes += done
        window.offset += done
        window.left -= done
        if not window.left:
            waiter.set_result(None)

    def close(self) -> None:
        """End a send that waits for the client, and release the socket."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(ClientGone("the connection was closed"))
            asyncio.get_running_loop().remove_writer(self._socket.fileno())
        self._socket.close()


class _Window(Struct):
    """A part of a file that is being sent."""

    fd: int
    offset: int
    left: int


def pieces_of(region: FileRegion) -> Iterator[FileRegion]:
    """Yield a region in pieces that are small enough to be held in memory."""
    for at in range(0, region.count, _TOUCH_BYTES):
        count = min(_TOUCH_BYTES, region.count - at)
        yield FileRegion(region.fd, region.offset + at, count)


async def read_region(region: FileRegion) -> bytes:
    """Return a small region, from memory if it is there."""
    fd, offset, count = region.fd, region.offset, region.count
    if count and not is_in_memory(fd, offset, count):
        return await asyncio.to_thread(os.pread, fd, count, offset)
    return os.pread(fd, count, offset)


def _read_in(fd: int, offset: int, count: int) -> None:
    os.posix_fadvise(fd, offset, count, os.POSIX_FADV_WILLNEED)
    scratch = bytearray(_TOUCH_BYTES)
    for at in range(offset, offset + count, _TOUCH_BYTES):
        view = memoryview(scratch)[: min(_TOUCH_BYTES, offset + count - at)]
        os.preadv(fd, [view], at)
