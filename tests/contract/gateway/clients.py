"""What clients of a gateway send in tests, and many of them at a time."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from aiohttp import ClientConnectionError, ClientPayloadError, ClientSession, ClientTimeout

CHAT = "/v1/chat/completions"


def chat(text: str = "hello", **fields: Any) -> dict[str, Any]:
    """Return the body of a chat request."""
    messages = [{"role": "user", "content": text}]
    return {"model": "stub", "messages": messages, "max_tokens": 4, **fields}


class Got(NamedTuple):
    """An answer, as far as it came."""

    status: int
    body: bytes
    complete: bool = True
    headers: dict[str, str] = {}  # noqa: RUF012


class Clients:
    """Clients that send at the same time."""

    def __init__(self, url: str, token: str = "") -> None:
        self._url = url
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._session: ClientSession | None = None

    async def __aenter__(self) -> "Clients":
        self._session = ClientSession(timeout=ClientTimeout(total=None))
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._session is not None
        await self._session.close()

    async def chat(
        self,
        text: str = "hello",
        token: str = "",
        headers: dict[str, str] | None = None,
        begun: Callable[[], Awaitable[None]] | None = None,
        **fields: Any,
    ) -> Got:
        """Send a chat request; return what came of it."""
        assert self._session is not None
        sent = {**self._headers, **(headers or {})}
        if token:
            sent["Authorization"] = f"Bearer {token}"
        parts: list[bytes] = []
        try:
            async with self._session.post(
                f"{self._url}{CHAT}", json=chat(text, **fields), headers=sent
            ) as answer:
                if begun is not None:
                    await begun()
                async for part in answer.content.iter_any():
                    parts.append(part)
                return Got(answer.status, b"".join(parts), True, dict(answer.headers))
        except (ClientPayloadError, ClientConnectionError):
            return Got(0, b"".join(parts), complete=False)


def run(clients: Awaitable[Any]) -> Any:
    """Run clients to their end."""

    async def all_of_it() -> Any:
        return await clients

    return asyncio.run(all_of_it())
