"""Answer every scrape with the same series, whatever the path.

scrape_targets.py PORT SERIES
"""

import asyncio
import sys


class Target(asyncio.Protocol):
    answer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        for _ in range(data.count(b"\r\n\r\n")):
            self._transport.write(self.answer)


async def main(port: int, series: int) -> None:
    lines = (f'm{number % 20}{{i="{number}",zone="a"}} {number}.5\n' for number in range(series))
    body = "".join(lines).encode()
    head = (
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    Target.answer = head.encode() + body
    server = await asyncio.get_running_loop().create_server(Target, "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2])))
