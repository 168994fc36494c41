"""Metrics and health of an object server, for Prometheus and for probes, on this machine only."""

import asyncio
from collections.abc import Mapping, Sequence

from tenfold.model.errors import InputError
from tenfold.objects.serve.counts import GAUGES, Counts

HOST = "127.0.0.1"
READ_S = 5.0
_HELP = {
    "requests": "Requests answered",
    "requests_2xx": "Requests answered with success",
    "requests_3xx": "Requests answered with not modified",
    "requests_4xx": "Requests refused because of the client",
    "requests_5xx": "Requests failed because of the server, or slowed down",
    "refused_connections": "Connections beyond the limit",
    "slowed_requests": "Requests answered with SlowDown",
    "received_bytes": "Bytes of request bodies with a known length",
    "sent_bytes": "Bytes of answers",
    "request_microseconds": "Time spent on requests, until their answer was sent",
    "connections": "Open connections",
    "requests_under_way": "Requests in progress",
    "commits": "Commits of the catalogue",
    "changes": "Changes in those commits",
    "blobs_deleted": "Blobs deleted after their grace period",
    "versions_expired": "Versions deleted by lifecycle rules",
    "versions_moved": "Versions moved to another storage class by lifecycle rules",
    "uploads_aborted": "Unfinished uploads dropped by lifecycle rules",
}


async def start_admin(counts: Sequence[Counts], port: int) -> asyncio.Server:
    """Listen for probes and scrapes."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(READ_S):
                head = await reader.readuntil(b"\r\n\r\n")
            writer.write(_answer(head, counts))
            await writer.drain()
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            writer.close()

    try:
        return await asyncio.start_server(answer, HOST, port)
    except OSError as error:
        raise InputError(
            "cannot-listen",
            f"cannot listen on {HOST}:{port}: {error.strerror or error}",
            "choose another `--admin-port`; 0 selects a free one",
        ) from None


def admin_url(server: asyncio.Server) -> str:
    """Return where a server listens."""
    return f"http://{HOST}:{server.sockets[0].getsockname()[1]}"


def metrics_text(totals: Mapping[str, int]) -> str:
    """Return numbers in the format of Prometheus."""
    lines: list[str] = []
    for name, value in totals.items():
        is_gauge = name in GAUGES
        metric = f"tenfold_objects_{name}" + ("" if is_gauge else "_total")
        lines.append(f"# HELP {metric} {_HELP[name]}")
        lines.append(f"# TYPE {metric} {'gauge' if is_gauge else 'counter'}")
        lines.append(f"{metric} {value}")
    return "\n".join(lines) + "\n"


def _answer(head: bytes, counts: Sequence[Counts]) -> bytes:
    path = head.split(b" ", 2)[1] if head.count(b" ") >= 2 else b""
    if path == b"/health":
        return _response("200 OK", "ok\n")
    if path == b"/metrics":
        read = [one.read() for one in counts]
        return _response("200 OK", metrics_text({n: sum(r[n] for r in read) for n in read[0]}))
    return _response("404 Not Found", "paths: /health /metrics\n")


def _response(status: str, text: str) -> bytes:
    body = text.encode()
    head = f"HTTP/1.1 {status}\r\ncontent-type: text/plain; version=0.0.4\r\n"
    return f"{head}content-length: {len(body)}\r\nconnection: close\r\n\r\n".encode() + body
