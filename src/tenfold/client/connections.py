"""What differs between the two clients: how a request is carried, and how to wait.

This is the only module that brings in the HTTP library.

A control plane on this machine is asked directly, whatever proxy the environment names.
"""

import asyncio
import ssl
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import httpx

from tenfold.client.endpoint import Endpoint

CONNECT_S = 5.0


class _Stream:
    def __init__(self, answer: httpx.Response) -> None:
        self._answer = answer
        self.status = answer.status_code
        self.headers = answer.headers


class AsyncStream(_Stream):
    """An answer that is read as it comes, in an event loop."""

    async def read(self) -> bytes:
        """Return all of it."""
        return await self._answer.aread()

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """Yield its bytes."""
        async for chunk in self._answer.aiter_bytes():
            yield chunk

    async def lines(self) -> AsyncGenerator[str, None]:
        """Yield its lines."""
        async for line in self._answer.aiter_lines():
            yield line


class BlockingStream(_Stream):
    """The same in the thread that asks."""

    async def read(self) -> bytes:
        """Return all of it."""
        return self._answer.read()

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """Yield its bytes."""
        for chunk in self._answer.iter_bytes():
            yield chunk

    async def lines(self) -> AsyncGenerator[str, None]:
        """Yield its lines."""
        for line in self._answer.iter_lines():
            yield line


class AsyncTransport:
    """Carries requests in an event loop."""

    def __init__(self, endpoint: Endpoint, timeout_s: float) -> None:
        self._http = async_connection(endpoint, timeout_s)

    async def request(self, request_args: dict[str, Any]) -> tuple[int, bytes]:
        """Return the status and the content of an answer."""
        answer = await self._http.request(**request_args)
        return answer.status_code, answer.content

    @asynccontextmanager
    async def stream(self, request_args: dict[str, Any]) -> AsyncGenerator[AsyncStream, None]:
        """Open an answer that is read as it comes."""
        async with self._http.stream(**request_args) as answer:
            yield AsyncStream(answer)

    async def pause(self, seconds: float) -> None:
        """Let other tasks run meanwhile."""
        await asyncio.sleep(seconds)

    async def close(self) -> None:
        """Close the connection."""
        await self._http.aclose()


class BlockingTransport:
    """Carries requests in the thread that asks: nothing here ever suspends a coroutine."""

    def __init__(self, endpoint: Endpoint, timeout_s: float) -> None:
        self._http = connection(endpoint, timeout_s)

    async def request(self, request_args: dict[str, Any]) -> tuple[int, bytes]:
        """Return the status and the content of an answer."""
        answer = self._http.request(**request_args)
        return answer.status_code, answer.content

    @asynccontextmanager
    async def stream(self, request_args: dict[str, Any]) -> AsyncGenerator[BlockingStream, None]:
        """Open an answer that is read as it comes."""
        with self._http.stream(**request_args) as answer:
            yield BlockingStream(answer)

    async def pause(self, seconds: float) -> None:
        """Block the thread."""
        time.sleep(seconds)

    async def close(self) -> None:
        """Close the connection."""
        self._http.close()


Transport = AsyncTransport | BlockingTransport


def connection(endpoint: Endpoint, timeout_s: float) -> httpx.Client:
    """Return a connection for the blocking client."""
    return httpx.Client(**_options(endpoint, timeout_s))


def async_connection(endpoint: Endpoint, timeout_s: float) -> httpx.AsyncClient:
    """Return a connection for the async client."""
    return httpx.AsyncClient(**_options(endpoint, timeout_s))


def _options(endpoint: Endpoint, timeout_s: float) -> dict[str, Any]:
    # The system's certificates, or those that SSL_CERT_FILE names: the way to trust one's own.
    trusted = ssl.create_default_context() if endpoint.is_encrypted else False
    return {
        "timeout": httpx.Timeout(timeout_s, connect=CONNECT_S),
        "trust_env": not endpoint.is_local,
        "verify": trusted,
        "follow_redirects": False,
    }
