"""Streams end with the token that opened them: within seconds, and the client is told why."""

import asyncio
from collections.abc import AsyncGenerator, Callable

from litestar import Litestar
from litestar.testing import TestClient
from msgspec.structs import replace

from tenfold.model.ids import JobId
from tenfold.server.auth.tokens import CACHED_MS, Token, Tokens
from tenfold.server.log_stream import LogReader
from tenfold.server.routes import logs as routes_logs
from tenfold.server.routes.events import event_stream
from tenfold.server.runtime.runtime import Runtime

Client = TestClient[Litestar]
OVER = b"event: token-over\ndata: {}\n\n"


def newest(runtime: Runtime, token: Callable[..., str]) -> Token:
    found = runtime.control.tokens.find(token("viewer"))
    assert found is not None
    return found


async def ended_after(
    chunks: AsyncGenerator[bytes, None], step: Callable[[], object]
) -> list[bytes]:
    """Return all that a stream yields when something is done after its first chunk."""
    told = [await anext(chunks)]
    step()
    return [*told, *[chunk async for chunk in chunks]]


def test_a_stream_of_events_ends_when_its_token_is_revoked(
    runtime: Runtime, token: Callable[..., str]
):
    tokens, shown = runtime.control.tokens, newest(runtime, token)

    async def followed() -> list[bytes]:
        chunks = event_stream(runtime.control, shown, 0, follow=True)
        return await ended_after(chunks, lambda: tokens.revoke(shown.id))

    assert asyncio.run(followed())[-1] == OVER


def test_and_when_it_expires_or_another_process_revoked_it(
    runtime: Runtime, token: Callable[..., str]
):
    shown = newest(runtime, token)
    late = replace(shown, expires_ms=runtime.control.now_ms())

    async def followed(one: Token) -> list[bytes]:
        return [chunk async for chunk in event_stream(runtime.control, one, 0, follow=True)]

    assert asyncio.run(followed(late))[-1] == OVER
    Tokens(runtime.store, runtime.control.now_ms).revoke(shown.id)
    runtime.control.tokens._revoked_ms = -CACHED_MS
    assert asyncio.run(followed(shown))[-1] == OVER


def test_what_others_revoked_is_read_once_in_a_while_for_all_streams(
    runtime: Runtime, token: Callable[..., str]
):
    now = [0]
    shown = newest(runtime, token)
    mine, other = Tokens(runtime.store, lambda: now[0]), runtime.control.tokens
    assert mine.is_stale
    mine.refresh_revoked()
    assert not mine.is_stale
    other.revoke(shown.id)
    assert not mine.has_ended(shown)
    now[0] = CACHED_MS
    assert mine.is_stale
    mine.refresh_revoked()
    assert mine.has_ended(shown)


def test_a_log_that_is_followed_ends_with_the_token_too(
    runtime: Runtime, token: Callable[..., str], monkeypatch
):
    monkeypatch.setattr(routes_logs, "_is_over", lambda *_: False)
    tokens, shown = runtime.control.tokens, newest(runtime, token)

    async def followed() -> list[bytes]:
        chunks = routes_logs.followed(
            runtime.control, shown, LogReader(lambda: [], 0), b"first", (JobId("a-1"), 1)
        )
        return await ended_after(chunks, lambda: tokens.revoke(shown.id))

    assert asyncio.run(followed()) == [b"first"]
