"""Responses that the server writes itself, without the application."""

import asyncio
from collections.abc import Callable

import msgspec
from uvicorn._types import (
    ASGI3Application,
    ASGIReceiveCallable,
    ASGISendCallable,
    ASGISendEvent,
    Scope,
)

from tenfold.server.runtime.connections.parser import HEAD_BYTES
from tenfold.server.runtime.health import PATHS

REFUSAL = {
    "type": "urn:tenfold:problem:too-many-connections",
    "title": "Service unavailable",
    "status": 503,
    "code": "too-many-connections",
    "detail": "all connections are in use",
    "hint": "try again later, or raise the open file limit of the server (`ulimit -n`)",
}
BODY = msgspec.json.encode(REFUSAL)
_CLOSE = (b"connection", b"close")
_HEADERS = [
    (b"content-type", b"application/problem+json"),
    (b"content-length", str(len(BODY)).encode()),
    (b"retry-after", b"1"),
    _CLOSE,
]
REFUSED = (
    b"HTTP/1.1 503 Service Unavailable\r\n"
    + b"".join(name + b": " + value + b"\r\n" for name, value in _HEADERS)
    + b"\r\n"
    + BODY
)
LATE = b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


def health_only(
    app: ASGI3Application, refuse: Callable[[float], None], loop: asyncio.AbstractEventLoop
) -> "object":
    """Return an application that answers health checks and refuses everything else."""

    async def answer(scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
        async def closing(message: ASGISendEvent) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), _CLOSE]
            await send(message)

        if scope["type"] == "http" and scope["path"] in PATHS:
            await app(scope, receive, closing)
            return
        refuse(loop.time())
        await send({"type": "http.response.start", "status": 503, "headers": _HEADERS})
        await send({"type": "http.response.body", "body": BODY, "more_body": False})

    return answer


def bad_request(status: int, wrong: str) -> bytes:
    """Return the response to what is not a request that we read."""
    is_large = status == 431
    title = "Request Header Fields Too Large" if is_large else "Bad Request"
    hint = f"headers may have {HEAD_BYTES >> 10} KiB" if is_large else "send plain HTTP/1.1"
    code = "headers-too-large" if is_large else "bad-request"
    body = msgspec.json.encode(
        {
            "type": f"urn:tenfold:problem:{code}",
            "title": title,
            "status": status,
            "code": code,
            "detail": f"cannot read the request: {wrong}",
            "hint": hint,
        }
    )
    head = f"HTTP/1.1 {status} {title}\r\ncontent-type: application/problem+json\r\n"
    return f"{head}content-length: {len(body)}\r\nconnection: close\r\n\r\n".encode() + body
