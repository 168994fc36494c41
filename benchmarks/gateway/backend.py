"""A replica that costs almost nothing: a fixed answer, or a stream of tokens every 20 ms.

Each event of a stream has the time at which it was sent, so that its delay can be measured.
"""

import asyncio
import sys
from time import perf_counter_ns
from typing import cast

ANSWER = (
    b'{"id":"chat-1","object":"chat.completion","created":1700000000,"model":"stub","choices":[{'
    b'"index":0,"message":{"role":"assistant","content":"'
    + b"word "
    * 100
    + b'"},"finish_reason":"stop"}],"usage":{"prompt_tokens":200,"completion_tokens":100,'
    b'"total_tokens":300}}'
)
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
WHOLE = HEAD % len(ANSWER) + ANSWER
STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
TOKEN_S = 0.02
TOKENS = 100


class Replica(asyncio.Protocol):
    def __init__(self) -> None:
        self._buffer = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        assert self._transport is not None
        self._buffer += data
        while (end := self._buffer.find(b"\r\n\r\n")) >= 0:
            head = self._buffer[:end].lower()
            length = 0
            if (at := head.find(b"content-length:")) >= 0:
                length = int(head[at + 15 :].split(b"\r\n", 1)[0])
            if len(self._buffer) < end + 4 + length:
                return
            body = self._buffer[end + 4 : end + 4 + length]
            self._buffer = self._buffer[end + 4 + length :]
            if b'"stream":true' in body or b'"stream": true' in body:
                self._stream(TOKENS)
            else:
                self._transport.write(WHOLE)

    def _stream(self, left: int) -> None:
        assert self._transport is not None
        if left == TOKENS:
            self._transport.write(STREAM)
        event = (
            b'data: {"id":"chat-1","object":"chat.completion.chunk","created":1700000000,'
            b'"model":"stub","choices":[{"index":0,"delta":{"content":"%d"}}]}\n\n'
            % perf_counter_ns()
        )
        if left == 0:
            event = b"data: [DONE]\n\n"
        self._transport.write(b"%x\r\n%s\r\n" % (len(event), event))
        if left:
            asyncio.get_running_loop().call_later(TOKEN_S, self._stream, left - 1)
        else:
            self._transport.write(b"0\r\n\r\n")


async def main(port: int) -> None:
    server = await asyncio.get_running_loop().create_server(Replica, "127.0.0.1", port)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    import uvloop

    uvloop.install()
    asyncio.run(main(int(sys.argv[1])))
