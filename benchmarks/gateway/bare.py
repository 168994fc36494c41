"""The least that a proxy with aiohttp does: no limits, no choice, no counting, no retries."""

import sys

from aiohttp import ClientSession, ClientTimeout, TCPConnector, web

DROPPED = ("host", "content-length", "transfer-encoding", "connection")


async def app(upstream: str) -> web.Application:
    made = web.Application(client_max_size=32 << 20)
    session = ClientSession(
        connector=TCPConnector(limit=0), timeout=ClientTimeout(total=None), auto_decompress=False
    )

    async def forward(request: web.Request) -> web.StreamResponse:
        body = await request.read()
        headers = {name: v for name, v in request.headers.items() if name.lower() not in DROPPED}
        async with session.request(
            request.method, upstream + request.path_qs, data=body, headers=headers
        ) as answer:
            kept = {
                name: value for name, value in answer.headers.items() if name.lower() not in DROPPED
            }
            response = web.StreamResponse(status=answer.status, headers=kept)
            if answer.content_length is not None:
                response.content_length = answer.content_length
            await response.prepare(request)
            async for part in answer.content.iter_any():
                await response.write(part)
            await response.write_eof()
            return response

    made.router.add_route("*", "/{path:.*}", forward)
    return made


if __name__ == "__main__":
    import uvloop

    uvloop.install()
    web.run_app(
        app(sys.argv[1]),
        host="127.0.0.1",
        port=int(sys.argv[2]),
        access_log=None,
        handler_cancellation=True,
    )
