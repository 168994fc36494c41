"""A deployment of Ray Serve that forwards to the replica; runs in an environment with Ray."""

import sys

import aiohttp
import ray
from ray import serve
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse


@serve.deployment(max_ongoing_requests=1_000, ray_actor_options={"num_cpus": 0})
class Forward:
    def __init__(self, upstream: str) -> None:
        self._upstream = upstream
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0), timeout=aiohttp.ClientTimeout(total=None)
        )

    async def __call__(self, request: Request) -> Response:
        body = await request.body()
        answer = await self._session.post(
            self._upstream + request.url.path,
            data=body,
            headers={"Content-Type": "application/json"},
        )
        if answer.content_type == "text/event-stream":
            return StreamingResponse(answer.content.iter_any(), media_type="text/event-stream")
        return Response(await answer.read(), media_type="application/json")


if __name__ == "__main__":
    ray.init(include_dashboard=False, log_to_driver=False, num_cpus=2)
    serve.start(http_options={"host": "127.0.0.1", "port": int(sys.argv[2])})
    serve.run(Forward.bind(sys.argv[1]), blocking=True)
