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

from tenfold.server.problems import HEADERS, MEDIA_TYPE
from tenfold.server.runtime.connections.parser import HEAD_BYTES, HEADERS_MAX
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
    detail = f"cannot read the request: {wrong}"
    if status == 431:
        hint = f"headers may have {HEAD_BYTES >> 10} KiB and {HEADERS_MAX} lines"
        return _problem(
            status, "Request Header Fields Too Large", "headers-too-large", detail, hint
        )
    return _problem(status, "Bad Request", "bad-request", detail, "send plain HTTP/1.1")


def _problem(status: int, title: str, code: str, detail: str, hint: str) -> bytes:
    body = msgspec.json.encode(
        {
            "type": f"urn:tenfold:problem:{code}",
            "title": title,
            "status": status,
            "code": code,
            "detail": detail,
            "hint": hint,
        }
    )
    fields = {"content-type": MEDIA_TYPE, "content-length": len(body), **HEADERS}
    head = "".join(f"{name.lower()}: {value}\r\n" for name, value in fields.items())
    return f"HTTP/1.1 {status} {title}\r\n{head}connection: close\r\n\r\n".encode() + body


LATE = _problem(
    408,
    "Request Timeout",
    "request-timeout",
    "the request did not arrive in time",
    "send it again; on a slow line, submit fewer jobs at once",
)
