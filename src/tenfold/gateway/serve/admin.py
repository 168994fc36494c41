"""The admin address: load for the control plane, metrics, health. It has no secrets to show."""

from collections.abc import Callable

import msgspec
from aiohttp.web import BaseRequest, Response, StreamResponse

from tenfold.gateway.serve.metrics import metrics_text
from tenfold.model.service.traffic import GatewayTraffic

LOAD = "/gateway/load"
METRICS = "/metrics"
TEXT = "text/plain; version=0.0.4; charset=utf-8"


class Admin:
    """Answers requests on the admin address."""

    def __init__(
        self,
        traffic: Callable[[], GatewayTraffic],
        gauges: Callable[[], dict[str, float]],
        why_not_ready: Callable[[], str],
    ) -> None:
        self._traffic = traffic
        self._gauges = gauges
        self._why_not_ready = why_not_ready

    async def handle(self, request: BaseRequest) -> StreamResponse:
        """Answer one request."""
        if request.method not in ("GET", "HEAD"):
            return _json({"error": "only GET is allowed"}, 405)
        path = request.path
        if path == LOAD:
            return _json(self._traffic())
        if path == METRICS:
            text = metrics_text(self._traffic(), self._gauges())
            return Response(body=text, headers={"Content-Type": TEXT})
        if path == "/healthz":
            return _json({"status": "ok"})
        if path == "/readyz":
            why = self._why_not_ready()
            return _json({"status": why or "ready"}, 503 if why else 200)
        return _json({"error": "no such path"}, 404)


def _json(value: object, status: int = 200) -> Response:
    return Response(body=msgspec.json.encode(value), status=status, content_type="application/json")
