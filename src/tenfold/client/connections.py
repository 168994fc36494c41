"""What differs between the two clients: sending a request, and waiting.

This is the only module that imports the HTTP library.

A control plane on this machine is called directly, without the proxy of the environment.
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
    """A streamed response, in an event loop."""

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
    """A streamed response, in the calling thread."""

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
    """Sends requests in an event loop."""

    def __init__(self, endpoint: Endpoint, timeout_s: float) -> None:
        self._http = async_connection(endpoint, timeout_s)

    async def request(self, request_args: dict[str, Any]) -> httpx.Response:
        """Return a response with its content."""
        return await self._http.request(**request_args)

    @asynccontextmanager
    async def stream(self, request_args: dict[str, Any]) -> AsyncGenerator[AsyncStream, None]:
        """Open a streamed response."""
        async with self._http.stream(**request_args) as answer:
            yield AsyncStream(answer)

    async def pause(self, seconds: float) -> None:
        """Wait while other tasks run."""
        await asyncio.sleep(seconds)

    async def close(self) -> None:
        """Close the connection."""
        await self._http.aclose()


class BlockingTransport:
    """Sends requests in the calling thread; nothing here ever suspends a coroutine."""

    def __init__(self, endpoint: Endpoint, timeout_s: float) -> None:
        self._http = connection(endpoint, timeout_s)

    async def request(self, request_args: dict[str, Any]) -> httpx.Response:
        """Return a response with its content."""
        return self._http.request(**request_args)

    @asynccontextmanager
    async def stream(self, request_args: dict[str, Any]) -> AsyncGenerator[BlockingStream, None]:
        """Open a streamed response."""
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
    # The system's certificates, or SSL_CERT_FILE: the way to trust a private CA.
    trusted = ssl.create_default_context() if endpoint.is_encrypted else False
    return {
        "timeout": httpx.Timeout(timeout_s, connect=CONNECT_S),
        "trust_env": not endpoint.is_local,
        "verify": trusted,
        "follow_redirects": False,
    }
