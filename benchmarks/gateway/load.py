"""Clients that cost little: keep-alive connections that send a fixed request again and again."""

import asyncio
import itertools
import json
import re
from time import perf_counter_ns

PATH = "/v1/chat/completions"
MESSAGES = [
    {"role": "system", "content": "You are a helpful assistant. " * 10},
    {"role": "user", "content": "What is the capital of France, and why? " * 12},
]
BODY = json.dumps({"model": "stub", "messages": MESSAGES, "max_tokens": 100}).encode()
STREAMED = json.dumps({"model": "stub", "messages": MESSAGES, "stream": True}).encode()
HEADERS = {
    "Content-Type": "application/json",
    "Authorization": "Bearer bench",
    "Accept": "application/json",
    "User-Agent": "OpenAI/Python 3.0",
    "X-Stainless-Lang": "python",
}
_LENGTH = re.compile(rb"(?i)content-length: *(\d+)")
_STAMP = re.compile(rb'"content":"(\d+)"')


def request(body: bytes) -> bytes:
    lines = [f"POST {PATH} HTTP/1.1", "Host: 127.0.0.1", f"Content-Length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in HEADERS.items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


async def requests(port: int, count: int, connections: int) -> list[float]:
    """Send so many requests over so many connections; return seconds for each."""
    took: list[float] = []
    left = iter(range(count))
    sent = request(BODY)

    async def client() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for _ in left:
            began = perf_counter_ns()
            writer.write(sent)
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200"), head[:200]
            length = _LENGTH.search(head)
            if length is not None:
                body = await reader.readexactly(int(length[1]))
            else:
                body = await reader.readuntil(b"0\r\n\r\n")
            assert b"word word" in body
            took.append((perf_counter_ns() - began) / 1e9)
        writer.close()

    await asyncio.gather(*(client() for _ in range(connections)))
    return took


async def stream(port: int) -> tuple[list[float], list[float]]:
    """Read one stream; return the delay of each token and the gaps between them, in seconds."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request(STREAMED))
    delays: list[float] = []
    arrived: list[float] = []
    rest = b""
    while b"[DONE]" not in rest:
        part = await reader.read(65_536)
        now = perf_counter_ns()
        assert part, "the stream broke off"
        rest += part
        end = 0
        for found in _STAMP.finditer(rest):
            delays.append((now - int(found[1])) / 1e9)
            arrived.append(now / 1e9)
            end = found.end()
        rest = rest[end:]
    writer.close()
    gaps = [later - earlier for earlier, later in itertools.pairwise(arrived)]
    return delays, gaps
