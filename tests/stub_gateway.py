"""The admin address of a gateway that says what a test wants it to say."""

import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import msgspec
from msgspec.structs import replace

from tenfold.clock.wall import now_ms
from tenfold.model.service.traffic import (
    GatewayTraffic,
    ReplicaTraffic,
    RevisionTraffic,
    RolledBack,
    ServiceTraffic,
)

NOTHING = ServiceTraffic(
    name="chat",
    arrivals=0,
    arrived_input_tokens=0,
    arrived_output_tokens=0,
    output_tokens=0,
    ended=0,
    ended_output_tokens=0,
    late=0,
    failed=0,
    shed=0,
    limited=0,
    retries=0,
    hedges=0,
    busy_request_ms=0,
    outstanding_requests=0,
    outstanding_tokens=0,
    waiting_requests=0,
    waiting_tokens=0,
    oldest_wait_ms=0,
    tokens_per_request=0.0,
    input_tokens_per_request=0.0,
    output_tokens_per_request=0.0,
    revisions=(),
    overflow=(),
)


class StubGateway:
    """Says the load of one service, `chat`."""

    def __init__(self) -> None:
        self.url = ""
        self.service = NOTHING
        self.rolled_back: tuple[RolledBack, ...] = ()
        self.busy: dict[str, int] = {}
        """Requests in each replica."""
        self.routing_version = 1 << 53
        """It knows every state of routing."""
        self.readings = 0

    def traffic(self) -> GatewayTraffic:
        """Return what it says now."""
        self.readings += 1
        replicas = tuple(
            ReplicaTraffic(id=name, requests=count, tokens=0, breaker="closed")
            for name, count in self.busy.items()
        )
        revision = RevisionTraffic(
            name="r1",
            requests=0,
            errors=0,
            misses=0,
            ttft_counts=(),
            ttft_ms_sum=0,
            replicas=replicas,
        )
        return GatewayTraffic(
            gateway_id="stub",
            started_ms=0,
            at_ms=now_ms(),
            routing_version=self.routing_version,
            services=(replace(self.service, revisions=(revision,)),),
            rolled_back=self.rolled_back,
        )

    def wants(self, requests: int) -> None:
        """Say that so many requests wait, and none has been answered yet."""
        self.service = replace(
            self.service,
            arrivals=self.service.arrivals + requests,
            waiting_requests=requests,
        )

    def is_quiet(self) -> None:
        """Say that no request waits."""
        self.service = replace(self.service, waiting_requests=0, outstanding_requests=0)


@contextmanager
def stub_gateway() -> Generator[StubGateway]:
    """Yield a gateway at a free port."""
    made = StubGateway()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = msgspec.json.encode(made.traffic())
            self.send_response(200 if self.path == "/gateway/load" else 404)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield made
    finally:
        server.shutdown()
        server.server_close()
