"""Copies of requests to shadow revisions; their answers are read and discarded."""

import asyncio

from aiohttp import ClientError

from tenfold.gateway.forward.call import Call
from tenfold.gateway.forward.upstream import SendFailed, Upstream
from tenfold.gateway.forward.usage import EventStream, LineTooLong, usage_in
from tenfold.gateway.pool.grant import Grant

SHADOWS_MAX = 200
"""At a time; further requests are not copied."""
BODIES_BYTES_MAX = 64 << 20
"""Of the bodies of copies under way; while they have as many, no request is copied."""


class Shadows:
    """Copies under way."""

    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream
        self._bytes = 0
        """Of the bodies that copies hold."""
        self._tasks: dict[asyncio.Task[None], None] = {}

    @property
    def is_full(self) -> bool:
        """Whether no more are sent now."""
        return len(self._tasks) >= SHADOWS_MAX or self._bytes >= BODIES_BYTES_MAX

    def send(self, granted: Grant, call: Call, timeout_s: float) -> None:
        """Send a copy; nobody waits for its answer."""
        task = asyncio.create_task(self._send(granted, call, timeout_s))
        self._tasks[task] = None
        self._bytes += len(call.body)
        task.add_done_callback(lambda done: self._ended(done, len(call.body)))

    async def close(self) -> None:
        """End all copies."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _ended(self, task: "asyncio.Task[None]", size: int) -> None:
        self._tasks.pop(task, None)
        self._bytes -= size

    async def _send(self, granted: Grant, call: Call, timeout_s: float) -> None:
        loop = asyncio.get_running_loop()
        try:
            answer = await self._upstream.send(granted.target, call, timeout_s)
        except SendFailed as why:
            granted.fail(loop.time(), is_unreachable=why.is_unreachable)
            return
        except BaseException:
            granted.abandon(loop.time())
            raise
        events = EventStream()
        try:
            async with asyncio.timeout(timeout_s):
                if answer.status < 500:
                    granted.answered(loop.time())
                part = answer.first
                while part:
                    if answer.is_events:
                        granted.progressed(loop.time(), events.feed(part))
                    part = b"" if answer.is_whole else await answer.response.content.readany()
        except (ClientError, OSError, LineTooLong, TimeoutError):
            granted.end(loop.time(), None, events.events, failed=True)
        except BaseException:
            granted.abandon(loop.time())
            raise
        else:
            usage = events.usage() if answer.is_events else usage_in(answer.first)
            written = events.events if usage.output_tokens is None else usage.output_tokens
            granted.end(loop.time(), usage.input_tokens, written, failed=answer.status >= 500)
        finally:
            answer.response.close()
