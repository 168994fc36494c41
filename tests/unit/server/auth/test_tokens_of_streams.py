"""Streams end with the token that opened them: within seconds, and the client is told why."""

import asyncio
from collections.abc import AsyncGenerator, Callable

from litestar import Litestar
from litestar.testing import TestClient
from msgspec.structs import replace

from tenfold.model.ids import JobId
from tenfold.server.auth.tokens import KEPT_MS, Token, Tokens
from tenfold.server.log_stream import Growing
from tenfold.server.routes import logs as routes_logs
from tenfold.server.routes.events import event_stream
from tenfold.server.runtime.runtime import Serving

Client = TestClient[Litestar]
OVER = b"event: token-over\ndata: {}\n\n"


def newest(serving: Serving, token: Callable[..., str]) -> Token:
    found = serving.control.tokens.find(token("viewer"))
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
    serving: Serving, token: Callable[..., str]
):
    tokens, shown = serving.control.tokens, newest(serving, token)

    async def followed() -> list[bytes]:
        chunks = event_stream(serving.control, shown, 0, follow=True)
        return await ended_after(chunks, lambda: tokens.revoke(shown.id))

    assert asyncio.run(followed())[-1] == OVER


def test_and_when_it_expires_or_another_process_revoked_it(
    serving: Serving, token: Callable[..., str]
):
    shown = newest(serving, token)
    late = replace(shown, expires_ms=serving.control.now_ms())

    async def followed(one: Token) -> list[bytes]:
        return [chunk async for chunk in event_stream(serving.control, one, 0, follow=True)]

    assert asyncio.run(followed(late))[-1] == OVER
    Tokens(serving.store, serving.control.now_ms).revoke(shown.id)
    serving.control.tokens._revoked_ms = -KEPT_MS
    assert asyncio.run(followed(shown))[-1] == OVER


def test_what_others_revoked_is_read_once_in_a_while_for_all_streams(
    serving: Serving, token: Callable[..., str]
):
    now = [0]
    shown = newest(serving, token)
    mine, other = Tokens(serving.store, lambda: now[0]), serving.control.tokens
    assert mine.is_stale
    mine.look()
    assert not mine.is_stale
    other.revoke(shown.id)
    assert not mine.is_over(shown)
    now[0] = KEPT_MS
    assert mine.is_stale
    mine.look()
    assert mine.is_over(shown)


def test_a_log_that_is_followed_ends_with_the_token_too(
    serving: Serving, token: Callable[..., str], monkeypatch
):
    monkeypatch.setattr(routes_logs, "_is_over", lambda *_: False)
    tokens, shown = serving.control.tokens, newest(serving, token)

    async def followed() -> list[bytes]:
        chunks = routes_logs.followed(
            serving.control, shown, Growing(lambda: [], 0), b"first", (JobId("a-1"), 1)
        )
        return await ended_after(chunks, lambda: tokens.revoke(shown.id))

    assert asyncio.run(followed()) == [b"first"]
    assert serving.control.streams.open == 0
