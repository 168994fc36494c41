"""A gateway follows the routing state of a control plane, and outlives it."""

import os
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Condition, Thread
from urllib.parse import parse_qs, urlsplit

import msgspec

from patience import until
from tenfold.model.service.routing import RoutingState
from tests.rigs.gateway import ROOT, chat_service, state_of
from tests.rigs.openai_replica import ReplicaProcess


class ControlPlane:
    """The part of a control plane that a gateway calls."""

    def __init__(self) -> None:
        self.state = RoutingState()
        self.asked: list[tuple[str, str]] = []
        self.changed = Condition()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                url = urlsplit(self.path)
                after = int(parse_qs(url.query)["after"][0])
                outer.asked.append((url.path, self.headers["Authorization"]))
                with outer.changed:
                    outer.changed.wait_for(lambda: outer.state.version > after, timeout=1)
                    state = outer.state
                body = msgspec.json.encode(state) if state.version > after else b""
                self.send_response(200 if body else 204)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        Thread(target=self.server.serve_forever, daemon=True).start()

    def publish(self, state: RoutingState) -> None:
        with self.changed:
            self.state = state
            self.changed.notify_all()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


@contextmanager
def gateway_of(url: str) -> Generator[tuple[str, str], None, None]:
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT / "src"),
        "TENFOLD_TOKEN": "tf_operator-secret",
    }
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "tenfold", "gateway", "run", "--control-plane", url),
            *("--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"),
        ],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    front, admin = (process.stdout.readline().strip().partition(": ")[2] for _ in range(2))
    try:
        yield front, admin
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def test_every_change_is_followed_and_the_last_state_is_kept(
    replica: Callable[..., ReplicaProcess],
):
    from urllib.error import HTTPError  # noqa: PLC0415
    from urllib.request import urlopen  # noqa: PLC0415

    def get(url: str) -> tuple[int, bytes]:
        try:
            with urlopen(url, timeout=60) as answer:
                return answer.status, answer.read()
        except HTTPError as error:
            return error.code, error.read()

    plane, one = ControlPlane(), replica()
    plane.state = state_of(chat_service([one.url]), version=1)
    with gateway_of(plane.url) as (front, admin):
        until(lambda: get(f"{admin}/readyz")[0] == 200)
        assert b'"stub"' in get(f"{front}/v1/models")[1]
        assert plane.asked[0] == ("/api/v1/routing", "Bearer tf_operator-secret")
        plane.publish(state_of(version=2))
        until(lambda: b'"data":[]' in get(f"{front}/v1/models")[1])
        plane.publish(state_of(chat_service([one.url]), version=3))
        until(lambda: b'"stub"' in get(f"{front}/v1/models")[1])
        plane.close()
        assert b'"stub"' in get(f"{front}/v1/models")[1]
        assert get(f"{admin}/readyz")[0] == 200
